//! Paths, methods and what is behind them: the document, plugins, loggers, topics.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use highwater_worker::{LogLevel, Logger, Loggers, ROOT, TopicTracking};
use reqwest::Method;
use serde_json::{Value, json};

use crate::bench::{Bench, Life, config};
use crate::source::{CLASS, Server};

async fn bench() -> (Bench, Life) {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    (bench, life)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_document_has_the_methods_that_the_paths_take() {
    let (_bench, life) = bench().await;
    let document = life.api.get("/openapi.json").await.expect(200);
    for (path, operations) in document["paths"].as_object().unwrap() {
        let place = path.replace("{connector}", "x").replace("{task}", "0");
        let place = place.replace("{plugin}", "x").replace("{logger}", "x");
        let options = format!("{}{place}", life.api.url);
        let options = life.api.client.request(Method::OPTIONS, options).send().await.unwrap();
        assert_eq!(options.status(), 200, "{path}");
        let allowed = options.headers()["allow"].to_str().unwrap().to_owned();
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            let named = operations.get(method.to_lowercase()).is_some();
            let answer = life.api.call(method.parse().unwrap(), &place, Some(json!({}))).await;
            assert_eq!(answer.status != 405, named, "{method} {path}: {answer:?}");
            assert_eq!(allowed.split(", ").any(|allowed| allowed == method), named, "{allowed}");
        }
    }
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slash_at_the_end_says_nothing_and_only_json_is_answered() {
    let (_bench, life) = bench().await;
    life.api.create("a", config("shop")).await.expect(201);
    assert_eq!(life.api.get("/connectors/?expand=x").await.expect(200), json!({ "a": {} }));
    assert_eq!(life.api.get("/connectors/a/").await.expect(200)["name"], "a");
    assert_eq!(life.api.put("/connectors/a/pause/").await.expect(202), Value::Null);
    life.api.get("/nowhere/").await.refusal(404);
    let asked = life.api.client.get(format!("{}/connectors", life.api.url));
    let refused = asked.header("accept", "text/plain").send().await.unwrap();
    assert_eq!(refused.status(), 406);
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plugin_says_what_it_takes() {
    let (_bench, life) = bench().await;
    let path = format!("/connector-plugins/{CLASS}/config");
    let keys = life.api.get(&path).await.expect(200);
    let key = |name: &str| {
        keys.as_array().unwrap().iter().find(|key| key["name"] == name).cloned().unwrap()
    };
    assert_eq!((&key("name")["required"], &key("name")["group"]), (&json!(true), &json!("Common")));
    assert_eq!(key("topic.prefix")["group"], Value::Null);
    assert_eq!(key("database.password")["type"], "PASSWORD");
    assert_eq!(life.api.get(&format!("{path}?version=9.8.7")).await.expect(200), keys);
    assert!(life.api.get(&format!("{path}?version=1")).await.refusal(400).contains("9.8.7"));
    let unknown = life.api.get("/connector-plugins/nowhere/config").await;
    assert_eq!(unknown.refusal(404), "Unknown plugin nowhere.");
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_is_validated_key_by_key() {
    let (_bench, life) = bench().await;
    let path = format!("/connector-plugins/{CLASS}/config/validate");
    let validate = async |body: Value| life.api.call(Method::PUT, &path, Some(body)).await;
    let mut good = config("shop");
    good["name"] = json!("a");
    let verdict = validate(good.clone()).await.expect(200);
    assert_eq!((&verdict["name"], &verdict["error_count"]), (&json!(CLASS), &json!(0)));
    assert_eq!(verdict["groups"][0], "Common");

    let wrong = json!({ "connector.class": CLASS, "tasks.max": "x", "database.pasword": "s3cret" });
    let verdict = validate(wrong).await.expect(200);
    let errors = |name: &str| {
        let configs = verdict["configs"].as_array().unwrap();
        let found = configs.iter().find(|config| config["value"]["name"] == name).unwrap();
        found["value"]["errors"].as_array().unwrap().len()
    };
    for key in ["name", "topic.prefix", "tasks.max", "database.pasword"] {
        assert_eq!(errors(key), 1, "{key}");
    }
    assert_eq!(verdict["error_count"], 4);
    assert!(!verdict.to_string().contains("s3cret"), "a secret under a mistyped name was shown");

    validate(json!({})).await.refusal(400);
    let other = validate(json!({ "connector.class": "no.Such" })).await;
    assert!(other.refusal(400).contains("no.Such"));
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_would_not_be_made_is_not_called_valid() {
    let (_bench, life) = bench().await;
    let mut first = config("shop");
    first["database.password"] = json!("s3cret");
    life.api.create("a", first).await.expect(201);
    let path = format!("/connector-plugins/{CLASS}/config/validate");
    let judged = async |name: &str, change: &[(&str, Value)]| {
        let mut wanted = config("shop");
        for (key, value) in change {
            wanted[*key] = value.clone();
        }
        let made = life.api.create(name, wanted.clone()).await;
        wanted["name"] = json!(name);
        let verdict = life.api.call(Method::PUT, &path, Some(wanted)).await.expect(200);
        let configs = verdict["configs"].as_array().unwrap().clone();
        let wrong = configs.into_iter().filter(|key| key["value"]["errors"] != json!([]));
        let wrong: Vec<_> = wrong.map(|key| key["value"]["name"].clone()).collect();
        (made.status.as_u16(), verdict["error_count"].clone(), wrong)
    };
    let masked = [("topic.prefix", json!("b")), ("database.password", json!("********"))];
    let elsewhere = "producer.override.bootstrap.servers";
    for (change, key) in [
        // Another connector's topic.
        (&[][..], "topic.prefix"),
        // No secret is stored for it.
        (&masked, "database.password"),
        (&[("topic.prefix", json!("b")), (elsewhere, json!("x:9092"))], elsewhere),
    ] {
        assert_eq!(judged("b", change).await, (400, json!(1), vec![json!(key)]));
    }
    // The one that is stored.
    let kept = [("database.password", json!("********"))];
    let again = judged("a", &kept).await;
    assert_eq!(again, (409, json!(0), vec![]));
    let taken = [("topic.prefix", json!("b")), ("producer.override.acks", json!("1"))];
    assert_eq!(judged("b", &taken).await, (201, json!(0), vec![]));
    life.worker.shutdown().await;
}

/// Loggers that remember.
struct Remembering(Mutex<BTreeMap<String, Logger>>);

impl Loggers for Remembering {
    fn all(&self) -> BTreeMap<String, Logger> {
        self.0.lock().unwrap().clone()
    }

    fn set(&self, name: &str, level: LogLevel) -> Vec<String> {
        let mut loggers = self.0.lock().unwrap();
        let Some(logger) = loggers.get_mut(name) else { return Vec::new() };
        *logger = Logger { level, last_modified: Some(7) };
        vec![name.to_owned()]
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn levels_of_log_lines_are_set_here_and_in_the_cluster() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let logger = Logger { level: LogLevel::Info, last_modified: None };
    let loggers = Remembering(Mutex::new([(ROOT.to_owned(), logger)].into()));
    let mut config = bench.config();
    config.loggers = Arc::new(loggers);
    let life = bench.life_of(config).await;
    let all = life.api.get("/admin/loggers").await.expect(200);
    assert_eq!(all, json!({ "root": { "level": "INFO", "last_modified": null } }));
    let set = async |query: &str, level: Value| {
        let path = format!("/admin/loggers/ROOT{query}");
        life.api.call(Method::PUT, &path, Some(level)).await
    };
    assert_eq!(set("", json!({ "level": "debug" })).await.expect(200), json!(["root"]));
    let one = life.api.get("/admin/loggers/root").await.expect(200);
    assert_eq!(one, json!({ "level": "DEBUG", "last_modified": 7 }));
    assert_eq!(set("?scope=cluster", json!({ "level": "WARN" })).await.expect(204), Value::Null);
    assert_eq!(life.api.get("/admin/loggers/root").await.expect(200)["level"], "WARN");
    let told = bench.newest("highwater.configs", "logger-cluster-root").await;
    assert_eq!(told, Some(json!({ "level": "WARN" })));
    set("", json!({})).await.refusal(400);
    assert_eq!(set("", json!({ "level": "LOUD" })).await.refusal(404), "invalid log level 'LOUD'.");
    life.api.get("/admin/loggers/nowhere").await.refusal(404);
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_topics_of_a_connector_are_known_until_it_is_deleted_or_they_are_forgotten() {
    let (bench, life) = bench().await;
    let topics = async |life: &Life| {
        let topics = life.api.get("/connectors/a/topics").await.expect(200)["a"]["topics"].clone();
        serde_json::from_value::<Vec<String>>(topics).unwrap()
    };
    assert!(topics(&life).await.is_empty(), "of a connector that does not exist");
    life.api.create("a", config("shop")).await.expect(201);
    life.api.until("a", |status| status["tasks"][0]["highwater"]["last_record"].is_string()).await;
    assert!(topics(&life).await.contains(&"shop".to_owned()));
    let key = "status-topic-shop:connector-a";
    let said = bench.newest("highwater.status", key).await.unwrap();
    assert_eq!((&said["topic"]["name"], &said["topic"]["task"]), (&json!("shop"), &json!(0)));
    life.api.put("/connectors/a/pause").await.expect(202);
    life.api.until_task("a", "PAUSED").await;
    life.worker.shutdown().await;

    let life = bench.life().await;
    assert!(topics(&life).await.contains(&"shop".to_owned()), "after a restart");
    life.api.put("/connectors/a/topics/reset").await.expect(202);
    assert!(topics(&life).await.is_empty());
    assert_eq!(bench.newest("highwater.status", key).await, None);
    life.worker.shutdown().await;
}

/// Waits until these are the topics of connector `a`.
async fn until_topics(life: &Life, wanted: Value) {
    let deadline = tokio::time::Instant::now() + crate::bench::PATIENCE;
    loop {
        let topics = life.api.get("/connectors/a/topics").await.expect(200)["a"]["topics"].clone();
        if topics == wanted {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "they stay {topics}");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_are_told_again_after_a_reset_and_gone_after_a_delete() {
    let (bench, life) = bench().await;
    life.api.create("a", config("shop")).await.expect(201);
    life.api.until("a", |status| status["tasks"][0]["highwater"]["last_record"].is_string()).await;
    life.api.put("/connectors/a/topics/reset").await.expect(202);
    bench.server.state().committed += 3;
    until_topics(&life, json!(["shop"])).await;
    life.api.call(Method::DELETE, "/connectors/a", None).await.expect(204);
    until_topics(&life, json!([])).await;
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn topics_that_are_not_tracked_are_refused() {
    let bench = Bench::start(Server::new(5, 7)).await;
    for (tracking, list, reset) in
        [(TopicTracking::Off, 403, 403), (TopicTracking::WithoutReset, 200, 403)]
    {
        let mut config = bench.config();
        config.topic_tracking = tracking;
        let life = bench.life_of(config).await;
        assert_eq!(life.api.get("/connectors/a/topics").await.status, list);
        assert_eq!(life.api.put("/connectors/a/topics/reset").await.status, reset);
        life.worker.shutdown().await;
    }
}
