//! Retention by time and size, and DeleteRecords: the log start moves up, then whole segments go.

use std::sync::Arc;

use crate::hold;
use crate::partition::Partition;
use crate::segment::Segment;
use crate::wall_clock::now_ms;
use crate::{LogError, TopicConfig};

/// What retention has to know of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Kept {
    size: u64,
    /// Milliseconds, -1 if no record bears a time.
    greatest: i64,
}

/// What retention leaves where it is, though time or size is over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Spare {
    /// What a hold keeps, and what is not archived yet.
    HeldAndUnarchived,
    /// What a hold keeps: the log is full, and the archive does not work.
    Held,
    /// What is not archived yet: the log is full.
    Unarchived,
    /// Nothing: the log is full, and the archive does not work.
    Nothing,
}

impl Partition {
    /// Removes segments that are over time or size; answers how many. Where all of them are, the active one
    /// ends and goes too, as in Kafka. A topic that is only compacted loses nothing. Blocks on the disk.
    ///
    /// # Errors
    /// Of the disk.
    pub(crate) fn retain(&self, spare: Spare, now_ms: i64) -> Result<usize, LogError> {
        let config = self.config();
        if !config.cleanup.delete {
            return Ok(0);
        }
        let mut writer = self.writer.lock();
        self.check_usable()?;
        let mut segments = self.segments.read().clone();
        if self.all_go(&segments, &config, now_ms) {
            self.roll_locked(&mut writer)?;
            segments = self.segments.read().clone();
        }
        let expired = self.going(&segments, spare, &config, now_ms);
        let Some(next) = segments.get(expired).filter(|_| expired > 0) else { return Ok(0) };
        // Segments below the log start are left where their removal failed.
        self.raise_log_start(next.base_offset.max(self.marks().log_start))?;
        drop(writer);
        Ok(expired)
    }

    /// Whether all segments are over time or size and nothing in the active one is held: then it ends, so
    /// that it can be archived and can go. Records that somebody cannot see yet stay.
    fn all_go(&self, segments: &[Arc<Segment>], config: &TopicConfig, now_ms: i64) -> bool {
        let marks = self.marks();
        let held = hold::held_from(config, now_ms, self.place.index);
        let holds = held.is_some_and(|from| from < marks.log_end.offset);
        if holds || marks.stable.offset < marks.log_end.offset {
            return false;
        }
        let nothing = Kept { size: 0, greatest: -1 };
        let kept = segments.iter().map(|segment| Kept::of(segment));
        let kept: Vec<Kept> = kept.chain([nothing]).collect();
        expired(&kept, config, now_ms) == segments.len()
    }

    /// How many segments, from the oldest on, are to go.
    fn going(
        &self,
        segments: &[Arc<Segment>],
        spare: Spare,
        config: &TopicConfig,
        now_ms: i64,
    ) -> usize {
        let kept: Vec<Kept> = segments.iter().map(|segment| Kept::of(segment)).collect();
        let expired = expired(&kept, config, now_ms);
        let held = || hold::held_from(config, now_ms, self.place.index);
        let bounds = match spare {
            Spare::HeldAndUnarchived => [held(), self.archive_bound(config)],
            Spare::Held => [held(), None],
            Spare::Unarchived => [None, self.archive_bound(config)],
            Spare::Nothing => [None; 2],
        };
        let Some(bound) = bounds.into_iter().flatten().min() else { return expired };
        // A segment ends where the next one begins.
        let ends = segments.iter().skip(1).take(expired);
        ends.take_while(|next| next.base_offset <= bound).count()
    }

    /// Bytes that would go if nothing were held, sparing what else is to be spared.
    pub(crate) fn kept_by_holds(&self, spare: Spare, now_ms: i64) -> u64 {
        let config = self.config();
        if !config.cleanup.delete || config.holds.is_empty() || self.check_usable().is_err() {
            return 0;
        }
        let segments = self.segments.read().clone();
        let going = |spare| self.going(&segments, spare, &config, now_ms);
        let with_holds = match spare {
            Spare::Unarchived => Spare::HeldAndUnarchived,
            _ => Spare::Held,
        };
        let kept = segments.get(going(with_holds)..going(spare)).unwrap_or_default();
        kept.iter().map(|segment| segment.tip().size).sum()
    }

    /// DeleteRecords: moves the log start up to `before` (-1: to the high watermark) and returns it.
    /// Blocks on the disk.
    ///
    /// # Errors
    /// [`LogError::OffsetOutOfRange`] above the high watermark, [`LogError::Held`] above what a hold keeps,
    /// [`LogError::ArchiveWaits`] where what would go cannot be archived.
    pub fn delete_records(&self, before: i64) -> Result<i64, LogError> {
        self.archive_first(before)?;
        let _writer = self.writer.lock();
        self.check_usable()?;
        let marks = self.marks();
        let (log_start, high_watermark) = (marks.log_start, marks.shown.offset);
        let offset = if before == -1 { high_watermark } else { before };
        if offset < 0 || offset > high_watermark {
            return Err(LogError::OffsetOutOfRange { offset, log_start, log_end: high_watermark });
        }
        if offset > log_start {
            self.check_held(offset)?;
            self.raise_log_start(offset)?;
        }
        Ok(offset.max(log_start))
    }

    /// Archives what a removal below `before` would take, before the writer is held.
    fn archive_first(&self, before: i64) -> Result<(), LogError> {
        self.check_usable()?;
        let marks = self.marks();
        let offset = if before == -1 { marks.shown.offset } else { before };
        if offset <= marks.log_start || offset > marks.shown.offset {
            return Ok(());
        }
        self.check_held(offset)?;
        self.archive_below(offset)
    }

