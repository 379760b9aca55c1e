//! Topics that a connector keeps beside its records: made before it starts, and read back.

use highwater_connector::OwnRecord;
use serde_json::json;

use crate::bench::{Bench, PATIENCE, config};
use crate::source::Server;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn side_topics_are_made_as_they_keep_and_read_back_at_each_start() {
    let bench = Bench::start(Server::new(9, 7)).await;
    let mut config = config("shop");
    config["journal"] = json!("shop.journal");
    config["audit"] = json!("shop.audit");
    let life = bench.life().await;
    life.api.create("shop", config).await.expect(201);
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    life.worker.shutdown().await;
    for (topic, policy) in [("shop.journal", "compact"), ("shop.audit", "delete")] {
        let made = bench.admin.topic_config(topic).await.unwrap();
        assert_eq!((&*made["cleanup.policy"], &*made["highwater.owner"]), (policy, "shop"));
        assert_eq!(bench.admin.describe_topic(topic).await.unwrap().unwrap().partitions, 1);
    }
    let audit = bench.admin.topic_config("shop.audit").await.unwrap();
    assert_eq!(audit["retention.ms"], "3600000");

    bench.server.state().committed = 12;
    let life = bench.life().await;
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    life.worker.shutdown().await;
    let record = |key: &str, value: Option<&str>| OwnRecord {
        key: Some(key.to_owned().into()),
        value: value.map(|value| value.to_owned().into()),
    };
    let starts = bench.server.state().starts.clone();
    assert_eq!(starts[0].journal, []);
    assert_eq!(starts[1].journal, [record("0", Some("began"))]);

    bench.server.state().committed = 15;
    let life = bench.life().await;
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    life.worker.shutdown().await;
    let read = bench.server.last_start().journal;
    assert_eq!(read, [record("0", Some("began")), record("0", None), record("1", Some("began"))]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_side_topic_of_another_connector_is_refused() {
    let bench = Bench::start(Server::new(3, 7)).await;
    let life = bench.life().await;
    let mut first = config("shop");
    first["journal"] = json!("shared.journal");
    life.api.create("shop", first).await.expect(201);
    let mut second = config("yard");
    second["journal"] = json!("shared.journal");
    let refused = life.api.create("yard", second).await.body.to_string();
    assert!(refused.contains("shared.journal"), "{refused}");
    life.worker.shutdown().await;
}
