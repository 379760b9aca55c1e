//! Secrets by reference: taken where they are used, and nowhere else to be found (rule A4).

use std::fs;
use std::path::{Path, PathBuf};

use highwater_connector::{AllowedPaths, Hold};
use highwater_kafka::ReadRecord;
use highwater_worker::SecretProviders;
use reqwest::Method;
use serde_json::{Value, json};

use crate::bench::{Bench, Life, PATIENCE, config};
use crate::source::{Server, lasting, passing};

const SECRET: &str = "s3cret-value";

struct Vault {
    dir: tempfile::TempDir,
}

impl Vault {
    /// A file with a password.
    fn new(password: &str) -> Self {
        let vault = Self { dir: tempfile::tempdir().unwrap() };
        vault.put(password);
        vault
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("db.properties")
    }

    fn put(&self, password: &str) {
        fs::write(self.file(), format!("prefix=shop\npassword={password}\n")).unwrap();
    }

    fn reference(&self, key: &str) -> String {
        format!("${{file:{}:{key}}}", self.file().display())
    }
}

async fn life(bench: &Bench, allowed: &Path) -> Life {
    let mut config = bench.config();
    let paths = AllowedPaths::new("the.paths", [allowed.to_owned()]);
    config.secrets = SecretProviders::new(paths, "the.names", []);
    bench.life_of(config).await
}

async fn running(vault: &Vault) -> (Bench, Life) {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = life(&bench, vault.dir.path()).await;
    let mut config = config("shop");
    config["database.password"] = json!(vault.reference("password"));
    life.api.create("a", config).await.expect(201);
    life.api.until_task("a", "RUNNING").await;
    (bench, life)
}

