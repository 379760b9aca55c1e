//! A connector whose code panics or hangs harms nobody but itself.

use std::time::Duration;

use highwater_worker::Checks;
use serde_json::json;

use crate::bench::{Bench, PATIENCE, config};
use crate::source::Server;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_panics_is_reported_and_started_again_while_others_go_on() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    bench.server.state().panics = 2;
    let before = bench.server.state().starts.len();
    life.api.create("a", config("shop")).await.expect(201);
    let status = life.api.until_task("a", "RESTARTING").await;
    let error = &status["tasks"][0]["highwater"]["error"];
    assert_eq!(error["code"], "TASK_PANICKED");
    assert!(error["what"].as_str().unwrap().ends_with("the poll is odd"), "{error}");
    assert_eq!(status["connector"]["state"], "RUNNING");
    life.api.create("b", config("crm")).await.expect(201);
    life.api.until_task("b", "RUNNING").await;
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    // Two panics, two starts more; between them it runs for a moment.
    let started = || bench.server.state().starts.len() >= before + 4;
    life.api.until("a", |status| started() && status["tasks"][0]["state"] == "RUNNING").await;

    // The policy that says when to give up is that of any other error.
    let mut impatient = config("hr");
    impatient["errors.retry.timeout"] = json!("0");
    life.api.create("c", impatient).await.expect(201);
    life.api.until_task("c", "RUNNING").await;
    for name in ["a", "b"] {
        life.api.put(&format!("/connectors/{name}/stop")).await.expect(204);
    }
    bench.server.state().panics = 1;
    let status = life.api.until_task("c", "FAILED").await;
    assert_eq!(status["tasks"][0]["highwater"]["error"]["code"], "TASK_PANICKED");
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_check_that_panics_or_hangs_refuses_the_configuration() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let mut hurried = bench.config();
    hurried.source_timeout = Duration::from_secs(3);
    let life = bench.life_of(hurried).await;
    let checked = |check: &str| {
        let mut config = config("shop");
        config["check"] = json!(check);
        config
    };
    let refusal = life.api.create("a", checked("panics")).await.refusal(400).to_owned();
    assert!(refusal.contains("ended in a panic: the check is odd"), "{refusal}");
    let refusal = life.api.create("a", checked("hangs")).await.refusal(400).to_owned();
    assert!(refusal.contains("has not said within 3s"), "{refusal}");
    life.api.create("a", checked("")).await.expect(201);
    life.api.until_task("a", "RUNNING").await;
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checks_that_never_end_take_no_more_threads_than_there_are_for_them() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let mut hurried = bench.config();
    hurried.source_timeout = Duration::from_secs(2);
    hurried.checks = Checks::new(1);
    let life = bench.life_of(hurried).await;
    bench.server.checks.close();
    let mut waits = config("shop");
    waits["check"] = json!("waits");
    let refusal = life.api.create("a", waits).await.refusal(400).to_owned();
    assert!(refusal.contains("has not said within 2s"), "{refusal}");
    let refusal = life.api.create("b", config("crm")).await.refusal(400).to_owned();
    assert!(refusal.contains("all 1 threads for checks are taken"), "{refusal}");
    bench.server.checks.open();
    life.api.create("b", config("crm")).await.expect(201);
    life.worker.shutdown().await;
}
