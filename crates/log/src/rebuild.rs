//! Opening a stored segment: by its indexes if they can be trusted, else by reading it whole.

use std::path::Path;

use highwater_protocol::records::BatchHeader;
use tracing::warn;

use crate::LogError;
use crate::durable_file;
use crate::file_name::{self, FileKind};
use crate::fs::{File, FileSystem, OpenMode};
use crate::scan::{Depth, Scan, Step};
use crate::segment::Segment;
use crate::settle::{copy_from, settle};
use crate::tip::{IndexPoint, Tip};
use crate::{offset_index, time_index};

/// What to do with bytes that are no whole batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tail {
    /// Cut there, at this offset or above: the segment was written to when the power went. What lies
    /// below was synced, so something else broke it.
    CutFrom(i64),
    /// Refuse: the segment was synced as a whole, so something else broke it.
    Refuse,
}

/// A segment that was read whole.
#[derive(Debug)]
pub(crate) struct Rebuilt {
    pub(crate) segment: Segment,
    /// True if whole batches stood behind the place where it was cut.
    pub(crate) batches_cut: bool,
}

/// Opens a segment that was finished, reading only the headers behind the last index entry. None if
/// the indexes are missing or do not fit the data.
pub(crate) fn open_indexed(
    fs: &dyn FileSystem,
    dir: &Path,
    base_offset: i64,
) -> Result<Option<Segment>, LogError> {
    for kind in [FileKind::OffsetIndex, FileKind::TimeIndex] {
        let path = file_name::path(dir, base_offset, kind);
        if !fs.exists(&path).map_err(LogError::io("open", &path))? {
            return Ok(None);
        }
    }
    let Some(segment) = Segment::indexed(fs, dir, base_offset, Tip::new(base_offset))? else {
        return Ok(None);
    };
    let tip = indexed_tip(&segment)?;
    Ok(tip.map(|tip| {
        segment.set_tip(tip);
        segment
    }))
}

/// The tip by the indexes and the headers behind their last entry; None if they contradict each other.
fn indexed_tip(segment: &Segment) -> Result<Option<Tip>, LogError> {
    let len = segment.file().len().map_err(LogError::io("read", segment.path()))?;
    let mut tip = Tip::new(segment.base_offset);
    if let Some((last_offset, position)) = segment.offset_index.last()? {
        // An entry never points to the first batch; zeros are what a lost sector leaves.
        if position == 0 || !ends_at(segment, position, len, last_offset) {
            return Ok(None);
        }
        tip.size = position;
        tip.indexed_to = position;
    }
    match segment.time_index.last()? {
        Some(greatest) => tip.greatest = greatest,
        // Lost, or no record bears a time: only the data tells.
        None if tip.size > 0 => return Ok(None),
        None => {}
    }
    let mut scan =
        Scan::new(segment.path(), segment.file().as_ref(), Depth::Headers, tip.size, len);
    loop {
        match scan.step()? {
            Step::Batch { header, .. } => {
                tip.take(&header, u64::MAX);
            }
            Step::End => break,
            Step::Broken { .. } => return Ok(None),
        }
    }
    Ok((tip.greatest.last_offset <= tip.next_offset).then_some(tip))
}

fn ends_at(segment: &Segment, position: u64, len: u64, last_offset: i64) -> bool {
    position < len
        && segment.header_at(position).is_ok_and(|header| header.last_offset() == last_offset)
}

/// Reads a segment whole, checks every batch and writes its indexes anew. Data and indexes are synced;
/// their names once the folder was. Batches may be missing below `holes_below`.
pub(crate) fn rebuild(
    fs: &dyn FileSystem,
    dir: &Path,
    base_offset: i64,
    interval: u64,
    holes_below: i64,
    tail: Tail,
) -> Result<Rebuilt, LogError> {
    let path = file_name::path(dir, base_offset, FileKind::Log);
    let file = fs.open(&path, OpenMode::Write).map_err(LogError::io("open", &path))?;
    let len = file.len().map_err(LogError::io("read", &path))?;
    let mut scan = Scan::new(&path, file.as_ref(), Depth::Checksums, 0, len);
    let found = read_whole(&mut scan, base_offset, interval, holes_below)?;
    found.check(&path, tail)?;
    let mut batches_cut = false;
    if let Some((position, reason)) = &found.broken {
        batches_cut = scan.holds_batch(position + 1, found.tip.next_offset)?;
        if batches_cut {
            let aside = file_name::path(dir, base_offset, FileKind::Cut);
            keep_aside(fs, &path, file.as_ref(), *position, &aside)?;
            let (bytes, offset) = (len - position, found.tip.next_offset);
            warn!(path = %path.display(), position, bytes, offset, reason, kept = %aside.display(), "a broken batch above the recovery point was cut, and whole ones behind it: they are kept aside");
        } else {
            warn!(path = %path.display(), position, len, reason, "cut the torn end of a segment");
        }
        site!("torn.cut", file.set_len(*position)).map_err(LogError::io("cut", &path))?;
    }
    settle(fs, &path, file.as_ref())?;
    write_indexes(fs, dir, base_offset, &found)?;
    let segment = Segment::indexed(fs, dir, base_offset, found.tip)?.ok_or_else(|| {
        let reason = "its indexes could not be written anew".to_owned();
        LogError::Damaged { path, position: 0, reason }
    })?;
    // What it says may be of batches that were cut.
    segment.transactions.forget();
    Ok(Rebuilt { segment, batches_cut })
}

