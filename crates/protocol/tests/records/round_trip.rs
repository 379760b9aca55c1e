//! What is built is opened.

use bytes::Bytes;
use highwater_protocol::records::{BatchBuilder, BatchHeader, Compression, Record};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::{LIMIT, batch, records};

fn bytes(most: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..most).prop_map(Bytes::from)
}

fn record() -> impl Strategy<Value = Record> {
    let headers = vec((bytes(9), option::of(bytes(9))), 0..4);
    (any::<i64>(), option::of(bytes(99)), option::of(bytes(999)), headers).prop_map(
        |(timestamp, key, value, headers)| Record { offset: 0, timestamp, key, value, headers },
    )
}

fn numbered(records: Vec<Record>, base_offset: i64) -> Vec<Record> {
    let offsets = base_offset..;
    offsets.zip(records).map(|(offset, record)| Record { offset, ..record }).collect()
}

fn push(builder: &mut BatchBuilder, record: &Record) {
    let (key, value) = (record.key.as_deref(), record.value.as_deref());
    builder.push(record.timestamp, key, value, &record.headers);
}

proptest! {
    #[test]
    fn records_come_back(
        codec in prop::sample::select(&Compression::ALL[..]),
        expected in vec(record(), 1..40),
        base_offset in 0..i64::MAX - 40,
    ) {
        let expected = numbered(expected, base_offset);
        let mut builder = BatchBuilder::new(codec).base_offset(base_offset);
        expected.iter().for_each(|record| push(&mut builder, record));
        prop_assert_eq!(builder.record_count() as usize, expected.len());
        let size = builder.size();
        let built = builder.build().unwrap();
        let batch = batch(&built);
        prop_assert_eq!(batch.verify_crc(), Ok(()));
        prop_assert_eq!(batch.header.compression(), Ok(codec));
        prop_assert!(codec != Compression::None || built.len() == size);
        let validated = batch.validate(LIMIT).unwrap();
        let greatest = expected.iter().map(|record| record.timestamp).max().unwrap();
        prop_assert_eq!(validated.max_timestamp, greatest);
        prop_assert_eq!(batch.header.max_timestamp, greatest);
        prop_assert_eq!(records(&batch), expected);
    }

    #[test]
    fn a_header_comes_back(
        base_offset in 0..i64::MAX / 2,
        epochs: (i32, i16),
        producer: (i64, i32),
        timestamps: (i64, i64),
        attributes: i16,
        crc: u32,
        sizes in (49..i32::MAX, 0..i32::MAX, 0..i32::MAX),
    ) {
        let header = BatchHeader {
            base_offset,
            batch_length: sizes.0,
            partition_leader_epoch: epochs.0,
            crc,
            attributes,
            last_offset_delta: sizes.1,
            base_timestamp: timestamps.0,
            max_timestamp: timestamps.1,
            producer_id: producer.0,
            producer_epoch: epochs.1,
            base_sequence: producer.1,
            record_count: sizes.2,
        };
        prop_assert_eq!(BatchHeader::parse(&header.to_bytes()), Ok(header));
    }

    #[test]
    fn without_compression_nothing_is_copied(values in vec(vec(any::<u8>(), 1..50), 1..9)) {
        let mut builder = BatchBuilder::new(Compression::None);
        for value in &values {
            builder.push(0, None, Some(value), &[]);
        }
        let built = builder.build().unwrap();
        let memory = built.as_ptr_range();
        for record in records(&batch(&built)) {
            prop_assert!(memory.contains(&record.value.unwrap().as_ptr()));
        }
    }
}
