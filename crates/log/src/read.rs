//! Reading: whole batches as they lie in the file.

use bytes::Bytes;
use highwater_protocol::records::{BatchHeader, HEADER_SIZE};

use crate::marks::{Mark, Marks};
use crate::partition::Partition;
use crate::segment::Segment;
use crate::{LogError, Visible};

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
        let marks = self.marks();
        check_offset(&marks, offset)?;
        let end = end(&marks, visible);
        let after = segments.partition_point(|segment| segment.base_offset <= offset);
        let holder = after.checked_sub(1).and_then(|at| segments.get(at));
        let Some(segment) = holder.filter(|_| offset < end.offset) else { return Ok(Bytes::new()) };
        let limit =
            if segment.base_offset == end.segment { end.position } else { segment.tip().size };
        let Some((first, position)) = segment.find(offset)?.filter(|(_, at)| *at < limit) else {
            return Ok(Bytes::new());
        };
        read_batches(segment, &first, position, limit, max_bytes, min_one)
    }
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
        Visible::HighWatermark | Visible::LastStable => marks.shown,
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
    bytes.truncate(whole(&bytes));
    Ok(bytes)
}

/// Bytes of whole batches at the front.
fn whole(bytes: &[u8]) -> usize {
    let mut end = 0;
    while let Some(rest) = bytes.get(end..).filter(|rest| rest.len() >= HEADER_SIZE) {
        match BatchHeader::parse(rest) {
            Ok(header) if header.size() <= rest.len() => end += header.size(),
            _ => break,
        }
    }
    end
}
