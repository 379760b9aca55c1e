//! What a connector does over its life: states, failures, restarts of it and of the server.

use std::time::Duration;

use highwater_kafka::NewTopic;
use reqwest::Method;
use serde_json::json;

use crate::bench::{Bench, Life, PATIENCE, config};
use crate::source::{CLASS, Server, lasting, passing};
use crate::trail;

async fn told(bench: &Bench) {
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_of_the_server_restores_connectors_states_and_secrets() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    let mut secret = config("shop");
    secret["database.password"] = json!("s3cret");
    life.api.create("runs", secret).await.expect(201);
    life.api.create("rests", config("crm")).await.expect(201);
    life.api.create("ended", config("hr")).await.expect(201);
    life.api.create("gone", config("it")).await.expect(201);
    told(&bench).await;
    life.api.put("/connectors/rests/pause").await.expect(202);
    life.api.put("/connectors/ended/stop").await.expect(204);
    life.api.call(Method::DELETE, "/connectors/gone", None).await.expect(204);
    life.worker.shutdown().await;

    let life = bench.life().await;
    assert_eq!(life.api.get("/connectors").await.expect(200), json!(["ended", "rests", "runs"]));
    life.api.until_task("runs", "RUNNING").await;
    let rests = life.api.until_task("rests", "PAUSED").await;
    assert_eq!(rests["connector"]["state"], "PAUSED");
    let ended = life.api.until("ended", |status| status["connector"]["state"] == "STOPPED").await;
    assert_eq!(ended["tasks"], json!([]));
    let shown = life.api.get("/connectors/runs/config").await.expect(200);
    assert_eq!(shown["database.password"], "********");
    // The mask sent back unchanged keeps the secret, or the next start would lack it.
    life.api.call(Method::PUT, "/connectors/runs/config", Some(shown)).await.expect(200);
    assert!(stored_config(&bench, "runs").await.contains("s3cret"));
    life.worker.shutdown().await;
}

