//! Reading, watching and asking our own broker.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use highwater_kafka::{
    Admin, KafkaError, NewTopic, OffsetSpec, OutgoingRecord, Reader, WriterSettings, at_least_once,
};
use tokio::time::timeout;

use crate::contract::{SOON, record};
use crate::server::Server;

async fn write(server: &Server, topic: &str, values: std::ops::RangeInclusive<u64>) {
    let mut writer = at_least_once(&WriterSettings::new(&server.bootstrap())).unwrap();
    for value in values {
        writer.send(record(topic, value)).await.unwrap();
    }
    timeout(SOON, writer.commit()).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn topics_are_made_described_and_deleted() {
    let server = Server::start().await;
    let admin = Admin::new(server.reader());
    let configs = BTreeMap::from([("cleanup.policy".to_owned(), "compact".to_owned())]);
    let topic = NewTopic { partitions: 3, configs, ..NewTopic::of_one("state") };
    assert_eq!(admin.describe_topic("state").await.unwrap(), None);
    assert!(admin.create_topic(&topic).await.unwrap());
    assert!(!admin.create_topic(&topic).await.unwrap());
    let first = admin.describe_topic("state").await.unwrap().unwrap();
    assert_eq!(first.partitions, 3);
    assert!(!first.id.is_nil());
    assert_eq!(admin.topics().await.unwrap(), std::slice::from_ref(&first));
    assert_eq!(admin.topic_config("state").await.unwrap()["cleanup.policy"], "compact");
    assert_eq!(admin.cluster_id().await.unwrap(), server.log().cluster_id());

    assert!(admin.delete_topic("state").await.unwrap());
    assert!(!admin.delete_topic("state").await.unwrap());
    assert!(admin.topic_config("state").await.unwrap_err().code().is_some());
    assert!(admin.create_topic(&topic).await.unwrap());
    assert_ne!(admin.describe_topic("state").await.unwrap().unwrap().id, first.id);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_topic_that_cannot_be_made_says_why() {
    let server = Server::start().await;
    let admin = Admin::new(server.reader());
    let error = admin.create_topic(&NewTopic::of_one("not a name")).await.unwrap_err();
    assert!(matches!(error, KafkaError::Refused { code: 17, .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn records_are_fetched_from_any_offset() {
    let server = Server::with_trail().await;
    write(&server, "trail", 1..=500).await;
    let reader = server.reader();
    for from in [0, 1, 250, 499] {
        let fetched = reader.fetch("trail", 0, from, 1 << 20).await.unwrap();
        assert_eq!(fetched.records[0].offset, from);
        assert_eq!(fetched.watermarks.last_stable, 500);
        assert!(fetched.records.iter().all(|record| record.leader_epoch >= 0));
    }
    let end = reader.fetch("trail", 0, 500, 1 << 20).await.unwrap();
    assert_eq!((end.records.len(), end.next_offset), (0, 500));
    let beyond = reader.fetch("trail", 0, 501, 1 << 20).await.unwrap_err();
    assert_eq!(beyond.code(), Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn null_keys_values_and_headers_arrive_as_they_were() {
    let server = Server::with_trail().await;
    let mut writer = at_least_once(&WriterSettings::new(&server.bootstrap())).unwrap();
    let full = OutgoingRecord {
        key: Some(Bytes::from_static(b"")),
        headers: vec![("one".into(), Bytes::from_static(b"1")), ("two".into(), Bytes::new())],
        ..record("trail", 1)
    };
    let tombstone = OutgoingRecord { value: None, headers: vec![], ..full.clone() };
    writer.send(full).await.unwrap();
    writer.send(tombstone).await.unwrap();
    writer.commit().await.unwrap();
    let records = server.reader().fetch("trail", 0, 0, 1 << 20).await.unwrap().records;
    assert_eq!(records[0].key, Some(Bytes::new()));
    let headers = [("one".to_owned(), Bytes::from_static(b"1")), ("two".to_owned(), Bytes::new())];
    assert_eq!(records[0].headers, headers);
    assert_eq!((records[1].value.clone(), records[1].headers.len()), (None, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn offsets_are_looked_up_by_every_spec() {
    let server = Server::with_trail().await;
    let reader = server.reader();
    let find = async |spec| reader.list_offset("trail", 0, spec).await.unwrap();
    assert_eq!(find(OffsetSpec::Earliest).await.unwrap().offset, 0);
    assert_eq!(find(OffsetSpec::Latest).await.unwrap().offset, 0);
    assert_eq!(find(OffsetSpec::MaxTimestamp).await, None);
    write(&server, "trail", 1..=10).await;
    assert_eq!(find(OffsetSpec::Latest).await.unwrap().offset, 10);
    let newest = find(OffsetSpec::MaxTimestamp).await.unwrap();
    assert_eq!(find(OffsetSpec::Timestamp(0)).await.unwrap().offset, 0);
    let found = find(OffsetSpec::Timestamp(newest.timestamp)).await.unwrap();
    assert_eq!(found.timestamp, newest.timestamp);
    assert_eq!(find(OffsetSpec::Timestamp(newest.timestamp + 1)).await, None);
    let negative = reader.list_offset("trail", 0, OffsetSpec::Timestamp(-1)).await;
    assert!(matches!(negative, Err(KafkaError::Unsupported { .. })));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_an_epoch_is_the_log_end_while_it_lasts() {
    let server = Server::with_trail().await;
    write(&server, "trail", 1..=10).await;
    let reader = server.reader();
    let epoch = reader.fetch("trail", 0, 0, 1000).await.unwrap().records[0].leader_epoch;
    let end = reader.epoch_end("trail", 0, epoch).await.unwrap();
    assert_eq!((end.leader_epoch, end.end_offset), (epoch, 10));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_partition_is_read_once() {
    let server = Server::with_trail().await;
    write(&server, "trail", 1..=3000).await;
    let mut offsets = Vec::new();
    let next =
        server.reader().read_all("trail", 0, &mut |record| offsets.push(record.offset)).await;
    assert_eq!(next.unwrap(), 3000);
    assert_eq!(offsets, Vec::from_iter(0..3000));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_exist_is_said_at_once() {
    let server = Server::with_trail().await;
    let reader = server.reader();
    for (topic, partition) in [("nothing", 0), ("trail", 1)] {
        let fetched = reader.fetch(topic, partition, 0, 1000).await;
        assert!(matches!(fetched, Err(KafkaError::UnknownPartition { .. })));
        let watched = reader.watch(topic, partition).await;
        assert!(matches!(watched, Err(KafkaError::UnknownPartition { .. })));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_sees_appends_at_once_and_through_restarts() {
    let mut server = Server::with_trail().await;
    let mut watcher = server.reader().watch("trail", 0).await.unwrap();
    for round in 1..=3u64 {
        let end = i64::try_from(round * 10).unwrap();
        write(&server, "trail", 1..=10).await;
        timeout(SOON, watcher.wait_for(|edges| edges.last_stable == end)).await.unwrap().unwrap();
        server.restart().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_rides_through_a_restart() {
    let mut server = Server::with_trail().await;
    write(&server, "trail", 1..=10).await;
    let reader = server.reader();
    reader.fetch("trail", 0, 0, 1000).await.unwrap();
    server.down().await;
    let fetching = tokio::spawn(async move { reader.fetch("trail", 0, 0, 1 << 20).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!fetching.is_finished());
    server.up().await;
    assert_eq!(fetching.await.unwrap().unwrap().records.len(), 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_of_a_deleted_topic_ends() {
    let server = Server::with_trail().await;
    let mut watcher = server.reader().watch("trail", 0).await.unwrap();
    assert!(Admin::new(server.reader()).delete_topic("trail").await.unwrap());
    let closed = timeout(SOON, async { while watcher.changed().await.is_ok() {} }).await;
    assert!(closed.is_ok(), "the channel stays open");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_watch_does_not_hold_up_the_fetches_of_others() {
    let server = Server::with_trail().await;
    let reader = server.reader();
    let _watcher = reader.watch("trail", 0).await.unwrap();
    let began = std::time::Instant::now();
    for _ in 0..50 {
        reader.fetch("trail", 0, 0, 1000).await.unwrap();
    }
    // Behind the poll on one connection each would wait for half a second.
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}

#[test]
fn readers_and_writers_may_be_used_from_any_task() {
    fn sendable<T: Send + Sync>() {}
    fn send<T: Send>(_: &T) {}
    sendable::<Reader>();
    sendable::<Admin>();
    sendable::<KafkaError>();
    let reader = Reader::new("127.0.0.1:1");
    send(&reader.fetch("trail", 0, 0, 1));
    send(&reader.watch("trail", 0));
    send(&reader.read_all("trail", 0, &mut |_| {}));
    send(&Admin::new(reader.clone()).topics());
}
