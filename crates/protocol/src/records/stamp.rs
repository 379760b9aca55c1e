//! Changing a batch where it lies.

use super::batch::crc;
use super::header::{CRC_AT, CRC_FROM};
use super::{BatchError, BatchHeader, HEADER_SIZE, TimestampType};

/// A batch whose header a leader stamps before it is written.
#[derive(Debug)]
pub struct BatchMut<'a> {
    header: BatchHeader,
    bytes: &'a mut [u8],
}

impl<'a> BatchMut<'a> {
    /// Takes the batch at the front of `bytes`, and gives what stands behind it.
    ///
    /// # Errors
    /// As [`BatchHeader::parse`]; [`BatchError::Cut`] if the bytes end before the batch does.
    pub fn parse(bytes: &'a mut [u8]) -> Result<(Self, &'a mut [u8]), BatchError> {
        let header = BatchHeader::parse(bytes)?;
        let (needed, left) = (header.size(), bytes.len());
        let (batch, behind) =
            bytes.split_at_mut_checked(needed).ok_or(BatchError::Cut { needed, left })?;
        Ok((Self { header, bytes: batch }, behind))
    }

    /// The header as it stands.
    pub fn header(&self) -> &BatchHeader {
        &self.header
    }

    /// Sets the offset of the first record. The CRC does not cover it.
    pub fn set_base_offset(&mut self, base_offset: i64) {
        self.header.base_offset = base_offset;
        self.write_header();
    }

    /// Sets the epoch of the leader that takes the batch. The CRC does not cover it.
    pub fn set_leader_epoch(&mut self, leader_epoch: i32) {
        self.header.partition_leader_epoch = leader_epoch;
        self.write_header();
    }

    /// Sets the greatest timestamp and what timestamps mean, and rewrites the CRC.
    pub fn set_max_timestamp(&mut self, timestamp_type: TimestampType, max_timestamp: i64) {
        self.header.max_timestamp = max_timestamp;
        self.header.set_timestamp_type(timestamp_type);
        self.write_header();
        self.header.crc = crc(self.bytes);
        if let Some(field) = self.bytes.get_mut(CRC_AT..CRC_FROM) {
            field.copy_from_slice(&self.header.crc.to_be_bytes());
        }
    }

    fn write_header(&mut self) {
        if let Some(header) = self.bytes.first_chunk_mut::<HEADER_SIZE>() {
            *header = self.header.to_bytes();
        }
    }
}
