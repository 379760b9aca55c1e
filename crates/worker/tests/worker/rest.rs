//! Kafka Connect's shapes, codes and error bodies, without offsets.

use reqwest::Method;
use serde_json::{Value, json};

use crate::bench::{Answer, Api, Bench, config};
use crate::source::{CLASS, Server, lasting};

async fn bench() -> (Bench, crate::bench::Life) {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = bench.life().await;
    (bench, life)
}

async fn running(api: &Api) {
    api.create("a", config("shop")).await.expect(201);
    api.until_task("a", "RUNNING").await;
}

/// A status without what is ours and without what differs from run to run.
fn connects(mut status: Value) -> Value {
    let strip = |part: &mut Value| drop(part.as_object_mut().unwrap().remove("highwater"));
    strip(&mut status["connector"]);
    status["tasks"].as_array_mut().unwrap().iter_mut().for_each(strip);
    status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_says_who_it_is_and_that_it_is_well() {
    let (bench, life) = bench().await;
    let root = life.api.get("/").await.expect(200);
    assert_eq!(root["version"], "4.3.1", "of Kafka Connect's API");
    assert_eq!(root["highwater"]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(root["kafka_cluster_id"], bench.log.cluster_id());
    assert!(root["commit"].is_string());
    assert_eq!(life.api.get("/health").await.expect(200)["status"], "healthy");
    let plugins = life.api.get("/connector-plugins").await.expect(200);
    assert_eq!(plugins, json!([{ "class": CLASS, "type": "source", "version": "9.8.7" }]));
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connector_is_created_shown_and_deleted() {
    let (_bench, life) = bench().await;
    let api = &life.api;
    assert_eq!(api.get("/connectors").await.expect(200), json!([]));
    let created = api.create(" a b ", config("shop")).await;
    assert_eq!(created.headers["location"], "/connectors/a%20b");
    let info = json!({
        "name": "a b",
        "config": { "connector.class": CLASS, "name": "a b", "topic.prefix": "shop" },
        "tasks": [{ "connector": "a b", "task": 0 }],
        "type": "source",
    });
    assert_eq!(created.expect(201), info);
    assert_eq!(api.get("/connectors/a%20b").await.expect(200), info);
    assert_eq!(api.get("/connectors/a%20b/config").await.expect(200), info["config"]);
    let task = &api.get("/connectors/a%20b/tasks").await.expect(200)[0];
    assert_eq!(task["id"], info["tasks"][0]);
    assert_eq!(
        task["config"]["task.class"],
        format!("{}Task", CLASS.trim_end_matches("Connector"))
    );

    let gone = api.call(Method::DELETE, "/connectors/a%20b", None).await;
    assert_eq!(gone.expect(204), Value::Null);
    assert_eq!(api.get("/connectors").await.expect(200), json!([]));
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_status_has_connects_shape() {
    let (_bench, life) = bench().await;
    running(&life.api).await;
    let status = life.api.get("/connectors/a/status").await.expect(200);
    let part = |state| json!({ "state": state, "worker_id": "worker-1:8083", "version": "9.8.7" });
    let mut task = json!({ "id": 0 });
    task.as_object_mut().unwrap().extend(part("RUNNING").as_object().unwrap().clone());
    let expected =
        json!({ "name": "a", "connector": part("RUNNING"), "tasks": [task], "type": "source" });
    assert_eq!(connects(status), expected);
    let alone = life.api.get("/connectors/a/tasks/0/status").await.expect(200);
    assert_eq!(alone["state"], "RUNNING");
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_list_expands_to_status_and_info_and_ignores_the_rest() {
    let (_bench, life) = bench().await;
    running(&life.api).await;
    let both = life.api.get("/connectors?expand=status&expand=info&expand=x").await.expect(200);
    assert_eq!(both["a"]["status"]["connector"]["state"], "RUNNING");
    assert_eq!(both["a"]["info"]["type"], "source");
    let info = life.api.get("/connectors?expand=info").await.expect(200);
    assert_eq!(info["a"].get("status"), None);
    assert_eq!(life.api.get("/connectors?expand=x").await.expect(200), json!({ "a": {} }));
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_is_put_and_patched() {
    let (_bench, life) = bench().await;
    let api = &life.api;
    let path = "/connectors/a/config";
    let put = |body: Value| api.call(Method::PUT, path, Some(body));
    let created = put(config("shop")).await;
    assert_eq!(created.headers["location"], "/connectors/a");
    assert_eq!(created.expect(201)["name"], "a");
    let mut two = config("shop");
    two["tables"] = json!("t,u");
    assert_eq!(put(two).await.expect(200)["config"]["tables"], "t,u");
    let patch = json!({ "tables": null, "offset.flush.interval.ms": "50" });
    let patched = api.call(Method::PATCH, path, Some(patch)).await.expect(200);
    assert_eq!(patched["config"].get("tables"), None);
    assert_eq!(patched["config"]["offset.flush.interval.ms"], "50");
    api.call(Method::PATCH, "/connectors/b/config", Some(json!({}))).await.refusal(404);

    let mut other = config("shop");
    other["name"] = json!("b");
    let refused = put(other).await;
    assert_eq!(
        refused.refusal(400),
        "Connector name configuration (b) doesn't match connector name in the URL (a)"
    );
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_initial_state_is_taken_in_any_case() {
    let (bench, life) = bench().await;
    let body = |name: &str, state: &str| json!({ "name": name, "config": config(name), "initial_state": state });
    let post = |body| life.api.call(Method::POST, "/connectors", Some(body));
    let stopped = post(body("a", "stopped")).await.expect(201);
    assert_eq!(stopped["tasks"], json!([]));
    life.api.until("a", |status| status["connector"]["state"] == "STOPPED").await;
    post(body("b", "Paused")).await.expect(201);
    life.api.until_task("b", "PAUSED").await;
    assert!(bench.server.state().starts.is_empty());
    let refused = post(body("c", "asleep")).await;
    assert!(refused.refusal(400).contains("asleep"));
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_exist_is_named() {
    let (_bench, life) = bench().await;
    for (method, path, message) in [
        (Method::GET, "/connectors/x", "Connector x not found"),
        (Method::GET, "/connectors/x/config", "Connector x not found"),
        (Method::GET, "/connectors/x/tasks", "Connector x not found"),
        (Method::GET, "/connectors/x/offsets", "Connector x not found"),
        (Method::DELETE, "/connectors/x", "Connector x not found"),
        (Method::DELETE, "/connectors/x/offsets", "Connector x not found"),
        (Method::GET, "/connectors/x/status", "No status found for connector x"),
        (Method::GET, "/connectors/x/tasks/0/status", "No status found for task x-0"),
        (Method::PUT, "/connectors/x/pause", "Unknown connector x"),
        (Method::PUT, "/connectors/x/resume", "Unknown connector x"),
        (Method::PUT, "/connectors/x/stop", "Unknown connector x"),
        (Method::POST, "/connectors/x/restart", "Unknown connector: x"),
        (Method::POST, "/connectors/x/tasks/0/restart", "Unknown connector: x"),
        (Method::GET, "/nowhere", "HTTP 404 Not Found"),
    ] {
        let answer = life.api.call(method, path, None).await;
        assert_eq!(answer.refusal(404), message, "{path}");
    }
    running(&life.api).await;
    let answer = life.api.call(Method::POST, "/connectors/a/tasks/1/restart", None).await;
    assert_eq!(answer.refusal(404), "Unknown task: a-1");
    assert_eq!(answer.body["code"], "TASK_NOT_FOUND");
    let answer = life.api.get("/connectors/a/tasks/1/status").await;
    assert_eq!(answer.refusal(404), "No status found for task a-1");
    assert_eq!(answer.body["code"], "TASK_NOT_FOUND");
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configuration_in_the_form_of_another_path_is_told_its_own() {
    let (_bench, life) = bench().await;
    let flat = json!({ "name": "a", "connector.class": CLASS });
    let whole = json!({ "name": "a", "config": { "connector.class": CLASS } });
    for (method, path, body, form) in [
        (Method::POST, "/connectors", flat, "stand under \"config\""),
        (Method::PUT, "/connectors/a/config", whole, "without \"name\" and \"config\" around them"),
    ] {
        let answer = life.api.call(method, path, Some(body)).await;
        answer.refusal(400);
        let remedy = answer.body["do"].as_str().unwrap();
        assert!(remedy.contains(form), "{path}: {remedy}");
    }
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_taken_name_and_an_invalid_configuration_are_refused() {
    let (_bench, life) = bench().await;
    running(&life.api).await;
    let taken = life.api.create("a", config("other")).await;
    assert_eq!(taken.refusal(409), "Connector a already exists");

    let wrong = json!({ "connector.class": CLASS, "tasks.max": "0", "tabels": "t" });
    let invalid = life.api.create("b", wrong).await;
    let message = invalid.refusal(400).to_owned();
    let mut lines = message.lines();
    assert_eq!(
        lines.next(),
        Some("Connector configuration is invalid and contains the following 3 error(s):")
    );
    for key in ["tasks.max", "tabels", "topic.prefix"] {
        assert!(message.contains(&format!("\n{key} ")), "{message}");
    }
    let unknown = life.api.create("b", json!({ "connector.class": "no.Such" })).await;
    assert!(unknown.refusal(400).contains(CLASS));
    life.api.create("", config("b")).await.refusal(400);
    // Its records have a form of their own.
    let mut changed = config("b");
    changed["transforms"] = json!("drop");
    changed["transforms.drop.type"] = json!("Filter");
    let message = life.api.create("b", changed).await.refusal(400).to_owned();
    for key in ["transforms", "transforms.drop.type"] {
        assert!(message.contains(&format!("\n{key} is not taken")), "{message}");
    }
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restarts_answer_as_kip_745_says() {
    let (bench, life) = bench().await;
    running(&life.api).await;
    let post = |query: &str| {
        let path = format!("/connectors/a/restart{query}");
        let api = life.api.clone();
        async move { api.call(Method::POST, &path, None).await }
    };
    assert_eq!(post("").await.expect(204), Value::Null);
    assert_eq!(bench.server.state().starts.len(), 1, "it restarted a task that was not asked for");

    let plan = post("?includeTasks=true").await.expect(202);
    assert_eq!(plan["connector"]["state"], "RESTARTING");
    assert_eq!(plan["tasks"][0]["state"], "RESTARTING");
    life.api.until("a", |_| bench.server.state().starts.len() == 2).await;
    life.api.until_task("a", "RUNNING").await;

    let plan = post("?includeTasks=true&onlyFailed=true").await.expect(202);
    assert_eq!(plan["tasks"][0]["state"], "RUNNING");
    bench.server.state().failures.push(lasting());
    life.api.until_task("a", "FAILED").await;
    let plan = post("?includeTasks=true&onlyFailed=true").await.expect(202);
    assert_eq!(plan["tasks"][0]["state"], "RESTARTING");
    life.api.until_task("a", "RUNNING").await;
    life.worker.shutdown().await;
}

async fn raw(api: &Api, media: &str, body: String) -> Answer {
    let request = api.client.post(format!("{}/connectors", api.url)).header("content-type", media);
    let response = request.body(body).send().await.unwrap();
    let status = response.status();
    let body = response.json().await.unwrap();
    Answer { status, headers: std::collections::BTreeMap::new(), body }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_requests_are_answered_in_connects_shape() {
    let (_bench, life) = bench().await;
    let api = &life.api;
    raw(api, "text/plain", "{}".to_owned()).await.refusal(415);
    raw(api, "application/json", "{".to_owned()).await.refusal(400);
    raw(api, "application/json", r#"{"name":"a","config":{"x":{}}}"#.to_owned()).await.refusal(400);
    // The server's HTTP refuses smaller ones before; this is the bound of axum.
    raw(api, "application/json", " ".repeat((2 << 20) + 1)).await.refusal(413);
    let answer = api.call(Method::DELETE, "/connectors", None).await;
    assert_eq!(answer.refusal(405), "HTTP 405 Method Not Allowed");
    api.call(Method::POST, "/connectors/a/tasks/x/restart", None).await.refusal(404);
    for path in ["/connectors/%FF", "/connectors/%zz"] {
        api.call(Method::GET, path, None).await.refusal(400);
    }
    let unknown = r#"{"name":"a","config":{},"more":1}"#;
    assert!(raw(api, "application/json", unknown.to_owned()).await.refusal(400).contains("more"));
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_is_never_shown() {
    let (_bench, life) = bench().await;
    let mut secret = config("shop");
    secret["database.password"] = json!("s3cret-value");
    let created = life.api.create("a", secret.clone()).await.expect(201);
    assert_eq!(created["config"]["database.password"], "********");
    secret["tasks.max"] = json!("0");
    let path = "/connectors/a/config";
    let refused = life.api.call(Method::PUT, path, Some(secret)).await.body;
    let mut seen = format!("{created}{refused}");
    for path in ["", "/config", "/status", "/tasks", "/offsets"] {
        seen += &life.api.get(&format!("/connectors/a{path}")).await.body.to_string();
    }
    seen += &life.api.get("/connectors?expand=info&expand=status").await.body.to_string();
    assert!(!seen.contains("s3cret-value"));
    let masked = json!({
        "connector.class": CLASS, "topic.prefix": "hr", "database.password": "********",
    });
    assert!(life.api.create("b", masked).await.refusal(400).contains("masked"));
    life.worker.shutdown().await;
}
