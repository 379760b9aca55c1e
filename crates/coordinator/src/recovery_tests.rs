//! What a crash leaves of a transaction, and what the next start makes of it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use highwater_log::{AppendOptions, Log, LogConfig, Partition, RealFileSystem, TopicConfig};
use highwater_protocol::records::{BatchBuilder, Compression};
use highwater_protocol::{ErrorCode, TopicPartition};

use crate::transaction::{Producer, TransactionResult, TransactionState};
use crate::{
    Coordinator, CoordinatorConfig, StateTopic, TRANSACTION_STATE, TransactionMetadata,
    transaction_log,
};

const ID: &str = "tx";
const SOON: Duration = Duration::from_secs(10);

async fn open(dir: &Path) -> Log {
    for _ in 0..500 {
        match Log::open(Arc::new(RealFileSystem), dir, LogConfig::default()) {
            Ok(log) => return log,
            // What is being synced holds it for a moment after a crash.
            Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    panic!("the log is not free");
}

fn start(log: &Log) -> Coordinator {
    Coordinator::start(log, CoordinatorConfig::default())
}

async fn begin(coordinator: &Coordinator, topics: &[&str]) -> Producer {
    let transactions = coordinator.transactions();
    let id = Some(ID.to_owned());
    let producer = transactions.init_producer_id(id, 60_000, None).await.unwrap();
    let partition = |topic: &&str| TopicPartition::new(*topic, 0);
    let partitions = topics.iter().map(partition).collect();
    transactions.add_partitions(ID, producer, partitions).await.unwrap();
    producer
}

async fn write(partition: &Partition, producer: Producer) {
    let mut batch = BatchBuilder::new(Compression::None);
    batch = batch.producer(producer.id, producer.epoch, 0).transactional();
    batch.push(1, Some(b"k"), Some(b"v"), &[]);
    let appended = partition.append(batch.build().unwrap(), AppendOptions::client(1)).unwrap();
    partition.durable(&appended).await.unwrap();
}

async fn stable(log: &Log, topic: &str, offset: i64) {
    let mut marks = log.partition(topic, 0).unwrap().watermarks();
    let reached = marks.wait_for(|marks| marks.last_stable_offset >= offset);
    tokio::time::timeout(SOON, reached).await.expect("soon").unwrap();
}

async fn described(coordinator: &Coordinator) -> TransactionMetadata {
    coordinator.transactions().loaded().await;
    coordinator.transactions().describe(ID).unwrap()
}

/// A crash between the decision and the markers: they are written at the next start.
#[tokio::test]
async fn what_was_decided_is_carried_out_after_a_crash() {
    for result in [TransactionResult::Commit, TransactionResult::Abort] {
        let dir = tempfile::tempdir().unwrap();
        let log = open(dir.path()).await;
        for topic in ["a", "b"] {
            log.create_topic(topic, 1, TopicConfig::default()).unwrap();
        }
        let coordinator = start(&log);
        let producer = begin(&coordinator, &["a", "b"]).await;
        write(&log.partition("a", 0).unwrap(), producer).await;
        write(&log.partition("b", 0).unwrap(), producer).await;
        let decided = described(&coordinator).await.end(result, 5).unwrap().unwrap();
        coordinator.shutdown().await;
        let topic = StateTopic::new(log.clone(), TRANSACTION_STATE);
        let written = topic.append(&[transaction_log::record(ID, &decided)], None, 5).unwrap();
        written.durable().await.unwrap();
        drop((coordinator, topic, written, log));

        let log = open(dir.path()).await;
        let coordinator = start(&log);
        for topic in ["a", "b"] {
            stable(&log, topic, 2).await;
            let aborted = log.partition(topic, 0).unwrap().aborted(0, 2).unwrap().len();
            assert_eq!(aborted, usize::from(result == TransactionResult::Abort));
        }
        // A client that asks meanwhile is told to ask again.
        let ask = || coordinator.transactions().end(ID, producer, result);
        while ask().await == Err(ErrorCode::CONCURRENT_TRANSACTIONS) {
            tokio::task::yield_now().await;
        }
        assert_eq!(ask().await, Ok(()));
        let ended = described(&coordinator).await.state;
        let expected = match result {
            TransactionResult::Commit => TransactionState::CompleteCommit,
            TransactionResult::Abort => TransactionState::CompleteAbort,
        };
        assert_eq!(ended, expected);
        coordinator.shutdown().await;
    }
}

#[tokio::test]
async fn an_answer_stands_after_a_crash_at_any_time() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path()).await;
    log.create_topic("a", 1, TopicConfig::default()).unwrap();
    let coordinator = start(&log);
    let producer = begin(&coordinator, &["a"]).await;
    let before = described(&coordinator).await;
    assert_eq!(before.state, TransactionState::Ongoing);
    coordinator.shutdown().await;
    drop((coordinator, log));

    let log = open(dir.path()).await;
    let coordinator = start(&log);
    assert_eq!(described(&coordinator).await, before);
    let transactions = coordinator.transactions();
    assert_eq!(transactions.verify(ID, producer, "a", 0), Ok(()));
    let apart = transactions.verify(ID, producer, "a", 1);
    assert_eq!(apart, Err(ErrorCode::TRANSACTION_ABORTABLE));
    transactions.end(ID, producer, TransactionResult::Commit).await.unwrap();
    let again = Some(ID.to_owned());
    let next = transactions.init_producer_id(again, 60_000, None).await.unwrap();
    assert_eq!(next, Producer { epoch: producer.epoch + 1, ..producer });
    coordinator.shutdown().await;
    drop((coordinator, log));
    let log = open(dir.path()).await;
    let coordinator = start(&log);
    assert_eq!(described(&coordinator).await.producer, next);
    coordinator.shutdown().await;
}

/// An id that nobody used for long is forgotten, on disk too; one with a transaction open is not.
#[tokio::test]
async fn an_idle_id_is_forgotten_for_good() {
    let dir = tempfile::tempdir().unwrap();
    let log = open(dir.path()).await;
    log.create_topic("a", 1, TopicConfig::default()).unwrap();
    let coordinator = start(&log);
    let producer = begin(&coordinator, &["a"]).await;
    let (shared, now) = (Arc::clone(&coordinator.transactions().shared), highwater_log::now_ms());
    let week = 7 * 24 * 60 * 60 * 1000 + 1000;
    shared.sweep(now).await;
    assert_eq!(described(&coordinator).await.state, TransactionState::Ongoing);
    coordinator.transactions().end(ID, producer, TransactionResult::Abort).await.unwrap();
    shared.sweep(now + week / 2).await;
    assert!(coordinator.transactions().describe(ID).is_ok());
    shared.sweep(now + week).await;
    let gone = Err(ErrorCode::TRANSACTIONAL_ID_NOT_FOUND);
    assert_eq!(coordinator.transactions().describe(ID), gone);
    coordinator.shutdown().await;
    drop((shared, coordinator, log));
    let log = open(dir.path()).await;
    let coordinator = start(&log);
    coordinator.transactions().loaded().await;
    assert_eq!(coordinator.transactions().describe(ID), gone);
    coordinator.shutdown().await;
}
