//! The source under faults: whatever happens to the server, to the way to it, or to what the
//! capture needs there, everything arrives in order, or it is said by name what does not.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Instant;

use highwater_connector::{ConnectorError, Retry};
use highwater_postgres::code;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

use crate::rig::{PATIENCE, Rig};
use crate::server::Server;

impl Rig {
    /// Polls; where that fails in a way that may pass, starts again as a worker would.
    async fn survive(&mut self, what: &str, holds: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !holds(self) {
            assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
            let ended = match self.task {
                Some(_) => self.poll().await.map(drop),
                None => self.start().await,
            };
            if let Err(error) = ended {
                assert_eq!(error.retry, Retry::Backoff, "{error}");
                self.crash();
            }
        }
    }

    /// The values of column `v` in the order of their first delivery, but rows of snapshots.
    fn delivered(&self) -> Vec<i64> {
        let mut seen = BTreeSet::new();
        self.events()
            .filter(|event| {
                matches!(event.op(), "c" | "u") && seen.insert(event.hw.record_id().to_string())
            })
            .filter_map(|event| event.value["after"]["v"].as_i64())
            .collect()
    }
}

/// Ends a server while the task goes on to read, as it must for an end in order.
async fn halted(rig: &mut Rig, server: &Server, how: &'static str) {
    // An ordinary connection keeps a smart shutdown waiting: ours must not, nor that of the test.
    rig.db = crate::server::server().client("postgres").await;
    let halting = server.halting(how);
    let error = rig.fails().await;
    assert_eq!((error.code, error.retry), (code::CONNECTION, Retry::Backoff), "{how}: {error}");
    rig.crash();
    halting.await.unwrap();
    let error = rig.refused().await;
    assert_eq!((error.code, error.retry), (code::CONNECTION, Retry::Backoff), "{how}: {error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_may_end_in_any_way_and_come_back() {
    let server = Server::start();
    let mut rig = Rig::on(&server, "create table t(id int primary key, v int)").await;
    rig.stream("insert into t values(0,0)").await;
    let mut next = 1;
    for how in ["smart", "fast", "immediate", "kill"] {
        rig.stream(&format!("insert into t values({next},{next})")).await;
        // Committed and not read yet.
        rig.sql(&format!("insert into t values({},{})", next + 1, next + 1)).await;
        halted(&mut rig, &server, how).await;
        server.command("resume");
        rig.db = server.client(&rig.database).await;
        rig.survive("the server to come back", |rig| rig.task.is_some()).await;
        next += 2;
    }
    rig.stream(&format!("insert into t values({next},{next})")).await;
    let expected: Vec<i64> = (0..=next).collect();
    assert_eq!(rig.delivered(), expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standby_is_waited_for_and_once_promoted_refused_for_want_of_the_slot() {
    let server = Server::start();
    let mut rig = Rig::on(&server, "create table t(id int primary key, v int)").await;
    rig.stream("insert into t values(0,0)").await;
    rig.task.take().unwrap().stop().await;
    let standby = server.follow();
    rig.set("database.port", &standby.to_string());
    let error = rig.refused().await;
    assert_eq!((error.code, error.retry), (code::STANDBY, Retry::Backoff), "{error}");

    server.halt("immediate");
    server.command("succeed");
    let refusal = rig.refused().await;
    assert_eq!((refusal.code, refusal.retry), (code::SLOT_MISSING, Retry::Never), "{refusal}");
    for part in ["timeline 1 went over to 2", "failover slots", "begin again"] {
        assert!(refusal.to_string().contains(part), "{part} is missing in {refusal}");
    }
    // What the remedy leads to.
    rig.stored.0.lock().unwrap().clear();
    rig.set("snapshot.mode", "initial");
    rig.started().await;
    rig.until("the snapshot", |rig| rig.events().any(|event| event.op() == "snapshot_end")).await;
}

#[tokio::test]
async fn a_slot_that_is_dropped_while_it_is_read_is_named() {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    rig.stream("insert into t values(1)").await;
    let slot = rig.slot().to_owned();
    rig.sql(&format!(
        "select pg_terminate_backend(active_pid, 10000) from pg_replication_slots
         where slot_name = '{slot}'"
    ))
    .await;
    rig.sql(&format!("select pg_drop_replication_slot('{slot}')")).await;
    let error = rig.fails().await;
    assert_eq!((error.code, error.retry), (code::CONNECTION, Retry::Backoff), "{error}");
    rig.crash();
    let refusal = rig.refused().await;
    assert_eq!((refusal.code, refusal.retry), (code::SLOT_MISSING, Retry::Never), "{refusal}");
    assert!(!refusal.what.contains("standby"), "{refusal}");
}

#[tokio::test]
async fn a_slot_that_holds_too_much_is_warned_of_and_then_lost_by_name() {
    let server = Server::start();
    let mut rig =
        Rig::on(&server, "create table t(id int primary key); create table noisy(v text)").await;
    rig.set("table.include.list", "public.t,public.hw_mark");
    rig.set("slot.watch.interval.ms", "100").set("slot.wal.warn.bytes", "1000000");
    rig.stream("insert into t values(1)").await;
    // Nothing is stored any more, as when the log is full: the server must keep what comes.
    rig.acknowledge = false;
    rig.sql("insert into t values(2)").await;
    rig.sql("insert into noisy select repeat('z',1000) from generate_series(1,3000)").await;
    rig.until("a warning", |rig| rig.held().is_some_and(|hold| hold.pressing)).await;
    let hold = rig.held().unwrap();
    for part in ["MB of WAL from", "sets no bound: it may fill its disk", "too much for"] {
        assert!(hold.says.contains(part), "{part} is missing in {}", hold.says);
    }
    // The doctor judges alike, and says the same.
    let examined = rig.examine().await.unwrap();
    let found = examined.iter().find(|finding| finding.code == code::WAL_HELD).unwrap();
    assert!(found.what.contains("MB of WAL from"), "{}", found.what);
    let fact = |name: &str| hold.facts.iter().find(|fact| fact.0 == name).unwrap().1.clone();
    assert!(fact("held_bytes").parse::<u64>().unwrap() > 1_000_000, "{:?}", hold.facts);

    rig.sql("alter system set max_slot_wal_keep_size = '16MB'").await;
    rig.sql("select pg_reload_conf()").await;
    rig.until("the bound", |rig| rig.held().is_some_and(|hold| hold.says.contains("16.7 MB")))
        .await;
    let status =
        format!("select wal_status from pg_replication_slots where slot_name='{}'", rig.slot());
    for _ in 0..20 {
        rig.sql("insert into noisy select repeat('z',1000) from generate_series(1,20000)").await;
        rig.sql("select pg_switch_wal()").await;
        rig.sql("checkpoint").await;
        if rig.ask(&status).await.as_deref() == Some("lost") {
            break;
        }
    }
    let error = rig.fails().await;
    assert_eq!((error.code, error.retry), (code::CONNECTION, Retry::Backoff), "{error}");
    rig.crash();
    let refusal = rig.refused().await;
    assert_eq!((refusal.code, refusal.retry), (code::SLOT_LOST, Retry::Never), "{refusal}");
    let hold = rig.idle_hold().await.unwrap();
    assert!(hold.pressing && hold.says.contains("is lost"), "{}", hold.says);
}

#[tokio::test]
async fn what_a_slot_holds_is_said_and_only_an_own_one_is_dropped() {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    rig.stream("insert into t values(1)").await;
    let error = rig.release(rig.stored.last()).await.unwrap_err();
    assert_eq!(error.code, code::SLOT_NOT_DROPPED, "somebody reads it: {error}");
    rig.task.take().unwrap().stop().await;
    rig.sql("insert into t select generate_series(10,1000)").await;
    let hold = rig.idle_hold().await.unwrap();
    // How much it is depends on what else the server does.
    assert!(hold.says.contains(rig.slot()), "{}", hold.says);
    assert!(hold.says.contains("B of WAL from"), "{}", hold.says);
    assert!(hold.remedy.contains("--drop-slot"), "{}", hold.remedy);

    let error = rig.release(None).await.unwrap_err();
    assert_eq!(error.code, code::SLOT_NOT_DROPPED, "no offset says whose it is: {error}");
    let said = rig.release(rig.stored.last()).await.unwrap().unwrap();
    assert!(said.contains(rig.slot()) && said.contains("is dropped"), "{said}");
    assert_eq!(rig.idle_hold().await, None);
    assert_eq!(rig.release(rig.stored.last()).await.unwrap(), None, "there is nothing any more");
}

/// Which way the bytes go that are counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Way {
    FromServer,
    ToServer,
}

/// What happens to a connection when its bytes have run out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fault {
    /// Both ends see it end.
    Cut,
    /// It stands, and nothing comes through any more.
    Silent,
}

/// Stands between the connector and its server and cuts or holds a connection after some bytes.
struct Proxy {
    port: u16,
    /// Bytes of the counted way that still pass before the cut; it never comes below zero twice.
    left: Arc<AtomicI64>,
}

impl Proxy {
    async fn start(server: u16, way: Way, fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let left = Arc::new(AtomicI64::new(i64::MAX));
        let counter = Arc::clone(&left);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                let count = |is| (way == is).then(|| Arc::clone(&counter));
                let up = pass(from_client, to_server, count(Way::ToServer), fault);
                let down = pass(from_server, to_client, count(Way::FromServer), fault);
                // Whichever ends first takes both connections with it.
                tokio::spawn(async move {
                    tokio::select! { () = up => {}, () = down => {} }
                });
            }
        });
        Self { port, left }
    }
}

