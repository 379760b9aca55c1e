//! The thread that copies closed segments into the archive.

use std::sync::Weak;
use std::time::Duration;

use crate::archive::Archive;
use crate::background::Stop;
use crate::counters;
use crate::log::{Inner, Topic};
use crate::retention::{Spare, retained};

/// How often closed segments are looked for.
const EVERY: Duration = Duration::from_secs(1);

/// How long an archive that does not work is left alone.
const PAUSE: Duration = Duration::from_secs(10);

/// Archives until it is stopped.
pub(crate) fn run(log: &Weak<Inner>, stop: &Stop) {
    let mut wait = EVERY;
    while stop.pause(wait) {
        let Some(log) = log.upgrade() else { return };
        log.archive_closed();
        let works = log.archive.as_ref().is_none_or(|archive| archive.fault().is_none());
        wait = if works { EVERY } else { PAUSE };
    }
}

impl Inner {
    /// Copies every closed segment that is not in the archive yet; answers how many. It ends at the first
    /// error, which [`Archive::fault`] says.
    pub(crate) fn archive_closed(&self) -> usize {
        let Some(archive) = &self.archive else { return 0 };
        let topics: Vec<Topic> = self.topics.read().values().cloned().collect();
        let mut taken = 0;
        for partition in topics.iter().flat_map(|topic| &topic.partitions) {
            if !archive.keeps(&partition.config()) || partition.check_readable().is_err() {
                continue;
            }
            match archive.take(partition, i64::MAX) {
                Ok(count) => taken += count,
                Err(_) => break,
            }
        }
        taken
    }

    /// What cannot be archived goes all the same: the log is full, and the archive does not work. Answers
    /// how many segments went.
    pub(crate) fn give_up_archive(&self, now_ms: i64) -> usize {
        let without = self.archive.as_ref().is_none_or(|archive| archive.fault().is_some());
        if !without {
            return 0;
        }
        let removed = retained(&self.partitions(), Spare::Held, now_ms);
        if removed > 0 {
            counters::unarchived(removed);
            tracing::error!(
                segments = removed,
                "the log was full and the archive does not work: what retention removes was not archived"
            );
        }
        removed
    }
}

impl Archive {
    /// Ends a copy that is under way.
    pub(crate) fn stop(&self) {
        self.progress.stop();
    }
}
