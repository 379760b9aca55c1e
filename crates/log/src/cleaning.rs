//! One compaction pass over a partition: the newest offset of each key is noted from what was not compacted
//! yet, then closed segments are written anew without what is superseded, group by group.

use std::ops::Range;
use std::sync::Arc;

use highwater_protocol::records::{Batch, DECOMPRESSED_MAX};

use crate::batch_reader::BatchReader;
use crate::cleanable::{Bounds, Cleanable, Closed};
use crate::cleaned_transactions::CleanedTransactions;
use crate::keeper::{Keeper, Left};
use crate::offset_map::OffsetMap;
use crate::partition::Partition;
use crate::segment::{Segment, Stamped};
use crate::throttle::Throttle;
use crate::topic_config::{Roll, TopicConfig};
use crate::transaction_index::Entry;
use crate::{EndMarker, LogError, hold};

/// What a pass may use.
#[derive(Debug)]
pub(crate) struct Means {
    pub(crate) now_ms: i64,
    /// Memory of the offset map.
    pub(crate) buffer_bytes: usize,
    pub(crate) throttle: Throttle,
}

/// What a pass did.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Cleaned {
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
    pub(crate) records_removed: u64,
    /// False if it was given up on the way: the partition was cut, or the log is to close.
    pub(crate) is_complete: bool,
}

/// A segment written in place of a group, under names of its own.
#[derive(Debug)]
pub(crate) struct Rewritten {
    pub(crate) segment: Segment,
    is_changed: bool,
}

impl Partition {
    /// What could be compacted now; None for a topic that is not compacted. Blocks on the disk.
    pub(crate) fn cleanable(&self, now_ms: i64) -> Result<Option<Cleanable>, LogError> {
        let config = self.config();
        if !config.cleanup.compact {
            return Ok(None);
        }
        self.check_usable()?;
        let (segments, marks) = {
            let segments = self.segments.read();
            (segments.clone(), self.marks())
        };
        let bounds = Bounds {
            log_start: marks.log_start,
            log_end: marks.log_end.offset,
            stable: self.clean_bound(marks.stable.offset, &config, now_ms),
            cleaned_to: self.cleaned_to(),
        };
        let closed: Vec<Closed> =
            segments.windows(2).map(|pair| Closed::of(pair, &config)).collect::<Result<_, _>>()?;
        Ok(Some(Cleanable::of(&closed, &bounds, &config.compaction, now_ms)))
    }

    /// The offset from which on everything must stay as it is: an open transaction may end either way, and
    /// what is held is held against compaction, too (rule L7).
    fn clean_bound(&self, stable: i64, config: &TopicConfig, now_ms: i64) -> i64 {
        let held = hold::held_from(config, now_ms, self.place.index);
        held.map_or(stable, |from| from.min(stable))
    }

    /// Compacts what was found cleanable. Blocks on the disk, and holds appends up only for the moments in
    /// which files change places.
    ///
    /// # Errors
    /// Of the disk, or [`LogError::Damaged`]; the partition goes on with what it had, or reopens itself.
    pub(crate) fn clean(&self, cleanable: &Cleanable, means: &Means) -> Result<Cleaned, LogError> {
        // One at a time; who deletes the topic waits for it.
        let _cleaning = self.cleaning.lock();
        let epoch = self.marks().leader_epoch;
        let mut cleaned = Cleaned::default();
        let done = self.clean_segments(cleanable, means, epoch, &mut cleaned);
        match done {
            Ok(is_complete) => cleaned.is_complete = is_complete,
            // Cut, deleted or closed meanwhile: its files went away under the pass.
            Err(_) if self.check_usable().is_err() || self.marks().leader_epoch != epoch => {}
            Err(error) => return Err(error),
        }
        Ok(cleaned)
    }

    fn clean_segments(
        &self,
        cleanable: &Cleanable,
        means: &Means,
        epoch: i32,
        cleaned: &mut Cleaned,
    ) -> Result<bool, LogError> {
        self.check_usable()?;
        let config = self.config();
        let all = self.segments.read().clone();
        let aborted = aborted(&all)?;
        let covered = all.iter().filter(|segment| segment.tip().next_offset <= cleanable.end);
        let mut covered: Vec<Arc<Segment>> = covered.cloned().collect();
        if covered.len() == all.len() {
            covered.pop();
        }
        let Some(map) = self.map(&covered, cleanable, &aborted, means)? else { return Ok(false) };
        covered.retain(|segment| segment.base_offset < map.end());
        let Some(last) = covered.last() else { return Ok(true) };
        // Before the first hole is made: recovery takes a hole above it for damage.
        self.place.raise_compaction_point(last.tip().next_offset)?;
        let retention = config.compaction.delete_retention_ms;
        let mut keeper = Keeper::new(&map, &aborted, means.now_ms, retention);
        for group in groups(&covered, &config.roll) {
            let group = covered.get(group).unwrap_or_default();
            keeper.set_producers(self.writer.lock().producers.kept());
            let Some(rewritten) = self.rewrite(group, &mut keeper, means, cleaned)? else {
                return Ok(false);
            };
            if !rewritten.is_changed {
                self.place.remove_cleaned(rewritten.segment.base_offset);
            } else if !self.swap(group, &rewritten.segment)? {
                return Ok(false);
            }
        }
        self.note_cleaned(map.end(), epoch)
    }

