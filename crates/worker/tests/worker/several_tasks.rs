//! A connector that divides its work among several tasks.

use std::collections::BTreeMap;

use highwater_kafka::{KafkaError, OutgoingRecord, ReadRecord, WriterSettings, at_least_once};
use reqwest::Method;
use serde_json::{Value, json};

use crate::bench::{Bench, Life, PATIENCE, config};
use crate::source::{Server, lasting};

/// A connector with a task for each of `parts`.
fn parts(parts: &str) -> Value {
    let mut config = config("shop");
    config["topic.routing"] = json!("table");
    config["parts"] = json!(parts);
    config["tasks.max"] = json!("3");
    config
}

async fn running(parts_of: &str) -> (Bench, Life) {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    life.api.create("a", parts(parts_of)).await.expect(201);
    all_in(&life, "RUNNING").await;
    (bench, life)
}

async fn all_in(life: &Life, state: &str) -> Value {
    let all = |status: &Value| {
        let tasks = status["tasks"].as_array().cloned().unwrap_or_default();
        !tasks.is_empty() && tasks.iter().all(|task| task["state"] == state)
    };
    life.api.until("a", all).await
}

/// The newest record of each key of a topic of state.
async fn newest(bench: &Bench, topic: &str) -> BTreeMap<String, Value> {
    let mut newest = BTreeMap::new();
    let mut each = |record: ReadRecord| {
        let key = String::from_utf8(record.key.unwrap().to_vec()).unwrap();
        match record.value {
            Some(value) => drop(newest.insert(key, serde_json::from_slice(&value).unwrap())),
            None => drop(newest.remove(&key)),
        }
    };
    bench.reader.read_all(topic, 0, &mut each).await.unwrap();
    newest
}

/// The newest status of each part, without the topics that are used.
async fn statuses(bench: &Bench) -> BTreeMap<String, Value> {
    let mut statuses = newest(bench, "highwater.status").await;
    statuses.retain(|key, _| !key.starts_with("status-topic-"));
    statuses
}

