//! Transactions, request by request.

use std::time::Duration;

use bytes::Bytes;
use highwater_coordinator::{CoordinatorConfig, TransactionsConfig};
use highwater_protocol::records::{BatchBuilder, Compression};
use highwater_protocol::{
    AbortedTransaction, AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, AddPartitionsToTxnTopic,
    DescribeProducersRequest, DescribeProducersTopic, DescribeTransactionsRequest,
    DescribedTransaction, EndTxnRequest, ErrorCode, FetchRequest, FindCoordinatorRequest,
    InitProducerIdRequest, InitProducerIdResponse, ListTransactionsRequest, PartitionData,
    PartitionProduceResponse, ProduceRequest, TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic, WritableTxnMarker,
    WritableTxnMarkerTopic, WriteTxnMarkersRequest,
};

use crate::client::{Client, fetch, produce};
use crate::server::Server;

const ID: &str = "tx";

/// A producer with a transactional id, over one connection.
struct Producer {
    client: Client,
    id: i64,
    epoch: i16,
    sequence: i32,
}

impl Producer {
    /// Takes the transactional id, and tries on while an older transaction is being aborted.
    async fn start(server: &Server) -> Self {
        Self::start_with(server, 60_000).await
    }

    async fn start_with(server: &Server, timeout_ms: i32) -> Self {
        let mut client = server.client().await;
        loop {
            let given = init(&mut client, 4, timeout_ms, -1, -1).await;
            if given.error_code == ErrorCode::CONCURRENT_TRANSACTIONS {
                tokio::task::yield_now().await;
                continue;
            }
            assert_eq!(given.error_code, ErrorCode::NONE);
            let (id, epoch) = (given.producer_id, given.producer_epoch);
            return Self { client, id, epoch, sequence: 0 };
        }
    }

    async fn add_at(&mut self, version: i16, topic: &str, partitions: &[i32]) -> Vec<ErrorCode> {
        let request = AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: ID.to_owned(),
            v3_and_below_producer_id: self.id,
            v3_and_below_producer_epoch: self.epoch,
            v3_and_below_topics: vec![AddPartitionsToTxnTopic {
                name: topic.to_owned(),
                partitions: partitions.to_vec(),
            }],
        };
        let mut response = self.client.call(version, &request).await;
        let results = response.results_by_topic_v3_and_below.remove(0).results_by_partition;
        results.iter().map(|result| result.partition_error_code).collect()
    }

    async fn add(&mut self, topic: &str) -> ErrorCode {
        self.add_at(3, topic, &[0]).await[0]
    }

    async fn send(&mut self, topic: &str, value: &str) -> PartitionProduceResponse {
        self.send_at(9, topic, value).await
    }

    async fn send_at(
        &mut self,
        version: i16,
        topic: &str,
        value: &str,
    ) -> PartitionProduceResponse {
        let request = ProduceRequest {
            transactional_id: Some(ID.to_owned()),
            ..produce(topic, -1, self.batch(value))
        };
        let mut response = self.client.call(version, &request).await;
        let answer = response.responses.remove(0).partition_responses.remove(0);
        self.sequence += i32::from(answer.error_code.is_ok());
        answer
    }

    fn batch(&self, value: &str) -> Bytes {
        let builder = BatchBuilder::new(Compression::None);
        let mut builder = builder.producer(self.id, self.epoch, self.sequence).transactional();
        builder.push(1, Some(b"key"), Some(value.as_bytes()), &[]);
        builder.build().unwrap()
    }

    async fn end_at(&mut self, version: i16, committed: bool) -> ErrorCode {
        let request = EndTxnRequest {
            transactional_id: ID.to_owned(),
            producer_id: self.id,
            producer_epoch: self.epoch,
            committed,
        };
        self.client.call(version, &request).await.error_code
    }

    async fn commit(&mut self) -> ErrorCode {
        self.end_at(4, true).await
    }

    async fn abort(&mut self) -> ErrorCode {
        self.end_at(4, false).await
    }
}

async fn init(
    client: &mut Client,
    version: i16,
    transaction_timeout_ms: i32,
    producer_id: i64,
    producer_epoch: i16,
) -> InitProducerIdResponse {
    let transactional_id = Some(ID.to_owned());
    let request = InitProducerIdRequest {
        transactional_id,
        transaction_timeout_ms,
        producer_id,
        producer_epoch,
    };
    client.call(version, &request).await
}

