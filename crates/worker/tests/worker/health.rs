//! `GET /health` says whether the worker makes progress, not only that it lives.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::bench::{Bench, PATIENCE, config};
use crate::gate::Gate;
use crate::source::{Server, lasting};

/// Kafka Connect's two sentences.
const HEALTHY: &str = "Worker has completed startup and is ready to handle requests.";
const STUCK: &str =
    "Worker was unable to handle this request and may be unable to handle other requests. ";

fn why(health: &Value) -> &str {
    assert_eq!(health["status"], "unhealthy");
    health["message"].as_str().unwrap().strip_prefix(STUCK).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_well_names_the_tasks_that_are_not() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    let health = life.api.get("/health").await.expect(200);
    assert_eq!((&health["status"], &health["message"]), (&json!("healthy"), &json!(HEALTHY)));
    let nothing = json!({ "worker_id": "worker-1:8083", "tasks": {}, "failed": [], "still": [] });
    assert_eq!(health["highwater"], nothing, "nor does it speak of others: there are none");
    life.api.create("a", config("shop")).await.expect(201);
    life.api.until_task("a", "RUNNING").await;
    bench.server.state().failures.push(lasting());
    life.api.until_task("a", "FAILED").await;
    let health = life.api.get("/health").await.expect(200);
    assert_eq!(health["status"], "healthy", "the worker is");
    let failed = &health["highwater"]["failed"];
    assert_eq!((&failed[0]["connector"], &failed[0]["task"]), (&json!("a"), &json!(0)));
    assert!(failed[0]["what"].as_str().unwrap().contains("a row is odd"), "{failed}");
    assert_eq!(health["highwater"]["tasks"], json!({ "FAILED": 1 }));
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_does_not_end_is_told_and_over_once_it_does() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let mut hurried = bench.config();
    hurried.health_timeout = Duration::from_millis(200);
    let (gate, writers) = Gate::after(usize::MAX);
    hurried.writers = writers;
    let life = bench.life_of(hurried).await;
    gate.configs.close();
    let api = life.api.clone();
    let creating = tokio::spawn(async move { api.create("a", config("shop")).await.status });
    gate.configs.reached().await;
    let stuck = life.api.get("/health").await.expect(500);
    assert_eq!(why(&stuck), "a change of a connector has gone on for 0.2 s");
    gate.configs.open();
    assert_eq!(creating.await.unwrap(), 201);
    life.api.get("/health").await.expect(200);
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_does_not_answer_is_told_within_the_time_for_it_and_over_once_it_does() {
    // A runtime whose only thread can be made to stand still: connections are open, and nothing answers.
    let threads =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let threads = threads.unwrap();
    let bench = threads.spawn(Bench::start(Server::new(5, 7))).await.unwrap();
    let mut hurried = bench.config();
    hurried.health_timeout = Duration::from_millis(300);
    let life = bench.life_of(hurried).await;
    life.api.create("a", config("shop")).await.expect(201);
    life.api.until_task("a", "RUNNING").await;
    life.api.get("/health").await.expect(200);
    let (go_on, stands) = std::sync::mpsc::channel::<()>();
    threads.spawn(async move { stands.recv() });
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let health = async || {
        let asked = tokio::time::Instant::now();
        let answer = life.api.call(Method::GET, "/health", None).await;
        assert!(asked.elapsed() < Duration::from_secs(5), "{:?}", asked.elapsed());
        assert!(tokio::time::Instant::now() < deadline, "it stays {answer:?}");
        answer
    };
    let stuck = loop {
        let answer = health().await;
        // What it answered a moment ago counts for a second.
        if answer.status == 500 {
            break answer.expect(500);
        }
    };
    assert!(why(&stuck).contains("the log d"), "{stuck}");
    assert_eq!(
        stuck["highwater"]["tasks"]["RUNNING"], 1,
        "the tasks are told all the same: {stuck}"
    );
    drop(go_on);
    while health().await.status != 200 {}
    life.worker.shutdown().await;
    threads.shutdown_background();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_that_is_gone_is_told_within_the_time_for_it() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let mut hurried = bench.config();
    hurried.health_timeout = Duration::from_millis(300);
    let life = bench.life_of(hurried).await;
    life.api.get("/health").await.expect(200);
    drop(bench);
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let asked = tokio::time::Instant::now();
        let answer = life.api.call(Method::GET, "/health", None).await;
        assert!(asked.elapsed() < PATIENCE / 2, "{:?}", asked.elapsed());
        if answer.status == 500 {
            let why = why(&answer.expect(500)).to_owned();
            assert!(why.contains("log") || why.contains("highwater.configs"), "{why}");
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "it is well without a log");
    }
}