/// All bytes of all records of the topics of state.
async fn stored(bench: &Bench) -> String {
    let mut bytes = Vec::new();
    let mut each = |record: ReadRecord| {
        bytes.extend(record.key.unwrap_or_default());
        bytes.extend(record.value.unwrap_or_default());
    };
    for topic in ["highwater.configs", "highwater.status", "highwater.offsets"] {
        bench.reader.read_all(topic, 0, &mut each).await.unwrap();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reference_is_shown_and_stored_and_what_it_leads_to_is_used_alone() {
    let vault = Vault::new(SECRET);
    let (bench, life) = running(&vault).await;
    assert_eq!(bench.server.last_start().password, SECRET);
    let reference = vault.reference("password");
    let shown = life.api.get("/connectors/a/config").await.expect(200);
    assert_eq!(shown["database.password"], reference);
    let tasks = life.api.get("/connectors/a/tasks").await.expect(200);
    assert_eq!(tasks[0]["config"]["database.password"], reference);
    let path = "/connector-plugins/test.FakeConnector/config/validate";
    let checked = life.api.call(Method::PUT, path, Some(shown.clone())).await.expect(200);
    assert_eq!(checked["error_count"], 0, "{checked}");
    assert!(checked.to_string().contains(&reference), "{checked}");
    let findings = format!("{:?}", life.worker.examine().await);
    assert!(!findings.contains("CONNECTOR_SECRET_LITERAL"), "{findings}");
    // What was shown may be sent back.
    life.api.call(Method::PUT, "/connectors/a/config", Some(shown)).await.expect(200);
    let seen = stored(&bench).await + &tasks.to_string() + &checked.to_string() + &findings;
    assert!(seen.contains(&reference) && !seen.contains(SECRET), "{seen}");
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_start_of_a_task_takes_the_secret_as_it_is_then() {
    let vault = Vault::new(SECRET);
    let (bench, life) = running(&vault).await;
    vault.put("another");
    life.api.call(Method::POST, "/connectors/a/tasks/0/restart", None).await.expect(204);
    let started = || bench.server.last_start().password == "another";
    life.api.until("a", |status| started() && status["tasks"][0]["state"] == "RUNNING").await;

    // One that is exchanged just now is waited for.
    fs::remove_file(vault.file()).unwrap();
    bench.server.state().failures.push(passing());
    let gone =
        |status: &Value| status["tasks"][0]["highwater"]["error"]["code"] == "SECRET_UNAVAILABLE";
    let status = life.api.until("a", gone).await;
    let what = status["tasks"][0]["highwater"]["error"]["what"].as_str().unwrap();
    for told in ["database.password", "${file:", "db.properties"] {
        assert!(what.contains(told), "{what}");
    }
    assert_eq!(status["tasks"][0]["state"], "RESTARTING");
    vault.put("a third");
    let started = || bench.server.last_start().password == "a third";
    life.api.until("a", |status| started() && status["tasks"][0]["state"] == "RUNNING").await;
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_connector_says_of_its_secret_is_not_told_on() {
    let vault = Vault::new("is odd");
    let (bench, life) = running(&vault).await;
    bench.server.state().failures.push(lasting());
    let status = life.api.until_task("a", "FAILED").await;
    let trace = status["tasks"][0]["trace"].as_str().unwrap();
    assert!(trace.contains("a row ********") && trace.contains("FAKE_ODD"), "{trace}");
    // A panic of its code, too, and an answer about what the source keeps.
    bench.server.state().hold = Some(Err(lasting()));
    bench.server.state().panics = 1;
    life.api.call(Method::POST, "/connectors/a/tasks/0/restart", None).await.expect(204);
    let status = life.api.until_task("a", "RESTARTING").await;
    assert!(status.to_string().contains("the poll ********"), "{status}");
    life.api.put("/connectors/a/stop").await.expect(204);
    let held = |status: &Value| !status["connector"]["highwater"]["hold"].is_null();
    let status = life.api.until("a", held).await;
    assert!(status.to_string().contains("not known: a row ********"), "{status}");
    let all = stored(&bench).await;
    assert!(!all.contains("is odd"), "{all}");
    bench.server.state().hold = None::<Result<Hold, _>>;
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reference_that_leads_nowhere_or_to_what_does_not_fit_is_refused() {
    let vault = Vault::new(SECRET);
    let (bench, life) = running(&vault).await;
    let outside = Vault::new(SECRET);
    for (key, value, told) in [
        ("database.password", vault.reference("pin"), "has no key pin"),
        ("database.password", outside.reference("password"), "the.paths"),
        ("database.password", "${env:HOME}".to_owned(), "the.names"),
        ("offset.flush.interval.ms", vault.reference("password"), "to a value that does not fit"),
        ("topic.routing", vault.reference("password"), "one of trail, table"),
        ("parts", format!("a,{}", vault.reference("password")), "divided"),
    ] {
        let mut config = config("hr");
        config["tasks.max"] = json!("3");
        config[key] = json!(value);
        let refused = life.api.create("b", config).await;
        let message = refused.refusal(400);
        assert!(message.contains(key) && message.contains(told), "{message}");
        assert!(!message.contains(SECRET), "{message}");
    }
    assert!(!stored(&bench).await.contains(SECRET));
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_task_reads_and_writes_does_not_move_behind_a_reference() {
    let vault = Vault::new(SECRET);
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = life(&bench, vault.dir.path()).await;
    let prefix = vault.reference("prefix");
    life.api.create("a", config(&prefix)).await.expect(201);
    tokio::time::timeout(PATIENCE, bench.server.all_told()).await.unwrap();
    fs::write(vault.file(), "prefix=hr\n").unwrap();
    life.api.call(Method::POST, "/connectors/a/tasks/0/restart", None).await.expect(204);
    let status = life.api.until_task("a", "FAILED").await;
    assert_eq!(status["tasks"][0]["highwater"]["error"]["code"], "REFERENCE_MOVED");
    let path = "/connectors/a/config";
    life.api.call(Method::PUT, path, Some(config(&prefix))).await.expect(200);
    life.api.until_task("a", "RUNNING").await;
    life.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_that_a_reference_leads_to_and_that_cannot_be_one_is_not_shown() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let vault = Vault::new(&format!("{SECRET} !"));
    let life = life(&bench, vault.dir.path()).await;
    let mut config = config("shop");
    config["topic.prefix"] = json!(vault.reference("password"));
    let refused = life.api.create("a", config).await;
    let message = refused.refusal(400).to_owned();
    assert!(message.contains("topic.prefix") && !message.contains(SECRET), "{message}");
    life.worker.shutdown().await;
}
