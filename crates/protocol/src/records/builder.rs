//! Making a batch.

use bytes::{BufMut, Bytes, BytesMut};

use super::batch::crc;
use super::header::{CRC_AT, CRC_FROM};
use super::{BatchError, BatchHeader, Compression, HEADER_SIZE};

/// Makes one batch, record by record.
#[derive(Clone, Debug)]
pub struct BatchBuilder {
    header: BatchHeader,
    compression: Compression,
    /// Room for the header, then the records.
    batch: BytesMut,
}

impl BatchBuilder {
    /// An empty batch at offset 0, without a producer.
    pub fn new(compression: Compression) -> Self {
        let header = BatchHeader {
            base_offset: 0,
            batch_length: 0,
            partition_leader_epoch: -1,
            crc: 0,
            attributes: 0,
            last_offset_delta: 0,
            base_timestamp: -1,
            max_timestamp: -1,
            producer_id: -1,
            producer_epoch: -1,
            base_sequence: -1,
            record_count: 0,
        };
        Self { header, compression, batch: BytesMut::zeroed(HEADER_SIZE) }
    }

    /// Sets the offset of the first record.
    pub fn base_offset(mut self, base_offset: i64) -> Self {
        self.header.base_offset = base_offset;
        self
    }

    /// Sets the leader epoch.
    pub fn leader_epoch(mut self, leader_epoch: i32) -> Self {
        self.header.partition_leader_epoch = leader_epoch;
        self
    }

    /// Sets the producer, and the sequence number of the first record.
    pub fn producer(mut self, id: i64, epoch: i16, base_sequence: i32) -> Self {
        self.header.producer_id = id;
        self.header.producer_epoch = epoch;
        self.header.base_sequence = base_sequence;
        self
    }

    /// Makes the batch part of a transaction.
    pub fn transactional(mut self) -> Self {
        self.header.set_transactional();
        self
    }

    /// Makes the batch a marker; see [`Marker`](super::Marker).
    pub fn control(mut self) -> Self {
        self.header.set_control();
        self
    }

    /// Adds a record. `timestamp` is in milliseconds since 1970.
    pub fn push(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: &[(Bytes, Option<Bytes>)],
    ) {
        let headers = headers.iter().map(|(name, value)| (name.as_ref(), value.as_deref()));
        self.push_parts(timestamp, key, value, headers);
    }

    /// As [`BatchBuilder::push`], for headers that stand elsewhere.
    pub fn push_parts<'a>(
        &mut self,
        timestamp: i64,
        key: Option<&[u8]>,
        value: Option<&[u8]>,
        headers: impl ExactSizeIterator<Item = (&'a [u8], Option<&'a [u8]>)> + Clone,
    ) {
        self.count(timestamp);
        let time = timestamp.wrapping_sub(self.header.base_timestamp);
        let offset = i64::from(self.header.last_offset_delta);
        let count = headers.len();
        let in_headers: usize =
            headers.clone().map(|(name, value)| bytes_size(Some(name)) + bytes_size(value)).sum();
        let size =
            1 + varlong_size(time) + varlong_size(offset) + bytes_size(key) + bytes_size(value);
        let size = size + length_size(count) + in_headers;
        let out = &mut self.batch;
        out.reserve(length_size(size) + size);
        put_length(out, size);
        out.put_i8(0);
        put_varlong(out, time);
        put_varlong(out, offset);
        put_bytes(out, key);
        put_bytes(out, value);
        put_length(out, count);
        for (name, value) in headers {
            put_bytes(out, Some(name));
            put_bytes(out, value);
        }
    }

    /// How many records there are.
    pub fn record_count(&self) -> i32 {
        self.header.record_count
    }

    /// Bytes of the batch as it stands, before compression.
    pub fn size(&self) -> usize {
        self.batch.len()
    }

    /// The batch.
    ///
    /// # Errors
    /// [`BatchError::Count`] if it is empty, [`BatchError::Compressed`] if the codec fails.
    pub fn build(self) -> Result<Bytes, BatchError> {
        if self.header.record_count == 0 {
            return Err(BatchError::Count { count: 0, reason: "a batch has one record at least" });
        }
        let mut batch = self.batch;
        if self.compression != Compression::None {
            let body = self.compression.compress(batch.get(HEADER_SIZE..).unwrap_or_default())?;
            batch.truncate(HEADER_SIZE);
            batch.put_slice(&body);
        }
        let mut header = self.header.with_compression(self.compression);
        header.set_body_size(batch.len() - HEADER_SIZE);
        if let Some(room) = batch.first_chunk_mut::<HEADER_SIZE>() {
            *room = header.to_bytes();
        }
        let crc = crc(&batch);
        if let Some(field) = batch.get_mut(CRC_AT..CRC_FROM) {
            field.copy_from_slice(&crc.to_be_bytes());
        }
        Ok(batch.freeze())
    }

    /// Takes a record with this timestamp into the header.
    fn count(&mut self, timestamp: i64) {
        if self.header.record_count == 0 {
            self.header.base_timestamp = timestamp;
            self.header.max_timestamp = timestamp;
        }
        self.header.max_timestamp = self.header.max_timestamp.max(timestamp);
        self.header.last_offset_delta = self.header.record_count;
        self.header.record_count += 1;
    }
}

fn put_bytes(out: &mut BytesMut, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => {
            put_length(out, bytes.len());
            out.put_slice(bytes);
        }
        None => put_varlong(out, -1),
    }
}

pub(super) fn put_length(out: &mut BytesMut, length: usize) {
    put_varlong(out, i64::try_from(length).unwrap_or(i64::MAX));
}

fn bytes_size(bytes: Option<&[u8]>) -> usize {
    bytes.map_or(1, |bytes| length_size(bytes.len()) + bytes.len())
}

fn length_size(length: usize) -> usize {
    varlong_size(i64::try_from(length).unwrap_or(i64::MAX))
}

fn zigzag(value: i64) -> u64 {
    (value << 1 ^ value >> 63) as u64
}

pub(super) fn varlong_size(value: i64) -> usize {
    let bits = u64::BITS - (zigzag(value) | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

/// A zigzag variable-length integer; one of 32 bits has the same bytes.
pub(super) fn put_varlong(out: &mut BytesMut, value: i64) {
    let mut rest = zigzag(value);
    while rest >= 0x80 {
        out.put_u8((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.put_u8(rest as u8);
}
