//! A cluster of three brokers: librdkafka's mock, which is somebody else's reading of the protocol.

use std::time::Duration;

use highwater_kafka::{Admin, OffsetSpec, OutgoingRecord, Reader, WriterSettings, at_least_once};
use rdkafka::mocking::MockCluster;
use rdkafka::producer::DefaultProducerContext;
use rdkafka::types::{RDKafkaApiKey, RDKafkaRespErr};
use tokio::time::timeout;

use crate::contract::record;

const PARTITIONS: i32 = 3;
const SOON: Duration = Duration::from_secs(20);

/// Three brokers, each leading a partition of `trail`.
fn cluster() -> MockCluster<'static, DefaultProducerContext> {
    let cluster = MockCluster::new(3).unwrap();
    cluster.create_topic("trail", PARTITIONS, 3).unwrap();
    for partition in 0..PARTITIONS {
        cluster.partition_leader("trail", partition, Some(partition + 1)).unwrap();
    }
    cluster
}

async fn write(bootstrap: &str, partition: i32, values: std::ops::Range<u64>) {
    let mut writer = at_least_once(&WriterSettings::new(bootstrap)).unwrap();
    for value in values {
        let to = OutgoingRecord { partition: Some(partition), ..record("trail", value) };
        writer.send(to).await.unwrap();
    }
    timeout(SOON, writer.commit()).await.unwrap().unwrap();
}

async fn read(reader: &Reader, partition: i32) -> Vec<u64> {
    let mut values = Vec::new();
    let mut each = |record: highwater_kafka::ReadRecord| {
        let value = record.value.unwrap();
        values.push(std::str::from_utf8(&value).unwrap().parse().unwrap());
    };
    timeout(SOON, reader.read_all("trail", partition, &mut each)).await.unwrap().unwrap();
    values
}

#[tokio::test(flavor = "multi_thread")]
async fn each_partition_is_read_from_its_leader() {
    let cluster = cluster();
    let bootstrap = cluster.bootstrap_servers();
    let reader = Reader::new(&bootstrap);
    for partition in 0..PARTITIONS {
        write(&bootstrap, partition, 0..200).await;
        assert_eq!(read(&reader, partition).await, (0..200).collect::<Vec<_>>());
    }
    let latest = reader.list_offset("trail", 0, OffsetSpec::Latest).await.unwrap().unwrap();
    assert_eq!(latest.offset, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_are_described_as_the_cluster_has_them() {
    let cluster = cluster();
    let admin = Admin::new(Reader::new(&cluster.bootstrap_servers()));
    let trail = admin.describe_topic("trail").await.unwrap().unwrap();
    assert_eq!((trail.name.as_str(), trail.partitions), ("trail", PARTITIONS));
    assert_eq!(admin.topics().await.unwrap(), [trail]);
    assert!(!admin.cluster_id().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_and_watching_follow_the_leader() {
    let cluster = cluster();
    let bootstrap = cluster.bootstrap_servers();
    let reader = Reader::new(&bootstrap);
    write(&bootstrap, 0, 0..10).await;
    let mut watcher = reader.watch("trail", 0).await.unwrap();
    assert_eq!(watcher.borrow_and_update().last_stable, 10);

    cluster.partition_leader("trail", 0, Some(2)).unwrap();
    cluster.broker_down(1).unwrap();
    write(&bootstrap, 0, 10..20).await;
    let seen = timeout(SOON, watcher.wait_for(|edges| edges.last_stable == 20)).await;
    assert_eq!(seen.unwrap().unwrap().high_watermark, 20);
    assert_eq!(read(&reader, 0).await, (0..20).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn two_watches_on_two_brokers_do_not_hold_each_other_up() {
    let cluster = cluster();
    let bootstrap = cluster.bootstrap_servers();
    let reader = Reader::new(&bootstrap);
    let mut watchers = Vec::new();
    for partition in 0..PARTITIONS {
        watchers.push(reader.watch("trail", partition).await.unwrap());
    }
    for (partition, watcher) in (0..).zip(&mut watchers) {
        write(&bootstrap, partition, 0..5).await;
        timeout(SOON, watcher.wait_for(|edges| edges.last_stable == 5)).await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_choose_partitions_as_java_clients_do() {
    let cluster = cluster();
    let bootstrap = cluster.bootstrap_servers();
    let mut writer = at_least_once(&WriterSettings::new(&bootstrap)).unwrap();
    for key in ["a", "b", "21", "foobar", "a-little-bit-long-string"] {
        let key = Some(bytes::Bytes::from_static(key.as_bytes()));
        writer.send(OutgoingRecord { key, partition: None, ..record("trail", 1) }).await.unwrap();
    }
    writer.commit().await.unwrap();
    let placed: Vec<i32> = writer.acknowledged().unwrap().iter().map(|ack| ack.partition).collect();
    let expected = ["a", "b", "21", "foobar", "a-little-bit-long-string"]
        .map(|key| highwater_kafka::partition_of(key.as_bytes(), PARTITIONS));
    assert_eq!(placed, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn produce_errors_that_pass_are_survived_in_order() {
    use RDKafkaRespErr::{
        RD_KAFKA_RESP_ERR__TRANSPORT, RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
        RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
    };
    let cluster = cluster();
    let bootstrap = cluster.bootstrap_servers();
    let errors = [
        RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION,
        RD_KAFKA_RESP_ERR__TRANSPORT,
        RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
    ];
    cluster.request_errors(RDKafkaApiKey::Produce, &errors);
    write(&bootstrap, 1, 0..500).await;
    assert_eq!(read(&Reader::new(&bootstrap), 1).await, (0..500).collect::<Vec<_>>());
}
