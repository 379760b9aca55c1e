//! Bytes that are held, counted where they are taken and given back where they are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A sum of bytes that several holders share.
#[derive(Clone, Debug, Default)]
pub(super) struct Meter(Arc<AtomicU64>);

impl Meter {
    /// The sum now.
    pub(super) fn bytes(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// A holder of nothing yet.
    pub(super) fn holder(&self) -> Held {
        Held { meter: self.clone(), bytes: 0 }
    }
}

/// What one holder has in the sum; gives it back when dropped.
#[derive(Debug)]
pub(super) struct Held {
    meter: Meter,
    bytes: u64,
}

impl Held {
    /// How much is held.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Holds so much from now on.
    pub(super) fn set(&mut self, bytes: u64) {
        if bytes > self.bytes {
            self.meter.0.fetch_add(bytes - self.bytes, Ordering::Relaxed);
        } else if bytes < self.bytes {
            self.meter.0.fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_is_given_back() {
        let meter = Meter::default();
        let (mut one, mut other) = (meter.holder(), meter.holder());
        one.set(10);
        other.set(5);
        one.set(7);
        assert_eq!((meter.bytes(), one.bytes()), (12, 7));
        drop(one);
        assert_eq!(meter.bytes(), 5);
    }
}
