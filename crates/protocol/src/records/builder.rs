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
    body: BytesMut,
    record: BytesMut,
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
        Self { header, compression, body: BytesMut::new(), record: BytesMut::new() }
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
        self.count(timestamp);
        self.record.clear();
        self.record.put_i8(0);
        put_varlong(&mut self.record, timestamp.wrapping_sub(self.header.base_timestamp));
        put_varlong(&mut self.record, self.header.last_offset_delta.into());
        put_bytes(&mut self.record, key);
        put_bytes(&mut self.record, value);
        put_length(&mut self.record, headers.len());
        for (name, value) in headers {
            put_bytes(&mut self.record, Some(name));
            put_bytes(&mut self.record, value.as_deref());
        }
        put_length(&mut self.body, self.record.len());
        self.body.put_slice(&self.record);
    }

    /// How many records there are.
    pub fn record_count(&self) -> i32 {
        self.header.record_count
    }

    /// Bytes of the batch as it stands, before compression.
    pub fn size(&self) -> usize {
        HEADER_SIZE + self.body.len()
    }

    /// The batch.
    ///
    /// # Errors
    /// [`BatchError::Count`] if it is empty, [`BatchError::Compressed`] if the codec fails.
    pub fn build(self) -> Result<Bytes, BatchError> {
        if self.header.record_count == 0 {
            return Err(BatchError::Count { count: 0, reason: "a batch has one record at least" });
        }
        let body = match self.compression {
            Compression::None => self.body.freeze(),
            codec => codec.compress(&self.body)?.into(),
        };
        let mut header = self.header.with_compression(self.compression);
        header.set_body_size(body.len());
        let mut batch = BytesMut::with_capacity(HEADER_SIZE + body.len());
        batch.put_slice(&header.to_bytes());
        batch.put_slice(&body);
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

fn put_length(out: &mut BytesMut, length: usize) {
    put_varlong(out, i64::try_from(length).unwrap_or(i64::MAX));
}

/// A zigzag variable-length integer; one of 32 bits has the same bytes.
fn put_varlong(out: &mut BytesMut, value: i64) {
    let mut rest = (value << 1 ^ value >> 63) as u64;
    while rest >= 0x80 {
        out.put_u8((rest & 0x7f) as u8 | 0x80);
        rest >>= 7;
    }
    out.put_u8(rest as u8);
}