async fn stored_config(bench: &Bench, name: &str) -> String {
    let mut newest = String::new();
    let key = format!("connector-{name}");
    let mut each = |record: highwater_kafka::ReadRecord| {
        if record.key.as_deref() == Some(key.as_bytes()) {
            newest = String::from_utf8(record.value.unwrap_or_default().to_vec()).unwrap();
        }
    };
    bench.reader.read_all("highwater.configs", 0, &mut each).await.unwrap();
    newest
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_passing_error_restarts_with_backoff_and_a_lasting_one_stops_by_name() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    bench.server.state().unreachable = Some(passing());
    life.api.create("a", config("shop")).await.expect(201);
    let status = life.api.until_task("a", "RESTARTING").await;
    assert_eq!(status["connector"]["state"], "RUNNING");
    assert_eq!(status["tasks"][0]["highwater"]["error"]["code"], "FAKE_AWAY");
    bench.server.state().unreachable = None;
    told(&bench).await;
    let status = life.api.until_task("a", "RUNNING").await;
    assert_eq!(status["tasks"][0].get("trace"), None);

    bench.server.state().failures.push(lasting());
    let status = life.api.until_task("a", "FAILED").await;
    let trace = status["tasks"][0]["trace"].as_str().unwrap();
    for part in ["FAKE_ODD", "a row is odd", "Kept: ", "Do: mend the row"] {
        assert!(trace.contains(part), "{trace}");
    }
    life.api.call(Method::POST, "/connectors/a/tasks/0/restart", None).await.expect(204);
    life.api.until_task("a", "RUNNING").await;
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_task_that_is_paused_still_says_why_and_is_tried_again_when_it_is_resumed() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    life.api.create("a", config("shop")).await.expect(201);
    life.api.until_task("a", "RUNNING").await;
    bench.server.state().failures.push(lasting());
    let failed = life.api.until_task("a", "FAILED").await;
    life.api.put("/connectors/a/pause").await.expect(202);
    let paused = |status: &serde_json::Value| status["connector"]["state"] == "PAUSED";
    life.api.until("a", paused).await;
    // The task hears of it after its connector.
    for _ in 0..20 {
        let status = life.api.get("/connectors/a/status").await.expect(200);
        for member in ["state", "trace"] {
            assert_eq!(status["tasks"][0][member], failed["tasks"][0][member]);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // A restart is of a task that shall be paused.
    life.api.call(Method::POST, "/connectors/a/tasks/0/restart", None).await.expect(204);
    let status = life.api.until_task("a", "PAUSED").await;
    assert_eq!(status["tasks"][0].get("trace"), None);
    life.api.put("/connectors/a/resume").await.expect(202);
    life.api.until_task("a", "RUNNING").await;
    bench.server.state().failures.push(lasting());
    life.api.until_task("a", "FAILED").await;
    for verb in ["pause", "resume"] {
        life.api.put(&format!("/connectors/a/{verb}")).await.expect(202);
    }
    life.api.until_task("a", "RUNNING").await;
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_end_after_their_time() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    bench.server.state().unreachable = Some(passing());
    let mut impatient = config("shop");
    impatient["errors.retry.timeout"] = json!("0");
    life.api.create("a", impatient).await.expect(201);
    let failed = life.api.until_task("a", "FAILED").await;
    let remedy = failed["tasks"][0]["highwater"]["error"]["do"].as_str().unwrap();
    assert!(remedy.starts_with("it is tried no more"), "{remedy}");
    assert!(remedy.ends_with("highwater connector restart a"), "{remedy}");
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn offsets_that_are_gone_at_a_start_are_told() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let lost = async |life: &Life| {
        life.worker.examine().await.iter().any(|finding| finding.code == "OFFSETS_LOST")
    };
    let life = bench.life().await;
    life.api.create("a", config("shop")).await.expect(201);
    told(&bench).await;
    assert!(!lost(&life).await, "a first start has nothing to lose");
    life.worker.shutdown().await;
    let again = bench.life().await;
    assert!(!lost(&again).await);
    again.worker.shutdown().await;
    assert!(bench.admin.delete_topic("highwater.offsets").await.unwrap());
    let anew = bench.life().await;
    assert!(lost(&anew).await);
    anew.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_connector_reads_nothing_until_it_is_resumed() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    life.api.create("a", config("shop")).await.expect(201);
    told(&bench).await;
    life.api.put("/connectors/a/pause").await.expect(202);
    life.api.until_task("a", "PAUSED").await;
    bench.server.state().committed += 5;
    let polled = *bench.server.polled.borrow();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(*bench.server.polled.borrow(), polled);
    life.api.put("/connectors/a/resume").await.expect(202);
    told(&bench).await;
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_owner_of_a_trail_is_refused_by_name() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    life.api.create("first", config("shop")).await.expect(201);
    let answer = life.api.create("second", config("shop")).await;
    let message = answer.refusal(400);
    assert!(message.contains("topic shop, which connector first owns"), "{message}");
    life.api.call(Method::DELETE, "/connectors/first", None).await.expect(204);
    life.api.create("second", config("shop")).await.expect(201);
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_are_made_as_the_rules_ask_and_lesser_ones_are_refused() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    let mut lasting = config("shop");
    lasting["trail.retention.ms"] = json!("123456");
    life.api.create("a", lasting).await.expect(201);
    told(&bench).await;
    let trail = bench.admin.topic_config("shop").await.unwrap();
    for (key, value) in [
        ("cleanup.policy", "delete"),
        ("message.timestamp.type", "LogAppendTime"),
        ("retention.ms", "123456"),
        ("highwater.flush", "durable"),
    ] {
        assert_eq!(trail[key], value, "{key}");
    }
    let schema = bench.admin.topic_config("shop.schema").await.unwrap();
    assert_eq!(schema["cleanup.policy"], "compact");

    let lesser = NewTopic {
        configs: [("highwater.flush".to_owned(), "interval".to_owned())].into(),
        ..NewTopic::of_one("crm")
    };
    bench.admin.create_topic(&lesser).await.unwrap();
    life.api.create("b", config("crm")).await.expect(201);
    let status = life.api.until_task("b", "FAILED").await;
    let trace = status["tasks"][0]["trace"].as_str().unwrap();
    assert!(trace.contains("topic crm has highwater.flush=interval"), "{trace}");
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_above_the_limit_stops_by_name_and_what_came_before_stays() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    let mut narrow = config("shop");
    narrow["producer.override.max.request.size"] = json!("2000");
    life.api.create("a", narrow).await.expect(201);
    told(&bench).await;
    let before = trail::rows(&bench.reader, "shop").await.len();
    bench.server.state().padding = 3_000;
    bench.server.state().committed += 1;
    let status = life.api.until_task("a", "FAILED").await;
    let trace = status["tasks"][0]["trace"].as_str().unwrap();
    for part in [
        "RECORD_TOO_LARGE",
        "public.t",
        r#"{"id":5}"#,
        "producer.override.max.request.size is 2000",
        "max.message.bytes is 3024",
    ] {
        assert!(trace.contains(part), "{part} is missing in {trace}");
    }
    assert_eq!(trail::rows(&bench.reader, "shop").await.len(), before);
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_says_what_it_does_since_when_and_where_it_stands() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    life.api
        .create("a", json!({ "connector.class": CLASS, "topic.prefix": "shop" }))
        .await
        .expect(201);
    told(&bench).await;
    let end = bench.server.end().offset().to_string();
    let status = life
        .api
        .until("a", |status| status["tasks"][0]["highwater"]["position"] == end.as_str())
        .await;
    let ours = &status["tasks"][0]["highwater"];
    assert_eq!(ours["activity"], "Reads; next is transaction 5");
    assert_eq!(ours["generation"], bench.server.last_start().generation.to_string());
    for time in ["since", "last_record"] {
        assert!(ours[time].as_str().unwrap().ends_with('Z'), "{ours}");
    }
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_fails_while_it_drains_is_stopped_all_the_same() {
    let bench = Bench::start(Server::new(5, 7)).await;
    // Transaction 0 has four events: the source stays inside it, so that a stop has to wait.
    bench.server.state().dam = Some(2);
    let inside = bench.server.after_polled(2);
    let life = bench.life().await;
    life.api.create("a", config("shop")).await.expect(201);
    tokio::time::timeout(PATIENCE, inside).await.unwrap();
    let api = life.api.clone();
    let stop = tokio::spawn(async move { api.put("/connectors/a/stop").await });
    while life.api.get("/connectors/a/tasks").await.expect(200) != json!([]) {
        tokio::task::yield_now().await;
    }
    bench.server.state().failures.push(lasting());
    stop.await.unwrap().expect(204);
    let status = life.api.get("/connectors/a/status").await.expect(200);
    assert_eq!(status["connector"]["state"], "STOPPED");
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_trail_that_no_topic_can_be_called_is_refused_by_its_key() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    let refused = life.api.create("a", config("not a topic")).await;
    let message = refused.refusal(400);
    assert!(message.contains("topic.prefix leads to \"not a topic\""), "{message}");
    life.worker.shutdown().await;
}
