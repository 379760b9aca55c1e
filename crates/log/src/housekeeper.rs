//! What has to be done from time to time.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::background::Stop;
use crate::log::Inner;
use crate::partition::Partition;
use crate::retention::{Spare, retained};
use crate::wall_clock::now_ms;
use crate::{Flush, LogError, PartitionState};

/// How often retention runs while appends are refused.
const AT_LIMIT: Duration = Duration::from_secs(1);

/// Looks after the partitions until it is stopped.
pub(crate) fn run(log: &Weak<Inner>, stop: &Stop, every: Duration) {
    let (mut flushed, mut retained) = (Instant::now(), Instant::now());
    while stop.pause(every) {
        let Some(log) = log.upgrade() else { return };
        log.housekeep(now_ms());
        if flushed.elapsed() >= log.config.flush_interval {
            log.flush_due(now_ms());
            flushed = Instant::now();
        }
        let since = retained.elapsed();
        if since >= AT_LIMIT && log.space.take_refusal() {
            log.make_room(now_ms());
        } else if since >= log.config.retention_interval {
            log.run_retention(now_ms());
        } else {
            continue;
        }
        retained = Instant::now();
    }
}

impl Inner {
    pub(crate) fn housekeep(&self, now_ms: i64) {
        for partition in self.partitions() {
            partition.revive(now_ms);
            partition.roll_if_old(now_ms);
            partition.keep_recovery_point(now_ms);
        }
    }

    /// Appends were refused for want of space: retention comes early; where it may take nothing more, what
    /// waits for an archive that does not work goes; then a hold is broken (rule L7).
    pub(crate) fn make_room(&self, now_ms: i64) -> usize {
        let steps = [Self::run_retention, Self::give_up_archive, Self::break_holds];
        steps.iter().map(|step| step(self, now_ms)).find(|removed| *removed > 0).unwrap_or(0)
    }

    /// Has those synced whose policy says so, or whose `flush.ms` is over.
    fn flush_due(&self, now_ms: i64) {
        for partition in self.partitions() {
            let config = partition.config();
            if config.flush == Flush::Interval
                || partition.is_flush_due(now_ms, config.flush_bound.ms)
            {
                partition.request_flush();
            }
        }
    }

    /// Forgets producers that have been silent too long.
    pub(crate) fn expire_producers(&self, now_ms: i64) {
        let after = self.config.producer_id_expiration.as_millis();
        let after = i64::try_from(after).unwrap_or(i64::MAX);
        for partition in self.partitions() {
            partition.writer.lock().producers.expire(now_ms, after);
        }
    }

    pub(crate) fn run_retention(&self, now_ms: i64) -> usize {
        self.expire_producers(now_ms);
        self.mark_broken_holds(now_ms);
        retained(&self.partitions(), Spare::HeldAndUnarchived, now_ms)
    }
}

impl Partition {
    /// Whether records have not been synced for so long, as far as this was asked.
    fn is_flush_due(&self, now_ms: i64, bound_ms: i64) -> bool {
        if self.unsynced() == 0 {
            self.unsynced_since_ms.store(now_ms, Ordering::Relaxed);
        }
        now_ms.saturating_sub(self.unsynced_since_ms.load(Ordering::Relaxed)) >= bound_ms
    }

    /// Closes an active segment that is over its time, so that retention can take it.
    fn roll_if_old(&self, now_ms: i64) {
        let mut writer = self.writer.lock();
        if self.check_usable().is_err() {
            return;
        }
        if let Err(error) = self.roll_if_due(&mut writer, 0, &self.config(), now_ms) {
            tracing::warn!(partition = self.place.name(), %error, "a segment could not be closed");
        }
    }

    /// Syncs all, writes the producer snapshot and refuses everything from now on. The log end if all
    /// went well.
    pub(crate) fn close(&self) -> Option<i64> {
        let mut writer = self.writer.lock();
        let sync = self.sync.lock();
        let closed = self.check_usable().and_then(|()| {
            let active = self.active()?;
            active.finish(self.place.fs.as_ref()).map_err(|error| self.poison(&error))?;
            self.change(|marks| marks.synced = marks.log_end);
            self.write_recovery_point(&mut writer, now_ms());
            self.write_snapshot(&writer.producers)
        });
        drop(sync);
        self.stop(PartitionState::Gone, LogError::Closed);
        match closed {
            Ok(log_end) => Some(log_end),
            Err(error) => {
                tracing::warn!(partition = self.place.name(), %error, "a partition could not be closed cleanly");
                None
            }
        }
    }
}