/// Passes bytes on until one side ends or the counter has run out; after that all pass again.
async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    count: Option<Arc<AtomicI64>>,
    fault: Fault,
) {
    let mut buffer = vec![0; 4096];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let mut passing = read;
        if let Some(left) = &count {
            let before = left.fetch_sub(i64::try_from(read).unwrap(), Ordering::SeqCst);
            if before <= i64::try_from(read).unwrap() {
                left.store(i64::MAX, Ordering::SeqCst);
                passing = usize::try_from(before.max(0)).unwrap();
            }
        }
        if to.write_all(&buffer[..passing]).await.is_err() {
            return;
        }
        if passing < read {
            return match fault {
                Fault::Cut => (),
                Fault::Silent => std::future::pending().await,
            };
        }
    }
}

/// One first start, snapshot and stream through a proxy that cuts after `budget` bytes; gives how
/// many bytes went the counted way.
async fn life_with_a_cut(rig: &mut Rig, proxy: &Proxy, round: i64, budget: i64) -> i64 {
    rig.set("database.port", &proxy.port.to_string());
    let name = format!("cut_{round}");
    rig.set("slot.name", &name).set("publication.name", &name);
    rig.stored.0.lock().unwrap().clear();
    rig.descriptions.clear();
    rig.trail.clear();
    rig.sql("truncate t; insert into t select g, -g from generate_series(1,40) g").await;
    proxy.left.store(budget, Ordering::SeqCst);
    rig.survive("the snapshot", |rig| {
        let state = rig.stored.last().and_then(|offset| offset.text("state").map(str::to_owned));
        rig.task.is_some() && state.as_deref() == Some("streaming")
    })
    .await;
    for v in 1..=30 {
        rig.sql(&format!("update t set v = {v} where id = {v}")).await;
    }
    rig.survive("all changes", |rig| rig.delivered().last() == Some(&30)).await;
    let begin = rig.delivered();
    let expected: Vec<i64> = (1..=30).collect();
    assert_eq!(begin, expected, "cut after {budget} bytes");
    let rows = crate::rig::replayed(rig.events().filter(|event| event.table() == "t"));
    let value = |id: i64| rows[&format!("{{\"id\":{id}}}")]["v"].as_i64().unwrap();
    let values: Vec<i64> = (1..=40).map(value).collect();
    let expected: Vec<i64> = (1..=30).chain((31..=40).map(|id: i64| -id)).collect();
    assert_eq!(values, expected, "cut after {budget} bytes");
    rig.task.take().unwrap().stop().await;
    rig.sql(&format!("select pg_drop_replication_slot('{name}'); drop publication {name}")).await;
    budget - proxy.left.load(Ordering::SeqCst)
}

