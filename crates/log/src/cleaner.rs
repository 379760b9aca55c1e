//! The thread that compacts: the partition with the most to gain first, one at a time.

use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::LogError;
use crate::cleanable::Cleanable;
use crate::cleaning::{Cleaned, Means};
use crate::counters;
use crate::housekeeper::now_ms;
use crate::log::Inner;
use crate::partition::Partition;
use crate::throttle::{Stop, Throttle};

/// How compaction works.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CompactionConfig {
    /// How often partitions are looked at (while there is housekeeping).
    pub interval: Duration,
    /// Memory for the newest offsets of keys, in bytes; a key takes 27. Where a pass meets more keys, it
    /// covers less of the partition.
    pub buffer_bytes: usize,
    /// The most bytes that it reads and writes a second. None: as fast as the disk goes.
    pub bytes_per_second: Option<u64>,
}

impl Default for CompactionConfig {
    fn default() -> Self {
        Self { interval: Duration::from_secs(15), buffer_bytes: 32 << 20, bytes_per_second: None }
    }
}

/// The compacting thread's end of the rope.
#[derive(Debug, Default)]
pub(crate) struct Cleaner {
    stop: Stop,
}

/// Why a partition is not compacted for now: a pass over it has failed.
#[derive(Debug, Default)]
pub(crate) struct Uncleanable {
    failures: u32,
    until_ms: i64,
}

impl Uncleanable {
    const FIRST_MS: i64 = 60_000;
    const MOST_MS: i64 = 3_600_000;

    fn is_over(&self, now_ms: i64) -> bool {
        now_ms >= self.until_ms
    }

    /// The wait doubles from one failure to the next.
    fn failed(&mut self, now_ms: i64) -> i64 {
        let wait = (Self::FIRST_MS << self.failures.min(6)).min(Self::MOST_MS);
        self.failures += 1;
        self.until_ms = now_ms.saturating_add(wait);
        wait
    }
}

impl Cleaner {
    /// Starts the thread, if the log is to have one. It ends with the log.
    pub(crate) fn start(&self, log: &Arc<Inner>) -> Result<Option<JoinHandle<()>>, LogError> {
        if log.config.housekeeping.is_none() {
            return Ok(None);
        }
        let config = log.config.compaction.clone();
        let stop = Arc::clone(&self.stop);
        let log = Arc::downgrade(log);
        thread::Builder::new()
            .name("log-cleaner".to_owned())
            .spawn(move || run(&log, &stop, &config))
            .map(Some)
            .map_err(LogError::io("start", "the compacting thread".as_ref()))
    }

    pub(crate) fn stop(&self) {
        let (stopped, wake) = &*self.stop;
        *stopped.lock() = true;
        wake.notify_all();
    }
}

fn run(log: &Weak<Inner>, stop: &Stop, config: &CompactionConfig) {
    let (stopped, wake) = &**stop;
    loop {
        let mut ends = stopped.lock();
        if !*ends {
            wake.wait_for(&mut ends, config.interval);
        }
        if *ends {
            return;
        }
        drop(ends);
        let means = || Means {
            now_ms: now_ms(),
            buffer_bytes: config.buffer_bytes,
            throttle: Throttle::new(config.bytes_per_second, Arc::clone(stop)),
        };
        // The log is not held during a pass, so that it can end.
        while let Some((partition, cleanable)) =
            log.upgrade().and_then(|log| log.dirtiest(now_ms()))
            && partition.clean_and_tell(&cleanable, &means())
        {}
    }
}

impl Inner {
    /// Compacts what is due; answers how many passes that took.
    pub(crate) fn run_compaction(&self, now_ms: i64) -> usize {
        let buffer_bytes = self.config.compaction.buffer_bytes;
        let throttle = Throttle::new(None, Stop::default());
        let means = Means { now_ms, buffer_bytes, throttle };
        let mut passes = 0;
        while let Some((partition, cleanable)) = self.dirtiest(now_ms)
            && partition.clean_and_tell(&cleanable, &means)
        {
            passes += 1;
        }
        passes
    }

    /// The partition that has the most to gain.
    fn dirtiest(&self, now_ms: i64) -> Option<(Arc<Partition>, Cleanable)> {
        let mut dirtiest: Option<(Arc<Partition>, Cleanable)> = None;
        let (mut most, mut waiting) = (0.0, 0);
        for partition in self.partitions() {
            if !partition.uncleanable.lock().is_over(now_ms) {
                waiting += 1;
                continue;
            }
            let Ok(Some(cleanable)) = partition.cleanable(now_ms) else { continue };
            most = cleanable.ratio().max(most);
            let before = dirtiest.as_ref().map_or(0.0, |(_, before)| before.ratio());
            if cleanable.is_due(&partition.config().compaction) && cleanable.ratio() > before {
                dirtiest = Some((partition, cleanable));
            }
        }
        counters::looked_for_dirt(most, waiting);
        dirtiest
    }
}

impl Partition {
    /// A pass that fails is told, and tried again after a while: what broke it will not mend at once.
    fn clean_and_tell(&self, cleanable: &Cleanable, means: &Means) -> bool {
        let began = Instant::now();
        let partition = self.place.name();
        match self.clean(cleanable, means) {
            Ok(cleaned) => {
                if cleaned.is_complete {
                    *self.uncleanable.lock() = Uncleanable::default();
                }
                counters::cleaned(&cleaned, began.elapsed());
                let Cleaned { bytes_read, bytes_written, records_removed, .. } = cleaned;
                tracing::debug!(partition, bytes_read, bytes_written, records_removed, "compacted");
                cleaned.is_complete
            }
            Err(error) => {
                let wait_ms = self.uncleanable.lock().failed(means.now_ms);
                tracing::error!(partition, code = error.code(), %error, wait_ms, "a partition could not be compacted: it goes on as it is");
                counters::clean_failed();
                // Others are not to wait for it.
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_failure_it_waits_longer_each_time() {
        let mut uncleanable = Uncleanable::default();
        assert!(uncleanable.is_over(0));
        assert_eq!(uncleanable.failed(1000), 60_000);
        assert!(!uncleanable.is_over(60_999) && uncleanable.is_over(61_000));
        assert_eq!((0..10).map(|_| uncleanable.failed(0)).max(), Some(3_600_000));
    }
}
