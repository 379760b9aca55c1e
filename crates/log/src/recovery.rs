//! Opening a stored partition: what a crash left is completed or cut, never guessed.
//!
//! Every segment but the last was synced with its indexes before the next one was made, so it is opened
//! by its indexes; where they are missing it is read whole, and a broken batch in it is an error. The
//! last one is read whole after a crash and cut behind its last whole batch, but not below the recovery
//! point: what was synced is not torn. When this returns, everything found is on stable storage.

use std::sync::Arc;

use crate::LogError;
use crate::checkpoint::Place;
use crate::durable_file::{self, UNFINISHED};
use crate::epochs::Epochs;
use crate::file_name::{self, FileKind};
use crate::marks::Mark;
use crate::producers::Producers;
use crate::rebuild::{Rebuilt, Tail, open_indexed, rebuild};
use crate::replay;
use crate::segment::Segment;
use crate::unsettled::Unsettled;

/// How the log ended last time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ended {
    /// Closed, at this log end.
    Cleanly { log_end: i64 },
    /// Killed, or the power went.
    Uncleanly,
    /// What lies behind the mark is to go.
    Cut(Mark),
}

/// A partition as it was found.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// Oldest first; the last one is the active one.
    pub(crate) segments: Vec<Arc<Segment>>,
    pub(crate) log_start: i64,
    pub(crate) epochs: Epochs,
    pub(crate) producers: Producers,
    pub(crate) unsettled: Unsettled,
    /// How far it was compacted, as far as that is known.
    pub(crate) cleaned_to: Option<i64>,
    /// False if the last segment had to be read whole.
    pub(crate) clean: bool,
    /// True if whole batches stood behind the place where the last segment was cut.
    pub(crate) batches_cut: bool,
}

/// Opens the partition. `interval` is `index.interval.bytes`.
pub(crate) fn recover(
    place: &Place,
    interval: u64,
    ended: Ended,
    now_ms: i64,
) -> Result<Recovered, LogError> {
    place.check_metadata()?;
    // First of all, so that there is one answer to what the segments are.
    place.end_swaps()?;
    let mut epochs = place.read_epochs()?;
    let ended = match ended {
        Ended::Cut(_) => ended,
        _ => place.noted_cut(epochs.current())?.map_or(ended, Ended::Cut),
    };
    let log_start = place.read_log_start()?;
    if let Ended::Cut(at) = ended {
        // Before anything else: what lies behind the mark does not count, not even as a segment that
        // makes the one before it obsolete.
        place.cut(&bases(&list(place)?), at)?;
    }
    let bases = clear(place, log_start)?;
    let reading = Reading { interval, holes_below: place.read_compaction_point()? };
    let Opened { segments, clean, batches_cut } = open_segments(place, &bases, reading, ended)?;
    let log_end = segments.last().map_or(0, |segment| segment.tip().next_offset);
    if log_end < log_start {
        return Err(missing(place, format!("it ends at {log_end}, below its start {log_start}")));
    }
    if matches!(ended, Ended::Cut(_)) || epochs.passes(log_end) {
        epochs.begin(log_end);
        place.put_epochs(&epochs)?;
    }
    let producers = replay::load(place, &segments, log_end, now_ms)?;
    let unsettled = replay::open_transactions(&segments, &producers, now_ms)?;
    let cleaned_to = place.settle_cleaned(log_end)?;
    place.forget_cut()?;
    site!("recovered.folder", place.sync_dir())?;
    Ok(Recovered {
        segments,
        log_start,
        epochs,
        producers,
        unsettled,
        cleaned_to,
        clean,
        batches_cut,
    })
}

/// Removes what was never finished and what lies below the log start; answers the bases left.
fn clear(place: &Place, log_start: i64) -> Result<Vec<i64>, LogError> {
    let files = list(place)?;
    let mut bases = bases(&files);
    // A segment goes when the next one begins at or below the log start, as retention removes it.
    let gone = bases.iter().skip(1).take_while(|base| **base <= log_start).count();
    if gone > 0 {
        // The log start may have come from the page cache, and must be safe before anything goes.
        site!("found_start.folder", place.sync_dir())?;
    }
    bases.drain(..gone);
    match bases.first() {
        Some(first) if *first <= log_start => {}
        Some(first) => {
            let reason =
                format!("its first segment begins at {first}, its log start is {log_start}");
            return Err(missing(place, reason));
        }
        None => return Err(missing(place, "it has no segment".to_owned())),
    }
    for (offset, kind) in files {
        if kind != FileKind::Snapshot && !bases.contains(&offset) {
            let path = file_name::path(&place.dir, offset, kind);
            durable_file::remove_if_there(place.fs.as_ref(), &path)?;
        }
    }
    Ok(bases)
}

