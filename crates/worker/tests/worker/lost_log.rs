//! Rule P2 at start: a log that lost what the stored offset relies on stops the connector.

use std::sync::Arc;

use highwater_kafka::{OutgoingRecord, WriterSettings, at_least_once};
use highwater_log::{CopyProgress, Log, LogConfig, RealFileSystem, TopicConfig, restore};
use serde_json::Value;

use crate::bench::{Bench, Life, PATIENCE, config};
use crate::source::{Place, Server};
use crate::trail;

/// A connector that delivered everything, its worker gone; returns the number of its rows.
async fn delivered(bench: &Bench) -> usize {
    let life = bench.life().await;
    life.api.create("a", config("shop")).await.expect(201);
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    life.worker.shutdown().await;
    trail::rows(&bench.reader, "shop").await.len()
}

/// Starts a worker again; its connector must stop by name.
async fn stops(bench: &Bench) -> (Life, String) {
    let starts = bench.server.state().starts.len();
    let life = bench.life().await;
    let status = life.api.until_task("a", "FAILED").await;
    assert_eq!(bench.server.state().starts.len(), starts, "the source was opened all the same");
    let error = &status["tasks"][0]["highwater"]["error"];
    assert_eq!(error["code"], "LOG_BEHIND_OFFSETS");
    let trace = status["tasks"][0]["trace"].as_str().unwrap().to_owned();
    (life, trace)
}

async fn append(bench: &Bench, topic: &str, count: usize) {
    let mut writer = at_least_once(&WriterSettings::new(&bench.bootstrap)).unwrap();
    for _ in 0..count {
        let record = OutgoingRecord {
            topic: topic.into(),
            partition: Some(0),
            key: None,
            value: Some(bytes::Bytes::from_static(b"{}")),
            headers: Vec::new(),
        };
        writer.send(record).await.unwrap();
    }
    writer.commit().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deleted_trail_stops_the_connector_and_is_not_made_again() {
    let bench = Bench::start(Server::new(5, 7)).await;
    delivered(&bench).await;
    bench.log.delete_topic("shop").unwrap();
    let (life, trace) = stops(&bench).await;
    assert!(trace.contains("does not exist any more"), "{trace}");
    assert!(bench.log.topic("shop").is_none());
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trail_made_anew_stops_with_the_numbers_and_goes_on_after_a_reset() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let rows = delivered(&bench).await;
    bench.log.delete_topic("shop").unwrap();
    bench.log.create_topic("shop", 1, TopicConfig::default()).unwrap();
    append(&bench, "shop", 3).await;
    let (life, trace) = stops(&bench).await;
    assert!(trace.contains(&format!("record {} of shop-0, which ends at 3", rows - 1)), "{trace}");

    // What the remedy says.
    life.api.put("/connectors/a/stop").await.expect(204);
    let path = "/connectors/a/offsets";
    life.api.call(reqwest::Method::DELETE, path, None).await.expect(200);
    bench.log.delete_topic("shop").unwrap();
    life.api.put("/connectors/a/resume").await.expect(202);
    life.api.until_task("a", "RUNNING").await;
    assert_eq!(bench.server.last_start().offset, None);
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_record_at_the_tail_stops() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let rows = delivered(&bench).await;
    bench.log.delete_topic("shop").unwrap();
    bench.log.create_topic("shop", 1, TopicConfig::default()).unwrap();
    append(&bench, "shop", rows + 2).await;
    let (life, trace) = stops(&bench).await;
    assert!(trace.contains("stands there"), "{trace}");
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_retention_took_passes() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let rows = delivered(&bench).await;
    let partition = bench.log.partition("shop", 0).unwrap();
    partition.delete_records(i64::try_from(rows).unwrap()).unwrap();
    let life = bench.life().await;
    let status: Value = life.api.until_task("a", "RUNNING").await;
    assert_eq!(status["tasks"][0].get("trace"), None);
    let start = bench.server.last_start();
    assert_eq!(start.offset.as_ref().and_then(Place::of), Some(bench.server.end()));
    life.worker.shutdown().await;
}

/// A backup of the log without the last batch of the trail, in `backup` of the folder.
fn backup_of_before(bench: &Bench) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let [whole, data, backup] = ["whole", "data", "backup"].map(|name| dir.path().join(name));
    let (fs, progress) = (Arc::new(RealFileSystem), CopyProgress::default());
    bench.log.backup(&whole, &progress).unwrap();
    restore(fs.clone(), &whole, &data, &progress).unwrap();
    let log = Log::open(fs, &data, LogConfig::default()).unwrap();
    let partition = log.partition("shop", 0).unwrap();
    partition.truncate(partition.watermarks_now().log_end - 1).unwrap();
    log.backup(&backup, &progress).unwrap();
    dir
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trail_restored_from_before_the_position_stops_the_connector() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let rows = delivered(&bench).await;
    let older = backup_of_before(&bench);
    let whole = tempfile::tempdir().unwrap();
    bench.log.backup(whole.path(), &CopyProgress::default()).unwrap();
    let put_back = |from: &std::path::Path| {
        bench.log.delete_topic("shop").unwrap();
        bench.log.restore_topic(from, "shop", None, &CopyProgress::default()).unwrap();
    };
    put_back(&older.path().join("backup"));
    let (life, trace) = stops(&bench).await;
    assert!(trace.contains(&format!("record {} of shop-0, which ends at", rows - 1)), "{trace}");
    life.worker.shutdown().await;

    // One that has all that the position relies on passes.
    put_back(whole.path());
    let life = bench.life().await;
    life.api.until_task("a", "RUNNING").await;
    life.worker.shutdown().await;
}
