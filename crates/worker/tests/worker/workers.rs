//! Several workers of one group share connectors and tasks.

use std::collections::BTreeMap;
use std::time::Duration;

use highwater_connector::Finding;
use highwater_kafka::{
    Consumer, ConsumerSettings, OutgoingRecord, Subscription, Tls, WriterSettings, at_least_once,
};
use highwater_worker::{ExactlyOnceSupport, Sharing, Worker, WorkerConfig, WorkerError};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::bench::{Bench, Doomed, Life, PATIENCE, config};
use crate::source::{Server, lasting};

/// As short as a broker allows.
const SESSION: Duration = Duration::from_secs(6);

async fn listener() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// A worker that shares, reached through `listener`.
fn sharing(bench: &Bench, listener: &TcpListener) -> WorkerConfig {
    let address = listener.local_addr().unwrap();
    let mut config = bench.config();
    config.worker_id = address.to_string();
    config.sharing = Some(Sharing {
        url: format!("http://{address}"),
        tls: Tls::default(),
        session_timeout: SESSION,
        heartbeat_interval: Duration::from_millis(100),
        rebalance_timeout: Duration::from_secs(20),
    });
    config
}

async fn sharer(bench: &Bench) -> Life {
    let listener = listener().await;
    Life::start_on(sharing(bench, &listener), &bench.server, listener).await
}

fn parts(parts: &str, tasks: usize) -> Value {
    let mut config = config("shop");
    config["topic.routing"] = json!("table");
    config["parts"] = json!(parts);
    config["tasks.max"] = json!(tasks.to_string());
    config
}

/// Writes a record of state, as some worker may.
async fn write(bench: &Bench, topic: &str, key: &str, value: &Value) {
    let mut journal = at_least_once(&WriterSettings::new(&bench.bootstrap)).unwrap();
    let record = OutgoingRecord {
        topic: topic.into(),
        partition: None,
        key: Some(key.to_owned().into()),
        value: Some(value.to_string().into()),
        headers: Vec::new(),
    };
    journal.send(record).await.unwrap();
    journal.commit().await.unwrap();
}

/// Which worker runs each task.
fn workers(status: &Value) -> BTreeMap<u64, String> {
    let tasks = status["tasks"].as_array().cloned().unwrap_or_default();
    let running = tasks.iter().filter(|task| task["state"] == "RUNNING");
    let pair = |task: &Value| {
        (task["id"].as_u64().unwrap(), task["worker_id"].as_str().unwrap().to_owned())
    };
    running.map(pair).collect()
}

