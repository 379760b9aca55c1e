//! How far the opening of a data directory has come, for those who wait for it and those who ask later
//! how the log was left.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts while [`Log::open_observed`](crate::Log::open_observed) runs, and what it found once it is
/// done.
#[derive(Debug, Default)]
pub struct Opening {
    partitions: AtomicUsize,
    opened: AtomicUsize,
    unclean: AtomicUsize,
}

impl Opening {
    /// Partitions that the data directory names; 0 until that is known.
    pub fn partitions(&self) -> usize {
        self.partitions.load(Ordering::Relaxed)
    }

    /// Partitions that were opened so far, also those found to be offline.
    pub fn opened(&self) -> usize {
        self.opened.load(Ordering::Relaxed)
    }

    /// Of those, the ones that the last stop did not close: a kill, a power loss, a fault of the disk.
    pub fn unclean(&self) -> usize {
        self.unclean.load(Ordering::Relaxed)
    }

    pub(crate) fn begin(&self, partitions: usize) {
        self.partitions.store(partitions, Ordering::Relaxed);
    }

    pub(crate) fn one_more(&self, clean: bool) {
        self.unclean.fetch_add(usize::from(!clean), Ordering::Relaxed);
        self.opened.fetch_add(1, Ordering::Relaxed);
    }
}