/// What a reader at read_committed is given from the start of partition 0.
async fn committed(server: &Server, topic: &str) -> PartitionData {
    let request = FetchRequest { isolation_level: 1, ..fetch(topic, 0) };
    server.client().await.fetch(11, &request).await
}

async fn described(server: &Server) -> DescribedTransaction {
    let request = DescribeTransactionsRequest { transactional_ids: vec![ID.to_owned()] };
    server.client().await.call(0, &request).await.transaction_states.remove(0)
}

async fn state(server: &Server) -> String {
    described(server).await.transaction_state
}

#[tokio::test]
async fn a_commit_shows_what_an_abort_hides() {
    let server = Server::start().await;
    server.topic("t");
    let mut producer = Producer::start(&server).await;
    assert_eq!(producer.add("t").await, ErrorCode::NONE);
    assert_eq!(producer.send("t", "kept").await.base_offset, 0);
    let open = committed(&server, "t").await;
    assert_eq!((open.high_watermark, open.last_stable_offset), (1, 0));
    assert!(
        open.records.unwrap_or_default().into_bytes().is_empty(),
        "nothing of an open transaction"
    );
    assert_eq!(producer.commit().await, ErrorCode::NONE);
    let shown = committed(&server, "t").await;
    assert_eq!((shown.high_watermark, shown.last_stable_offset), (2, 2));
    assert_eq!(state(&server).await, "CompleteCommit");

    assert_eq!(producer.add("t").await, ErrorCode::NONE, "no need to come again");
    assert_eq!(producer.send("t", "dropped").await.base_offset, 2);
    assert_eq!(producer.abort().await, ErrorCode::NONE);
    let shown = committed(&server, "t").await;
    assert_eq!(shown.last_stable_offset, 4);
    let aborted = AbortedTransaction { producer_id: producer.id, first_offset: 2 };
    assert_eq!(shown.aborted_transactions, Some(vec![aborted]));
    assert_eq!(state(&server).await, "CompleteAbort");
}

/// What a client asks twice because the first answer was lost.
#[tokio::test]
async fn an_end_that_is_asked_again_is_answered_again() {
    let server = Server::start().await;
    server.topic("t");
    let mut producer = Producer::start(&server).await;
    assert_eq!(producer.commit().await, ErrorCode::INVALID_TXN_STATE, "none is open");
    producer.add("t").await;
    assert_eq!(producer.commit().await, ErrorCode::NONE);
    assert_eq!(producer.commit().await, ErrorCode::NONE);
    assert_eq!(producer.abort().await, ErrorCode::INVALID_TXN_STATE, "it is committed");
}

#[tokio::test]
async fn a_second_instance_aborts_and_fences_the_first() {
    let server = Server::start().await;
    server.topic("t");
    let mut first = Producer::start(&server).await;
    first.add("t").await;
    first.send("t", "unfinished").await;
    let second = Producer::start(&server).await;
    assert_eq!((second.id, second.epoch), (first.id, first.epoch + 2), "one epoch for the fence");
    assert_eq!(committed(&server, "t").await.last_stable_offset, 2, "aborted");
    assert_eq!(first.send("t", "late").await.error_code, ErrorCode::INVALID_PRODUCER_EPOCH);
    assert_eq!(first.add_at(1, "t", &[0]).await, [ErrorCode::INVALID_PRODUCER_EPOCH]);
    assert_eq!(first.add_at(2, "t", &[0]).await, [ErrorCode::PRODUCER_FENCED]);
    assert_eq!(first.end_at(1, true).await, ErrorCode::INVALID_PRODUCER_EPOCH);
    assert_eq!(first.end_at(2, true).await, ErrorCode::PRODUCER_FENCED);
    let (id, epoch) = (first.id, first.epoch);
    let old = init(&mut first.client, 3, 60_000, id, epoch).await;
    assert_eq!(old.error_code, ErrorCode::INVALID_PRODUCER_EPOCH);
    let old = init(&mut first.client, 4, 60_000, id, epoch).await;
    assert_eq!((old.error_code, old.producer_id), (ErrorCode::PRODUCER_FENCED, -1));
}

