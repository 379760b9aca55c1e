//! Where a segment ends, and what its indexes must say about each batch. Pure: the same decision is
//! made on append and in recovery, so that both write the same indexes.

use highwater_protocol::records::BatchHeader;

use crate::time_index::Greatest;

/// The end of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Tip {
    /// Bytes of whole batches.
    pub(crate) size: u64,
    /// The offset after the last record.
    pub(crate) next_offset: i64,
    /// The greatest timestamp. Kept as one value, so that nobody sees a mixed pair (KAFKA-12981).
    pub(crate) greatest: Greatest,
    /// Position of the last batch that has an index entry.
    pub(crate) indexed_to: u64,
}

/// Entries due for both indexes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct IndexPoint {
    pub(crate) last_offset: i64,
    pub(crate) position: u64,
    pub(crate) greatest: Greatest,
}

impl Tip {
    /// That of an empty segment.
    pub(crate) fn new(base_offset: i64) -> Self {
        Self {
            size: 0,
            next_offset: base_offset,
            greatest: Greatest { timestamp: -1, last_offset: base_offset, position: Some(0) },
            indexed_to: 0,
        }
    }

    /// Takes the batch that follows; the answer is what is to be indexed.
    pub(crate) fn take(&mut self, header: &BatchHeader, interval: u64) -> Option<IndexPoint> {
        let (position, last_offset) = (self.size, header.last_offset());
        // Only a strictly greater time counts: the first batch that reached it is the answer.
        if header.max_timestamp > self.greatest.timestamp {
            self.greatest =
                Greatest { timestamp: header.max_timestamp, last_offset, position: Some(position) };
        }
        self.size += header.size() as u64;
        self.next_offset = header.next_offset();
        if position - self.indexed_to <= interval {
            return None;
        }
        self.indexed_to = position;
        Some(IndexPoint { last_offset, position, greatest: self.greatest })
    }
}