/// A number that follows from a seed (Knuth's MMIX generator).
fn chosen(seed: u64, below: i64) -> i64 {
    let mixed =
        seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    i64::try_from(mixed >> 33).unwrap() % below
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_may_be_cut_at_any_byte() {
    let cases: i64 = std::env::var("HW_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let server = Server::start();
    for way in [Way::FromServer, Way::ToServer] {
        let proxy = Proxy::start(server.port, way, Fault::Cut).await;
        let mut rig = Rig::on(&server, "create table t(id int primary key, v int)").await;
        rig.set("table.include.list", "public.t").set("database.sslmode", "disable");
        // Looks at the server would make the number of bytes another each time.
        rig.set("slot.watch.interval.ms", "3600000");
        let whole = 1 << 40;
        let total = life_with_a_cut(&mut rig, &proxy, 0, whole).await;
        assert!(total > 1_000, "the proxy counts: {total}");
        for case in 0..cases {
            // One in each part of the whole, anywhere in it.
            let part = total / cases;
            let within = chosen(u64::try_from(case).unwrap() + 77, part.max(1));
            let budget = (case * part + within).max(1);
            life_with_a_cut(&mut rig, &proxy, case + 1, budget).await;
        }
    }
}

/// A first start and its snapshot through a proxy that goes dark after `budget` bytes; gives how many
/// bytes came from the server, and what the task said of it.
async fn snapshot_in_the_dark(
    rig: &mut Rig,
    proxy: &Proxy,
    round: i64,
    budget: i64,
) -> (i64, Option<ConnectorError>) {
    let name = format!("dark_{round}");
    rig.set("slot.name", &name).set("publication.name", &name);
    rig.stored.0.lock().unwrap().clear();
    rig.descriptions.clear();
    rig.trail.clear();
    proxy.left.store(budget, Ordering::SeqCst);
    let (begun, mut said) = (Instant::now(), None);
    while !rig.events().any(|event| event.op() == "snapshot_end") {
        assert!(begun.elapsed() < PATIENCE, "dark after {budget} bytes: nobody noticed");
        // A question that is never answered must not keep the test, either.
        let step = async {
            match rig.task {
                Some(_) => rig.poll().await.map(drop),
                None => rig.start().await,
            }
        };
        let Ok(ended) = tokio::time::timeout(PATIENCE, step).await else {
            panic!("dark after {budget} bytes: nobody noticed")
        };
        if let Err(error) = ended {
            assert_eq!(error.retry, Retry::Backoff, "{error}");
            rig.crash();
            said = Some(error);
        }
    }
    let rows = crate::rig::replayed(rig.events().filter(|event| event.table() == "t"));
    assert_eq!(rows.len(), 2_000, "dark after {budget} bytes");
    rig.task.take().unwrap().stop().await;
    (budget - proxy.left.load(Ordering::SeqCst), said)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_falls_silent_at_a_start_or_in_a_snapshot_is_given_up() {
    let server = Server::start();
    let proxy = Proxy::start(server.port, Way::FromServer, Fault::Silent).await;
    let mut rig = Rig::on(&server, "create table t(id int primary key, v text)").await;
    rig.sql("insert into t select g, repeat('v', 100) from generate_series(1, 2000) g").await;
    rig.set("table.include.list", "public.t").set("database.sslmode", "disable");
    rig.set("slot.watch.interval.ms", "3600000").set("database.port", &proxy.port.to_string());
    rig.set("database.connect.timeout.ms", "1000").set("database.answer.timeout.ms", "1000");
    let (total, said) = snapshot_in_the_dark(&mut rig, &proxy, 0, 1 << 40).await;
    assert!(total > 200_000 && said.is_none(), "{total} {said:?}");
    // A start says some kilobytes, and after them the rows come. A look at the server, which has a
    // connection of its own, may meet with the dark instead.
    let start = total - 200_000;
    let budgets: Vec<i64> = (1..8).map(|n| start * n / 8).chain([start + 100_000]).collect();
    for (round, budget) in (1..).zip(&budgets) {
        let (_, said) = snapshot_in_the_dark(&mut rig, &proxy, round, *budget).await;
        let code = said.map(|error| error.code);
        let due = *budget > start;
        assert!(code == Some(code::CONNECTION) || !due && code.is_none(), "{budget}: {code:?}");
    }
}
