//! Against the record codec of the `kafka-protocol` crate, without compression (the other codecs
//! are held against Apache Kafka's and librdkafka's own bytes, see `fixtures`).

use bytes::{Bytes, BytesMut};
use highwater_protocol::records::{BatchBuilder, Compression, Record};
use kafka_protocol::records as theirs;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use crate::{LIMIT, batch, records};

fn bytes() -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..50).prop_map(Bytes::from)
}

prop_compose! {
    fn record()(
        timestamp in 0..i64::MAX / 4,
        key in option::of(bytes()),
        value in option::of(bytes()),
        header in option::of(("[a-z]{0,5}", option::of(bytes()))),
    ) -> Record {
        let headers = header.into_iter().map(|(name, value)| (Bytes::from(name), value)).collect();
        Record { offset: 0, timestamp, key, value, headers }
    }
}

/// Our record as theirs, which repeats the batch's fields.
fn theirs(offset: i64, record: &Record) -> theirs::Record {
    let name = |name: &Bytes| String::from_utf8(name.to_vec()).unwrap();
    theirs::Record {
        transactional: true,
        control: false,
        delete_horizon: false,
        partition_leader_epoch: 7,
        producer_id: 70_000,
        producer_epoch: 5,
        timestamp_type: theirs::TimestampType::Creation,
        offset,
        sequence: 30 + offset as i32,
        timestamp: record.timestamp,
        key: record.key.clone(),
        value: record.value.clone(),
        headers: record
            .headers
            .iter()
            .map(|(key, value)| (name(key).into(), value.clone()))
            .collect(),
    }
}

proptest! {
    #[test]
    fn they_read_ours(ours in vec(record(), 1..20)) {
        let mut builder = BatchBuilder::new(Compression::None)
            .leader_epoch(7)
            .producer(70_000, 5, 30)
            .transactional();
        for record in &ours {
            let (key, value) = (record.key.as_deref(), record.value.as_deref());
            builder.push(record.timestamp, key, value, &record.headers);
        }
        let mut built = builder.build().unwrap();
        let decoded = theirs::RecordBatchDecoder::decode(&mut built).unwrap();
        let expected: Vec<_> =
            (0..).zip(&ours).map(|(offset, record)| theirs(offset, record)).collect();
        prop_assert_eq!(decoded.records, expected);
    }

    #[test]
    fn we_read_theirs(ours in vec(record(), 1..20)) {
        let expected: Vec<_> =
            (0..).zip(ours).map(|(offset, record)| Record { offset, ..record }).collect();
        let encoded: Vec<_> = expected.iter().map(|record| theirs(record.offset, record)).collect();
        let options =
            theirs::RecordEncodeOptions { version: 2, compression: theirs::Compression::None };
        let mut out = BytesMut::new();
        theirs::RecordBatchEncoder::encode(&mut out, &encoded, &options).unwrap();
        let batch = batch(&out.freeze());
        batch.validate(LIMIT).unwrap();
        prop_assert!(batch.header.is_transactional());
        prop_assert_eq!(batch.header.base_sequence, 30);
        prop_assert_eq!(records(&batch), expected);
    }
}
