//! Group commit: the writers of a partition share its fsync, and partitions are synced side by side by a
//! bounded pool of threads (rule L2).
//!
//! An append asks for a sync and goes on. While one sync of a partition runs, everything appended
//! meanwhile waits together for the next one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::background::Background;
use crate::counters;
use crate::partition::Partition;
use crate::{LogError, PartitionState};

/// The partitions that wait for a sync. Each stands in it once at most.
#[derive(Debug, Default)]
pub(crate) struct FlushQueue {
    waiting: Mutex<Waiting>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    partitions: VecDeque<Arc<Partition>>,
    /// False before the start, after the end, and in a log without a pool: then nothing waits.
    manned: bool,
}

/// Where a partition stands with the pool.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum FlushTurn {
    /// Nothing to do.
    #[default]
    Idle,
    /// In the queue.
    Waiting,
    /// A thread syncs it.
    Running,
    /// A thread syncs it, and something was appended since.
    RunningAgain,
}

impl FlushQueue {
    /// Starts the threads of the pool.
    pub(crate) fn start(
        self: &Arc<Self>,
        background: &Background,
        threads: usize,
    ) -> Result<(), LogError> {
        self.waiting.lock().manned = threads > 0;
        (0..threads).try_for_each(|number| {
            let queue = Arc::clone(self);
            background.start(&format!("log-flush-{number}"), move |_| queue.run())
        })
    }

    /// Ends the threads once they have done what they are at.
    pub(crate) fn stop(&self) {
        let mut waiting = self.waiting.lock();
        waiting.manned = false;
        waiting.partitions.clear();
        self.wake.notify_all();
    }

    fn push(&self, partition: Arc<Partition>) {
        let mut waiting = self.waiting.lock();
        if waiting.manned {
            waiting.partitions.push_back(partition);
            self.wake.notify_one();
        }
    }

    fn run(&self) {
        while let Some(partition) = self.next() {
            partition.take_turn();
        }
    }

    fn next(&self) -> Option<Arc<Partition>> {
        let mut waiting = self.waiting.lock();
        loop {
            if !waiting.manned {
                return None;
            }
            if let Some(partition) = waiting.partitions.pop_front() {
                return Some(partition);
            }
            self.wake.wait(&mut waiting);
        }
    }
}

impl Partition {
    /// Asks the pool for a sync.
    pub(crate) fn request_flush(&self) {
        let mut turn = self.turn.lock();
        match *turn {
            FlushTurn::Idle => {
                if let Some(me) = self.me.upgrade() {
                    *turn = FlushTurn::Waiting;
                    self.queue.push(me);
                }
            }
            FlushTurn::Running => *turn = FlushTurn::RunningAgain,
            FlushTurn::Waiting | FlushTurn::RunningAgain => {}
        }
    }

    /// How many records no sync covers yet.
    pub(crate) fn unsynced(&self) -> i64 {
        let marks = self.marks();
        marks.log_end.offset - marks.synced.offset
    }

    fn take_turn(self: Arc<Self>) {
        *self.turn.lock() = FlushTurn::Running;
        // The error has stopped the partition and reached those who wait.
        let _ = self.flush();
        let mut turn = self.turn.lock();
        let again = *turn == FlushTurn::RunningAgain;
        *turn = if again { FlushTurn::Waiting } else { FlushTurn::Idle };
        drop(turn);
        if again {
            let queue = Arc::clone(&self.queue);
            queue.push(self);
        }
    }

    /// Syncs what was appended so far. Blocks on the disk.
    ///
    /// # Errors
    /// [`LogError::Poisoned`] if the disk refuses.
    pub fn flush(&self) -> Result<(), LogError> {
        // One sync at a time: an error must have stopped the partition before the next one could
        // report success for the data that this one lost.
        let _sync = self.sync.lock();
        self.check_usable()?;
        let (active, then) = {
            let segments = self.segments.read();
            (segments.last().cloned(), self.marks())
        };
        let Some(active) = active.filter(|_| !then.is_synced()) else { return Ok(()) };
        // Segments before the active one were synced when they were closed.
        let began = Instant::now();
        site!("flush.data", active.sync()).map_err(|error| self.poison(&error))?;
        counters::synced(began.elapsed());
        self.change(|marks| marks.synced_since(&then));
        Ok(())
    }

    /// Stops a partition whose data may not be on disk. After a failed fsync the system may have thrown
    /// the data away and would report success the next time, so the sync is never tried again; the
    /// partition is reopened instead.
    pub(crate) fn poison(&self, error: &LogError) -> LogError {
        let poisoned = self.poisoned(&error.cause());
        tracing::error!(partition = self.place.name(), %error, "a partition is poisoned and will be reopened");
        let marks = self.stop(PartitionState::Poisoned, poisoned.clone());
        if let Err(error) = self.place.note_cut(marks.synced, marks.leader_epoch) {
            tracing::warn!(partition = self.place.name(), %error, "a cut that is due could not be noted");
        }
        poisoned
    }
}
