//! librdkafka, as the rdkafka crate brings it.

use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::producer::{FutureProducer, FutureRecord};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};

use crate::client::SOON;
use crate::server::Server;

fn config(server: &Server) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", server.broker.local_addr().to_string());
    config
}

fn consumer(server: &Server) -> BaseConsumer {
    config(server)
        .set("group.id", "none")
        .set("enable.auto.commit", "false")
        .set("auto.offset.reset", "error")
        .set("check.crcs", "true")
        .create()
        .unwrap()
}

/// Offset, timestamp and value of the first `count` records from `offset` on.
fn read(
    consumer: &BaseConsumer,
    topic: &str,
    offset: i64,
    count: usize,
) -> Vec<(i64, i64, String)> {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset(topic, 0, Offset::Offset(offset)).unwrap();
    consumer.assign(&list).unwrap();
    let mut found = Vec::new();
    while found.len() < count {
        let record = consumer.poll(SOON).expect("a record soon").unwrap();
        let value = String::from_utf8(record.payload().unwrap().to_vec()).unwrap();
        found.push((record.offset(), record.timestamp().to_millis().unwrap(), value));
    }
    found
}

async fn send(producer: &FutureProducer, topic: &str, value: &str, timestamp: i64) -> i64 {
    let record = FutureRecord::to(topic).key("k").payload(value).timestamp(timestamp);
    producer.send(record, SOON).await.map_err(|(error, _)| error).unwrap().offset
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idempotent_producer_and_a_consumer() {
    let server = Server::start().await;
    server.topic("t");
    let producer: FutureProducer =
        config(&server).set("enable.idempotence", "true").set("linger.ms", "0").create().unwrap();
    let mut expected = Vec::new();
    for number in 0..50_i64 {
        let value = format!("value {number}");
        assert_eq!(send(&producer, "t", &value, 1_000 + number).await, number);
        expected.push((number, 1_000 + number, value));
    }
    let consumer = consumer(&server);
    let (found, beyond, watermarks) = tokio::task::spawn_blocking(move || {
        let found = read(&consumer, "t", 0, 50);
        let beyond = read(&consumer, "t", 48, 2);
        let watermarks = consumer.fetch_watermarks("t", 0, SOON).unwrap();
        (found, beyond, watermarks)
    })
    .await
    .unwrap();
    assert_eq!(found, expected);
    assert_eq!(beyond, expected[48..]);
    assert_eq!(watermarks, (0, 50));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_codec_arrives_compressed_and_whole() {
    let server = Server::start().await;
    // zstd is not built into this client; kcat shows it. librdkafka takes a broker without
    // FindCoordinator for one too old for lz4, and would send such batches uncompressed.
    for (codec, attribute) in [("none", 0), ("gzip", 1), ("snappy", 2), ("lz4", 3)] {
        let partition = server.topic(codec);
        let producer: FutureProducer = config(&server)
            .set("compression.codec", codec)
            .set("linger.ms", "50")
            .create()
            .unwrap();
        let value = "again and again ".repeat(100);
        let sends = (0..20).map(|number| send(&producer, codec, &value, number));
        futures_util::future::join_all(sends).await;
        let batch = partition.read(0, 1, true, highwater_log::Visible::HighWatermark).unwrap();
        assert_eq!(batch[22] & 7, attribute, "{codec}");
        let consumer = consumer(&server);
        let found = tokio::task::spawn_blocking(move || read(&consumer, codec, 0, 20));
        assert!(found.await.unwrap().iter().all(|(_, _, found)| *found == value));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offsets_by_time() {
    let server = Server::start().await;
    server.topic("t");
    let producer: FutureProducer = config(&server).create().unwrap();
    for timestamp in [100, 999, 200] {
        send(&producer, "t", "x", timestamp).await;
    }
    let consumer = consumer(&server);
    let offsets = tokio::task::spawn_blocking(move || {
        [0, 150, 999, 1_000].map(|time| {
            let mut list = TopicPartitionList::new();
            list.add_partition_offset("t", 0, Offset::Offset(time)).unwrap();
            consumer.offsets_for_times(list, SOON).unwrap().elements()[0].offset()
        })
    });
    let expected = [Offset::Offset(0), Offset::Offset(1), Offset::Offset(1), Offset::End];
    assert_eq!(offsets.await.unwrap(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_admin_makes_describes_and_deletes() {
    let server = Server::start().await;
    let admin: AdminClient<DefaultClientContext> = config(&server).create().unwrap();
    let options = AdminOptions::new().operation_timeout(Some(Duration::from_secs(5)));
    let topic = NewTopic::new("t", 2, TopicReplication::Fixed(1)).set("cleanup.policy", "compact");
    let made = admin.create_topics([&topic], &options).await.unwrap();
    assert_eq!(made[0], Ok("t".to_owned()));
    let again = admin.create_topics([&topic], &options).await.unwrap();
    assert!(matches!(again[0], Err((_, rdkafka::error::RDKafkaErrorCode::TopicAlreadyExists))));
    let resources = [ResourceSpecifier::Topic("t")];
    let described = admin.describe_configs(&resources, &options).await.unwrap().remove(0).unwrap();
    let policy = described.get("cleanup.policy").unwrap();
    assert_eq!((policy.value.as_deref(), policy.is_default), (Some("compact"), false));
    let deleted = admin.delete_topics(&["t"], &options).await.unwrap();
    assert_eq!(deleted[0], Ok("t".to_owned()));
    assert!(server.log.topic("t").is_none());
}

/// The same batches in the same order, whatever happens to the connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idempotent_producer_across_a_restart_of_the_broker() {
    let Server { broker, log, dir, coordinator } = Server::start().await;
    let address = broker.local_addr();
    let server = Server { broker, log, dir, coordinator };
    server.topic("t");
    let producer: FutureProducer = config(&server)
        .set("enable.idempotence", "true")
        .set("reconnect.backoff.max.ms", "100")
        .create()
        .unwrap();
    let sends: Vec<_> = (0..100)
        .map(|number| {
            let producer = producer.clone();
            tokio::spawn(async move { send(&producer, "t", &number.to_string(), number).await })
        })
        .collect();
    let Server { broker, log, dir, coordinator } = server;
    broker.shutdown().await;
    let config = highwater_broker::BrokerConfig::new(address);
    let started = highwater_broker::Broker::start(config, log.clone(), coordinator.clone());
    let broker = started.await.unwrap();
    let server = Server { broker, log, dir, coordinator };
    let mut offsets = Vec::new();
    for send in sends {
        offsets.push(send.await.unwrap());
    }
    offsets.sort_unstable();
    assert_eq!(offsets, (0..100).collect::<Vec<_>>(), "nothing lost, nothing twice");
    assert_eq!(server.partition("t", 0).watermarks_now().high_watermark, 100);
}
