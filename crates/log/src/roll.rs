//! Closing the active segment and beginning the next.

use std::sync::Arc;

use crate::LogError;
use crate::TopicConfig;
use crate::partition::{Partition, Writer, end_of};
use crate::producers::Producers;
use crate::segment::Segment;
use crate::tip::Tip;

impl Partition {
    /// Closes the active segment and begins a new one; nothing happens while it is empty. Blocks on the
    /// disk.
    ///
    /// # Errors
    /// Of the disk; on [`LogError::NoSpace`] the active segment stays in use.
    pub fn roll(&self) -> Result<(), LogError> {
        let mut writer = self.writer.lock();
        self.check_usable()?;
        self.roll_locked(&mut writer)
    }

    /// Rolls if an append of `bytes` asks for it.
    pub(crate) fn roll_if_due(
        &self,
        writer: &mut Writer,
        bytes: u64,
        config: &TopicConfig,
        now_ms: i64,
    ) -> Result<(), LogError> {
        let active = self.active()?;
        if is_due(&active.tip(), active.base_offset, writer.active_since_ms, bytes, config, now_ms)
        {
            self.roll_locked(writer)?;
        }
        Ok(())
    }

    pub(crate) fn roll_locked(&self, writer: &mut Writer) -> Result<(), LogError> {
        let active = self.active()?;
        let base = active.tip().next_offset;
        if base == active.base_offset {
            return Ok(());
        }
        active.reserve(0, 0)?;
        active.transactions.make(self.place.fs.as_ref())?;
        let _sync = self.sync.lock();
        self.check_usable()?;
        // Synced as a whole before the next one is made: recovery relies on it.
        active.finish(self.place.fs.as_ref()).inspect_err(|error| {
            self.poison(error);
        })?;
        self.begin_segment(writer, base)
    }

    /// Makes the segment that begins at `base`, the log end, and appends to it from now on. Everything
    /// before it must have been synced.
    fn begin_segment(&self, writer: &mut Writer, base: i64) -> Result<(), LogError> {
        let segment = self.make_segment(&writer.producers, base).inspect_err(|_| {
            // A segment that is left over would begin below what is still to be appended.
            if let Err(error) = self.place.remove_segment(base) {
                self.poison(&error);
            }
        })?;
        writer.active_since_ms = None;
        let mut segments = self.segments.write();
        segments.push(Arc::new(segment));
        let end = end_of(&segments);
        self.change(|marks| {
            marks.synced = end;
            marks.log_end = end;
        });
        Ok(())
    }

    pub(crate) fn make_segment(
        &self,
        producers: &Producers,
        base: i64,
    ) -> Result<Segment, LogError> {
        self.place.put_snapshot(producers, base)?;
        let segment = Segment::create(self.place.fs.as_ref(), &self.place.dir, base)?;
        site!("segment_made.folder", self.place.sync_dir())?;
        Ok(segment)
    }

    /// Writes the snapshot of a clean end; the answer is the log end.
    pub(crate) fn write_snapshot(&self, producers: &Producers) -> Result<i64, LogError> {
        let log_end = self.marks().log_end.offset;
        self.place.put_snapshot(producers, log_end)?;
        site!("closed.folder", self.place.sync_dir())?;
        Ok(log_end)
    }
}

/// Whether the active segment is to be closed before `bytes` more.
fn is_due(
    tip: &Tip,
    base_offset: i64,
    since_ms: Option<i64>,
    bytes: u64,
    config: &TopicConfig,
    now_ms: i64,
) -> bool {
    // Offsets in the indexes are 31 bits above the base. One append holds far fewer records than half.
    let offsets_full = tip.next_offset - base_offset > i64::from(i32::MAX / 2);
    let old = since_ms.is_some_and(|since| now_ms.saturating_sub(since) >= config.segment_ms);
    tip.size > 0 && (tip.size + bytes > config.segment_bytes || offsets_full || old)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(size: u64, since_ms: Option<i64>, bytes: u64, now_ms: i64) -> bool {
        let mut config = TopicConfig::default();
        (config.segment_bytes, config.segment_ms) = (1000, 60);
        is_due(&Tip { size, ..Tip::new(0) }, 0, since_ms, bytes, &config, now_ms)
    }

    #[test]
    fn a_segment_ends_by_size_and_by_age() {
        assert!(!due(900, Some(0), 100, 59));
        assert!(due(901, Some(0), 100, 0));
        assert!(due(1, Some(0), 1, 60));
        assert!(!due(0, None, 5000, 1_000_000), "an empty one takes any batch");
    }
}
