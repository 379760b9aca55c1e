//! What happens in a group at once, in the order that is hardest: the group's coordinator, the time and
//! the ends of tasks are the test's.

use std::ops::Range;
use std::time::Duration;

use highwater_kafka::{OffsetSpec, Tls};
use highwater_protocol::ErrorCode;
use highwater_worker::{ExactlyOnceSupport, Sharing, WorkerConfig};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::bench::{Bench, Life, PATIENCE, config, written};
use crate::clock::Clock;
use crate::gate::Gate;
use crate::group::Group;
use crate::source::{Server, lasting};

const SESSION: Duration = Duration::from_secs(6);
const HEARTBEAT: Duration = Duration::from_millis(100);
const REBALANCE: Duration = Duration::from_secs(20);

/// What a refused change is told, whole.
const REBALANCING: &str =
    "Cannot complete request because of a conflicting operation (e.g. worker rebalance)";

/// A worker's clock, its group, and its log.
struct Scene {
    clock: Clock,
    group: Group,
    bench: Bench,
}

impl Scene {
    async fn start() -> Self {
        let clock = Clock::start();
        let group = Group::start().await;
        let bench = Bench::start_behind(&group, Server::new(5, 7)).await;
        Self { clock, group, bench }
    }

    fn config(&self) -> WorkerConfig {
        let mut config = self.bench.config();
        // A task that ends is waited for as long as a test wants.
        config.drain_timeout = SESSION * 100;
        config.sharing = Some(Sharing {
            url: "http://127.0.0.1:2".to_owned(),
            tls: Tls::default(),
            session_timeout: SESSION,
            heartbeat_interval: HEARTBEAT,
            rebalance_timeout: REBALANCE,
        });
        config
    }

    /// A worker that leads, and has nothing to do yet.
    async fn leader(&self, config: WorkerConfig) -> Life {
        let (life, ()) = tokio::join!(Life::start(config, &self.bench.server), async {
            self.group.join().await.lead();
        });
        life
    }

    /// A worker of several, which has connector `a` whose tasks are `parts`.
    async fn follower(&self, parts: &str) -> Life {
        let life = self.leader(self.config()).await;
        let tasks = parts.split(',').count();
        life.api.create("a", parted(parts)).await.expect(201);
        self.group.join().await.give(&a(0..tasks));
        life.api.until("a", |status| running(status) == tasks).await;
        life
    }

    /// Where the topic of a part ends.
    async fn end(&self, part: &str) -> i64 {
        let topic = format!("shop.{part}.t");
        let latest = self.bench.reader.list_offset(&topic, 0, OffsetSpec::Latest).await;
        latest.unwrap().unwrap().offset
    }

    /// Waits until what is new in a part is in its topic.
    async fn grows(&self, part: &str) {
        let before = self.end(part).await;
        self.bench.server.state().committed += 1;
        let deadline = Instant::now() + PATIENCE;
        while self.end(part).await == before {
            assert!(Instant::now() < deadline, "nothing of {part} is written");
            sleep(HEARTBEAT).await;
        }
    }
}

fn parted(parts: &str) -> Value {
    let mut config = config("shop");
    config["topic.routing"] = json!("table");
    config["parts"] = json!(parts);
    config["tasks.max"] = json!("4");
    config
}

/// Connector `a` and these of its tasks.
fn a(tasks: Range<usize>) -> Value {
    json!({ "connectors": ["a"], "tasks": { "a": tasks.collect::<Vec<_>>() } })
}

/// Nothing, as a worker says it.
fn nothing() -> Value {
    json!({ "connectors": [], "tasks": {} })
}

fn running(status: &Value) -> usize {
    let tasks = status["tasks"].as_array();
    tasks.into_iter().flatten().filter(|task| task["state"] == "RUNNING").count()
}

/// While a worker ends something and then joins, there is word of another rebalance, or that it is out.
async fn word_before_a_join(word: ErrorCode, claimed: Value) {
    let scene = Scene::start().await;
    let life = scene.follower("x,y").await;
    let stops = &scene.bench.server.stops;
    stops.close();
    let join = scene.group.rebalance().await;
    assert_eq!(join.has, a(0..2));
    join.give(&a(0..1));
    stops.reached().await;
    scene.group.say(word);
    scene.group.beats(if word == ErrorCode::UNKNOWN_MEMBER_ID { 1 } else { 3 }).await;
    scene.clock.pass(HEARTBEAT * 3).await;
    scene.group.say(ErrorCode::NONE);
    scene.group.assert_quiet().await;
    stops.open();
    let join = scene.group.join().await;
    assert_eq!(join.has, claimed);
    join.give(&a(0..2));
    life.api.until("a", |status| running(status) == 2).await;
    scene.clock.pass(SESSION).await;
    scene.group.assert_quiet().await;
}

