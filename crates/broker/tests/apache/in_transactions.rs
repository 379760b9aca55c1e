//! ListOffsets over transactions: rows 15 to 19.

use bytes::Bytes;
use highwater_protocol::records::{BatchBuilder, Compression};
use highwater_protocol::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnTopic, EndTxnRequest, ErrorCode,
    FindCoordinatorRequest, InitProducerIdRequest, InitProducerIdResponse, ListOffsetsPartition,
    PartitionProduceData, ProduceRequest, TopicProduceData,
};

use crate::batches::plain;
use crate::clusters::{Side, both, fresh};
use crate::list_offsets::{Found, LATEST, Level, MAX_TIMESTAMP, NOTHING, ask_as};
use crate::names::now_ms;

use Level::{Committed, Uncommitted};

/// An open transaction that has written one record to a topic.
struct Open {
    id: String,
    topic: String,
    producer: InitProducerIdResponse,
}

/// `[100]`, then a transaction open with a record of this timestamp.
fn open(side: &mut Side, timestamp: i64) -> Open {
    let (id, topic) = (fresh("row-transaction"), fresh("row"));
    side.topic(&topic, &[]);
    side.produce(&topic, plain(&[100]));
    let request = InitProducerIdRequest {
        transactional_id: Some(id.clone()),
        transaction_timeout_ms: 600_000,
        ..Default::default()
    };
    let finding = FindCoordinatorRequest { key: id.clone(), key_type: 1, ..Default::default() };
    let mut producer = InitProducerIdResponse::default();
    side.until("there is a coordinator", |side| {
        side.client.call(1, &finding);
        producer = side.client.call(4, &request);
        producer.error_code.is_ok()
    });
    let open = Open { id, topic, producer };
    open.add_partition(side);
    open.write(side, timestamp);
    open
}

impl Open {
    fn add_partition(&self, side: &mut Side) {
        let topic = AddPartitionsToTxnTopic { name: self.topic.clone(), partitions: vec![0] };
        let request = AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: self.id.clone(),
            v3_and_below_producer_id: self.producer.producer_id,
            v3_and_below_producer_epoch: self.producer.producer_epoch,
            v3_and_below_topics: vec![topic],
        };
        let answer = side.client.call(3, &request);
        let result = &answer.results_by_topic_v3_and_below[0].results_by_partition[0];
        assert!(result.partition_error_code.is_ok(), "{}", side.name);
    }

    fn write(&self, side: &mut Side, timestamp: i64) {
        let producer = &self.producer;
        let builder = BatchBuilder::new(Compression::None);
        let mut builder =
            builder.producer(producer.producer_id, producer.producer_epoch, 0).transactional();
        builder.push(timestamp, Some(b"key"), Some(b"in a transaction"), &[]);
        let records: Option<Bytes> = Some(builder.build().unwrap());
        let request = ProduceRequest {
            transactional_id: Some(self.id.clone()),
            acks: -1,
            timeout_ms: 30_000,
            topic_data: vec![TopicProduceData {
                name: self.topic.clone(),
                partition_data: vec![PartitionProduceData { index: 0, records }],
            }],
        };
        let answer = side.client.call(9, &request);
        let code = answer.responses[0].partition_responses[0].error_code;
        assert_eq!(code, ErrorCode::NONE, "{}", side.name);
    }

    /// Ends it, and waits until the marker is seen.
    fn end(&self, side: &mut Side, committed: bool) {
        let request = EndTxnRequest {
            transactional_id: self.id.clone(),
            producer_id: self.producer.producer_id,
            producer_epoch: self.producer.producer_epoch,
            committed,
        };
        assert_eq!(side.client.call(3, &request).error_code, ErrorCode::NONE, "{}", side.name);
        side.until("the marker is there", |side| {
            let asked = ListOffsetsPartition { timestamp: LATEST, ..Default::default() };
            side.list_as(11, &self.topic, asked, 1).offset == 3
        });
    }

    fn ask(&self, side: &mut Side) -> [Found; 4] {
        [
            ask_as(side, &self.topic, MAX_TIMESTAMP, Uncommitted),
            ask_as(side, &self.topic, MAX_TIMESTAMP, Committed),
            ask_as(side, &self.topic, LATEST, Committed),
            ask_as(side, &self.topic, LATEST, Uncommitted),
        ]
    }
}

#[test]
fn rows_15_to_17_a_transaction_is_open() {
    let found = both(|side| {
        let transaction = open(side, 900);
        let found = transaction.ask(side);
        transaction.end(side, false);
        found
    });
    assert_eq!(found, [Ok((1, 900, 0)), NOTHING, Ok((1, -1, 0)), Ok((2, -1, 0))]);
}

#[test]
fn row_18_a_commit_marker_bears_the_coordinators_clock() {
    let before = now_ms();
    let found = both(|side| {
        let transaction = open(side, 900);
        transaction.end(side, true);
        let clock = |(offset, time, epoch)| (offset, i64::from(time >= before), epoch);
        let [uncommitted, committed, ends @ ..] = transaction.ask(side);
        [uncommitted.map(clock), committed.map(clock), ends[0], ends[1]]
    });
    let end = Ok((3, -1, 0));
    assert_eq!(found, [Ok((2, 1, 0)), Ok((2, 1, 0)), end, end]);
}

#[test]
fn row_19_aborted_records_count() {
    let ahead = now_ms() + 1_800_000;
    let found = both(|side| {
        let transaction = open(side, ahead);
        transaction.end(side, false);
        transaction.ask(side)
    });
    let (greatest, end) = (Ok((1, ahead, 0)), Ok((3, -1, 0)));
    assert_eq!(found, [greatest, greatest, end, end]);
}
