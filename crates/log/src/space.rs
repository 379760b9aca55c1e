//! How many bytes the log may hold in all, and how many it holds.
//!
//! At the limit, and where the disk is full, an append is refused and retention comes early; then holds are
//! broken. Nothing is removed that its topic's own retention would keep: an operator who lowers retention
//! decides what goes, the limit does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::LogError;

/// The bytes of all segments, indexes not counted.
#[derive(Debug)]
pub(crate) struct Space {
    /// [`ALL`] where there is no limit.
    most: AtomicU64,
    held: AtomicU64,
    refused: AtomicBool,
}

/// As much as fits.
const ALL: u64 = u64::MAX;

/// What one partition holds of it.
#[derive(Debug)]
pub(crate) struct Share {
    space: Arc<Space>,
    held: AtomicU64,
}

impl Space {
    pub(crate) fn new(most: Option<u64>) -> Self {
        let most = AtomicU64::new(most.unwrap_or(ALL));
        Self { most, held: AtomicU64::new(0), refused: AtomicBool::new(false) }
    }

    /// The limit, if there is one.
    pub(crate) fn most(&self) -> Option<u64> {
        Some(self.most.load(Ordering::Relaxed)).filter(|most| *most != ALL)
    }

    pub(crate) fn set_most(&self, most: Option<u64>) {
        self.most.store(most.unwrap_or(ALL), Ordering::Relaxed);
    }

    pub(crate) fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed)
    }

    /// True if an append was refused since the last call.
    pub(crate) fn take_refusal(&self) -> bool {
        self.refused.swap(false, Ordering::Relaxed)
    }
}

impl Share {
    /// Of a partition that holds nothing yet.
    pub(crate) fn new(space: Arc<Space>) -> Self {
        Self { space, held: AtomicU64::new(0) }
    }

    /// Refuses bytes for which there is no room. Partitions that ask at the same time may pass the limit
    /// by one append each.
    pub(crate) fn check(&self, bytes: u64) -> Result<(), LogError> {
        let held = self.space.held();
        match self.space.most() {
            Some(most) if held + bytes > most => {
                self.tell_refusal();
                Err(LogError::TotalLimit { held, most })
            }
            _ => Ok(()),
        }
    }

    /// An append was refused for want of space.
    pub(crate) fn tell_refusal(&self) {
        self.space.refused.store(true, Ordering::Relaxed);
    }

    pub(crate) fn grow(&self, bytes: u64) {
        self.held.fetch_add(bytes, Ordering::Relaxed);
        self.space.held.fetch_add(bytes, Ordering::Relaxed);
    }

    /// What the partition holds now, whatever it held before.
    pub(crate) fn set(&self, bytes: u64) {
        let before = self.held.swap(bytes, Ordering::Relaxed);
        // Wraps on purpose: the difference may be negative.
        self.space.held.fetch_add(bytes.wrapping_sub(before), Ordering::Relaxed);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_are_given_back() {
        let space = Arc::new(Space::new(Some(100)));
        let (one, other) = (Share::new(Arc::clone(&space)), Share::new(Arc::clone(&space)));
        one.grow(60);
        other.set(40);
        assert!(one.check(0).is_ok());
        assert!(matches!(one.check(1), Err(LogError::TotalLimit { held: 100, most: 100 })));
        assert!(space.take_refusal() && !space.take_refusal());
        one.set(10);
        assert_eq!(space.held(), 50);
        drop(other);
        assert_eq!(space.held(), 10);
        assert!(one.check(91).is_err());
        space.set_most(Some(200));
        assert!(one.check(91).is_ok(), "the volume has grown");
    }
}
