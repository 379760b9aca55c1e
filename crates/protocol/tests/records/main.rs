//! Record batches: there and back, as others write them, and under attack.

#![expect(clippy::unwrap_used, reason = "a helper of a test may fail it")]

mod fixtures;
mod hostile;
mod iterate;
mod oracle;
mod round_trip;
mod search;
mod stamp;
mod validate;

use bytes::Bytes;
use highwater_protocol::records::{Batch, BatchBuilder, Compression, Record};

/// A ceiling that no batch of these tests reaches.
const LIMIT: usize = 1 << 20;

/// The one batch in `bytes`.
fn batch(bytes: &Bytes) -> Batch {
    let batch = Batch::parse(bytes).unwrap();
    assert_eq!(batch.bytes, bytes);
    batch
}

/// A batch of empty records with these timestamps.
fn timed(compression: Compression, timestamps: &[i64]) -> Bytes {
    let mut builder = BatchBuilder::new(compression);
    for timestamp in timestamps {
        builder.push(*timestamp, None, None, &[]);
    }
    builder.build().unwrap()
}

fn records(batch: &Batch) -> Vec<Record> {
    batch.records(LIMIT).unwrap().collect::<Result<_, _>>().unwrap()
}

/// The bytes with the CRC that fits them.
fn with_crc(mut bytes: Vec<u8>) -> Bytes {
    let crc = crc32c::crc32c(&bytes[21..]).to_be_bytes();
    bytes[17..21].copy_from_slice(&crc);
    bytes.into()
}
