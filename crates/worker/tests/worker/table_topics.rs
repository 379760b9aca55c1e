//! The topics of tables: made before their first record, written by key.

use std::collections::BTreeSet;

use highwater_kafka::{NewTopic, ReadRecord};
use reqwest::Method;
use serde_json::{Value, json};

use crate::bench::{Bench, PATIENCE, config};
use crate::source::Server;

const TOPIC: &str = "shop.public.t";

fn tables(more: &[(&str, &str)]) -> Value {
    let mut config = config("shop");
    config["topic.routing"] = json!("table");
    for (key, value) in more {
        config[*key] = json!(value);
    }
    config
}

/// The keys in one partition.
async fn keys(bench: &Bench, partition: i32) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    let mut each = |record: ReadRecord| {
        keys.insert(String::from_utf8(record.key.unwrap().to_vec()).unwrap());
    };
    bench.reader.read_all(TOPIC, partition, &mut each).await.unwrap();
    keys
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tables_topic_is_made_as_configured_and_its_keys_keep_to_their_partitions() {
    let bench = Bench::start(Server::new(40, 7)).await;
    let life = bench.life().await;
    let config = tables(&[
        ("topic.creation.default.partitions", "3"),
        ("topic.creation.default.cleanup.policy", "compact"),
    ]);
    life.api.create("shop", config).await.expect(201);
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    life.worker.shutdown().await;

    assert_eq!(bench.admin.describe_topic(TOPIC).await.unwrap().unwrap().partitions, 3);
    let made = bench.admin.topic_config(TOPIC).await.unwrap();
    assert_eq!(
        (made["cleanup.policy"].as_str(), made["highwater.flush"].as_str()),
        ("compact", "durable")
    );
    assert!(bench.admin.describe_topic("shop").await.unwrap().is_none(), "a trail was made, too");
    let keys = [keys(&bench, 0).await, keys(&bench, 1).await, keys(&bench, 2).await];
    assert!(keys.iter().all(|keys| !keys.is_empty()), "{keys:?}");
    let all: usize = keys.iter().map(BTreeSet::len).sum();
    assert_eq!(all, keys.iter().flatten().collect::<BTreeSet<_>>().len(), "a key is in two");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_of_topics_is_made_in_its_own_way() {
    let bench = Bench::start(Server::new(3, 7)).await;
    let life = bench.life().await;
    let config = tables(&[
        ("topic.creation.groups", "public"),
        ("topic.creation.public.include", "shop\\.public\\..*"),
        ("topic.creation.public.partitions", "5"),
        ("topic.creation.public.retention.ms", "3600000"),
        ("topic.creation.public.segment.bytes", "1048576"),
    ]);
    life.api.create("shop", config).await.expect(201);
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    life.worker.shutdown().await;

    assert_eq!(bench.admin.describe_topic(TOPIC).await.unwrap().unwrap().partitions, 5);
    let made = bench.admin.topic_config(TOPIC).await.unwrap();
    for (key, value) in [
        ("retention.ms", "3600000"),
        ("segment.bytes", "1048576"),
        ("message.timestamp.type", "LogAppendTime"),
    ] {
        assert_eq!(made[key], value, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tables_topic_that_could_take_records_back_is_refused() {
    let bench = Bench::start(Server::new(3, 7)).await;
    let unsafe_topic = NewTopic {
        partitions: 2,
        configs: [("highwater.flush".to_owned(), "interval".to_owned())].into(),
        ..NewTopic::of_one(TOPIC)
    };
    bench.admin.create_topic(&unsafe_topic).await.unwrap();
    let life = bench.life().await;
    life.api.create("shop", tables(&[])).await.expect(201);
    let status = life.api.until_task("shop", "FAILED").await;
    let trace = status["tasks"][0]["trace"].as_str().unwrap();
    assert!(trace.contains("TOPIC_UNFIT") && trace.contains(TOPIC), "{trace}");
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_worker_makes_no_topics_a_missing_one_is_named_and_an_existing_one_is_written() {
    let bench = Bench::start(Server::new(3, 7)).await;
    let mut worker = bench.config();
    worker.creates_topics = false;
    let life = bench.life_of(worker).await;
    life.api.create("shop", tables(&[])).await.expect(201);
    let status = life.api.until_task("shop", "FAILED").await;
    let trace = status["tasks"][0]["trace"].as_str().unwrap();
    assert!(trace.contains("TOPIC_MISSING") && trace.contains(TOPIC), "{trace}");
    assert!(bench.admin.describe_topic(TOPIC).await.unwrap().is_none());

    bench.admin.create_durable_topic(&NewTopic::of_one(TOPIC)).await.unwrap();
    let restart = "/connectors/shop/restart?includeTasks=true";
    life.api.call(Method::POST, restart, None).await.expect(202);
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    life.worker.shutdown().await;
}
