//! Batches in a buffer.

use bytes::Bytes;

use super::header::CRC_FROM;
use super::walk::Walk;
use super::{BatchError, BatchHeader, Compression, HEADER_SIZE, RecordTime, Records};

/// One whole batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Its header.
    pub header: BatchHeader,
    /// All of its bytes, with the header's.
    pub bytes: Bytes,
}

impl Batch {
    /// Takes the batch at the front of `bytes`, without a copy.
    ///
    /// # Errors
    /// As [`BatchHeader::parse`]; [`BatchError::Cut`] if the bytes end before the batch does.
    pub fn parse(bytes: &Bytes) -> Result<Self, BatchError> {
        let header = BatchHeader::parse(bytes)?;
        let (needed, left) = (header.size(), bytes.len());
        if left < needed {
            return Err(BatchError::Cut { needed, left });
        }
        Ok(Self { header, bytes: bytes.slice(..needed) })
    }

    /// Checks the CRC.
    ///
    /// # Errors
    /// [`BatchError::Crc`] if the bytes have another.
    pub fn verify_crc(&self) -> Result<(), BatchError> {
        let (stored, computed) = (self.header.crc, crc(&self.bytes));
        if stored == computed { Ok(()) } else { Err(BatchError::Crc { stored, computed }) }
    }

    /// Opens the batch. Without compression, keys and values are slices of the batch's memory.
    /// `limit` bounds the records decompressed, in bytes.
    ///
    /// # Errors
    /// [`BatchError::Codec`], [`BatchError::Compressed`] or [`BatchError::TooLarge`]. A record that
    /// is malformed is an error of the iterator, which ends with it.
    pub fn records(&self, limit: usize) -> Result<Records, BatchError> {
        Ok(Records::new(&self.header, self.body(limit)?))
    }

    /// The first record whose timestamp is at or after `timestamp` and whose offset is at or after
    /// `offset`. `limit` as for [`Batch::records`].
    ///
    /// # Errors
    /// Those of [`Batch::records`], and a malformed record on the way.
    pub fn first_at_or_after(
        &self,
        timestamp: i64,
        offset: i64,
        limit: usize,
    ) -> Result<Option<RecordTime>, BatchError> {
        self.find(limit, |record| record.timestamp >= timestamp && record.offset >= offset)
    }

    /// The first record that has exactly this timestamp. `limit` as for [`Batch::records`].
    ///
    /// # Errors
    /// Those of [`Batch::records`], and a malformed record on the way.
    pub fn first_with(
        &self,
        timestamp: i64,
        limit: usize,
    ) -> Result<Option<RecordTime>, BatchError> {
        self.find(limit, |record| record.timestamp == timestamp)
    }

    /// The records' bytes, decompressed.
    pub(super) fn body(&self, limit: usize) -> Result<Bytes, BatchError> {
        let body = self.bytes.slice(HEADER_SIZE.min(self.bytes.len())..);
        match self.header.compression()? {
            Compression::None => Ok(body),
            codec => codec.decompress(&body, limit).map(Bytes::from),
        }
    }

    fn find(
        &self,
        limit: usize,
        wanted: impl Fn(&RecordTime) -> bool,
    ) -> Result<Option<RecordTime>, BatchError> {
        let body = self.body(limit)?;
        let mut walk = Walk::new(&self.header);
        while let Some(record) = walk.next(&body) {
            let time = record?.time;
            if wanted(&time) {
                return Ok(Some(time));
            }
        }
        Ok(None)
    }
}

/// The whole batches in `bytes`, by their headers alone.
pub fn batches(bytes: Bytes) -> Batches {
    Batches { rest: bytes, failed: false }
}

/// See [`batches`]. Ends before a batch that is cut, and behind the first error.
#[derive(Clone, Debug)]
pub struct Batches {
    rest: Bytes,
    failed: bool,
}

impl Batches {
    /// What has not been gone through: empty when the bytes held whole batches and nothing else.
    pub fn rest(&self) -> &Bytes {
        &self.rest
    }
}

impl Iterator for Batches {
    type Item = Result<Batch, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        match Batch::parse(&self.rest) {
            Ok(batch) => {
                self.rest = self.rest.split_off(batch.bytes.len());
                Some(Ok(batch))
            }
            Err(BatchError::Cut { .. }) => None,
            Err(error) => {
                self.failed = true;
                Some(Err(error))
            }
        }
    }
}

/// The CRC of a batch's bytes.
pub(super) fn crc(batch: &[u8]) -> u32 {
    crc32c::crc32c(batch.get(CRC_FROM..).unwrap_or_default())
}
