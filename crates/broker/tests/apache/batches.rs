//! Batches to send, good and bad, and what is read back.

use bytes::Bytes;
use highwater_protocol::records::{BatchBuilder, BatchHeader, Compression, HEADER_SIZE};

/// A batch of records with these timestamps.
pub(crate) fn batch(compression: Compression, timestamps: &[i64]) -> Bytes {
    filled(BatchBuilder::new(compression), timestamps)
}

/// A batch without compression.
pub(crate) fn plain(timestamps: &[i64]) -> Bytes {
    batch(Compression::None, timestamps)
}

/// The batch that a builder makes of records with these timestamps.
pub(crate) fn filled(mut builder: BatchBuilder, timestamps: &[i64]) -> Bytes {
    for (index, timestamp) in timestamps.iter().enumerate() {
        builder.push(*timestamp, Some(b"key"), Some(format!("value-{index}").as_bytes()), &[]);
    }
    builder.build().unwrap()
}

/// A batch of one record whose value has this many bytes.
pub(crate) fn large(timestamp: i64, bytes: usize) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.push(timestamp, Some(b"key"), Some(&vec![b'x'; bytes]), &[]);
    builder.build().unwrap()
}

/// The batch with another header, its checksum made right again.
pub(crate) fn with_header(batch: &Bytes, change: impl FnOnce(&mut BatchHeader)) -> Bytes {
    let mut header = BatchHeader::parse(batch).unwrap();
    change(&mut header);
    let mut bytes = header.to_bytes().to_vec();
    bytes.extend_from_slice(&batch[HEADER_SIZE..]);
    let crc = crc32c::crc32c(&bytes[21..]);
    bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    bytes.into()
}