/// KIP-360: after an error a producer goes on under a higher epoch, and may ask twice.
#[tokio::test]
async fn a_producer_raises_its_own_epoch() {
    let server = Server::start().await;
    let mut producer = Producer::start(&server).await;
    let id = producer.id;
    for _ in 0..2 {
        let raised = init(&mut producer.client, 4, 60_000, id, 0).await;
        assert_eq!((raised.error_code, raised.producer_id), (ErrorCode::NONE, id));
        assert_eq!(raised.producer_epoch, 1);
    }
    let half = init(&mut producer.client, 4, 60_000, id, -1).await;
    assert_eq!(half.error_code, ErrorCode::INVALID_REQUEST);
}

#[tokio::test]
async fn what_cannot_be_is_refused() {
    let server = Server::start().await;
    server.topic_with("t", 2, &[]);
    let mut client = server.client().await;
    for timeout in [0, -1, 900_001] {
        let refused = init(&mut client, 4, timeout, -1, -1).await;
        assert_eq!(refused.error_code, ErrorCode::INVALID_TRANSACTION_TIMEOUT, "{timeout}");
    }
    assert_eq!(init(&mut client, 4, 900_000, -1, -1).await.error_code, ErrorCode::NONE);
    let empty = InitProducerIdRequest {
        transactional_id: Some(String::new()),
        transaction_timeout_ms: 1,
        ..Default::default()
    };
    assert_eq!(client.call(4, &empty).await.error_code, ErrorCode::INVALID_REQUEST);

    let mut producer = Producer::start(&server).await;
    let unknown = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
    let apart = [ErrorCode::OPERATION_NOT_ATTEMPTED, unknown];
    assert_eq!(producer.add_at(3, "t", &[1, 2]).await, apart);
    assert_eq!(state(&server).await, "Empty", "all or none");
    let internal = producer.add("__transaction_state").await;
    assert_eq!(internal, ErrorCode::TOPIC_AUTHORIZATION_FAILED);

    producer.add_at(3, "t", &[1]).await;
    let refused = producer.send_at(9, "t", "not added").await;
    assert_eq!(refused.error_code, ErrorCode::INVALID_TXN_STATE);
    let refused = producer.send_at(11, "t", "not added").await;
    assert_eq!(refused.error_code, ErrorCode::TRANSACTION_ABORTABLE);
    let nameless = produce("t", -1, producer.batch("x"));
    let mut refused = producer.client.call(9, &nameless).await;
    let refused = refused.responses.remove(0).partition_responses.remove(0);
    assert_eq!(refused.error_code, ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED);
    producer.id += 1;
    assert_eq!(producer.add("t").await, ErrorCode::INVALID_PRODUCER_ID_MAPPING);
    assert_eq!(producer.commit().await, ErrorCode::INVALID_PRODUCER_ID_MAPPING);
    assert_eq!(server.partition("t", 0).watermarks_now().log_end, 0, "nothing was written");
}

/// What was answered stands after a kill: the transaction is as it was, and goes on.
#[tokio::test]
async fn an_open_transaction_survives_a_restart() {
    let server = Server::start().await;
    server.topic("t");
    let mut producer = Producer::start(&server).await;
    producer.add("t").await;
    producer.send("t", "kept").await;
    let before = described(&server).await;
    let server = server.restart(|_| {}).await;
    producer.client = server.client().await;
    let mut after = described(&server).await;
    while after.error_code == ErrorCode::COORDINATOR_LOAD_IN_PROGRESS {
        after = described(&server).await;
    }
    assert_eq!(after, before);
    assert_eq!(after.topics[0].topic, "t");
    assert_eq!(producer.send("t", "kept too").await.base_offset, 1);
    assert_eq!(producer.commit().await, ErrorCode::NONE);
    assert_eq!(committed(&server, "t").await.last_stable_offset, 3);
}

/// A topic that is deleted has nothing to end.
#[tokio::test]
async fn a_deleted_topic_holds_no_transaction_up() {
    let server = Server::start().await;
    server.topic("t");
    server.topic("other");
    let mut producer = Producer::start(&server).await;
    producer.add("t").await;
    producer.add("other").await;
    producer.send("other", "kept").await;
    server.log.delete_topic("t").unwrap();
    assert_eq!(producer.commit().await, ErrorCode::NONE);
    assert_eq!(state(&server).await, "CompleteCommit");
    assert_eq!(committed(&server, "other").await.last_stable_offset, 2);
}

