//! Reading: whole batches as they lie in the file.

use std::sync::Arc;

use bytes::Bytes;
use highwater_protocol::records::{BatchHeader, HEADER_SIZE};

use crate::marks::{Mark, Marks};
use crate::partition::Partition;
use crate::segment::Segment;
use crate::{Aborted, LogError, Visible};

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
        self.check_readable()?;
        // Held while reading, so that nothing is cut away under it.
        let segments = self.segments.read();
        self.read_from(&segments, offset, max_bytes, min_one, visible)
    }

    /// As [`Partition::read`] up to the last stable offset, and the aborted transactions that have records
    /// in what was read from `offset` on. Blocks on the disk.
    ///
    /// # Errors
    /// As [`Partition::read`].
    pub fn read_committed(
        &self,
        offset: i64,
        max_bytes: usize,
        min_one: bool,
    ) -> Result<(Bytes, Vec<Aborted>), LogError> {
        self.check_readable()?;
        // Held for both: retention must not take the index of what was read.
        let segments = self.segments.read();
        let bytes = self.read_from(&segments, offset, max_bytes, min_one, Visible::LastStable)?;
        let aborted = match whole(&bytes) {
            (_, Some(next)) => aborted(&segments, offset, next)?,
            _ => Vec::new(),
        };
        Ok((bytes, aborted))
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

    fn read_from(
        &self,
        segments: &[Arc<Segment>],
        offset: i64,
        max_bytes: usize,
        min_one: bool,
        visible: Visible,
    ) -> Result<Bytes, LogError> {
        let marks = self.marks();
        check_offset(&marks, offset)?;
        let end = end(&marks, visible);
        let holder = segments.get(holder(segments, offset));
        let Some(segment) = holder.filter(|_| offset < end.offset) else { return Ok(Bytes::new()) };
        let limit =
            if segment.base_offset == end.segment { end.position } else { segment.tip().size };
        let Some((first, position)) = segment.find(offset)?.filter(|(_, at)| *at < limit) else {
            return Ok(Bytes::new());
        };
        read_batches(segment, &first, position, limit, max_bytes, min_one)
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

fn read_batches(
    segment: &Segment,
    first: &BatchHeader,
    position: u64,
    limit: u64,
    max_bytes: usize,
    min_one: bool,
) -> Result<Bytes, LogError> {
    let one = first.size() as u64;
    let wanted = (max_bytes as u64).min(limit - position);
    if wanted < one {
        return if min_one { segment.read(position, one) } else { Ok(Bytes::new()) };
    }
    let mut bytes = segment.read(position, wanted)?;
    let (end, _) = whole(&bytes);
    bytes.truncate(end);
    Ok(bytes)
}

/// Bytes of whole batches at the front, and the offset behind the last of them.
fn whole(bytes: &[u8]) -> (usize, Option<i64>) {
    let (mut end, mut next) = (0, None);
    while let Some(rest) = bytes.get(end..).filter(|rest| rest.len() >= HEADER_SIZE) {
        match BatchHeader::parse(rest) {
            Ok(header) if header.size() <= rest.len() => {
                end += header.size();
                next = Some(header.next_offset());
            }
            _ => break,
        }
    }
    (end, next)
}
