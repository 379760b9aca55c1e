//! How far a partition was compacted, in two small files beside its segments.
//!
//! `cleaner-offset-checkpoint`, as Kafka has it: below it everything was compacted against everything; it
//! is written behind a pass and may be older. `compaction-point`: below it batches may be missing; it is
//! written before a pass makes the first hole, and recovery takes a hole above it for damage.

use crate::LogError;
use crate::checkpoint::Place;
use crate::durable_file;
use crate::partition::Partition;
use crate::recovery_point;

use std::sync::atomic::Ordering;

const CLEANED_TO: &str = "cleaner-offset-checkpoint";
const POINT: &str = "compaction-point";

impl Place {
    /// The offset below which batches may be missing; 0 where nothing was compacted.
    pub(crate) fn read_compaction_point(&self) -> Result<i64, LogError> {
        let content = durable_file::read(self.fs.as_ref(), &self.dir.join(POINT))?;
        Ok(content.and_then(|content| recovery_point::parse(&content)).unwrap_or(0))
    }

    /// Raises it; safe on disk when this returns.
    pub(crate) fn raise_compaction_point(&self, offset: i64) -> Result<(), LogError> {
        // Written also where it is as high: what is read may not be safe yet, if a sync of it has failed.
        let text = recovery_point::to_text(self.read_compaction_point()?.max(offset));
        durable_file::replace(self.fs.as_ref(), &self.dir.join(POINT), text.as_bytes())
    }

    /// Kafka's offset checkpoint, with this partition alone. It is safe once the folder was synced.
    pub(crate) fn put_cleaned_to(&self, offset: i64) -> Result<(), LogError> {
        self.put_offset(CLEANED_TO, offset)
    }

    /// What was noted, once the log is known to end at `log_end`: neither may lie above it, since what is
    /// appended there was never compacted. Changes are safe once the folder was synced.
    pub(crate) fn settle_cleaned(&self, log_end: i64) -> Result<Option<i64>, LogError> {
        if self.read_compaction_point()? > log_end {
            let text = recovery_point::to_text(log_end);
            durable_file::put(self.fs.as_ref(), &self.dir.join(POINT), text.as_bytes())?;
        }
        let cleaned_to = match self.read_offset(CLEANED_TO) {
            // Without it everything is gone through again.
            Err(LogError::Damaged { .. }) => None,
            other => other?,
        };
        if cleaned_to.is_some_and(|offset| offset > log_end) {
            self.put_cleaned_to(log_end)?;
        }
        Ok(cleaned_to.map(|offset| offset.min(log_end)))
    }
}

impl Partition {
    /// How far it was compacted, as far as that is known.
    pub(crate) fn cleaned_to(&self) -> Option<i64> {
        Some(self.cleaned_to.load(Ordering::Relaxed)).filter(|offset| *offset >= 0)
    }

    pub(crate) fn set_cleaned_to(&self, offset: Option<i64>) {
        self.cleaned_to.store(offset.unwrap_or(-1), Ordering::Relaxed);
    }
}