/// Waits until `tasks` tasks run on `number` workers.
async fn spread(life: &Life, tasks: usize, number: usize) -> BTreeMap<u64, String> {
    let settled = |status: &Value| {
        let workers = workers(status);
        let mut names: Vec<_> = workers.values().collect();
        names.sort();
        names.dedup();
        workers.len() == tasks && names.len() == number
    };
    workers(&life.api.until("a", settled).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn workers_share_tasks_and_any_of_them_answers() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let one = sharer(&bench).await;
    one.api.create("a", parts("x,y,z,u", 4)).await.expect(201);
    spread(&one, 4, 1).await;
    let two = sharer(&bench).await;
    let shared = spread(&one, 4, 2).await;
    assert_eq!(spread(&two, 4, 2).await, shared, "both say the same");
    for worker in [&one, &two] {
        assert_eq!(worker.api.get("/connectors").await.expect(200), json!(["a"]));
    }
    // A task is started anew by who runs it, whoever is asked.
    for id in 0..4 {
        for worker in [&one, &two] {
            let starts = bench.server.state().starts.len();
            let path = format!("/connectors/a/tasks/{id}/restart");
            worker.api.call(Method::POST, &path, None).await.expect(204);
            worker.api.until("a", |_| bench.server.state().starts.len() > starts).await;
            spread(worker, 4, 2).await;
        }
    }
    // Changes are made by the leader, whoever is asked, and seen at once by who was asked.
    two.api.create("b", config("crm")).await.expect(201);
    assert_eq!(two.api.get("/connectors").await.expect(200), json!(["a", "b"]));
    two.api.put("/connectors/a/pause").await.expect(202);
    let all_paused = |status: &Value| {
        let tasks = status["tasks"].as_array().unwrap();
        tasks.len() == 4 && tasks.iter().all(|task| task["state"] == "PAUSED")
    };
    one.api.until("a", all_paused).await;
    two.api.until("a", all_paused).await;
    for worker in [&two, &one] {
        worker.api.put("/connectors/a/resume").await.expect(202);
        spread(worker, 4, 2).await;
        worker.api.put("/connectors/a/stop").await.expect(204);
        let status = worker.api.get("/connectors/a/status").await.expect(200);
        assert_eq!(status["connector"]["state"], "STOPPED", "{status}");
        worker.api.call(Method::DELETE, "/connectors/a/offsets", None).await.expect(200);
    }
    two.api.call(Method::DELETE, "/connectors/a", None).await.expect(204);
    assert_eq!(bench.newest("highwater.status", "status-task-a-0").await, None);
    assert_eq!(one.api.get("/connectors").await.expect(200), json!(["b"]));
    two.worker.shutdown().await;
    one.api.until_task("b", "RUNNING").await;
    one.worker.shutdown().await;
}

/// What a worker finds not to be reached.
async fn unreached(life: &Life) -> Vec<String> {
    let found: Vec<Finding> = life.worker.examine().await;
    let found = found.into_iter().filter(|finding| finding.code == "WORKER_UNREACHED");
    found.map(|finding| finding.subject).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_is_not_where_it_says_is_found_before_it_is_needed() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let (one, at) = (sharer(&bench).await, listener().await);
    let mut astray = sharing(&bench, &at);
    // A port that nobody listens on.
    let nowhere = listener().await.local_addr().unwrap();
    astray.sharing.as_mut().unwrap().url = format!("http://{nowhere}");
    let two = Life::start_on(astray, &bench.server, at).await;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    let expected = format!("worker {}", two.api.url.trim_start_matches("http://"));
    while unreached(&one).await != [expected.as_str()] {
        assert!(tokio::time::Instant::now() < deadline, "it is not told");
    }
    assert_eq!(unreached(&two).await, [""; 0]);
    for life in [one, two] {
        life.worker.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_dead_worker_had_moves_to_the_others() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let one = sharer(&bench).await;
    one.api.create("a", parts("x,y,z,u", 4)).await.expect(201);
    let at = listener().await;
    let doomed = Doomed::start_on(sharing(&bench, &at), &bench.server, at).await;
    let before = spread(&one, 4, 2).await;
    doomed.crash();
    let crashed = tokio::time::Instant::now();
    let after = spread(&one, 4, 1).await;
    assert!(crashed.elapsed() < SESSION + Duration::from_secs(4), "{:?}", crashed.elapsed());
    let stayed = before.iter().filter(|(id, worker)| after.get(*id) == Some(worker)).count();
    assert_eq!(stayed, 2, "what the living one had");
    one.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_worker_tells_of_what_the_others_run() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let (one, two) = (sharer(&bench).await, sharer(&bench).await);
    one.api.create("a", parts("x,y,z,u", 4)).await.expect(201);
    let running = spread(&two, 4, 2).await;
    bench.server.state().failures.push(lasting());
    let failed = |task: &&Value| task["state"] == "FAILED";
    let tasks = |status: &Value| status["tasks"].as_array().cloned().unwrap_or_default();
    let status = one.api.until("a", |status| tasks(status).iter().any(|it| failed(&it))).await;
    let id = tasks(&status).iter().find(failed).unwrap()["id"].as_u64().unwrap();
    let its = &running[&id];
    for worker in [&one, &two] {
        let here = worker.api.url.ends_with(its.as_str());
        let status =
            worker.api.until("a", |status| tasks(status).iter().any(|it| failed(&it))).await;
        let ours = &tasks(&status)[usize::try_from(id).unwrap()]["highwater"];
        assert_eq!(
            (&ours["error"]["code"], &ours["error"]["do"]),
            (&json!("FAKE_ODD"), &json!("mend the row"))
        );
        let found = worker.worker.examine().await;
        let odd: Vec<_> = found.iter().filter(|finding| finding.code == "FAKE_ODD").collect();
        assert_eq!(
            (odd.len(), odd[0].what.contains(&format!("on {its}"))),
            (1, !here),
            "{found:?}"
        );
        let health = worker.api.get("/health").await.expect(200)["highwater"].clone();
        let (part, other) =
            if here { (&health, &health["others"]) } else { (&health["others"], &health) };
        assert_eq!(part["tasks"], json!({ "FAILED": 1, "RUNNING": 1 }), "{health}");
        assert_eq!(other["tasks"], json!({ "RUNNING": 2 }), "{health}");
        assert_eq!((&part["failed"][0]["task"], &other["failed"]), (&json!(id), &json!([])));
    }
    // A part whose worker was never in the group, as Kafka Connect's may have left one.
    let gone = json!({ "state": "RUNNING", "trace": null, "worker_id": "old:1", "generation": 1 });
    write(&bench, "highwater.status", "status-task-a-7", &gone).await;
    let lost = |status: &Value| tasks(status).len() == 5;
    let status = two.api.until("a", lost).await;
    let says = tasks(&status)[4]["highwater"]["activity"].to_string();
    assert!(says.contains("old:1") && says.contains("in the group no more"), "{says}");
    let found = two.worker.examine().await;
    let gone = found.iter().find(|finding| finding.code == "WORKER_GONE").expect("it is told");
    assert!(gone.what.starts_with("old:1, which had it"), "{gone:?}");
    assert_eq!(unreached(&two).await, [""; 0], "both are reached");
    let health = two.api.get("/health").await.expect(200)["highwater"].clone();
    assert_eq!(health["others"]["gone"][0]["task"], 7, "{health}");
    for life in [one, two] {
        life.worker.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connector_that_is_made_anew_has_nothing_of_the_deleted_one_but_its_offsets() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let (one, two) = (sharer(&bench).await, sharer(&bench).await);
    let offsets = async |life: &Life| {
        let offsets = life.api.get("/connectors/a/offsets").await.expect(200)["offsets"].clone();
        offsets.as_array().unwrap().len()
    };
    for (deletes, creates) in [(&one, &two), (&two, &one)] {
        creates.api.create("a", parts("x,y,z,u", 4)).await.expect(201);
        spread(deletes, 4, 2).await;
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while offsets(deletes).await < 4 {
            assert!(tokio::time::Instant::now() < deadline, "not all store what they have read");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        deletes.api.call(Method::DELETE, "/connectors/a", None).await.expect(204);
        // At once, while its tasks may still end elsewhere.
        creates.api.create("a", parts("x,y", 4)).await.expect(201);
        spread(deletes, 2, 2).await;
        for worker in [&one, &two] {
            let two_tasks =
                |status: &Value| status["tasks"].as_array().is_some_and(|it| it.len() == 2);
            worker.api.until("a", two_tasks).await;
        }
        for id in [2, 3] {
            let key = format!("status-task-a-{id}");
            assert_eq!(bench.newest("highwater.status", &key).await, None, "{key} stays");
        }
        assert_eq!(offsets(creates).await, 4, "offsets stay, as with Kafka Connect");
        creates.api.call(Method::DELETE, "/connectors/a", None).await.expect(204);
        for worker in [&one, &two] {
            worker.api.until("a", |status| status["error_code"] == 404).await;
        }
        for key in ["status-connector-a", "status-task-a-0", "status-task-a-1"] {
            assert_eq!(bench.newest("highwater.status", key).await, None, "{key} stays");
        }
    }
    for life in [one, two] {
        life.worker.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_once_tasks_on_two_workers_do_not_fence_each_other() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let mut lives = Vec::new();
    for _ in 0..2 {
        let at = listener().await;
        let mut config = sharing(&bench, &at);
        config.exactly_once = ExactlyOnceSupport::Enabled;
        lives.push(Life::start_on(config, &bench.server, at).await);
    }
    lives[0].api.create("a", parts("x,y,z,u", 4)).await.expect(201);
    spread(&lives[1], 4, 2).await;
    for parts_of in ["x,y,z,u", "x,y,z"] {
        let mut changed = parts(parts_of, 4);
        changed["offset.flush.interval.ms"] = json!("30");
        lives[1].api.call(Method::PUT, "/connectors/a/config", Some(changed)).await.expect(200);
        let tasks = parts_of.split(',').count();
        let fenced = Some(json!({ "task-count": tasks }));
        let deadline = tokio::time::Instant::now() + PATIENCE;
        while bench.newest("highwater.configs", "tasks-fencing-a").await != fenced {
            assert!(tokio::time::Instant::now() < deadline, "those before are not fenced");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        spread(&lives[0], tasks, 2).await;
    }
    bench.server.state().committed += 3;
    for life in &lives {
        spread(life, 3, 2).await;
    }
    for life in lives {
        life.worker.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_prepares_fences_for_one_that_is_enabled() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let life = async |support| {
        let at = listener().await;
        let mut config = sharing(&bench, &at);
        config.exactly_once = support;
        Life::start_on(config, &bench.server, at).await
    };
    let preparing = life(ExactlyOnceSupport::Preparing).await;
    preparing.api.create("a", parts("x,y,z,u", 4)).await.expect(201);
    spread(&preparing, 4, 1).await;
    // The connector stays where it is, and some of its tasks move.
    let enabled = life(ExactlyOnceSupport::Enabled).await;
    spread(&enabled, 4, 2).await;
    bench.server.state().committed += 3;
    spread(&preparing, 4, 2).await;
    enabled.worker.shutdown().await;
    preparing.worker.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_of_others_does_not_let_a_worker_in_and_nothing_is_written() {
    let bench = Bench::start(Server::new(5, 7)).await;
    let topics = Subscription::Topics(["t".to_owned()].into());
    let mut other = Consumer::start(&bench.reader, ConsumerSettings::new("highwater", topics));
    let joined = async {
        while !other.is_assigned() {
            other.poll(Duration::from_millis(50)).await.unwrap();
        }
    };
    tokio::time::timeout(PATIENCE, joined).await.unwrap();
    let at = listener().await;
    let refused = Worker::start(sharing(&bench, &at), Vec::new()).await;
    let Err(WorkerError::GroupTaken { group, .. }) = refused else { panic!("it is let in") };
    assert_eq!(group, "highwater");
    other.leave().await;
    let life = Life::start_on(sharing(&bench, &at), &bench.server, at).await;
    life.api.create("a", config("shop")).await.expect(201);
    life.api.until_task("a", "RUNNING").await;
    life.worker.shutdown().await;
}
