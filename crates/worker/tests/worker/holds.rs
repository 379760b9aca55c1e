//! What a source keeps for a connector that does not run, and letting go of it.

use highwater_connector::{CONNECTOR_NAME, Hold};
use reqwest::Method;
use serde_json::{Value, json};

use crate::bench::{Bench, Life, PATIENCE, config};
use crate::source::{Server, lasting, passing};
use crate::trail;

fn hold() -> Hold {
    Hold {
        says: "the slot holds 7 bytes".to_owned(),
        remedy: format!("highwater connector resume {CONNECTOR_NAME}"),
        by_hand: "drop the slot".to_owned(),
        pressing: true,
        facts: vec![("held_bytes", "7".to_owned())],
    }
}

/// Waits until the status says what the source keeps.
async fn held(life: &Life) -> Value {
    let ours = |status: &Value| status["connector"]["highwater"].get("hold").cloned();
    ours(&life.api.until("a", |status| ours(status).is_some()).await).unwrap()
}

async fn running() -> (Bench, Life) {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    life.api.create("a", config("shop")).await.expect(201);
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    (bench, life)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connector_that_does_not_run_shows_what_its_source_keeps() {
    let (bench, life) = running().await;
    bench.server.state().hold = Some(Ok(hold()));
    for (verb, code) in [("stop", 204), ("resume", 202), ("pause", 202)] {
        life.api.put(&format!("/connectors/a/{verb}")).await.expect(code);
        if verb == "resume" {
            life.api.until_task("a", "RUNNING").await;
            continue;
        }
        if verb == "pause" {
            life.api.until_task("a", "PAUSED").await;
        }
        let shown = held(&life).await;
        assert_eq!(shown["says"], "the slot holds 7 bytes", "{verb}");
        assert_eq!(shown["do"], "highwater connector resume a", "{verb}");
        assert_eq!(shown["facts"], json!({ "held_bytes": "7" }), "{verb}");
    }
    // A failed one above all: nobody else reads.
    bench.server.state().failures.push(lasting());
    life.api.put("/connectors/a/resume").await.expect(202);
    life.api.until_task("a", "FAILED").await;
    assert_eq!(held(&life).await["pressing"], true);
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn not_knowing_what_is_kept_is_said() {
    let (bench, life) = running().await;
    bench.server.state().hold = Some(Err(passing()));
    life.api.put("/connectors/a/stop").await.expect(204);
    let says = held(&life).await["says"].as_str().unwrap().to_owned();
    assert!(says.contains("is not known: the source went away"), "{says}");
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delete_lets_go_only_when_it_is_asked_to() {
    let (bench, life) = running().await;
    bench.server.state().hold = Some(Ok(hold()));
    life.api.call(Method::DELETE, "/connectors/a", None).await.expect(204);
    assert_eq!(bench.server.state().released, []);

    life.api.create("a", config("shop")).await.expect(201);
    life.api.until_task("a", "RUNNING").await;
    let path = "/connectors/a?release=true";
    let done = life.api.call(Method::DELETE, path, None).await.expect(200);
    assert_eq!(done, json!({ "released": "the slot is dropped" }));
    let expected = vec![Some(bench.server.end().offset())];
    assert_eq!(bench.server.state().released, expected, "with the offset that proves whose it is");
    assert_eq!(life.api.get("/connectors").await.expect(200), json!([]));
    let newest = trail::offset_rows(&bench.reader).await.last().unwrap().offset.clone();
    assert_eq!(newest, None, "nothing continues from it any more");
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_does_not_let_go_keeps_the_connector() {
    let (bench, life) = running().await;
    bench.server.state().hold = Some(Err(lasting()));
    let path = "/connectors/a?release=true";
    let refusal = life.api.call(Method::DELETE, path, None).await.refusal(400).to_owned();
    assert!(refusal.contains("FAKE_ODD") && refusal.contains("is stopped now"), "{refusal}");
    let status = life.api.get("/connectors/a/status").await.expect(200);
    assert_eq!(status["connector"]["state"], "STOPPED");
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_connector_claims_no_second_gets() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    let claiming = |prefix: &str, slot: &str| {
        let mut config = config(prefix);
        config["slot"] = json!(slot);
        config
    };
    life.api.create("a", claiming("shop", "s")).await.expect(201);
    let refusal = life.api.create("b", claiming("crm", "s")).await.refusal(400).to_owned();
    let said = "slot leads to slot s of the server, which connector a uses; two connectors cannot \
                share it";
    assert!(refusal.contains(said), "{refusal}");
    life.api.create("b", claiming("crm", "other")).await.expect(201);
    // Nor by a change of its configuration, but its own claim is no hindrance.
    let put = |config: Value| life.api.call(Method::PUT, "/connectors/b/config", Some(config));
    put(claiming("crm", "s")).await.refusal(400);
    put(claiming("crm", "other")).await.expect(200);
    life.worker.shutdown().await;
}