/// Which parts were started since the start number `since`, in order of their names.
fn started(bench: &Bench, since: usize) -> Vec<String> {
    let state = bench.server.state();
    let mut parts: Vec<_> =
        state.starts.iter().skip(since).map(|start| start.part.clone()).collect();
    parts.sort();
    parts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_task_has_its_configuration_status_and_offsets() {
    let (bench, life) = running("x,y,z").await;
    let info = life.api.get("/connectors/a").await.expect(200);
    let ids: Vec<_> = (0..3).map(|id| json!({ "connector": "a", "task": id })).collect();
    assert_eq!(info["tasks"], json!(ids));
    let tasks = life.api.get("/connectors/a/tasks").await.expect(200);
    assert_eq!((&tasks[2]["id"], &tasks[2]["config"]["parts"]), (&ids[2], &json!("z")));
    let status = life.api.get("/connectors/a/tasks/1/status").await.expect(200);
    assert_eq!((&status["id"], &status["state"]), (&json!(1), &json!("RUNNING")));
    life.api.get("/connectors/a/tasks/3/status").await.refusal(404);

    let configs = newest(&bench, "highwater.configs").await;
    assert_eq!(configs["commit-a"], json!({ "tasks": 3 }));
    assert_eq!(configs["task-a-1"]["properties"]["parts"], "y");
    let statuses = statuses(&bench).await;
    let keys: Vec<_> = statuses.keys().map(String::as_str).collect();
    assert_eq!(
        keys,
        ["status-connector-a", "status-task-a-0", "status-task-a-1", "status-task-a-2"]
    );
    let offsets = |answer: Value| answer["offsets"].as_array().unwrap().len();
    assert_eq!(offsets(life.api.get("/connectors/a/offsets").await.expect(200)), 3);
    for part in ["x", "y", "z"] {
        let topic = format!("shop.{part}.t");
        tokio::time::timeout(PATIENCE, async { while rows(&bench, &topic).await == 0 {} })
            .await
            .unwrap();
    }
    life.worker.shutdown().await;
}

/// How many records a topic has, which may not be there yet.
async fn rows(bench: &Bench, topic: &str) -> usize {
    let mut rows = 0;
    let mut each = |_: ReadRecord| rows += 1;
    match bench.reader.read_all(topic, 0, &mut each).await {
        Err(KafkaError::UnknownPartition { .. }) => 0,
        read => read.map(|_| rows).unwrap(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_task_that_fails_stops_no_other_and_is_restarted_alone() {
    let (bench, life) = running("x,y").await;
    bench.server.state().failures.push(lasting());
    let failed = |status: &Value| {
        status["tasks"].as_array().unwrap().iter().any(|task| task["state"] == "FAILED")
    };
    let status = life.api.until("a", failed).await;
    let states: Vec<_> = (0..2).map(|id| status["tasks"][id]["state"].to_string()).collect();
    assert!(states.contains(&"\"RUNNING\"".to_owned()), "{states:?}");
    assert_eq!(status["connector"]["state"], "RUNNING");

    let (before, polled) = (bench.server.state().starts.len(), *bench.server.polled.borrow());
    bench.server.state().committed += 3;
    life.api.until("a", |_| *bench.server.polled.borrow() > polled).await;
    let path = "/connectors/a/restart?includeTasks=true&onlyFailed=true";
    let plan = life.api.call(Method::POST, path, None).await.expect(202);
    let restarting = (0..2).filter(|id| plan["tasks"][*id]["state"] == "RESTARTING").count();
    assert_eq!((restarting, &plan["connector"]["state"]), (1, &json!("RUNNING")));
    all_in(&life, "RUNNING").await;
    assert_eq!(started(&bench, before).len(), 1);

    let before = bench.server.state().starts.len();
    life.api.call(Method::POST, "/connectors/a/tasks/1/restart", None).await.expect(204);
    life.api.until("a", |_| bench.server.state().starts.len() > before).await;
    all_in(&life, "RUNNING").await;
    assert_eq!(started(&bench, before), ["y"]);
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_come_and_go_with_the_configuration() {
    let (bench, life) = running("x,y,z").await;
    let put = |parts_of: &str| {
        let (api, config) = (life.api.clone(), parts(parts_of));
        async move { api.call(Method::PUT, "/connectors/a/config", Some(config)).await.expect(200) }
    };
    let before = bench.server.state().starts.len();
    // Part y goes from task 1 to task 0: it must not be read by both.
    assert_eq!(put("y").await["tasks"].as_array().unwrap().len(), 1);
    life.api.until("a", |_| bench.server.state().starts.len() > before).await;
    all_in(&life, "RUNNING").await;
    assert_eq!(started(&bench, before), ["y"]);
    let status = life.api.get("/connectors/a/status").await.expect(200);
    assert_eq!(status["tasks"].as_array().unwrap().len(), 1);
    let statuses = statuses(&bench).await;
    assert_eq!(statuses.keys().collect::<Vec<_>>(), ["status-connector-a", "status-task-a-0"]);
    put("y,x").await;
    life.api.until("a", |status| status["tasks"].as_array().unwrap().len() == 2).await;
    all_in(&life, "RUNNING").await;

    let refused = life.api.call(Method::PUT, "/connectors/a/config", Some(parts("x,y,z,u"))).await;
    assert!(refused.refusal(400).contains("has generated 4 tasks"), "{refused:?}");
    let mut lenient = parts("x,y,z,u");
    lenient["tasks.max.enforce"] = json!("false");
    let info = life.api.call(Method::PUT, "/connectors/a/config", Some(lenient)).await.expect(200);
    assert_eq!(info["tasks"].as_array().unwrap().len(), 4);
    let refused = life.api.call(Method::PUT, "/connectors/a/config", Some(parts("x,x"))).await;
    assert!(refused.refusal(400).contains("same offset partition"), "{refused:?}");

    life.api.call(Method::DELETE, "/connectors/a", None).await.expect(204);
    let gone = async || newest(&bench, "highwater.status").await.is_empty();
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !gone().await {
        assert!(tokio::time::Instant::now() < deadline);
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(newest(&bench, "highwater.configs").await, BTreeMap::new());
    life.worker.shutdown().await;
}

async fn write(bench: &Bench, key: &str, value: Option<Value>) {
    let mut writer = at_least_once(&WriterSettings::new(bench.reader.bootstrap())).unwrap();
    writer.begin().await.unwrap();
    let record = OutgoingRecord {
        topic: "highwater.configs".into(),
        partition: None,
        key: Some(key.to_owned().into()),
        value: value.map(|value| value.to_string().into()),
        headers: Vec::new(),
    };
    writer.offsets(vec![record]).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tasks_that_are_missing_in_the_log_are_written_before_any_runs() {
    let (bench, life) = running("x,y").await;
    life.worker.shutdown().await;
    // As a worker leaves it that dies between the configuration of a task and the next.
    write(&bench, "task-a-0", Some(json!({ "properties": { "parts": "old" } }))).await;
    write(&bench, "commit-a", Some(json!({ "tasks": 2 }))).await;
    let life = bench.life().await;
    let configs = newest(&bench, "highwater.configs").await;
    assert_eq!(configs["task-a-0"]["properties"]["parts"], "x");
    assert_eq!(configs["commit-a"], json!({ "tasks": 2 }));
    all_in(&life, "RUNNING").await;
    let tasks = life.api.get("/connectors/a/tasks").await.expect(200);
    assert_eq!(
        (&tasks[0]["config"]["parts"], &tasks[1]["config"]["parts"]),
        (&json!("x"), &json!("y"))
    );
    life.worker.shutdown().await;
}
