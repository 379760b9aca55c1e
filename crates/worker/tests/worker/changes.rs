//! What operators want is what the log says, no sooner and no later.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::bench::{Answer, Bench, Life, PATIENCE, config, written};
use crate::gate::Gate;
use crate::source::Server;

fn with_password(trail: &str, password: &str) -> Value {
    let mut config = config(trail);
    config["database.password"] = json!(password);
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_is_run_once_the_log_has_it() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let (gate, writers) = Gate::after(usize::MAX);
    let mut gated = bench.config();
    gated.writers = writers;
    let life = bench.life_of(gated).await;
    life.api.create("a", with_password("shop", "old")).await.expect(201);
    life.api.until_task("a", "RUNNING").await;

    gate.configs.close();
    let api = life.api.clone();
    let put = tokio::spawn(async move {
        let changed = Some(with_password("shop", "new"));
        api.call(Method::PUT, "/connectors/a/config", changed).await
    });
    gate.configs.reached().await;
    // Another worker's word makes this one look at what is wanted; the connector behind it shows when it
    // has been heard.
    let b = json!({ "properties": config("crm") });
    let state = json!({ "state": "STARTED", "state.v2": "STARTED" });
    let commit = json!({ "tasks": 1 });
    let told =
        [("commit-a", commit.clone()), ("target-state-b", state), ("connector-b", b.clone())];
    bench.write_configs(&told).await;
    bench.write_configs(&[("task-b-0", b), ("commit-b", commit)]).await;
    life.api.until_task("b", "RUNNING").await;
    let passwords = || -> Vec<String> {
        bench.server.state().starts.iter().map(|start| start.password.clone()).collect()
    };
    assert!(!passwords().contains(&"new".to_owned()), "it is run before it is written");

    gate.configs.open();
    put.await.unwrap().expect(200);
    let changed = |_: &Value| passwords().contains(&"new".to_owned());
    life.api.until("a", changed).await;
    life.worker.shutdown().await;
}

/// A configuration whose check waits at the server's barrier while that is closed.
fn waiting(trail: &str) -> Value {
    let mut config = config(trail);
    config["check"] = json!("waits");
    config
}

/// Asks for something, and goes on meanwhile.
fn asked(life: &Life, method: Method, path: &'static str, body: Value) -> JoinHandle<Answer> {
    let api = life.api.clone();
    tokio::spawn(async move { api.call(method, path, Some(body)).await })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_whose_check_hangs_keeps_nobody_from_changing_others() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    bench.server.checks.close();
    let given = |name: &str| json!({ "name": name, "config": waiting("shop") });
    let hanging = asked(&life, Method::POST, "/connectors", given("a"));
    bench.server.checks.reached().await;
    life.api.get("/health").await.expect(200);
    life.api.create("b", config("crm")).await.expect(201);
    life.api.until_task("b", "RUNNING").await;
    // What was free when it was asked for is another's by now.
    life.api.create("c", config("shop")).await.expect(201);
    bench.server.checks.open();
    let refusal = hanging.await.unwrap().refusal(400).to_owned();
    assert!(refusal.contains("which connector c owns"), "{refusal}");
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_that_was_changed_while_a_patch_of_it_was_checked_keeps_both_changes() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    life.api.create("a", config("shop")).await.expect(201);
    bench.server.checks.close();
    let patch = json!({ "check": "waits" });
    let hanging = asked(&life, Method::PATCH, "/connectors/a/config", patch);
    bench.server.checks.reached().await;
    let mut changed = config("shop");
    changed["tables"] = json!("t,u");
    life.api.call(Method::PUT, "/connectors/a/config", Some(changed)).await.expect(200);
    bench.server.checks.open();
    hanging.await.unwrap().expect(200);
    let config = life.api.get("/connectors/a/config").await.expect(200);
    assert_eq!((&config["tables"], &config["check"]), (&json!("t,u"), &json!("waits")));
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_planned_keeps_nobody_from_reading_on() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    bench.server.checks.close();
    bench.write_configs(&written("a", &waiting("shop"))).await;
    bench.server.checks.reached().await;
    bench.write_configs(&written("b", &config("crm"))).await;
    let names = async || life.api.get("/connectors").await.expect(200);
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while names().await != json!(["a", "b"]) {
        assert!(tokio::time::Instant::now() < deadline, "it is not read");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    bench.server.checks.open();
    for name in ["a", "b"] {
        life.api.until_task(name, "RUNNING").await;
    }
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_connectors_are_checked_at_once_when_a_worker_starts() {
    let bench = Bench::start(Server::new(5, 7)).await;
    bench.life().await.worker.shutdown().await;
    for (name, trail) in [("a", "shop"), ("b", "crm")] {
        bench.write_configs(&written(name, &waiting(trail))).await;
    }
    bench.server.checks.close();
    let (life, ()) = tokio::join!(bench.life(), async {
        bench.server.checks.reached_by(2).await;
        bench.server.checks.open();
    });
    for name in ["a", "b"] {
        life.api.until_task(name, "RUNNING").await;
    }
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_stops_a_connector_that_another_resumes_meanwhile_does_not_wait_for_its_end() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    life.api.create("a", config("shop")).await.expect(201);
    life.api.until_task("a", "RUNNING").await;
    bench.server.stops.close();
    let api = life.api.clone();
    let stopping = tokio::spawn(async move { api.put("/connectors/a/stop").await });
    bench.server.stops.reached().await;
    life.api.put("/connectors/a/resume").await.expect(202);
    // Its bound is the drain and 10 s.
    let answered = tokio::time::timeout(Duration::from_secs(5), stopping).await;
    answered.expect("it waits for what is wanted no more").unwrap().expect(204);
    bench.server.stops.open();
    life.api.until_task("a", "RUNNING").await;
    life.worker.shutdown().await;
}
