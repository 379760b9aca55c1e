//! Damaged batches with a CRC that fits are errors at worst: never a panic, never memory without
//! bound.

use bytes::Bytes;
use highwater_protocol::records::{Batch, BatchBuilder, BatchError, Compression};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::with_crc;

/// Small, so that a batch that wants more is met often.
const LIMIT: usize = 4096;

fn open(bytes: Bytes) {
    let Ok(batch) = Batch::parse(&bytes) else { return };
    let _ = batch.validate(LIMIT);
    let _ = batch.first_at_or_after(0, 0, LIMIT);
    if let Ok(records) = batch.records(LIMIT) {
        // As many records as bytes at most, whatever the header counts.
        assert!(records.count() <= LIMIT.max(bytes.len()));
    }
}

/// A batch whose body is these bytes, whatever they are.
fn enclosed(codec: i16, count: i32, body: &[u8]) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None);
    builder.push(0, None, None, &[]);
    let mut bytes = builder.build().unwrap()[..61].to_vec();
    bytes.extend_from_slice(body);
    let length = i32::try_from(body.len()).unwrap() + 49;
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    bytes[21..23].copy_from_slice(&codec.to_be_bytes());
    bytes[23..27].copy_from_slice(&count.saturating_sub(1).max(0).to_be_bytes());
    bytes[57..61].copy_from_slice(&count.to_be_bytes());
    with_crc(bytes)
}

fn good(codec: Compression, values: &[Vec<u8>]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(codec);
    for value in values {
        builder.push(1, Some(b"key"), Some(value), &[(Bytes::from_static(b"h"), None)]);
    }
    builder.build().unwrap().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn random_bodies(codec in 0_i16..8, count: i32, body in vec(any::<u8>(), 0..200)) {
        open(enclosed(codec, count, &body));
    }

    #[test]
    fn random_bodies_behind_a_codec_s_mark(
        codec in 1_i16..5,
        count in 0..9,
        body in vec(any::<u8>(), 0..200),
    ) {
        let mark: &[u8] = match codec {
            1 => b"\x1f\x8b\x08\0\0\0\0\0\0\xff",
            2 => b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01\0\0\0\x09",
            3 => b"\x04\x22\x4d\x18\x60\x40\x82",
            _ => b"\x28\xb5\x2f\xfd\0\x58",
        };
        open(enclosed(codec, count, &[mark, &body].concat()));
    }

    #[test]
    fn flipped_bits(
        codec in prop::sample::select(&Compression::ALL[..]),
        values in vec(vec(0_u8..4, 0..300), 1..5),
        bits in vec(any::<usize>(), 1..4),
    ) {
        let mut bytes = good(codec, &values);
        for bit in bits {
            // Behind the length, so that the batch stays whole.
            let bit = 12 * 8 + bit % ((bytes.len() - 12) * 8);
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
        open(with_crc(bytes));
    }

    #[test]
    fn cut_bodies(
        codec in prop::sample::select(&Compression::ALL[..]),
        values in vec(vec(0_u8..4, 0..300), 1..5),
        end: usize,
    ) {
        let bytes = good(codec, &values);
        let body = &bytes[61..];
        let cut = enclosed(codec as i16, values.len() as i32, &body[..end % body.len()]);
        let validated = Batch::parse(&cut).unwrap().validate(LIMIT);
        // Of an LZ4 frame only the end mark may be missing; then the records are whole.
        prop_assert!(validated.is_err() || codec == Compression::Lz4, "{:?}", validated);
    }
}

/// A few bytes that would become a gigabyte.
#[test]
fn bombs_stop_at_the_limit() {
    let zeros = vec![0; 32 << 20];
    for codec in Compression::ALL {
        let bomb = Batch::parse(&good(codec, std::slice::from_ref(&zeros)).into()).unwrap();
        match codec {
            Compression::None => assert!(bomb.validate(LIMIT).is_ok()),
            _ => assert!(bomb.validate(LIMIT).is_err()),
        }
    }
    // A raw Snappy block that claims 2^32 - 1 bytes.
    let claim = enclosed(2, 1, &[0xff, 0xff, 0xff, 0xff, 0x0f, 0, 0]);
    assert!(Batch::parse(&claim).unwrap().validate(LIMIT).is_err());
}

/// A variable-length integer of more bits than its type has is no number.
#[test]
fn integers_end_within_their_width() {
    let record = |timestamp: &[u8], offset: &[u8]| {
        let fields = [&[0], timestamp, offset, &[1, 1, 0]].concat();
        let body = [&[fields.len() as u8 * 2], fields.as_slice()].concat();
        Batch::parse(&enclosed(0, 1, &body)).unwrap().validate(LIMIT)
    };
    let error = |reason| Err(BatchError::Record { index: 0, reason });
    let longest = |last| [&[0xff; 9][..], &[last]].concat();
    assert_eq!(record(&longest(1), &[0]).map(|found| found.max_timestamp), Ok(i64::MIN));
    assert_eq!(record(&longest(2), &[0]), error("its timestamp"));
    assert_eq!(record(&longest(0x81), &[0]), error("its timestamp"));
    // 32 bits are a number, though no offset of this batch; 33 are none.
    let outside = "its offset does not rise, or lies outside of the batch";
    assert_eq!(record(&[0], &[0xff, 0xff, 0xff, 0xff, 0x0f]), error(outside));
    assert_eq!(record(&[0], &[0xff, 0xff, 0xff, 0xff, 0x1f]), error("its offset"));
    assert_eq!(record(&[0], &[0x80, 0x80, 0x80, 0x80, 0x80, 0]), error("its offset"));
}