/// `transaction.timeout.ms`: what is open for longer is aborted, and its producer heard no more.
#[tokio::test]
async fn a_transaction_that_is_open_for_too_long_is_aborted() {
    let server = Server::start().await;
    server.topic("t");
    let mut stable = server.partition("t", 0).watermarks();
    let mut producer = Producer::start_with(&server, 1).await;
    producer.add("t").await;
    producer.send("t", "unfinished").await;
    let aborted = stable.wait_for(|marks| marks.last_stable_offset == 2);
    tokio::time::timeout(crate::client::SOON, aborted).await.unwrap().unwrap();
    assert_eq!(producer.commit().await, ErrorCode::PRODUCER_FENCED);
}

#[tokio::test]
async fn transactions_are_listed() {
    let server = Server::start().await;
    server.topic("t");
    let mut producer = Producer::start(&server).await;
    producer.add("t").await;
    let list = |states: &[&str], ids: &[i64], duration_filter| ListTransactionsRequest {
        state_filters: states.iter().map(|state| (*state).to_owned()).collect(),
        producer_id_filters: ids.to_vec(),
        duration_filter,
    };
    let mut client = server.client().await;
    let found = client.call(1, &list(&["Ongoing", "Dead", "Odd"], &[producer.id], -1)).await;
    assert_eq!(found.unknown_state_filters, ["Odd"]);
    assert_eq!(found.transaction_states[0].transactional_id, ID);
    assert_eq!(found.transaction_states[0].transaction_state, "Ongoing");
    for none in [list(&["Empty"], &[], -1), list(&[], &[99], -1), list(&[], &[], 600_000)] {
        assert_eq!(client.call(1, &none).await.transaction_states, [], "{none:?}");
    }
    let missing = DescribeTransactionsRequest { transactional_ids: vec!["who".to_owned()] };
    let missing = client.call(0, &missing).await.transaction_states.remove(0);
    assert_eq!(missing.error_code, ErrorCode::TRANSACTIONAL_ID_NOT_FOUND);
}

