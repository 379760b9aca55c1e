//! Reading: whole batches as they lie in the file.

use std::sync::Arc;

use bytes::Bytes;
use highwater_protocol::records::BatchHeader;

use crate::marks::{Mark, Marks};
use crate::partition::Partition;
use crate::segment::Segment;
use crate::slice::Slice;
use crate::{Aborted, LogError, Visible};

/// How much a read may bring.
#[derive(Clone, Copy, Debug)]
struct Room {
    /// Bytes.
    most: usize,
    /// Whether the first batch comes also where it is larger.
    min_one: bool,
}

impl Partition {
    /// Whole batches of one segment, from the one that holds `offset` (its base offset may be lower), at
    /// most `max_bytes`; with `min_one` the first batch comes even if it is larger. Empty at the end of
    /// what is visible. Blocks on the disk.
    ///
    /// # Errors
    /// [`LogError::OffsetOutOfRange`] below the log start or above the log end.
    pub fn read(
        &self,
        offset: i64,
        max_bytes: usize,
        min_one: bool,
        visible: Visible,
    ) -> Result<Bytes, LogError> {
        let slice = self.slice(offset, max_bytes, min_one, visible)?;
        slice.map_or(Ok(Bytes::new()), |slice| slice.read())
    }

    /// As [`Partition::read`], without reading: where the batches lie. None where it would be empty.
    /// Blocks on the disk, since the index is asked.
    ///
    /// # Errors
    /// As [`Partition::read`].
    pub fn slice(
        &self,
        offset: i64,
        max_bytes: usize,
        min_one: bool,
        visible: Visible,
    ) -> Result<Option<Slice>, LogError> {
        self.check_readable()?;
        self.slice_of(&self.segments.read(), offset, Room { most: max_bytes, min_one }, visible)
    }

    /// As [`Partition::slice`] up to the last stable offset, and the aborted transactions that have
    /// records in it from `offset` on. Blocks on the disk.
    ///
    /// # Errors
    /// As [`Partition::read`].
    pub fn slice_committed(
        &self,
        offset: i64,
        max_bytes: usize,
        min_one: bool,
    ) -> Result<Option<(Slice, Vec<Aborted>)>, LogError> {
        self.check_readable()?;
        // Held for both: retention must not take the index of what was found.
        let segments = self.segments.read();
        let room = Room { most: max_bytes, min_one };
        let slice = self.slice_of(&segments, offset, room, Visible::LastStable)?;
        let with_aborted = |slice: Slice| {
            let aborted = aborted(&segments, offset, slice.next_offset())?;
            Ok((slice, aborted))
        };
        slice.map(with_aborted).transpose()
    }

    /// As [`Partition::slice_committed`], read.
    ///
    /// # Errors
    /// As [`Partition::read`].
    pub fn read_committed(
        &self,
        offset: i64,
        max_bytes: usize,
        min_one: bool,
    ) -> Result<(Bytes, Vec<Aborted>), LogError> {
        match self.slice_committed(offset, max_bytes, min_one)? {
            Some((slice, aborted)) => Ok((slice.read()?, aborted)),
            None => Ok((Bytes::new(), Vec::new())),
        }
    }

    /// The aborted transactions that have records, or their marker, in `from..to`, in the order in which
    /// they were aborted. Blocks on the disk.
    ///
    /// # Errors
    /// Of the disk.
    pub fn aborted(&self, from: i64, to: i64) -> Result<Vec<Aborted>, LogError> {
        self.check_readable()?;
        aborted(&self.segments.read(), from, to)
    }

    fn slice_of(
        &self,
        segments: &[Arc<Segment>],
        offset: i64,
        room: Room,
        visible: Visible,
    ) -> Result<Option<Slice>, LogError> {
        let marks = self.marks();
        check_offset(&marks, offset)?;
        let end = end(&marks, visible);
        let holder = segments.get(holder(segments, offset));
        let Some(segment) = holder.filter(|_| offset < end.offset) else { return Ok(None) };
        let limit = match segment.tip() {
            _ if segment.base_offset == end.segment => (end.position, end.offset),
            tip => (tip.size, tip.next_offset),
        };
        let Some((first, position)) = segment.find(offset)?.filter(|(_, at)| *at < limit.0) else {
            return Ok(None);
        };
        let extent = extent(segment, &first, position, limit, room)?;
        let slice = |(len, next)| Slice::new(Arc::clone(segment), position, len, next);
        Ok(extent.map(slice))
    }
}

/// The number of the segment that holds `offset`.
fn holder(segments: &[Arc<Segment>], offset: i64) -> usize {
    segments.partition_point(|segment| segment.base_offset <= offset).saturating_sub(1)
}

/// A transaction stands in the index of the segment that has its marker: in that of `from` or behind it.
fn aborted(segments: &[Arc<Segment>], from: i64, to: i64) -> Result<Vec<Aborted>, LogError> {
    let mut found = Vec::new();
    for segment in segments.get(holder(segments, from)..).unwrap_or_default() {
        if segment.transactions.collect(from, to, &mut found)? {
            break;
        }
    }
    Ok(found)
}

fn check_offset(marks: &Marks, offset: i64) -> Result<(), LogError> {
    let (log_start, log_end) = (marks.log_start, marks.log_end.offset);
    if (log_start..=log_end).contains(&offset) {
        return Ok(());
    }
    Err(LogError::OffsetOutOfRange { offset, log_start, log_end })
}

fn end(marks: &Marks, visible: Visible) -> Mark {
    match visible {
        Visible::HighWatermark => marks.shown,
        Visible::LastStable => marks.stable,
        Visible::LogEnd => marks.log_end,
    }
}

/// How many bytes of whole batches from `position` on fit, and the offset behind them. `limit` is where
/// what may be read ends: position and offset.
fn extent(
    segment: &Segment,
    first: &BatchHeader,
    position: u64,
    limit: (u64, i64),
    room: Room,
) -> Result<Option<(u64, i64)>, LogError> {
    let one = first.size() as u64;
    let most = room.most as u64;
    if most < one {
        return Ok(room.min_one.then(|| (one, first.next_offset())));
    }
    if limit.0 - position <= most {
        return Ok(Some((limit.0 - position, limit.1)));
    }
    // The index knows a batch close before the end of the room: only what lies between is looked at.
    let mut end = segment.offset_index.floor_position(position + most)?.max(position);
    loop {
        let header = segment.header_at(end)?;
        if end + header.size() as u64 > position + most {
            return Ok(Some((end - position, header.base_offset)));
        }
        end += header.size() as u64;
    }
}