    /// The newest offsets of the keys between the first dirty offset and the end of the pass, or less where
    /// there is no room for more. None if the pass is to end.
    fn map(
        &self,
        segments: &[Arc<Segment>],
        cleanable: &Cleanable,
        aborted: &[Entry],
        means: &Means,
    ) -> Result<Option<OffsetMap>, LogError> {
        let start = cleanable.first_dirty;
        let records = (cleanable.end - start).unsigned_abs();
        let mut map = OffsetMap::new(means.buffer_bytes, records, start);
        let mut transactions = CleanedTransactions::new(aborted);
        for segment in segments.iter().filter(|segment| segment.tip().next_offset > start) {
            let from = segment.find(start)?.map_or(segment.tip().size, |(_, position)| position);
            let mut reader = BatchReader::new(segment, from);
            while let Some(batch) = reader.next()? {
                if !self.goes_on(means, batch.bytes.len()) {
                    return Ok(None);
                }
                if !note(&batch, start, &mut map, &mut transactions)
                    .map_err(|error| segment.damaged(0, error))?
                {
                    return Ok(Some(map));
                }
            }
            map.reach(segment.tip().next_offset);
        }
        Ok(Some(map))
    }

    /// Writes what is to be kept of a group into a segment of its own. None if the pass is to end.
    fn rewrite(
        &self,
        group: &[Arc<Segment>],
        keeper: &mut Keeper<'_>,
        means: &Means,
        cleaned: &mut Cleaned,
    ) -> Result<Option<Rewritten>, LogError> {
        let Some(first) = group.first() else { return Ok(None) };
        let base = first.base_offset;
        let (fs, dir) = (self.place.fs.as_ref(), &self.place.dir);
        let segment = Segment::create_cleaned(fs, dir, base)?;
        let written =
            self.write_kept(group, &segment, keeper, means, cleaned).and_then(|changed| {
                segment.transactions.rewrite(fs, &keeper.take_entries())?;
                segment.finish(fs)?;
                Ok(changed)
            });
        match written {
            Ok(Some(is_changed)) => Ok(Some(Rewritten { segment, is_changed })),
            other => {
                self.place.remove_cleaned(base);
                other.map(|_| None)
            }
        }
    }

    /// Whether anything was left out or changed; None if the pass is to end.
    fn write_kept(
        &self,
        group: &[Arc<Segment>],
        into: &Segment,
        keeper: &mut Keeper<'_>,
        means: &Means,
        cleaned: &mut Cleaned,
    ) -> Result<Option<bool>, LogError> {
        let interval = self.config().index_interval_bytes;
        let end = group.last().map_or(0, |segment| segment.tip().next_offset);
        let mut is_changed = group.len() > 1;
        for segment in group {
            let mut reader = BatchReader::new(segment, 0);
            while let Some(batch) = reader.next()? {
                if !self.goes_on(means, batch.bytes.len()) {
                    return Ok(None);
                }
                let is_last = batch.header.next_offset() >= end;
                let left = keeper
                    .keep(&batch, is_last)
                    .map_err(|error| segment.damaged(0, error.to_string()))?;
                is_changed |= left != Left::AsItIs;
                let stamped = stamped(&batch, left).map_err(|error| segment.damaged(0, error))?;
                cleaned.count(&batch, stamped.as_ref());
                if let Some(stamped) = stamped {
                    into.append(&[stamped], interval)?;
                }
            }
        }
        Ok(Some(is_changed))
    }

    fn goes_on(&self, means: &Means, bytes: usize) -> bool {
        means.throttle.passes(bytes as u64) && self.check_usable().is_ok()
    }

    /// Notes that everything below `end` is compacted; false if the partition was cut since `epoch`.
    fn note_cleaned(&self, end: i64, epoch: i32) -> Result<bool, LogError> {
        let _writer = self.writer.lock();
        if self.marks().leader_epoch != epoch {
            return Ok(false);
        }
        // Not synced: an older one has more gone through again.
        self.place.put_cleaned_to(end)?;
        self.set_cleaned_to(Some(end));
        Ok(true)
    }
}

