//! What operators want is what the log says, no sooner and no later.

use serde_json::{Value, json};

use crate::bench::{Bench, config};
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
        api.call(reqwest::Method::PUT, "/connectors/a/config", changed).await
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
