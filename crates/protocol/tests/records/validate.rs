//! What the walk of rule L3 refuses.

use bytes::Bytes;
use highwater_protocol::records::{Batch, BatchBuilder, BatchError, Compression, Validated};

use crate::{LIMIT, batch, timed, with_crc};

/// Validates the bytes with the CRC that fits them, so that nothing but the records is at fault.
fn validate(bytes: Vec<u8>) -> Result<Validated, BatchError> {
    Batch::parse(&with_crc(bytes)).and_then(|batch| batch.validate(LIMIT))
}

/// Three records, uncompressed, with `bytes` put in at `at`.
fn patched(at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut batch = timed(Compression::None, &[1, 2, 3]).to_vec();
    batch[at..at + bytes.len()].copy_from_slice(bytes);
    batch
}

fn record(index: i32, reason: &'static str) -> Result<Validated, BatchError> {
    Err(BatchError::Record { index, reason })
}

fn count(count: i32, reason: &'static str) -> Result<Validated, BatchError> {
    Err(BatchError::Count { count, reason })
}

const LAST_OFFSET_DELTA: usize = 23;
const RECORD_COUNT: usize = 57;
const FIRST_RECORD: usize = 61;
/// An empty record: length, attributes, timestamp, offset, key, value, headers.
const RECORD_SIZE: usize = 7;

#[test]
fn a_good_batch_passes() {
    for codec in Compression::ALL {
        let expected = Validated {
            count: 3,
            max_timestamp: 999,
            min_timestamp: 100,
            max_timestamp_offset_delta: 1,
        };
        assert_eq!(batch(&timed(codec, &[100, 999, 200])).validate(LIMIT), Ok(expected));
    }
}

#[test]
fn an_unfit_crc() {
    let mut bytes = timed(Compression::None, &[1]).to_vec();
    bytes[40] ^= 1;
    let broken = Batch::parse(&bytes.into()).unwrap();
    assert!(matches!(broken.validate(LIMIT), Err(BatchError::Crc { .. })));
}

/// The count on which other codecs make room for 2^31 - 1 records.
#[test]
fn a_huge_count_with_a_valid_crc() {
    let huge = i32::MAX.to_be_bytes();
    let last = (i32::MAX - 1).to_be_bytes();
    for codec in Compression::ALL {
        let mut bytes = timed(codec, &[1, 2, 3]).to_vec();
        bytes[RECORD_COUNT..RECORD_COUNT + 4].copy_from_slice(&huge);
        let reason = "the last offset says another";
        assert_eq!(validate(bytes.clone()), count(i32::MAX, reason));
        bytes[LAST_OFFSET_DELTA..LAST_OFFSET_DELTA + 4].copy_from_slice(&last);
        let reason = "the records end before";
        assert_eq!(validate(bytes.clone()), count(i32::MAX, reason));

        let opened = batch(&with_crc(bytes)).records(LIMIT).unwrap();
        let opened: Vec<_> = opened.collect();
        assert_eq!(opened.len(), 4);
        assert_eq!(opened[3], Err(BatchError::Count { count: i32::MAX, reason }));
    }
}

#[test]
fn a_wrong_count() {
    let bytes = patched(RECORD_COUNT, &2_i32.to_be_bytes());
    assert_eq!(validate(bytes), count(2, "the last offset says another"));
    let mut bytes = patched(RECORD_COUNT, &2_i32.to_be_bytes());
    bytes[LAST_OFFSET_DELTA..LAST_OFFSET_DELTA + 4].copy_from_slice(&1_i32.to_be_bytes());
    assert_eq!(validate(bytes), count(2, "bytes follow the last record"));
    let bytes = patched(RECORD_COUNT, &(-1_i32).to_be_bytes());
    assert_eq!(validate(bytes), count(-1, "a count cannot be negative"));
    let bytes = patched(RECORD_COUNT, &0_i32.to_be_bytes());
    assert_eq!(validate(bytes), count(0, "a batch has one record at least"));
}

#[test]
fn offsets_that_do_not_rise_by_one() {
    let reason = "its offset does not rise, or lies outside of the batch";
    let second = FIRST_RECORD + RECORD_SIZE + 3;
    for delta in [0, 4, 6, 1] {
        // Zigzag: 0 is 0, 4 is 2, 6 is 3, 1 is -1; right would be 2.
        let index = if delta == 4 { 2 } else { 1 };
        assert_eq!(validate(patched(second, &[delta])), record(index, reason));
    }
}

#[test]
fn lengths_that_do_not_fit() {
    let first = |at, byte| validate(patched(FIRST_RECORD + at, &[byte]));
    assert_eq!(first(0, 1), record(0, "its length"));
    assert_eq!(first(0, 0x7f), record(0, "its length"));
    assert_eq!(first(0, 0), record(0, "its attributes"));
    assert_eq!(first(4, 3), record(0, "its key"));
    assert_eq!(first(4, 8), record(0, "its key"));
    assert_eq!(first(5, 2), record(0, "its headers"));
    assert_eq!(first(5, 8), record(0, "its value"));
    assert_eq!(first(6, 2), record(0, "its headers"));
    assert_eq!(first(6, 1), record(0, "its headers"));
    // A longer record that swallows the next one's first byte has bytes behind its headers.
    assert_eq!(first(0, 14), record(0, "its headers"));
}

#[test]
fn a_codec_that_does_not_exist() {
    for id in 5..8 {
        assert_eq!(validate(patched(21, &id_bytes(id))), Err(BatchError::Codec { id }));
    }
}

fn id_bytes(id: i16) -> [u8; 2] {
    id.to_be_bytes()
}

#[test]
fn bytes_that_are_not_of_their_codec() {
    for codec in Compression::ALL.into_iter().skip(1) {
        let bytes = patched(21, &id_bytes(codec as i16));
        let found = validate(bytes);
        assert!(
            matches!(found, Err(BatchError::Compressed { .. } | BatchError::TooLarge { .. })),
            "{codec:?}: {found:?}"
        );
    }
}

#[test]
fn an_empty_batch_is_not_built() {
    let built = BatchBuilder::new(Compression::None).build();
    let reason = "a batch has one record at least";
    assert_eq!(built, Err(BatchError::Count { count: 0, reason }));
}

/// A compaction may leave a batch without records, which keeps its producer's sequence; a reader
/// passes over it, though no producer may send it.
#[test]
fn an_empty_batch_is_read() {
    let mut bytes = timed(Compression::None, &[1]).to_vec();
    bytes.truncate(FIRST_RECORD);
    bytes[8..12].copy_from_slice(&49_i32.to_be_bytes());
    bytes[RECORD_COUNT..].copy_from_slice(&0_i32.to_be_bytes());
    let empty = batch(&with_crc(bytes));
    assert_eq!(empty.records(LIMIT).unwrap().count(), 0);
    assert_eq!(empty.first_with(1, LIMIT), Ok(None));
    assert!(empty.validate(LIMIT).is_err());
}

/// One byte too many in the middle of nothing: the whole body must be records.
#[test]
fn a_byte_behind_the_records() {
    let mut bytes = timed(Compression::None, &[1]).to_vec();
    bytes.push(0);
    let length = i32::try_from(bytes.len()).unwrap() - 12;
    bytes[8..12].copy_from_slice(&length.to_be_bytes());
    assert_eq!(validate(bytes), count(1, "bytes follow the last record"));
    let nothing = Bytes::new();
    assert!(matches!(Batch::parse(&nothing), Err(BatchError::Cut { needed: 61, left: 0 })));
}
