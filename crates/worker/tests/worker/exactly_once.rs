//! Exactly-once sources (KIP-618): whoever dies where, readers of committed records see each event once.

use std::time::Duration;

use highwater_kafka::{
    KafkaError, OutgoingRecord, Reader, TransactionSettings, Writer, WriterSettings, at_least_once,
    writer,
};
use highwater_worker::{ExactlyOnceSupport, WorkerConfig};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt, SeedableRng};
use serde_json::{Value, json};

use crate::apache::Apache;
use crate::bench::{Bench, Doomed, Life, PATIENCE, config};
use crate::source::{Place, Server, events_before};
use crate::trail::{self, Row};

fn enabled(bootstrap: &str) -> WorkerConfig {
    let mut config = WorkerConfig::new(bootstrap, "worker-1:8083");
    config.offset_flush_interval = Duration::from_millis(20);
    config.exactly_once = ExactlyOnceSupport::Enabled;
    config
}

/// The trail, once no transaction is open or ending.
async fn settled(reader: &Reader) -> Vec<Row> {
    let ended = async {
        loop {
            let edges = reader.fetch("shop", 0, 0, 1).await.unwrap().watermarks;
            if edges.last_stable == edges.high_watermark {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.unwrap();
    trail::rows(reader, "shop").await
}

fn places(rows: &[Row]) -> Vec<Place> {
    rows.iter().map(|row| row.place).collect()
}

fn boundary(which: &str) -> Value {
    let mut wanted = config("shop");
    wanted["exactly.once.support"] = json!("required");
    wanted["transaction.boundary"] = json!(which);
    wanted
}

/// Workers are killed at any moment, each under another boundary than the one before.
async fn is_killed(bootstrap: &str, server: &Server, lives: u64, seed: u64) {
    let mut random = StdRng::seed_from_u64(seed);
    for life in 0..lives {
        server.state().committed += 40;
        let polled = server.after_polled(random.random_range(1..90));
        let doomed = Doomed::start(enabled(bootstrap), server).await;
        let which = ["poll", "interval", "connector"].choose(&mut random).unwrap();
        let path = "/connectors/shop/config";
        let put = doomed.api().call(reqwest::Method::PUT, path, Some(boundary(which))).await;
        put.expect(if life == 0 { 201 } else { 200 });
        tokio::time::timeout(PATIENCE, polled).await.unwrap();
        tokio::time::sleep(Duration::from_micros(random.random_range(0..20_000))).await;
        doomed.crash();
    }
    let life = Life::start(enabled(bootstrap), server).await;
    tokio::time::timeout(2 * PATIENCE, server.all_told()).await.unwrap();
    life.worker.shutdown().await;
}

fn check(rows: &[Row], server: &Server) {
    assert_eq!(places(rows), events_before(server.end()), "missing, twice, or out of order");
    for (run, start) in server.state().starts.iter().enumerate() {
        let origin = start.offset.as_ref().and_then(Place::of).unwrap_or_default();
        assert!(Some(origin) >= start.told, "run {run} forgot what the source was told");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_anywhere_leaves_nothing_out_and_nothing_twice() {
    let bench = Bench::start(Server::new(0, 7)).await;
    let lives = std::env::var("HW_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(20);
    is_killed(&bench.bootstrap, &bench.server, lives, 0x5EED).await;
    check(&settled(&bench.reader).await, &bench.server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_apache_kafka_too_a_kill_anywhere_leaves_nothing_out_and_nothing_twice() {
    let node = Apache::start().await;
    let server = Server::new(0, 7);
    is_killed(&node.bootstrap, &server, 6, 0x5EED).await;
    check(&settled(&Reader::new(&node.bootstrap)).await, &server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_workers_with_the_same_ids_the_older_is_fenced_and_stops_by_name() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let older = Life::start(enabled(&bench.bootstrap), &bench.server).await;
    older.api.create("shop", boundary("poll")).await.expect(201);
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();

    let mut config = enabled(&bench.bootstrap);
    config.worker_id = "worker-2:8083".to_owned();
    let newer = Life::start(config, &bench.server).await;
    newer.api.until_task("shop", "RUNNING").await;
    bench.server.state().committed += 40;
    let fenced = older.api.until_task("shop", "FAILED").await;
    let error = &fenced["tasks"][0]["highwater"]["error"];
    assert_eq!(error["code"], "PRODUCER_FENCED", "{error}");
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    newer.api.until_task("shop", "RUNNING").await;
    bench.server.state().committed += 1;
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    newer.worker.shutdown().await;
    older.worker.shutdown().await;
    let rows = settled(&bench.reader).await;
    assert_eq!(places(&rows), events_before(bench.server.end()));
    let of_the_older = rows.iter().filter(|row| row.run == 0);
    assert!(of_the_older.map(|row| row.place.tx).max() < Some(5), "the zombie got through");
}

/// A connector whose transactions may be open for a second, one of which takes longer.
async fn hesitant(which: &str, give_up_after: &str) -> (Bench, Life) {
    let bench = Bench::start(Server::new(6, 1)).await;
    let slow = |event, millis| (Place { tx: 3, event }, Duration::from_millis(millis));
    // The first event is acknowledged meanwhile.
    bench.server.state().slow = vec![slow(1, 300), slow(2, 2500)];
    let life = Life::start(enabled(&bench.bootstrap), &bench.server).await;
    let mut wanted = boundary(which);
    wanted["producer.override.transaction.timeout.ms"] = json!("1000");
    wanted["errors.retry.timeout"] = json!(give_up_after);
    life.api.create("shop", wanted).await.expect(201);
    (bench, life)
}

async fn all_once(bench: &Bench, life: Life) {
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    life.worker.shutdown().await;
    check(&settled(&bench.reader).await, &bench.server);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_the_log_gave_up_is_read_again_from_the_stored_position() {
    let (bench, life) = hesitant("poll", "-1").await;
    let again = life.api.until_task("shop", "RESTARTING").await;
    let error = &again["tasks"][0]["highwater"]["error"];
    assert_eq!(error["code"], "TRANSACTION_TIMED_OUT", "{error}");
    bench.server.state().slow.clear();
    all_once(&bench, life).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_acknowledged_and_given_up_each_time_is_no_progress() {
    let (bench, life) = hesitant("poll", "1000").await;
    let failed = life.api.until_task("shop", "FAILED").await;
    assert_eq!(failed["tasks"][0]["highwater"]["error"]["code"], "TRANSACTION_TIMED_OUT");
    assert_eq!(bench.server.state().starts.len(), 2, "it gives up behind its second attempt");
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_of_the_source_that_always_takes_too_long_stops_the_task_and_says_so() {
    let (bench, life) = hesitant("connector", "-1").await;
    let failed = life.api.until_task("shop", "FAILED").await;
    let error = &failed["tasks"][0]["highwater"]["error"];
    assert_eq!(error["code"], "TRANSACTION_TIMED_OUT", "{error}");
    let what = error["what"].as_str().unwrap();
    assert!(what.contains("a transaction of the source takes longer than 1000 ms"), "{what}");
    assert_eq!(bench.server.state().starts.len(), 2, "it was tried once more");
    bench.server.state().slow.clear();
    life.api.call(reqwest::Method::POST, "/connectors/shop/tasks/0/restart", None).await;
    all_once(&bench, life).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_exactly_once_is_refused_where_it_is_required() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let refused = async |support, wanted: Value| {
        let mut config = enabled(&bench.bootstrap);
        config.exactly_once = support;
        let life = Life::start(config, &bench.server).await;
        let message = life.api.create("shop", wanted).await.refusal(400).to_owned();
        life.worker.shutdown().await;
        message
    };
    let said = refused(ExactlyOnceSupport::Preparing, boundary("poll")).await;
    assert!(said.contains("exactly_once_source_support is preparing"), "{said}");
    bench.server.state().inexact = true;
    let said = refused(ExactlyOnceSupport::Enabled, boundary("poll")).await;
    assert!(said.contains("cannot go on exactly where it stopped"), "{said}");
    let said = refused(ExactlyOnceSupport::Required, config("shop")).await;
    assert!(said.contains("is required by this worker"), "{said}");
    let mut requested = boundary("connector");
    requested["exactly.once.support"] = json!("requested");
    let said = refused(ExactlyOnceSupport::Enabled, requested).await;
    assert!(said.contains("does not say where its transactions end"), "{said}");
}

fn record(topic: &str, key: &str, value: &Value) -> OutgoingRecord {
    OutgoingRecord {
        topic: topic.into(),
        partition: Some(0),
        key: Some(key.to_owned().into()),
        value: Some(value.to_string().into()),
        headers: Vec::new(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_tasks_of_the_generation_before_are_fenced_before_the_next_one_starts() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = Life::start(enabled(&bench.bootstrap), &bench.server).await;
    life.api.create("shop", boundary("poll")).await.expect(201);
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    assert_eq!(fenced(&bench.reader).await, Some(json!({ "task-count": 1 })));
    life.worker.shutdown().await;

    // As a worker leaves it that gave the connector three tasks, and is cut off with them.
    let mut journal = at_least_once(&WriterSettings::new(&bench.bootstrap)).unwrap();
    let three = record("highwater.configs", "tasks-fencing-shop", &json!({ "task-count": 3 }));
    journal.send(three).await.unwrap();
    journal.commit().await.unwrap();
    let mut zombie = zombie(&bench, "highwater-shop-2").await;

    let starts = bench.server.state().starts.len();
    let life = Life::start(enabled(&bench.bootstrap), &bench.server).await;
    life.api.until_task("shop", "RUNNING").await;
    assert_eq!(bench.server.state().starts.len(), starts + 1);
    let commit = tokio::time::timeout(PATIENCE, zombie.commit()).await.unwrap();
    assert!(matches!(commit, Err(KafkaError::Fenced { .. })), "{commit:?}");
    assert_eq!(fenced(&bench.reader).await, Some(json!({ "task-count": 1 })));
    life.worker.shutdown().await;
    check(&settled(&bench.reader).await, &bench.server);
}

/// What the configuration topic says of the tasks that were fenced.
async fn fenced(reader: &Reader) -> Option<Value> {
    let mut newest = None;
    let mut each = |record: highwater_kafka::ReadRecord| {
        if record.key.as_deref() == Some(b"tasks-fencing-shop") {
            newest = serde_json::from_slice(&record.value.unwrap_or_default()).ok();
        }
    };
    reader.read_all("highwater.configs", 0, &mut each).await.unwrap();
    newest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_runs_a_stopped_connector_still_is_fenced_before_its_offset_is_changed() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = Life::start(enabled(&bench.bootstrap), &bench.server).await;
    life.api.create("shop", boundary("poll")).await.expect(201);
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    life.api.put("/connectors/shop/stop").await.expect(204);
    let mut zombie = zombie(&bench, "highwater-shop-0").await;
    let delete = life.api.call(reqwest::Method::DELETE, "/connectors/shop/offsets", None);
    delete.await.expect(200);
    let commit = tokio::time::timeout(PATIENCE, zombie.commit()).await.unwrap();
    assert!(matches!(commit, Err(KafkaError::Fenced { .. })), "{commit:?}");
    life.worker.shutdown().await;
}

/// A task that somebody runs still, inside a transaction.
async fn zombie(bench: &Bench, id: &str) -> Box<dyn Writer> {
    let timeout = Duration::from_secs(60);
    let transactions = Some(TransactionSettings { id: id.to_owned(), timeout });
    let settings = WriterSettings { transactions, ..WriterSettings::new(&bench.bootstrap) };
    let mut zombie = writer(&settings).unwrap();
    zombie.begin().await.unwrap();
    zombie.send(record("shop", "k", &json!({}))).await.unwrap();
    zombie.ready().await.unwrap();
    zombie
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connector_that_names_a_topic_for_its_offsets_goes_on_there() {
    let bench = Bench::start(Server::new(0, 7)).await;
    // It does not look for what it is told in the server's own topic.
    let server = Server::new(5, 7);
    let life = Life::start(enabled(&bench.bootstrap), &server).await;
    life.api.create("shop", boundary("poll")).await.expect(201);
    tokio::time::timeout(PATIENCE, server.all_told()).await.unwrap();
    let own = trail::offset_rows(&bench.reader).await.len();

    let mut named = boundary("poll");
    named["offsets.storage.topic"] = json!("shop.offsets");
    let path = "/connectors/shop/config";
    let starts = server.state().starts.len();
    life.api.call(reqwest::Method::PUT, path, Some(named.clone())).await.expect(200);
    life.api.until("shop", |_| server.state().starts.len() > starts).await;
    server.state().committed += 40;
    tokio::time::timeout(PATIENCE, server.all_told()).await.unwrap();
    assert_eq!(trail::offset_rows(&bench.reader).await.len(), own, "the server's own was written");
    let shown = life.api.get("/connectors/shop/offsets").await.expect(200);
    assert_eq!(shown["offsets"][0]["offset"]["tx"], server.end().tx);
    life.worker.shutdown().await;
    let life = Life::start(enabled(&bench.bootstrap), &server).await;
    life.api.until_task("shop", "RUNNING").await;
    assert_eq!(server.last_start().offset, Some(server.end().offset()));
    check(&settled(&bench.reader).await, &server);

    named["offsets.storage.topic"] = json!("shop");
    let refused = life.api.call(reqwest::Method::PUT, path, Some(named)).await;
    assert!(refused.refusal(400).contains("writes its records to"), "{refused:?}");
    life.api.put("/connectors/shop/stop").await.expect(204);
    life.api.call(reqwest::Method::DELETE, "/connectors/shop/offsets", None).await.expect(200);
    let shown = life.api.get("/connectors/shop/offsets").await.expect(200);
    assert_eq!(shown["offsets"], json!([]));
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_offset_behind_somebodys_open_transaction_is_waited_for() {
    let bench = Bench::start(Server::new(0, 7)).await;
    // It does not look for what it is told, which nobody sees yet.
    let server = Server::new(5, 7);
    let life = Life::start(enabled(&bench.bootstrap), &server).await;
    life.api.create("shop", boundary("poll")).await.expect(201);
    tokio::time::timeout(PATIENCE, server.all_told()).await.unwrap();
    let mut other = zombie(&bench, "somebody").await;
    other.send(record("highwater.offsets", "k", &json!({}))).await.unwrap();
    other.ready().await.unwrap();
    server.state().committed += 40;
    tokio::time::timeout(PATIENCE, server.all_told()).await.unwrap();
    life.worker.shutdown().await;

    let starts = server.state().starts.len();
    let life = Life::start(enabled(&bench.bootstrap), &server).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(server.state().starts.len(), starts, "it took an older offset for the newest");
    other.abort().await.unwrap();
    life.api.until_task("shop", "RUNNING").await;
    assert_eq!(server.last_start().offset, Some(server.end().offset()));
    check(&settled(&bench.reader).await, &server);
    life.worker.shutdown().await;
}
