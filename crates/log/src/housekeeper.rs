//! What has to be done from time to time.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use parking_lot::{Condvar, Mutex};

use crate::log::Inner;
use crate::partition::Partition;
use crate::retention::{Spare, retained};
use crate::{Flush, LogError, PartitionState};

/// How often retention runs while appends are refused.
const AT_LIMIT: Duration = Duration::from_secs(1);

/// The thread that looks after the partitions.
#[derive(Debug, Default)]
pub(crate) struct Housekeeper {
    stopped: Arc<(Mutex<bool>, Condvar)>,
}

impl Housekeeper {
    /// Starts the thread, if the log is to have one. It ends with the log.
    pub(crate) fn start(&self, log: &Arc<Inner>) -> Result<Option<JoinHandle<()>>, LogError> {
        let Some(every) = log.config.housekeeping else { return Ok(None) };
        let stopped = Arc::clone(&self.stopped);
        let log = Arc::downgrade(log);
        thread::Builder::new()
            .name("log-housekeeper".to_owned())
            .spawn(move || run(&log, &stopped, every))
            .map(Some)
            .map_err(LogError::io("start", "the housekeeping thread".as_ref()))
    }

    pub(crate) fn stop(&self) {
        let (stopped, wake) = &*self.stopped;
        *stopped.lock() = true;
        wake.notify_all();
    }
}

fn run(log: &Weak<Inner>, stopped: &(Mutex<bool>, Condvar), every: Duration) {
    let (stopped, wake) = stopped;
    let (mut flushed, mut retained) = (Instant::now(), Instant::now());
    loop {
        let mut stop = stopped.lock();
        if !*stop {
            wake.wait_for(&mut stop, every);
        }
        if *stop {
            return;
        }
        drop(stop);
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

/// Now, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
