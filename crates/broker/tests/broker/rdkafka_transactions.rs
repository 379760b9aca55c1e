//! librdkafka's transactional producer.

use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};

use crate::client::SOON;
use crate::server::Server;

fn config(server: &Server) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", server.broker.local_addr().to_string());
    config
}

fn producer(server: &Server, timeout_ms: &str) -> BaseProducer {
    let mut config = config(server);
    config.set("transactional.id", "tx").set("linger.ms", "0");
    let producer: BaseProducer = config.set("transaction.timeout.ms", timeout_ms).create().unwrap();
    producer.init_transactions(SOON).unwrap();
    producer
}

fn send(producer: &BaseProducer, values: &[&str]) {
    for value in values {
        producer.send(BaseRecord::<str, str>::to("out").key("k").payload(value)).unwrap();
    }
    producer.flush(SOON).unwrap();
}

fn reader(server: &Server) -> BaseConsumer {
    let mut config = config(server);
    config.set("group.id", "g").set("enable.auto.commit", "false");
    config.set("auto.offset.reset", "earliest").create().unwrap()
}

/// The first `count` committed values of a topic.
fn committed(server: &Server, count: usize) -> Vec<String> {
    let reader = reader(server);
    let mut list = TopicPartitionList::new();
    list.add_partition_offset("out", 0, Offset::Beginning).unwrap();
    reader.assign(&list).unwrap();
    let value = |_| {
        let record = reader.poll(SOON).expect("a record soon").unwrap();
        String::from_utf8(record.payload().unwrap().to_vec()).unwrap()
    };
    (0..count).map(value).collect()
}

/// What the group stands at in topic `in`.
fn position(consumer: &BaseConsumer) -> Offset {
    let mut list = TopicPartitionList::new();
    list.add_partition("in", 0);
    let found = consumer.committed_offsets(list, SOON).unwrap();
    found.elements()[0].offset()
}

/// Offsets up to which `in` was read.
fn read_up_to(offset: i64) -> TopicPartitionList {
    let mut list = TopicPartitionList::new();
    list.add_partition_offset("in", 0, Offset::Offset(offset)).unwrap();
    list
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_and_offsets_count_together_or_not_at_all() {
    let server = Server::start().await;
    server.topic("in");
    server.topic("out");
    tokio::task::spawn_blocking(move || {
        let producer = producer(&server, "60000");
        let consumer = reader(&server);
        consumer.subscribe(&["in"]).unwrap();
        let joined = Instant::now();
        while consumer.assignment().unwrap().count() == 0 {
            assert!(joined.elapsed() < SOON, "no assignment");
            drop(consumer.poll(Duration::from_millis(100)));
        }
        let group = consumer.group_metadata().unwrap();
        let work = |value: &str, offset| {
            producer.begin_transaction().unwrap();
            send(&producer, &[value]);
            producer.send_offsets_to_transaction(&read_up_to(offset), &group, SOON).unwrap();
        };
        work("one", 1);
        producer.commit_transaction(SOON).unwrap();
        assert_eq!(position(&consumer), Offset::Offset(1));
        work("dropped", 2);
        producer.abort_transaction(SOON).unwrap();
        assert_eq!(position(&consumer), Offset::Offset(1), "they went with the records");
        work("two", 3);
        producer.commit_transaction(SOON).unwrap();
        assert_eq!(position(&consumer), Offset::Offset(3));
        assert_eq!(committed(&server, 2), ["one", "two"]);
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_instance_fences_the_first() {
    let server = Server::start().await;
    server.topic("out");
    tokio::task::spawn_blocking(move || {
        let first = producer(&server, "60000");
        first.begin_transaction().unwrap();
        send(&first, &["unfinished"]);
        let second = producer(&server, "60000");
        let refused = first.commit_transaction(SOON).unwrap_err();
        assert_eq!(refused.rdkafka_error_code(), Some(RDKafkaErrorCode::Fenced));
        second.begin_transaction().unwrap();
        send(&second, &["kept"]);
        second.commit_transaction(SOON).unwrap();
        assert_eq!(committed(&server, 1), ["kept"]);
    })
    .await
    .unwrap();
}

/// The end of a transaction is answered once every partition has it, so that the next one need not wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_transaction_follows_the_other_without_a_pause() {
    let server = Server::start().await;
    server.topic("out");
    tokio::task::spawn_blocking(move || {
        let producer = producer(&server, "60000");
        let values: Vec<_> = (0..50).map(|number| number.to_string()).collect();
        for value in &values {
            producer.begin_transaction().unwrap();
            send(&producer, &[value]);
            producer.commit_transaction(SOON).unwrap();
        }
        assert_eq!(committed(&server, 50), values);
    })
    .await
    .unwrap();
}
