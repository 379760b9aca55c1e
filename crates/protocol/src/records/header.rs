//! The header of a batch.

use bytes::{Buf, BufMut};

use super::{BatchError, Compression};

/// Bytes of a batch in front of its records.
pub const HEADER_SIZE: usize = 61;

/// Bytes that the batch length does not count: the base offset and the length itself.
const OUTSIDE_LENGTH: usize = 12;

/// Where the CRC lies, and the bytes it covers begin.
pub(super) const CRC_AT: usize = 17;
pub(super) const CRC_FROM: usize = 21;

const CODEC_BITS: i16 = 0b111;
const LOG_APPEND_TIME: i16 = 1 << 3;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;
const DELETE_HORIZON: i16 = 1 << 6;

/// What the timestamps of a batch mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimestampType {
    /// Each record has its own, given by its producer.
    #[default]
    CreateTime,
    /// All records have the time at which the log took them, the batch's greatest timestamp.
    LogAppendTime,
}

/// The header of a batch, in the order of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// Offset of the first record, as it was before any compaction.
    pub base_offset: i64,
    /// Bytes behind this field, from 49.
    pub batch_length: i32,
    /// Epoch of the leader that took the batch, or -1.
    pub partition_leader_epoch: i32,
    /// CRC-32C of everything behind this field.
    pub crc: u32,
    /// Compression and flags; see the methods.
    pub attributes: i16,
    /// Offset of the last record less the base offset.
    pub last_offset_delta: i32,
    /// What the records' timestamps are counted from, in milliseconds since 1970; see also
    /// [`BatchHeader::delete_horizon`].
    pub base_timestamp: i64,
    /// The greatest timestamp of the records, in milliseconds since 1970.
    pub max_timestamp: i64,
    /// The producer's id, or -1.
    pub producer_id: i64,
    /// The producer's epoch, or -1.
    pub producer_epoch: i16,
    /// The first record's sequence number, or -1.
    pub base_sequence: i32,
    /// How many records there are; none may be left after compaction.
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads the header at the front of `bytes`, which need not hold the rest of the batch.
    ///
    /// # Errors
    /// [`BatchError::Cut`], [`BatchError::Magic`], or a field that no batch can have. The CRC is
    /// not checked.
    pub fn parse(bytes: &[u8]) -> Result<Self, BatchError> {
        let left = bytes.len();
        let header = bytes
            .first_chunk::<HEADER_SIZE>()
            .ok_or(BatchError::Cut { needed: HEADER_SIZE, left })?;
        let mut fields = header.as_slice();
        let base_offset = fields.get_i64();
        let batch_length = fields.get_i32();
        let partition_leader_epoch = fields.get_i32();
        let magic = fields.get_i8();
        if magic != 2 {
            return Err(BatchError::Magic { magic });
        }
        Self {
            base_offset,
            batch_length,
            partition_leader_epoch,
            crc: fields.get_u32(),
            attributes: fields.get_i16(),
            last_offset_delta: fields.get_i32(),
            base_timestamp: fields.get_i64(),
            max_timestamp: fields.get_i64(),
            producer_id: fields.get_i64(),
            producer_epoch: fields.get_i16(),
            base_sequence: fields.get_i32(),
            record_count: fields.get_i32(),
        }
        .checked()
    }

    /// Bytes of the whole batch.
    pub fn size(&self) -> usize {
        usize::try_from(self.batch_length).unwrap_or(0) + OUTSIDE_LENGTH
    }

    /// Offset of the last record.
    pub fn last_offset(&self) -> i64 {
        self.base_offset.saturating_add(self.last_offset_delta.into())
    }

    /// Offset that follows the batch.
    pub fn next_offset(&self) -> i64 {
        self.last_offset().saturating_add(1)
    }

    /// How the records are compressed.
    ///
    /// # Errors
    /// [`BatchError::Codec`] if Kafka has no such compression.
    pub fn compression(&self) -> Result<Compression, BatchError> {
        Compression::from_id(self.attributes & CODEC_BITS)
    }

    /// What the timestamps mean.
    pub fn timestamp_type(&self) -> TimestampType {
        match self.attributes & LOG_APPEND_TIME {
            0 => TimestampType::CreateTime,
            _ => TimestampType::LogAppendTime,
        }
    }

    /// Whether the batch belongs to a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes & TRANSACTIONAL != 0
    }

    /// Whether the batch is a marker of the broker's, not records of a producer's.
    pub fn is_control(&self) -> bool {
        self.attributes & CONTROL != 0
    }

    /// When compaction may remove the batch's tombstones, or the marker that it is, in milliseconds
    /// since 1970; None as long as no pass has set it (KIP-534).
    pub fn delete_horizon(&self) -> Option<i64> {
        (self.attributes & DELETE_HORIZON != 0).then_some(self.base_timestamp)
    }

    /// The header as bytes.
    pub fn to_bytes(&self) -> [u8; HEADER_SIZE] {
        let mut bytes = [0; HEADER_SIZE];
        let mut fields = bytes.as_mut_slice();
        fields.put_i64(self.base_offset);
        fields.put_i32(self.batch_length);
        fields.put_i32(self.partition_leader_epoch);
        fields.put_i8(2);
        fields.put_u32(self.crc);
        fields.put_i16(self.attributes);
        fields.put_i32(self.last_offset_delta);
        fields.put_i64(self.base_timestamp);
        fields.put_i64(self.max_timestamp);
        fields.put_i64(self.producer_id);
        fields.put_i16(self.producer_epoch);
        fields.put_i32(self.base_sequence);
        fields.put_i32(self.record_count);
        bytes
    }

    pub(super) fn with_compression(mut self, compression: Compression) -> Self {
        self.attributes = self.attributes & !CODEC_BITS | compression as i16;
        self
    }

    pub(super) fn set_timestamp_type(&mut self, timestamp_type: TimestampType) {
        match timestamp_type {
            TimestampType::CreateTime => self.attributes &= !LOG_APPEND_TIME,
            TimestampType::LogAppendTime => self.attributes |= LOG_APPEND_TIME,
        }
    }

    /// Sets the base timestamp with it; None says that there is none.
    pub(super) fn set_delete_horizon(&mut self, horizon: Option<i64>) {
        match horizon {
            None => self.attributes &= !DELETE_HORIZON,
            Some(horizon) => {
                self.attributes |= DELETE_HORIZON;
                self.base_timestamp = horizon;
            }
        }
    }

    pub(super) fn set_transactional(&mut self) {
        self.attributes |= TRANSACTIONAL;
    }

    pub(super) fn set_control(&mut self) {
        self.attributes |= CONTROL;
    }

    /// Sets the batch length to that of a batch whose records take `bytes` bytes.
    pub(super) fn set_body_size(&mut self, bytes: usize) {
        let length = (bytes + HEADER_SIZE - OUTSIDE_LENGTH).try_into();
        self.batch_length = length.unwrap_or(i32::MAX);
    }

    fn checked(self) -> Result<Self, BatchError> {
        if self.size() < HEADER_SIZE {
            return Err(BatchError::Length { length: self.batch_length });
        }
        let (base, delta) = (self.base_offset, self.last_offset_delta);
        // One above the last offset must be an offset too: it is where the log goes on.
        let end = base.checked_add(delta.into()).and_then(|last| last.checked_add(1));
        if base < 0 || delta < 0 || end.is_none() {
            return Err(BatchError::Offsets { base, delta });
        }
        if self.record_count < 0 {
            let reason = "a count cannot be negative";
            return Err(BatchError::Count { count: self.record_count, reason });
        }
        Ok(self)
    }
}
