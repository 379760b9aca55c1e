//! The walk that a log does before it believes a batch (rule L3).

use super::walk::Walk;
use super::{Batch, BatchError};

/// What the records of a batch say, against which its header can be checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validated {
    /// How many records there are: one or more, as many as the header says.
    pub count: i32,
    /// The greatest timestamp, in milliseconds since 1970. Where the header says another, the
    /// header is wrong: see [`BatchMut::set_max_timestamp`](super::BatchMut::set_max_timestamp).
    pub max_timestamp: i64,
    /// The least timestamp of the records that have one, or -1.
    pub min_timestamp: i64,
    /// The offset of the first record that has the greatest, less the base offset.
    pub max_timestamp_offset_delta: i32,
}

impl Batch {
    /// Goes once through a batch as a producer sends it: the CRC, every record whole, offsets
    /// without a gap, count and last offset as the header says. `limit` bounds the records
    /// decompressed, in bytes.
    ///
    /// # Errors
    /// Any [`BatchError`]: the batch is not to be appended.
    pub fn validate(&self, limit: usize) -> Result<Validated, BatchError> {
        self.verify_crc()?;
        let count = self.header.record_count;
        if count < 1 {
            return Err(BatchError::Count { count, reason: "a batch has one record at least" });
        }
        // The walk keeps offsets rising and within the last; with one record for each of them
        // there is no room for a gap.
        if self.header.last_offset_delta != count - 1 {
            return Err(BatchError::Count { count, reason: "the last offset says another" });
        }
        self.greatest(count, limit)
    }

    fn greatest(&self, count: i32, limit: usize) -> Result<Validated, BatchError> {
        let body = self.body(limit)?;
        let mut walk = Walk::new(&self.header);
        let mut greatest: Option<Validated> = None;
        let mut least = -1;
        for index in 0.. {
            let Some(record) = walk.next(&body) else { break };
            let timestamp = record?.time.timestamp;
            if timestamp != -1 && (least == -1 || timestamp < least) {
                least = timestamp;
            }
            if greatest.is_none_or(|greatest| timestamp > greatest.max_timestamp) {
                greatest = Some(Validated {
                    count,
                    max_timestamp: timestamp,
                    min_timestamp: -1,
                    max_timestamp_offset_delta: index,
                });
            }
        }
        greatest
            .map(|greatest| Validated { min_timestamp: least, ..greatest })
            .ok_or(BatchError::Count { count, reason: "there are no records" })
    }
}