/// Copies what is to be cut, safely before it is cut. An older copy of the same segment gives way.
fn keep_aside(
    fs: &dyn FileSystem,
    path: &Path,
    file: &dyn File,
    position: u64,
    aside: &Path,
) -> Result<(), LogError> {
    copy_from(fs, path, file, position, aside)?;
    site!("aside.folder", durable_file::sync_parent(fs, aside))
}

struct Found {
    tip: Tip,
    points: Vec<IndexPoint>,
    broken: Option<(u64, String)>,
}

impl Found {
    /// Refuses a segment that ends, or is broken, below what was synced of it.
    fn check(&self, path: &Path, tail: Tail) -> Result<(), LogError> {
        let end = self.tip.next_offset;
        let reason = match (&self.broken, tail) {
            (Some((_, reason)), Tail::Refuse) => reason.clone(),
            (Some((_, reason)), Tail::CutFrom(synced)) if end < synced => {
                format!("{reason}, at offset {end}, and it was synced up to {synced}")
            }
            (None, Tail::CutFrom(synced)) if end < synced => {
                format!("it ends at offset {end}, and it was synced up to {synced}")
            }
            _ => return Ok(()),
        };
        Err(LogError::Damaged { path: path.to_owned(), position: self.tip.size, reason })
    }
}

fn read_whole(
    scan: &mut Scan<'_>,
    base_offset: i64,
    interval: u64,
    holes_below: i64,
) -> Result<Found, LogError> {
    let mut found = Found { tip: Tip::new(base_offset), points: Vec::new(), broken: None };
    loop {
        match scan.step()? {
            Step::Batch { header, position } if !follows(&header, &found.tip, holes_below) => {
                let due = found.tip.next_offset;
                let reason = format!("offset {} stands where {due} is due", header.base_offset);
                found.broken = Some((position, reason));
            }
            Step::Batch { header, .. } => {
                found.points.extend(found.tip.take(&header, interval));
                continue;
            }
            Step::End => {}
            Step::Broken { position, reason } => found.broken = Some((position, reason)),
        }
        return Ok(found);
    }
}

/// Whether a batch may stand there: it is the next one, or compaction took what lay between.
fn follows(header: &BatchHeader, tip: &Tip, holes_below: i64) -> bool {
    let due = tip.next_offset;
    header.base_offset == due || (due < header.base_offset && header.base_offset < holes_below)
}

fn write_indexes(
    fs: &dyn FileSystem,
    dir: &Path,
    base_offset: i64,
    found: &Found,
) -> Result<(), LogError> {
    let points = &found.points;
    let mut offsets = Vec::with_capacity(points.len() * 8);
    let mut times = Vec::with_capacity((points.len() + 1) * 12);
    let mut newest = -1;
    for point in points {
        offsets.extend(offset_index::encode(base_offset, point.last_offset, point.position));
    }
    // As a finished segment ends: a power loss may bring the next one back, whose removal was not safe.
    let end = std::iter::once(found.tip.greatest);
    for greatest in points.iter().map(|point| point.greatest).chain(end) {
        if greatest.timestamp > newest {
            newest = greatest.timestamp;
            times.extend(time_index::encode(base_offset, greatest));
        }
    }
    durable_file::put(fs, &file_name::path(dir, base_offset, FileKind::OffsetIndex), &offsets)?;
    durable_file::put(fs, &file_name::path(dir, base_offset, FileKind::TimeIndex), &times)
}
