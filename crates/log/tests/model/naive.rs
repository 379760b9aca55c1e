//! Answers worked out from the files alone, the slow way.

use crate::entry::Stored;
use highwater_log::FoundOffset;

type Segments = [(i64, Vec<Stored>)];

/// The first record with the greatest timestamp, if it is visible.
pub fn max_timestamp(segments: &Segments, end: i64) -> Option<FoundOffset> {
    let mut best: Option<FoundOffset> = None;
    for batch in segments.iter().flat_map(|(_, batches)| batches) {
        for (number, (timestamp, _)) in batch.records.iter().enumerate() {
            if best.is_none_or(|best| *timestamp > best.timestamp) {
                best = Some(found(batch, number));
            }
        }
    }
    best.filter(|best| best.offset < end)
}

/// The first record at or after a time in the first segment that reaches it, if it is visible.
pub fn time(segments: &Segments, target: i64, log_start: i64, end: i64) -> Option<FoundOffset> {
    let reaches = |batches: &[Stored]| batches.iter().any(|batch| batch.greatest() >= target);
    let (_, batches) = segments.iter().find(|(_, batches)| reaches(batches))?;
    for batch in batches {
        for (number, (timestamp, _)) in batch.records.iter().enumerate() {
            if *timestamp >= target && batch.base + number as i64 >= log_start {
                return Some(found(batch, number)).filter(|found| found.offset < end);
            }
        }
    }
    None
}

fn found(batch: &Stored, number: usize) -> FoundOffset {
    FoundOffset {
        offset: batch.base + number as i64,
        timestamp: batch.records[number].0,
        leader_epoch: batch.epoch,
    }
}

/// The offset index of a segment by Kafka's rule: an entry for a batch once more than `interval` bytes
/// lie before it since the last entry.
pub fn offset_index(base: i64, batches: &[Stored], interval: usize) -> Vec<u8> {
    let (mut index, mut position, mut since) = (Vec::new(), 0usize, 0usize);
    for batch in batches {
        if since > interval {
            index.extend(((batch.next() - 1 - base) as u32).to_be_bytes());
            index.extend((position as u32).to_be_bytes());
            since = 0;
        }
        position += batch.size;
        since += batch.size;
    }
    index
}

/// Every entry that a time index may have: the greatest timestamp so far, and the last offset of the
/// first batch that reached it.
pub fn greatest_so_far(batches: &[Stored]) -> Vec<(i64, i64)> {
    let mut all: Vec<(i64, i64)> = Vec::new();
    for batch in batches {
        if batch.greatest() > all.last().map_or(-1, |last| last.0) {
            all.push((batch.greatest(), batch.next() - 1));
        }
    }
    all
}
