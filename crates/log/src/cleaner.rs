//! The thread that compacts: the partition with the most to gain first, one at a time.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use crate::background::Stop;
use crate::cleanable::Cleanable;
use crate::cleaning::{Cleaned, Means};
use crate::counters;
use crate::log::Inner;
use crate::partition::Partition;
use crate::retry::Retry;
use crate::throttle::Throttle;
use crate::wall_clock::now_ms;

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

/// When a partition may be compacted again over which a pass has failed: what broke it will not mend at once.
pub(crate) type Uncleanable = Retry<60_000, 3_600_000>;

/// Compacts until it is stopped.
pub(crate) fn run(log: &Weak<Inner>, stop: &Stop, config: &CompactionConfig) {
    while stop.pause(config.interval) {
        let means = || Means {
            now_ms: now_ms(),
            buffer_bytes: config.buffer_bytes,
            throttle: Throttle::new(config.bytes_per_second, stop.clone()),
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
            if !partition.uncleanable.lock().is_due(now_ms) {
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
    /// A pass that fails is told, and tried again after a while.
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