    /// Refuses to remove records below `offset` that a hold keeps.
    pub(crate) fn check_held(&self, offset: i64) -> Result<(), LogError> {
        let config = self.config();
        match hold::tightest(&config, now_ms(), self.place.index) {
            Some((hold, from)) if from < offset => {
                Err(LogError::Held { partition: self.place.name(), hold: hold.name.clone(), from })
            }
            _ => Ok(()),
        }
    }

    /// The caller holds the writer. The new start is safe on disk before anything goes, so that a crash
    /// never leaves a log that starts in a hole; nor may it lie above what a crash leaves.
    fn raise_log_start(&self, offset: i64) -> Result<(), LogError> {
        if offset > self.marks().synced.offset {
            self.flush()?;
        }
        self.place.put_log_start(offset)?;
        // A start after a kill finds this, also if the folder cannot be synced now.
        self.change(|marks| marks.log_start = offset);
        let mut epochs = self.epochs.read().clone();
        epochs.cut_start(offset);
        self.place.put_epochs(&epochs)?;
        site!("log_start.folder", self.place.sync_dir())?;
        *self.epochs.write() = epochs;
        let gone = self.drop_segments_below(offset);
        self.share.set(self.size());
        for segment in &gone {
            self.place.remove_segment(segment.base_offset)?;
        }
        Ok(())
    }

    fn drop_segments_below(&self, offset: i64) -> Vec<Arc<Segment>> {
        let mut segments = self.segments.write();
        // A segment ends where the next one begins; the active one always stays.
        let gone = segments.iter().skip(1).take_while(|next| next.base_offset <= offset).count();
        segments.drain(..gone).collect()
    }
}

/// Runs retention over partitions; answers how many segments went.
pub(crate) fn retained(partitions: &[Arc<Partition>], spare: Spare, now_ms: i64) -> usize {
    let retain = |partition: &Arc<Partition>| match partition.retain(spare, now_ms) {
        Ok(count) => count,
        Err(error) => {
            tracing::warn!(partition = partition.place.name(), %error, "retention failed");
            0
        }
    };
    partitions.iter().map(retain).sum()
}

impl Kept {
    fn of(segment: &Segment) -> Self {
        let tip = segment.tip();
        Self { size: tip.size, greatest: tip.greatest.timestamp }
    }
}

/// How many segments, from the oldest on, are to go. The last of `segments` is the active one and stays.
fn expired(segments: &[Kept], config: &TopicConfig, now_ms: i64) -> usize {
    let closed = segments.get(..segments.len().saturating_sub(1)).unwrap_or_default();
    let by_time = config.retention_ms.map_or(0, |age| by_time(closed, now_ms.saturating_sub(age)));
    let total = segments.iter().map(|segment| segment.size).sum();
    let by_size = config.retention_bytes.map_or(0, |most| by_size(closed, total, most));
    by_time.max(by_size)
}

/// A segment whose records bear no time goes with the next one that has a time and is over it.
fn by_time(closed: &[Kept], oldest: i64) -> usize {
    let over = |segment: &Kept| segment.greatest < oldest;
    let run = closed.iter().take_while(|segment| over(segment)).count();
    let timed =
        closed.get(..run).unwrap_or_default().iter().rposition(|segment| segment.greatest >= 0);
    timed.map_or(0, |last| last + 1)
}

/// Segments go as long as what is left still has the size.
fn by_size(closed: &[Kept], total: u64, most: u64) -> usize {
    let mut over = total.saturating_sub(most);
    let fits = |segment: &&Kept| {
        let goes = segment.size <= over;
        over = over.saturating_sub(segment.size);
        goes
    };
    closed.iter().take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segments(kept: &[(u64, i64)]) -> Vec<Kept> {
        kept.iter().map(|&(size, greatest)| Kept { size, greatest }).collect()
    }

    fn config(retention_ms: Option<i64>, retention_bytes: Option<u64>) -> TopicConfig {
        let mut config = TopicConfig::default();
        (config.retention_ms, config.retention_bytes) = (retention_ms, retention_bytes);
        config
    }

    #[test]
    fn time_stops_at_the_first_segment_that_is_young_enough() {
        let all = segments(&[(1, 10), (1, 900), (1, 20), (1, 30)]);
        assert_eq!(expired(&all, &config(Some(100), None), 1000), 1);
        assert_eq!(expired(&all, &config(Some(100), None), 2000), 3, "the active one stays");
        assert_eq!(expired(&all, &config(None, None), i64::MAX), 0);
    }

    #[test]
    fn a_segment_without_times_goes_with_its_successor() {
        let all = segments(&[(1, -1), (1, 10), (1, -1), (1, 950), (1, 0)]);
        assert_eq!(expired(&all, &config(Some(100), None), 1000), 2);
        assert_eq!(expired(&segments(&[(1, -1), (1, 5)]), &config(Some(1), None), 1000), 0);
    }

    #[test]
    fn size_leaves_at_least_what_is_to_be_kept() {
        let all = segments(&[(100, 1), (100, 1), (100, 1), (50, 1)]);
        for (most, gone) in [(350, 0), (250, 1), (251, 0), (150, 2), (0, 3)] {
            assert_eq!(expired(&all, &config(None, Some(most)), 0), gone, "keep {most}");
        }
    }
}