/// The first offsets of the segments, rising.
fn bases(files: &[(i64, FileKind)]) -> Vec<i64> {
    let logs = files.iter().filter(|(_, kind)| *kind == FileKind::Log);
    let mut bases: Vec<i64> = logs.map(|(base, _)| *base).collect();
    bases.sort_unstable();
    bases
}

/// The files with an offset for a name; unfinished ones are removed.
pub(crate) fn list(place: &Place) -> Result<Vec<(i64, FileKind)>, LogError> {
    let entries = place.fs.list(&place.dir).map_err(LogError::io("list", &place.dir))?;
    for entry in entries.iter().filter(|entry| entry.name.ends_with(UNFINISHED)) {
        durable_file::remove_if_there(place.fs.as_ref(), &place.dir.join(&entry.name))?;
    }
    Ok(entries.iter().filter_map(|entry| file_name::parse(&entry.name)).collect())
}

/// How a segment is read that has to be read whole.
#[derive(Clone, Copy, Debug)]
struct Reading {
    /// `index.interval.bytes`.
    interval: u64,
    /// Compaction has left holes below this offset only.
    holes_below: i64,
}

struct Opened {
    segments: Vec<Arc<Segment>>,
    clean: bool,
    batches_cut: bool,
}

fn open_segments(
    place: &Place,
    bases: &[i64],
    reading: Reading,
    ended: Ended,
) -> Result<Opened, LogError> {
    let mut opened =
        Opened { segments: Vec::with_capacity(bases.len()), clean: true, batches_cut: false };
    for (number, &base) in bases.iter().enumerate() {
        let segment = match bases.get(number + 1) {
            Some(&next) => open_closed(place, base, next, reading)?,
            None => {
                let (active, clean) = open_active(place, base, reading, ended)?;
                (opened.clean, opened.batches_cut) = (clean, active.batches_cut);
                active.segment
            }
        };
        opened.segments.push(Arc::new(segment));
    }
    Ok(opened)
}

fn open_closed(place: &Place, base: i64, next: i64, reading: Reading) -> Result<Segment, LogError> {
    let fs = place.fs.as_ref();
    let segment = match open_indexed(fs, &place.dir, base)? {
        Some(segment) => segment,
        None => {
            let path = file_name::path(&place.dir, base, FileKind::Log);
            tracing::warn!(path = %path.display(), "its indexes are lost or do not fit: they are made again");
            let segment = read(place, base, reading, Tail::Refuse)?.segment;
            segment.finish(fs)?;
            segment.transactions.forget();
            segment
        }
    };
    let tip = segment.tip();
    if tip.next_offset == next {
        return Ok(segment);
    }
    let end = tip.next_offset;
    Err(segment
        .damaged(tip.size, format!("it ends at offset {end}, the next segment begins at {next}")))
}

fn read(place: &Place, base: i64, reading: Reading, tail: Tail) -> Result<Rebuilt, LogError> {
    let Reading { interval, holes_below } = reading;
    rebuild(place.fs.as_ref(), &place.dir, base, interval, holes_below, tail)
}

/// The last segment, and whether it was found as it had been closed.
fn open_active(
    place: &Place,
    base: i64,
    reading: Reading,
    ended: Ended,
) -> Result<(Rebuilt, bool), LogError> {
    let fs = place.fs.as_ref();
    if let Ended::Cleanly { log_end } = ended
        && let Some(segment) = open_indexed(fs, &place.dir, base)?
        && segment.tip().next_offset == log_end
    {
        return Ok((Rebuilt { segment, batches_cut: false }, true));
    }
    let tail = match ended {
        // All of it was synced: whatever is missing now was not lost with the power.
        Ended::Cleanly { .. } => Tail::Refuse,
        Ended::Uncleanly => Tail::CutFrom(place.read_recovery_point()?),
        Ended::Cut(at) => Tail::CutFrom(at.offset),
    };
    let rebuilt = read(place, base, reading, tail)?;
    let segment = &rebuilt.segment;
    match ended {
        Ended::Cleanly { log_end } if segment.tip().next_offset != log_end => {
            let tip = segment.tip();
            let end = tip.next_offset;
            Err(segment
                .damaged(tip.size, format!("it ends at offset {end}, it was closed at {log_end}")))
        }
        Ended::Cleanly { .. } => Ok((rebuilt, true)),
        Ended::Uncleanly | Ended::Cut(_) => Ok((rebuilt, false)),
    }
}

fn missing(place: &Place, reason: String) -> LogError {
    LogError::Damaged { path: place.dir.clone(), position: 0, reason }
}