impl Closed {
    /// Of a segment, and the one that follows it.
    fn of(pair: &[Arc<Segment>], config: &TopicConfig) -> Result<Self, LogError> {
        let [segment, next] = pair else { return Err(LogError::Closed) };
        let tip = segment.tip();
        let asked = config.compaction.max_lag_ms != i64::MAX && tip.size > 0;
        Ok(Self {
            base: segment.base_offset,
            end: next.base_offset,
            size: tip.size,
            greatest: tip.greatest.timestamp,
            first: if asked { segment.header_at(0)?.max_timestamp } else { -1 },
        })
    }
}

impl Cleaned {
    fn count(&mut self, batch: &Batch, left: Option<&Stamped>) {
        self.bytes_read += batch.bytes.len() as u64;
        self.bytes_written += left.map_or(0, |left| left.bytes.len() as u64);
        let stay = left.map_or(0, |left| left.header.record_count);
        self.records_removed += u64::try_from(batch.header.record_count - stay).unwrap_or(0);
    }
}

/// All transactions that were aborted, as the indexes tell.
fn aborted(segments: &[Arc<Segment>]) -> Result<Vec<Entry>, LogError> {
    let mut all = Vec::new();
    for segment in segments {
        segment.transactions.entries(&mut all)?;
    }
    Ok(all)
}

/// Notes the keys of a batch; false if there is no room for all of them.
fn note(
    batch: &Batch,
    start: i64,
    map: &mut OffsetMap,
    transactions: &mut CleanedTransactions,
) -> Result<bool, String> {
    let header = &batch.header;
    if header.is_control() {
        let kind = EndMarker::parse(batch).map(|marker| marker.kind);
        transactions.meets_marker(header, kind);
        map.reach(header.next_offset());
        return Ok(true);
    }
    if transactions.meets_batch(header) {
        map.reach(header.next_offset());
        return Ok(true);
    }
    let mut fits = true;
    let noted = batch.each_record(DECOMPRESSED_MAX, |record| {
        if let Some(key) = record.key.filter(|_| fits && record.offset >= start) {
            fits = map.put(key, record.offset);
        }
    });
    noted.map_err(|error| error.to_string())?;
    if fits {
        map.reach(header.next_offset());
    }
    Ok(fits)
}

fn stamped(batch: &Batch, left: Left) -> Result<Option<Stamped>, String> {
    let batch = match left {
        Left::Nothing => return Ok(None),
        Left::AsItIs => batch.clone(),
        Left::Written(bytes) => Batch::parse(&bytes).map_err(|error| error.to_string())?,
    };
    Ok(Some(Stamped { header: batch.header, bytes: batch.bytes }))
}

/// Segments that are written as one: together no larger than one may be.
fn groups(segments: &[Arc<Segment>], roll: &Roll) -> Vec<Range<usize>> {
    let extents: Vec<Extent> = segments.iter().map(|segment| Extent::of(segment)).collect();
    let mut groups: Vec<Range<usize>> = Vec::new();
    let mut sum = Extent::default();
    for (number, extent) in extents.iter().enumerate() {
        match groups.last_mut().zip(sum.and(extent).filter(|sum| sum.fits(roll))) {
            Some((group, both)) => {
                group.end = number + 1;
                sum = both;
            }
            None => {
                groups.push(number..number + 1);
                sum = *extent;
            }
        }
    }
    groups
}

/// What a segment takes of what a segment may have.
#[derive(Clone, Copy, Default, Debug)]
struct Extent {
    base: i64,
    end: i64,
    bytes: u64,
    /// Of the larger index.
    index_bytes: u64,
}

impl Extent {
    fn of(segment: &Segment) -> Self {
        let tip = segment.tip();
        let (offsets, times) = segment.state().entries();
        Self {
            base: segment.base_offset,
            end: tip.next_offset,
            bytes: tip.size,
            index_bytes: (offsets * crate::offset_index::ENTRY as u64)
                .max(times * crate::time_index::ENTRY as u64),
        }
    }

    /// This one and the one behind it.
    fn and(&self, next: &Self) -> Option<Self> {
        Some(Self {
            base: self.base,
            end: next.end,
            bytes: self.bytes.checked_add(next.bytes)?,
            index_bytes: self.index_bytes.checked_add(next.index_bytes)?,
        })
    }

    fn fits(&self, roll: &Roll) -> bool {
        self.bytes <= roll.bytes
            && self.index_bytes <= roll.index_bytes
            && self.end - self.base <= i64::from(i32::MAX)
    }
}
