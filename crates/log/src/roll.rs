//! Closing the active segment and beginning the next.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use crate::partition::{Partition, Writer, end_of};
use crate::producers::Producers;
use crate::segment::Segment;
use crate::tip::Tip;
use crate::topic_config::{Roll, TopicConfig};
use crate::{LogError, offset_index, time_index};

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
        let fill = Fill {
            tip: active.tip(),
            base_offset: active.base_offset,
            entries: active.state().entries(),
            age_ms: writer.active_since_ms.map(|since| now_ms.saturating_sub(since)),
            jitter: self.jitter(active.base_offset),
        };
        if fill.is_due(bytes, &config.roll) {
            self.roll_locked(writer)?;
        }
        Ok(())
    }

    /// A number of the segment's own, the same after a start.
    fn jitter(&self, base_offset: i64) -> u64 {
        let mut hasher = DefaultHasher::new();
        (self.place.name(), base_offset).hash(&mut hasher);
        hasher.finish()
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

/// How full the active segment is.
#[derive(Clone, Copy, Debug)]
struct Fill {
    tip: Tip,
    base_offset: i64,
    /// In the offset index and in the time index.
    entries: (u64, u64),
    /// Since its first append; None while it is empty.
    age_ms: Option<i64>,
    jitter: u64,
}

impl Fill {
    /// Whether the segment is to be closed before `bytes` more.
    fn is_due(&self, bytes: u64, roll: &Roll) -> bool {
        // Offsets in the indexes are 31 bits above the base. One append holds far fewer records than half.
        let offsets_full = self.tip.next_offset - self.base_offset > i64::from(i32::MAX / 2);
        let full = self.tip.size + bytes > roll.bytes || offsets_full || self.has_full_index(roll);
        self.tip.size > 0 && (full || self.is_old(roll))
    }

    /// As Kafka counts: the time index keeps one entry free for the end of the segment.
    fn has_full_index(&self, roll: &Roll) -> bool {
        let (offsets, times) = self.entries;
        offsets >= roll.index_bytes / offset_index::ENTRY as u64
            || times + 1 >= roll.index_bytes / time_index::ENTRY as u64
    }

    fn is_old(&self, roll: &Roll) -> bool {
        let early = match u64::try_from(roll.jitter_ms.min(roll.ms)) {
            Ok(most @ 1..) => i64::try_from(self.jitter % most).unwrap_or(0),
            _ => 0,
        };
        self.age_ms.is_some_and(|age| age >= roll.ms - early)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLL: Roll = Roll { bytes: 1000, ms: 60, jitter_ms: 0, index_bytes: 24 };

    fn fill(size: u64, age_ms: Option<i64>) -> Fill {
        let tip = Tip { size, ..Tip::new(0) };
        Fill { tip, base_offset: 0, entries: (0, 0), age_ms, jitter: 7 }
    }

    #[test]
    fn a_segment_ends_by_size_and_by_age() {
        assert!(!fill(900, Some(59)).is_due(100, &ROLL));
        assert!(fill(901, Some(0)).is_due(100, &ROLL));
        assert!(fill(1, Some(60)).is_due(1, &ROLL));
        assert!(!fill(0, None).is_due(5000, &ROLL), "an empty one takes any batch");
    }

    #[test]
    fn a_segment_ends_when_an_index_is_full() {
        let with = |entries| Fill { entries, ..fill(1, Some(0)) };
        assert!(!with((2, 0)).is_due(1, &ROLL));
        assert!(with((3, 0)).is_due(1, &ROLL), "three offsets of 8 bytes");
        assert!(with((0, 1)).is_due(1, &ROLL), "two times of 12 bytes, one of them for the end");
        assert!(!Fill { entries: (3, 1), ..fill(0, None) }.is_due(1, &ROLL));
    }

    #[test]
    fn a_segment_ends_before_the_offsets_do_not_fit_into_the_index() {
        let mut fill = fill(1, Some(0));
        fill.tip.next_offset = i64::from(i32::MAX / 2);
        assert!(!fill.is_due(1, &ROLL));
        fill.tip.next_offset += 1;
        assert!(fill.is_due(1, &ROLL));
    }

    #[test]
    fn jitter_ends_a_segment_earlier_by_less_than_it() {
        let roll = Roll { jitter_ms: 10, ..ROLL };
        assert!(!fill(1, Some(52)).is_due(1, &roll));
        assert!(fill(1, Some(53)).is_due(1, &roll), "7 of 10 before 60");
        let wide = Roll { jitter_ms: i64::MAX, ..ROLL };
        assert!(fill(1, Some(53)).is_due(1, &wide), "no more than the time itself");
    }
}
