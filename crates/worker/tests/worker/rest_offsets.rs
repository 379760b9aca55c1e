//! `GET|PATCH|DELETE /connectors/{name}/offsets` (KIP-875, rule P8).

use highwater_connector::OffsetVerdict;
use reqwest::Method;
use serde_json::{Value, json};

use crate::bench::{Answer, Bench, Life, PATIENCE, config};
use crate::source::{Place, Server};
use crate::trail;

const PATH: &str = "/connectors/a/offsets";

async fn stopped() -> (Bench, Life) {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    life.api.create("a", config("shop")).await.expect(201);
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    life.api.put("/connectors/a/stop").await.expect(204);
    (bench, life)
}

fn entry(offset: Value) -> Value {
    json!({ "offsets": [{ "partition": { "server": "shop" }, "offset": offset }] })
}

async fn patch(life: &Life, query: &str, body: Value) -> Answer {
    life.api.call(Method::PATCH, &format!("{PATH}{query}"), Some(body)).await
}

/// What is stored, in Kafka Connect's members alone; and whether ours say who changed it last.
async fn stored(life: &Life) -> (Value, bool) {
    let mut answer = life.api.get(PATH).await.expect(200);
    let entry = answer["offsets"][0].as_object_mut().unwrap();
    let ours = entry.remove("highwater");
    (answer, ours.is_some_and(|ours| ours["last_change"].is_string()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offsets_are_shown_in_any_state() {
    let (bench, life) = stopped().await;
    let expected = entry(json!(bench.server.end().offset()));
    assert_eq!(life.api.get(PATH).await.expect(200), expected);
    life.api.put("/connectors/a/resume").await.expect(202);
    life.api.until_task("a", "RUNNING").await;
    assert_eq!(life.api.get(PATH).await.expect(200), expected);
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_stopped_connectors_offsets_change() {
    let (_bench, life) = stopped().await;
    life.api.put("/connectors/a/resume").await.expect(202);
    let expected = "Connectors must be in the STOPPED state before their offsets can be modified. \
                    This can be done for the specified connector by issuing a 'PUT' request to the \
                    '/connectors/a/stop' endpoint";
    let body = entry(json!({ "tx": 1, "event": 0 }));
    assert_eq!(patch(&life, "", body.clone()).await.refusal(400), expected);
    let reset = life.api.call(Method::DELETE, PATH, None).await;
    assert_eq!(reset.refusal(400), expected);
    life.api.put("/connectors/a/pause").await.expect(202);
    assert_eq!(patch(&life, "", body).await.refusal(400), expected);
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_offset_is_altered_and_reset() {
    let (bench, life) = stopped().await;
    let back = json!({ "tx": 2, "event": 0 });
    let altered = patch(&life, "", entry(back.clone())).await.expect(200);
    assert_eq!(altered["message"], "The offsets for this connector have been altered successfully");
    assert_eq!(stored(&life).await, (entry(back), true));

    let reset = life.api.call(Method::DELETE, PATH, None).await.expect(200);
    assert_eq!(reset["message"], "The offsets for this connector have been reset successfully");
    assert_eq!(life.api.get(PATH).await.expect(200), json!({ "offsets": [] }));
    let newest = trail::offset_rows(&bench.reader).await.last().unwrap().clone();
    assert_eq!((newest.offset, newest.mark), (None, None));
    // Without any offset it is done already.
    life.api.call(Method::DELETE, PATH, None).await.expect(200);
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_null_offset_resets_its_partition() {
    let (_bench, life) = stopped().await;
    patch(&life, "", entry(Value::Null)).await.expect(200);
    assert_eq!(life.api.get(PATH).await.expect(200), json!({ "offsets": [] }));
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_source_is_asked_first_and_its_refusal_changes_nothing() {
    let (bench, life) = stopped().await;
    let before = life.api.get(PATH).await.expect(200);
    bench.server.state().refusal = Some(OffsetVerdict::Refused {
        what: "transaction 9 is not there yet".to_owned(),
        remedy: "wait for it".to_owned(),
    });
    let ahead = entry(json!({ "tx": 9, "event": 0 }));
    let refused = patch(&life, "?allowSkip=true", ahead.clone()).await;
    assert!(refused.refusal(400).contains("transaction 9 is not there yet"));
    assert_eq!(refused.body["code"], "OFFSET_CHANGE_REFUSED");
    assert_eq!(refused.body["do"], "wait for it");
    assert!(refused.body["kept"].as_str().unwrap().contains("nothing was changed"));
    assert_eq!(life.api.get(PATH).await.expect(200), before);

    let asked = bench.server.state().asked.clone();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].allow_skip);
    assert_eq!(asked[0].current, Some(bench.server.end().offset()));
    assert_eq!(asked[0].wanted, Some(Place { tx: 9, event: 0 }.offset()));
    patch(&life, "", ahead).await.refusal(400);
    assert!(!bench.server.state().asked[1].allow_skip);
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_may_complete_an_offset() {
    let (bench, life) = stopped().await;
    let mut whole = Place { tx: 1, event: 0 }.offset();
    whole.set("added", true);
    bench.server.state().refusal = Some(OffsetVerdict::Accepted(Some(whole.clone())));
    patch(&life, "", entry(json!({ "tx": 1, "event": 0 }))).await.expect(200);
    assert_eq!(stored(&life).await, (entry(json!(whole)), true));
    // The answer is good as a body, ours included.
    let shown = life.api.get(PATH).await.expect(200);
    patch(&life, "", shown).await.expect(200);
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_does_not_fit_is_refused() {
    let (_bench, life) = stopped().await;
    let before = life.api.get(PATH).await.expect(200);
    for body in [
        json!({}),
        json!({ "offsets": [] }),
        json!({ "offsets": [{ "offset": { "tx": 1 } }] }),
        json!({ "offsets": [{ "partition": { "server": "other" }, "offset": { "tx": 1 } }] }),
        entry(json!({ "tx": [1] })),
    ] {
        patch(&life, "", body).await.refusal(400);
    }
    assert_eq!(life.api.get(PATH).await.expect(200), before);
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offsets_outlive_their_connector() {
    let (bench, life) = stopped().await;
    life.api.call(Method::DELETE, "/connectors/a", None).await.expect(204);
    life.api.create("a", config("shop")).await.expect(201);
    life.api.until_task("a", "RUNNING").await;
    assert_eq!(bench.server.last_start().offset, Some(bench.server.end().offset()));
    life.worker.shutdown().await;
}
