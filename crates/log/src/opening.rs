//! How far the opening of a data directory has come, for those who wait for it and those who ask later
//! how the log was left.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

/// Counts while [`Log::open_observed`](crate::Log::open_observed) runs, and what it found once it is
/// done.
#[derive(Debug, Default)]
pub struct Opening {
    partitions: AtomicUsize,
    opened: AtomicUsize,
    unclean: AtomicUsize,
    offline: AtomicUsize,
    cut: Mutex<Vec<String>>,
}

/// What a start found of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    /// All of it, but for a torn end.
    Whole,
    /// It was cut, and whole batches stood behind the cut.
    Cut,
    /// It could not be opened.
    Offline,
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

    /// Of those, the ones that could not be opened.
    pub fn offline(&self) -> usize {
        self.offline.load(Ordering::Relaxed)
    }

    /// The partitions, by name, that were cut where whole batches stood behind the broken one. No sync of
    /// those is known; they were kept aside, in a file of the partition's folder that ends with `.cut`.
    pub fn cut(&self) -> Vec<String> {
        self.cut.lock().clone()
    }

    pub(crate) fn begin(&self, partitions: usize) {
        self.partitions.store(partitions, Ordering::Relaxed);
    }

    pub(crate) fn one_more(&self, partition: String, clean: bool, found: Found) {
        self.offline.fetch_add(usize::from(found == Found::Offline), Ordering::Relaxed);
        if found == Found::Cut {
            self.cut.lock().push(partition);
        }
        self.unclean.fetch_add(usize::from(!clean), Ordering::Relaxed);
        self.opened.fetch_add(1, Ordering::Relaxed);
    }
}
