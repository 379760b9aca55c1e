//! The whole batches of a segment from front to back, read in pieces and checked.

use highwater_protocol::records::{Batch, Batches, batches};

use crate::LogError;
use crate::segment::Segment;

/// Bytes read at a time; more where a batch is larger.
const PIECE: u64 = 1 << 20;

/// A walk over what the tip of a segment covers.
#[derive(Debug)]
pub(crate) struct BatchReader<'a> {
    segment: &'a Segment,
    position: u64,
    end: u64,
    piece: Batches,
}

impl<'a> BatchReader<'a> {
    /// A walk from `position`, where a batch begins.
    pub(crate) fn new(segment: &'a Segment, position: u64) -> Self {
        let piece = batches(bytes::Bytes::new());
        Self { segment, position, end: segment.tip().size, piece }
    }

    /// The next batch.
    ///
    /// # Errors
    /// [`LogError::Damaged`] for a batch that is not whole or whose checksum is wrong; or of the disk.
    pub(crate) fn next(&mut self) -> Result<Option<Batch>, LogError> {
        let damaged = |position, error: String| self.segment.damaged(position, error);
        if let Some(batch) = self.piece.next() {
            let batch = batch.map_err(|error| damaged(self.position, error.to_string()))?;
            batch.verify_crc().map_err(|error| damaged(self.position, error.to_string()))?;
            self.position += batch.bytes.len() as u64;
            return Ok(Some(batch));
        }
        let left = self.end.saturating_sub(self.position);
        if left == 0 {
            return Ok(None);
        }
        let one = self.segment.header_at(self.position)?.size() as u64;
        if one > left {
            return Err(damaged(self.position, format!("a batch of {one} bytes in {left}")));
        }
        self.piece = batches(self.segment.read(self.position, one.max(PIECE.min(left)))?);
        self.next()
    }
}
