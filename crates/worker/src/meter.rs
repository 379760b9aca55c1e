//! What is counted of one task, for as long as it is kept.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use highwater_connector::TopicPartition;
use jiff::Timestamp;
use parking_lot::Mutex;

/// Upper bounds of the buckets of a commit's time, in milliseconds.
pub(crate) const COMMIT_BOUNDS: [u64; 8] = [1, 5, 25, 100, 500, 1_000, 5_000, 30_000];

/// A number that grows.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: usize) {
        self.0.fetch_add(more as u64, Ordering::Relaxed);
    }

    pub(crate) fn one(&self) {
        self.add(1);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A number that is not always known.
#[derive(Debug)]
pub(crate) struct Level(AtomicI64);

impl Level {
    const UNKNOWN: i64 = i64::MIN;

    pub(crate) fn set(&self, level: Option<i64>) {
        self.0.store(level.unwrap_or(Self::UNKNOWN), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> Option<i64> {
        Some(self.0.load(Ordering::Relaxed)).filter(|level| *level != Self::UNKNOWN)
    }
}

impl Default for Level {
    fn default() -> Self {
        Self(AtomicI64::new(Self::UNKNOWN))
    }
}

/// How long commits took: how many by bucket, those above all bounds last, and all together.
#[derive(Debug, Default)]
pub(crate) struct Commits {
    buckets: [Count; COMMIT_BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Commits {
    pub(crate) fn took(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let within = COMMIT_BOUNDS.iter().position(|bound| micros <= bound * 1_000);
        self.buckets[within.unwrap_or(COMMIT_BOUNDS.len())].one();
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// How many took no longer than each bound, and how many there were.
    pub(crate) fn up_to_each(&self) -> [u64; COMMIT_BOUNDS.len() + 1] {
        let mut sum = 0;
        self.buckets.each_ref().map(|bucket| {
            sum += bucket.get();
            sum
        })
    }

    pub(crate) fn seconds(&self) -> f64 {
        Duration::from_micros(self.micros.load(Ordering::Relaxed)).as_secs_f64()
    }
}

/// A partition that a sink reads on elsewhere, since the log lacks the offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Move {
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) at: Timestamp,
}

/// See the module's text. Numbers grow over the runs of the task; levels are unknown between them.
#[derive(Debug, Default)]
pub(crate) struct TaskMeter {
    /// Whether the task writes to a sink, and does not read a source.
    pub(crate) is_sink: AtomicBool,
    /// Records that the log has acknowledged, or the sink accepted.
    pub(crate) records: Count,
    /// Bytes of keys, values and headers of records sent to the log, or accepted by the sink.
    pub(crate) bytes: Count,
    /// Polls that brought records, or puts that were accepted.
    pub(crate) batches: Count,
    /// When a record was acknowledged or accepted last, in milliseconds since 1970.
    pub(crate) last_record: Level,
    /// Records that a sink is behind the end of its partitions.
    pub(crate) lag_records: Level,
    /// Milliseconds that the task is behind.
    pub(crate) lag: Level,
    pub(crate) commits: Commits,
    pub(crate) commit_failures: Count,
    /// Times that the task ended with an error.
    pub(crate) failures: Count,
    /// Operations on records that were tried again.
    pub(crate) retries: Count,
    /// Records that could not be handled.
    pub(crate) record_failures: Count,
    /// Those of them that were gone on without.
    pub(crate) skipped: Count,
    pub(crate) dead_letters: Count,
    pub(crate) dead_letter_failures: Count,
    /// Times that a sink reads on elsewhere, since the log lacks the offset.
    pub(crate) moves: Count,
    /// The last such move of each partition.
    pub(crate) moved: Mutex<BTreeMap<TopicPartition, Move>>,
    /// When the task's loop came round last, in milliseconds since 1970.
    pub(crate) turned: Level,
    /// How often it did.
    #[cfg(test)]
    pub(crate) rounds: Count,
    /// Since when a sink takes nothing that it is given.
    pub(crate) refused_since: Level,
}

impl TaskMeter {
    /// Records were acknowledged, or accepted, just now.
    pub(crate) fn moved_on(&self, records: usize) {
        if records > 0 {
            self.records.add(records);
            self.last_record.set(Some(Timestamp::now().as_millisecond()));
        }
    }

    /// A sink reads a partition on elsewhere.
    pub(crate) fn moved(&self, partition: &TopicPartition, from: i64, to: i64) {
        self.moves.one();
        self.moved.lock().insert(partition.clone(), Move { from, to, at: Timestamp::now() });
    }

    /// The task's loop comes round.
    pub(crate) fn turns(&self) {
        self.turned.set(Some(Timestamp::now().as_millisecond()));
        #[cfg(test)]
        self.rounds.one();
    }

    /// The sink takes nothing.
    pub(crate) fn refuses(&self) {
        if self.refused_since.get().is_none() {
            self.refused_since.set(Some(Timestamp::now().as_millisecond()));
        }
    }

    /// A commit ended after this long.
    pub(crate) fn committed<T, E>(&self, time: Duration, result: &Result<T, E>) {
        match result {
            Ok(_) => self.commits.took(time),
            Err(_) => self.commit_failures.one(),
        }
    }

    /// A run ended: how far the task is behind, and whether it moves, is not known until it runs again.
    pub(crate) fn run_ended(&self) {
        self.lag_records.set(None);
        self.lag.set(None);
        self.turned.set(None);
        self.refused_since.set(None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_counts_in_every_bucket_that_it_fits() {
        let commits = Commits::default();
        for millis in [0, 1, 2, 600, 40_000] {
            commits.took(Duration::from_millis(millis));
        }
        assert_eq!(commits.up_to_each(), [2, 3, 3, 3, 3, 4, 4, 4, 5]);
        assert!((commits.seconds() - 40.603).abs() < 1e-9);
    }

    #[test]
    fn a_level_is_unknown_until_it_is_set_and_after_a_run() {
        let meter = TaskMeter::default();
        assert_eq!((meter.lag.get(), meter.last_record.get()), (None, None));
        meter.lag.set(Some(0));
        meter.moved_on(0);
        assert_eq!((meter.lag.get(), meter.last_record.get()), (Some(0), None));
        meter.moved_on(2);
        meter.run_ended();
        assert_eq!((meter.lag.get(), meter.records.get()), (None, 2));
        assert!(meter.last_record.get().is_some(), "that stays true");
    }

    #[test]
    fn a_failed_commit_has_no_time() {
        let meter = TaskMeter::default();
        meter.committed::<(), ()>(Duration::from_secs(9), &Err(()));
        meter.committed::<(), ()>(Duration::ZERO, &Ok(()));
        assert_eq!((meter.commit_failures.get(), meter.commits.up_to_each()[8]), (1, 1));
    }
}
