//! Batches written by Apache Kafka's client and by librdkafka.

use bytes::Bytes;
use highwater_protocol::records::{
    Batch, BatchError, Compression, Marker, Record, TimestampType, Validated,
};

use crate::{LIMIT, batch, records};

macro_rules! fixture {
    ($name:literal) => {
        batch(&Bytes::from_static(include_bytes!(concat!("../batches/", $name, ".batch"))))
    };
}

fn text(text: &'static str) -> Option<Bytes> {
    Some(Bytes::from_static(text.as_bytes()))
}

fn repeated(bytes: usize) -> Option<Bytes> {
    Some(b"highwater".iter().copied().cycle().take(bytes).collect())
}

/// The records of the Java fixtures, whose last value has `bytes` bytes.
fn java_records(bytes: usize) -> Vec<Record> {
    let header = Bytes::from_static(b"h");
    let headers = vec![(header.clone(), text("x")), (header, None)];
    let record = |offset, timestamp, key, value| Record {
        offset,
        timestamp,
        key,
        value,
        headers: Vec::new(),
    };
    vec![
        record(100, 1_700_000_000_000, text("k1"), text("v1")),
        Record { headers, ..record(101, 1_700_000_000_999, None, text("second")) },
        record(102, 1_699_999_999_000, text("k3"), None),
        record(103, 1_700_000_000_999, text(""), repeated(bytes)),
    ]
}

fn is_from_java(batch: &Batch, compression: Compression, bytes: usize) {
    let header = batch.header;
    assert_eq!(header.compression(), Ok(compression));
    assert_eq!((header.base_offset, header.last_offset(), header.next_offset()), (100, 103, 104));
    assert_eq!((header.producer_id, header.producer_epoch, header.base_sequence), (4000, 3, 17));
    assert_eq!(header.partition_leader_epoch, 5);
    assert!(header.is_transactional() && !header.is_control());
    assert_eq!(header.timestamp_type(), TimestampType::CreateTime);
    assert_eq!(header.max_timestamp, 1_700_000_000_999);
    let max_timestamp = 1_700_000_000_999;
    let min_timestamp = 1_699_999_999_000;
    let found = Validated { count: 4, max_timestamp, min_timestamp, max_timestamp_offset_delta: 1 };
    assert_eq!(batch.validate(LIMIT), Ok(found));
    assert_eq!(records(batch), java_records(bytes));
}

#[test]
fn java_writes_every_codec() {
    is_from_java(&fixture!("java-none"), Compression::None, 100);
    is_from_java(&fixture!("java-gzip"), Compression::Gzip, 70_000);
    is_from_java(&fixture!("java-snappy"), Compression::Snappy, 70_000);
    is_from_java(&fixture!("java-lz4"), Compression::Lz4, 70_000);
    is_from_java(&fixture!("java-zstd"), Compression::Zstd, 70_000);
}

#[test]
fn librdkafka_writes_every_codec() {
    let codecs = [
        (Compression::Gzip, fixture!("rdkafka-gzip")),
        (Compression::Snappy, fixture!("rdkafka-snappy")),
        (Compression::Lz4, fixture!("rdkafka-lz4")),
        (Compression::Zstd, fixture!("rdkafka-zstd")),
    ];
    for (compression, batch) in codecs {
        assert_eq!(batch.header.compression(), Ok(compression));
        assert_eq!(batch.validate(LIMIT).unwrap().count, 2);
        let records = records(&batch);
        let keys: Vec<_> = records.iter().map(|record| record.key.clone()).collect();
        assert_eq!(keys, [text("k1"), text("k2")]);
        assert_eq!(records[0].value, text("v1"));
        assert_eq!(records[1].value, repeated(72_000));
        assert_eq!(records[1].headers, [(Bytes::from_static(b"h"), text("x"))]);
    }
}

/// Both forms of Snappy are among the fixtures.
#[test]
fn snappy_comes_in_two_forms() {
    let mark = b"\x82SNAPPY\0";
    assert!(fixture!("java-snappy").bytes[61..].starts_with(mark));
    assert!(!fixture!("rdkafka-snappy").bytes[61..].starts_with(mark));
}

#[test]
fn under_log_append_time_all_records_have_the_batch_s_time() {
    let batch = fixture!("java-log-append-time");
    assert_eq!(batch.header.timestamp_type(), TimestampType::LogAppendTime);
    assert!(records(&batch).iter().all(|record| record.timestamp == 1_700_000_009_999));
    let first = batch.first_with(1_700_000_009_999, LIMIT).unwrap().unwrap();
    assert_eq!((first.offset, first.timestamp), (100, 1_700_000_009_999));
}

#[test]
fn markers_are_recognised() {
    for (batch, marker) in
        [(fixture!("java-commit"), Marker::Commit), (fixture!("java-abort"), Marker::Abort)]
    {
        assert!(batch.header.is_control() && batch.header.is_transactional());
        let records = records(&batch);
        assert_eq!(records.len(), 1);
        assert_eq!(Marker::parse(records[0].key.as_ref().unwrap()), Some(marker));
    }
    assert_eq!(Marker::parse(&[0, 0, 0, 9]), Some(Marker::Other(9)));
    assert_eq!(Marker::parse(&[0, 0, 0]), None);
}

/// Every bit of a batch is under the CRC, or is the leader's to set, or makes the header wrong.
#[test]
fn a_flipped_bit_is_found() {
    let whole = fixture!("java-zstd").bytes;
    for bit in 0..whole.len() * 8 {
        let mut bytes = whole.to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let found = Batch::parse(&bytes.into()).and_then(|batch| batch.validate(LIMIT));
        let leaders = (0..8).contains(&(bit / 8)) || (12..16).contains(&(bit / 8));
        assert!(leaders || found.is_err(), "bit {bit}: {found:?}");
    }
}

#[test]
fn decompression_stops_at_the_limit() {
    for batch in [
        fixture!("java-gzip"),
        fixture!("java-snappy"),
        fixture!("java-lz4"),
        fixture!("java-zstd"),
        fixture!("rdkafka-snappy"),
    ] {
        let limit = 70_000;
        assert_eq!(batch.validate(limit), Err(BatchError::TooLarge { limit }));
        assert_eq!(batch.records(limit).err(), Some(BatchError::TooLarge { limit }));
    }
}