/// `kafka-transactions abort`: a transaction whose coordinator knows nothing of it.
#[tokio::test]
async fn a_hanging_transaction_is_ended_by_hand() {
    let server = Server::start().await;
    let partition = server.topic("t");
    let mut batch = BatchBuilder::new(Compression::None).producer(77, 3, 0).transactional();
    batch.push(1, None, Some(b"lost"), &[]);
    let options = highwater_log::AppendOptions::client(1);
    let appended = partition.append(batch.build().unwrap(), options).unwrap();
    partition.durable(&appended).await.unwrap();
    let mut client = server.client().await;
    let topics =
        vec![DescribeProducersTopic { name: "t".to_owned(), partition_indexes: vec![0, 1] }];
    let mut found = client.call(0, &DescribeProducersRequest { topics }).await;
    let mut partitions = found.topics.remove(0).partitions;
    assert_eq!(partitions[1].error_code, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let hanging = partitions.remove(0).active_producers.remove(0);
    assert_eq!((hanging.producer_id, hanging.producer_epoch), (77, 3));
    assert_eq!((hanging.current_txn_start_offset, hanging.coordinator_epoch), (0, -1));

    let marker = |producer_epoch| WriteTxnMarkersRequest {
        markers: vec![WritableTxnMarker {
            producer_id: 77,
            producer_epoch,
            transaction_result: false,
            topics: vec![WritableTxnMarkerTopic {
                name: "t".to_owned(),
                partition_indexes: vec![0],
            }],
            coordinator_epoch: 0,
        }],
    };
    for (epoch, expected) in [(2, ErrorCode::INVALID_PRODUCER_EPOCH), (3, ErrorCode::NONE)] {
        let mut written = client.call(1, &marker(epoch)).await;
        let written = written.markers.remove(0).topics.remove(0).partitions.remove(0);
        assert_eq!(written.error_code, expected);
    }
    assert_eq!(committed(&server, "t").await.last_stable_offset, 2);
}

#[tokio::test]
async fn every_version_finds_the_coordinator() {
    let server = Server::start().await;
    let port = i32::from(server.broker.local_addr().port());
    let mut client = server.client().await;
    let one = FindCoordinatorRequest { key: ID.to_owned(), ..Default::default() };
    for version in 0..=3 {
        let key_type = i8::from(version > 0);
        let found = client.call(version, &FindCoordinatorRequest { key_type, ..one.clone() }).await;
        assert_eq!((found.error_code, found.port), (ErrorCode::NONE, port));
    }
    let coordinator_keys = vec!["a".to_owned(), "b".to_owned()];
    let several = FindCoordinatorRequest { key_type: 1, coordinator_keys, ..Default::default() };
    let found = client.call(4, &several).await.coordinators;
    assert_eq!(found.iter().map(|one| one.key.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert!(found.iter().all(|one| one.port == port));
    let odd = FindCoordinatorRequest { key_type: 7, ..several };
    assert_eq!(client.call(4, &odd).await.coordinators[0].error_code, ErrorCode::INVALID_REQUEST);
}

/// What Apache Kafka answers, version by version.
#[tokio::test]
async fn offsets_are_committed_only_into_an_open_transaction() {
    let server = Server::start().await;
    server.topic("t");
    let mut producer = Producer::start(&server).await;
    let commit = |producer: &Producer, group: &str, partition_index| TxnOffsetCommitRequest {
        transactional_id: ID.to_owned(),
        group_id: group.to_owned(),
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        topics: vec![TxnOffsetCommitRequestTopic {
            name: "t".to_owned(),
            partitions: vec![TxnOffsetCommitRequestPartition {
                partition_index,
                committed_offset: 5,
                ..Default::default()
            }],
        }],
        ..Default::default()
    };
    let mut client = server.client().await;
    let mut code = async |version: i16, request: TxnOffsetCommitRequest| {
        let mut answer = client.call(version, &request).await;
        answer.topics.remove(0).partitions.remove(0).error_code
    };
    assert_eq!(code(3, commit(&producer, "g", 0)).await, ErrorCode::INVALID_TXN_STATE);
    assert_eq!(code(4, commit(&producer, "g", 0)).await, ErrorCode::TRANSACTION_ABORTABLE);
    assert_eq!(code(4, commit(&producer, "", 0)).await, ErrorCode::INVALID_GROUP_ID);
    let missing = code(4, commit(&producer, "g", 9)).await;
    assert_eq!(missing, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let mut stranger = commit(&producer, "g", 0);
    stranger.producer_id += 1;
    assert_eq!(code(4, stranger).await, ErrorCode::INVALID_PRODUCER_ID_MAPPING);
    let add = AddOffsetsToTxnRequest {
        transactional_id: ID.to_owned(),
        producer_id: producer.id,
        producer_epoch: producer.epoch,
        group_id: "g".to_owned(),
    };
    assert_eq!(producer.client.call(3, &add).await.error_code, ErrorCode::NONE);
    assert_eq!(code(4, commit(&producer, "g", 0)).await, ErrorCode::NONE);
    assert_eq!(producer.commit().await, ErrorCode::NONE);
    let after = code(4, commit(&producer, "g", 0)).await;
    assert_eq!(after, ErrorCode::TRANSACTION_ABORTABLE, "it is over");
}

/// What transactions take together has a bound, which gives way once they end.
#[tokio::test]
async fn transactions_take_no_more_memory_than_they_may() {
    let transactions = TransactionsConfig {
        max_total_bytes: 4000,
        sweep_interval: Duration::from_millis(5),
        ..TransactionsConfig::default()
    };
    let config = CoordinatorConfig { transactions, ..CoordinatorConfig::default() };
    let server = Server::with_coordinators(config).await;
    server.topic_with("t", 1000, &[]);
    let mut producer = Producer::start(&server).await;
    let all: Vec<i32> = (0..1000).collect();
    let mut until = async |wanted: ErrorCode| {
        for partition in &all {
            if producer.add_at(3, "t", &[*partition]).await == [wanted] {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        false
    };
    assert!(until(ErrorCode::POLICY_VIOLATION).await, "there is a bound");
    producer.abort().await;
    let mut until = async |wanted: ErrorCode| {
        for _ in 0..1000 {
            if producer.add_at(3, "t", &[0]).await == [wanted] {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        false
    };
    assert!(until(ErrorCode::NONE).await, "what has ended takes nothing");
}
