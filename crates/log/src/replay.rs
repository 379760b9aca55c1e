//! What the producers of a stored partition sent last: the newest whole snapshot, and the batches behind
//! it. On the way the transaction indexes that were lost are made again.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::LogError;
use crate::checkpoint::Place;
use crate::durable_file;
use crate::end_marker::{EndMarker, MarkerKind};
use crate::file_name::{self, FileKind};
use crate::marks::Mark;
use crate::producer::Sequenced;
use crate::producer_snapshot;
use crate::producers::Producers;
use crate::recovery;
use crate::scan::Step;
use crate::segment::Segment;
use crate::transaction_index::Entry;
use crate::unsettled::{OpenTransaction, Unsettled};

/// The producers at the log end. A segment whose snapshot or transaction index was lost gets it again: once
/// those before it are gone, nothing else tells.
pub(crate) fn load(
    place: &Place,
    segments: &[Arc<Segment>],
    log_end: i64,
    now_ms: i64,
) -> Result<Producers, LogError> {
    let snapshots = whole_snapshots(place, segments, log_end)?;
    let unindexed = without_transaction_index(segments)?;
    let mut later = segments.iter().skip(1).map(|segment| segment.base_offset);
    let lost = later.find(|base| !snapshots.contains(base));
    // What is to be made again is made from what was before it.
    let reach = unindexed.first().map_or(log_end, |base| *base);
    let reach = lost.map_or(reach, |base| reach.min(base - 1));
    let first = segments.first().map_or(0, |segment| segment.base_offset);
    let from = snapshots.range(..=reach).next_back().copied().unwrap_or(first);
    let known = if snapshots.contains(&from) { read_snapshot(place, from)? } else { None };
    let mut producers = known.unwrap_or_default();
    for (number, segment) in segments.iter().enumerate() {
        let (base, end) = (segment.base_offset, segment.tip().next_offset);
        if base > from && !snapshots.contains(&base) {
            place.put_snapshot(&producers, base)?;
        }
        let aborted =
            if end > from { replay(segment, from, &mut producers, now_ms)? } else { Vec::new() };
        if unindexed.binary_search(&base).is_ok() {
            put_transaction_index(place, segment, &aborted, number + 1 < segments.len())?;
        }
    }
    Ok(producers)
}

/// The first offsets of the segments whose transaction index is not to be believed.
fn without_transaction_index(segments: &[Arc<Segment>]) -> Result<Vec<i64>, LogError> {
    let mut found = Vec::new();
    for segment in segments {
        let base = segment.base_offset;
        if !segment.transactions.is_whole(base, segment.tip().next_offset)? {
            found.push(base);
        }
    }
    Ok(found)
}

/// A closed segment gets the file also where it is empty; without it it would be read at every start.
fn put_transaction_index(
    place: &Place,
    segment: &Segment,
    aborted: &[Entry],
    closed: bool,
) -> Result<(), LogError> {
    if aborted.is_empty() && !closed {
        return segment.transactions.remove(place.fs.as_ref());
    }
    segment.transactions.rewrite(place.fs.as_ref(), aborted)
}

/// Takes what stands from `from` on into the state of the producers; the answer is what belongs into the
/// segment's transaction index.
fn replay(
    segment: &Segment,
    from: i64,
    producers: &mut Producers,
    now_ms: i64,
) -> Result<Vec<Entry>, LogError> {
    let mut aborted = Vec::new();
    let Some((_, position)) = segment.find(from.max(segment.base_offset))? else {
        return Ok(aborted);
    };
    let mut scan = segment.headers(position);
    loop {
        match scan.step()? {
            Step::Batch { header, position } if header.is_control() => {
                let batch = segment.batch_at(&header, position)?;
                let Some(marker) = EndMarker::parse(&batch) else { continue };
                let offset = header.base_offset;
                let ended = producers.ended_by(&marker, offset);
                let abort = ended.filter(|ended| ended.kind == MarkerKind::Abort);
                aborted.extend(abort.map(|ended| ended.entry));
                producers.end(&marker, offset, header.max_timestamp, now_ms);
            }
            Step::Batch { header, .. } => {
                if let Some(batch) = Sequenced::of(&header) {
                    producers.record(batch, now_ms);
                }
            }
            Step::End => return Ok(aborted),
            Step::Broken { position, reason } => return Err(segment.damaged(position, reason)),
        }
    }
}

/// The snapshots that are whole, by offset. Those that belong to no segment or lie above the log end are
/// removed.
fn whole_snapshots(
    place: &Place,
    segments: &[Arc<Segment>],
    log_end: i64,
) -> Result<BTreeSet<i64>, LogError> {
    let mut whole = BTreeSet::new();
    for (offset, kind) in recovery::list(place)? {
        if kind != FileKind::Snapshot {
            continue;
        }
        let begins = segments.iter().any(|segment| segment.base_offset == offset);
        if offset > log_end || !(begins || offset == log_end) {
            let path = file_name::path(&place.dir, offset, kind);
            durable_file::remove_if_there(place.fs.as_ref(), &path)?;
        } else if read_snapshot(place, offset)?.is_some() {
            whole.insert(offset);
        }
    }
    Ok(whole)
}

fn read_snapshot(place: &Place, offset: i64) -> Result<Option<Producers>, LogError> {
    let path = file_name::path(&place.dir, offset, FileKind::Snapshot);
    let content = durable_file::read(place.fs.as_ref(), &path)?;
    Ok(content.as_deref().and_then(producer_snapshot::decode))
}

/// Where the open transactions of a partition begin. All that was found is shown, so those that have ended
/// are settled.
pub(crate) fn open_transactions(
    segments: &[Arc<Segment>],
    producers: &Producers,
    now_ms: i64,
) -> Result<Unsettled, LogError> {
    let mut unsettled = Unsettled::default();
    for (first_offset, producer_id, producer) in producers.open() {
        let (first, since_ms) = begin(segments, first_offset, producer.seen_ms.min(now_ms))?;
        let producer_epoch = producer.epoch;
        let transaction = OpenTransaction { producer_id, producer_epoch, first_offset, since_ms };
        unsettled.begin(transaction, first);
    }
    Ok(unsettled)
}

/// Where the first batch at or behind `offset` lies, and when it came as far as its time tells; `seen_ms`
/// where it is gone or bears none.
fn begin(segments: &[Arc<Segment>], offset: i64, seen_ms: i64) -> Result<(Mark, i64), LogError> {
    let after = segments.partition_point(|segment| segment.base_offset <= offset);
    let holder = after.checked_sub(1).and_then(|at| segments.get(at));
    let Some(segment) = holder else { return Ok((Mark::start(offset), seen_ms)) };
    let segment_base = segment.base_offset;
    Ok(match segment.find(offset)? {
        Some((header, position)) => {
            let time = header.max_timestamp;
            let since = if time < 0 { seen_ms } else { time.min(seen_ms) };
            (Mark { offset, segment: segment_base, position }, since)
        }
        None => (Mark { offset, segment: segment_base, position: segment.tip().size }, seen_ms),
    })
}