#[tokio::test(start_paused = true)]
async fn a_rebalance_of_before_a_join_is_not_joined_again() {
    word_before_a_join(ErrorCode::REBALANCE_IN_PROGRESS, a(0..1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_loss_of_before_a_join_is_not_joined_again() {
    word_before_a_join(ErrorCode::UNKNOWN_MEMBER_ID, nothing()).await;
}

#[tokio::test(start_paused = true)]
async fn who_ends_something_for_longer_than_the_group_waits_writes_nothing_more() {
    let scene = Scene::start().await;
    let life = scene.follower("x,y").await;
    let server = &scene.bench.server;
    server.stops.close();
    scene.group.rebalance().await.give(&a(0..1));
    server.stops.reached().await;
    // As long as nobody waits for it, it may take its time, and goes on with all else.
    scene.clock.pass(REBALANCE + SESSION).await;
    scene.group.assert_quiet().await;
    scene.grows("x").await;

    scene.group.say(ErrorCode::REBALANCE_IN_PROGRESS);
    scene.group.beats(3).await;
    scene.clock.pass(REBALANCE).await;
    let before = scene.end("x").await;
    server.state().committed += 1;
    scene.clock.pass(SESSION).await;
    assert_eq!(scene.end("x").await, before, "it may be another's by now");

    scene.group.say(ErrorCode::NONE);
    server.stops.open();
    let join = scene.group.join().await;
    assert_eq!(join.has, nothing());
    join.give(&a(0..1));
    life.api.until("a", |status| running(status) == 1).await;
    scene.grows("x").await;
}

#[tokio::test(start_paused = true)]
async fn who_is_refused_after_its_start_was_over_comes_back() {
    let scene = Scene::start().await;
    let hurried = WorkerConfig { start_timeout: SESSION, ..scene.config() };
    let (life, join) = tokio::join!(Life::start(hurried, &scene.bench.server), async {
        let join = scene.group.join().await;
        scene.clock.pass(SESSION).await;
        join
    });
    join.refuse(ErrorCode::INCONSISTENT_GROUP_PROTOCOL);
    scene.clock.pass(REBALANCE / 2).await;
    scene.group.join().await.lead();
    while life.api.create("a", config("shop")).await.status == 409 {
        sleep(HEARTBEAT).await;
    }
    scene.group.join().await.lead();
    life.api.until_task("a", "RUNNING").await;
}

#[tokio::test(start_paused = true)]
async fn a_change_that_waited_is_not_made_by_who_leads_no_more() {
    let scene = Scene::start().await;
    let (gate, writers) = Gate::after(usize::MAX);
    let life = scene.leader(WorkerConfig { writers, ..scene.config() }).await;
    for (name, trail) in [("a", "shop"), ("b", "crm")] {
        life.api.create(name, config(trail)).await.expect(201);
        scene.group.join().await.lead();
        life.api.until_task(name, "RUNNING").await;
    }
    gate.configs.close();
    let pause = |name: &'static str| {
        let api = life.api.clone();
        tokio::spawn(async move { api.put(&format!("/connectors/{name}/pause")).await })
    };
    let first = pause("a");
    gate.configs.reached().await;
    let second = pause("b");
    for _ in 0..10 {
        life.api.get("/connectors").await.expect(200);
    }
    let both = json!({ "connectors": ["a", "b"], "tasks": { "a": [0], "b": [0] } });
    scene.group.rebalance().await.give(&both);
    // What nobody has is done by the leader, which cannot be reached.
    let restart = "/connectors/a/tasks/9/restart";
    while life.api.call(Method::POST, restart, None).await.status != 409 {
        sleep(HEARTBEAT).await;
    }
    gate.configs.open();
    first.await.unwrap().expect(202);
    assert_eq!(second.await.unwrap().refusal(409), REBALANCING);
    let target = scene.bench.newest("highwater.configs", "target-state-b").await.unwrap();
    assert_eq!(target["state"], "STARTED");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_connector_is_held_until_its_tasks_have_ended() {
    let scene = Scene::start().await;
    let life = scene.leader(scene.config()).await;
    life.api.create("a", config("shop")).await.expect(201);
    scene.group.join().await.lead();
    life.api.until_task("a", "RUNNING").await;
    let stops = &scene.bench.server.stops;
    stops.close();
    let api = life.api.clone();
    let deleted =
        tokio::spawn(async move { api.call(Method::DELETE, "/connectors/a", None).await });
    stops.reached().await;
    let join = scene.group.join().await;
    assert_eq!(join.has, a(0..1));
    join.lead();
    scene.clock.pass(SESSION).await;
    scene.group.assert_quiet().await;
    stops.open();
    let join = scene.group.join().await;
    assert_eq!(join.has, nothing());
    join.lead();
    deleted.await.unwrap().expect(204);
}

#[tokio::test(start_paused = true)]
async fn what_was_planned_of_an_older_configuration_is_not_run() {
    let scene = Scene::start().await;
    let life = scene.leader(scene.config()).await;
    let server = &scene.bench.server;
    server.state().misfit = Some(lasting());
    let configuration = |password: &str, check: &str| {
        let mut properties = config("shop");
        properties["database.password"] = json!(password);
        properties["check"] = json!(check);
        written("a", &properties)
    };
    scene.bench.write_configs(&configuration("old", "waits")).await;
    scene.group.join().await.give(&a(0..1));
    life.api.until("a", |status| status["connector"]["state"] == "FAILED").await;

    server.state().misfit = None;
    server.checks.close();
    scene.group.rebalance().await.give(&a(0..1));
    server.checks.reached().await;
    scene.bench.write_configs(&configuration("new", "")).await;
    life.api.until_task("a", "RUNNING").await;
    server.checks.open();
    scene.clock.pass(SESSION).await;
    assert!(server.state().starts.iter().all(|start| start.password == "new"));
}

#[tokio::test(start_paused = true)]
async fn a_fence_of_its_own_does_not_wait_for_that_of_another_worker() {
    let scene = Scene::start().await;
    let exactly_once = ExactlyOnceSupport::Enabled;
    let life = scene.leader(WorkerConfig { exactly_once, ..scene.config() }).await;
    for (name, trail) in [("a", "shop"), ("b", "crm")] {
        life.api.create(name, config(trail)).await.expect(201);
    }
    // Who has connector `a` does not fence.
    let tasks = json!({ "connectors": [], "tasks": { "a": [0] } });
    scene.group.join().await.give(&tasks);
    scene.clock.pass(Duration::from_secs(1)).await;
    let more = json!({ "connectors": ["b"], "tasks": { "a": [0], "b": [0] } });
    scene.group.rebalance().await.give(&more);
    let given = Instant::now();
    life.api.until_task("b", "RUNNING").await;
    assert!(given.elapsed() < Duration::from_secs(5), "{:?}", given.elapsed());
    assert_eq!(scene.bench.server.state().starts.len(), 1, "`a` is not fenced");
}

#[tokio::test(start_paused = true)]
async fn a_task_on_its_way_to_another_worker_is_started_anew_by_nobody() {
    let scene = Scene::start().await;
    let life = scene.leader(scene.config()).await;
    life.api.create("a", parted("x,y")).await.expect(201);
    scene.group.join().await.lead();
    life.api.until("a", |status| running(status) == 2).await;
    scene.group.rebalance().await.lead_beside_another();
    let join = scene.group.join().await;
    assert_eq!(join.has, a(0..1));
    let restart = |task: usize| {
        let (api, path) = (life.api.clone(), format!("/connectors/a/tasks/{task}/restart"));
        async move { api.call(Method::POST, &path, None).await }
    };
    assert_eq!(restart(1).await.refusal(409), REBALANCING);
    restart(0).await.expect(204);
    join.lead();
    life.api.until("a", |status| running(status) == 2).await;
    restart(1).await.expect(204);
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_waits_for_its_turn_hears_of_the_next_rebalance() {
    let scene = Scene::start().await;
    let (gate, writers) = Gate::after(usize::MAX);
    let life = scene.leader(WorkerConfig { writers, ..scene.config() }).await;
    life.api.create("a", config("shop")).await.expect(201);
    scene.group.join().await.lead();
    life.api.until_task("a", "RUNNING").await;
    gate.configs.close();
    let api = life.api.clone();
    let change = tokio::spawn(async move { api.put("/connectors/a/pause").await });
    gate.configs.reached().await;
    for _ in 0..2 {
        let join = scene.group.rebalance().await;
        assert_eq!(join.has, a(0..1));
        join.lead();
        scene.clock.pass(SESSION).await;
    }
    gate.configs.open();
    change.await.unwrap().expect(202);
    life.api.until_task("a", "PAUSED").await;
}

#[tokio::test(start_paused = true)]
async fn what_is_new_is_not_started_before_it_is_known_how_it_is_configured() {
    let scene = Scene::start().await;
    let life = scene.follower("x").await;
    scene.group.rebalance().await.give(&nothing());
    scene.group.join().await.give(&nothing());
    let mut changed = parted("x");
    changed["database.password"] = json!("new");
    let mut transaction = scene.bench.begin_configs(&written("a", &changed)).await;
    let starts = scene.bench.server.state().starts.len();
    scene.group.rebalance().await.give(&a(0..1));
    // Both who follows and who was given it have waited in vain by then.
    scene.clock.pass(Duration::from_secs(30)).await;
    assert_eq!(scene.bench.server.state().starts.len(), starts, "it may run elsewhere otherwise");
    transaction.commit().await.unwrap();
    life.api.until_task("a", "RUNNING").await;
    assert_eq!(scene.bench.server.state().starts.len(), starts + 1);
    assert_eq!(scene.bench.server.last_start().password, "new");
}
