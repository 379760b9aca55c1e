//! Crash anywhere, restart: what comes again is exactly what was not stored.

use highwater_connector::SourceOffset;
use highwater_postgres::Lsn;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::rig::{Event, Rig};

/// What identifies an event and what it says.
fn shown(event: &Event) -> (String, String, String) {
    (event.hw.record_id().to_string(), event.table().to_owned(), event.line())
}

/// What offsets are compared by.
fn reached(offset: &SourceOffset) -> (Lsn, Option<(Lsn, Option<i64>)>) {
    let lsn = |field: &str| offset.text(field).and_then(|text| text.parse().ok());
    let partial = lsn("commit_lsn").map(|commit| (commit, offset.number("event_index")));
    (lsn("lsn").unwrap_or_default(), partial)
}

/// Makes the state in which exactly the first `count` records were stored. What was stored while
/// idle is not taken back.
fn store_first(rig: &Rig, trail: &[Event], count: usize) {
    let stored = rig.stored.last().unwrap();
    let wanted = count.checked_sub(1).map(|last| trail[last].offset.clone());
    if let Some(wanted) = wanted.filter(|wanted| reached(wanted) > reached(&stored)) {
        rig.stored.put(wanted);
    }
}

#[tokio::test]
async fn p13_a_kill_between_two_interleaved_transactions_loses_neither() {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    rig.stream("select 1").await;
    let mut other = crate::server::server().client(&rig.database).await;
    let a = other.transaction().await.unwrap();
    a.batch_execute("insert into t values(100)").await.unwrap();
    rig.stream("insert into t values(200)").await;
    a.batch_execute("insert into t values(101)").await.unwrap();
    rig.crash();
    a.commit().await.unwrap();
    rig.started().await;
    rig.settle().await;
    assert_eq!(rig.lines(), [200, 100, 101].map(|id| format!(r#"c +{{"id":{id}}}"#)));
}

#[tokio::test]
async fn p38_a_transaction_that_was_stored_in_part_goes_on_in_its_middle() {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    rig.stream("select 1").await;
    rig.acknowledge = false;
    rig.stream("insert into t select generate_series(0,9)").await;
    let whole: Vec<_> = rig.events().map(shown).collect();
    assert_eq!(whole.len(), 10);
    let third = rig.events().nth(3).unwrap().offset.clone();
    let begins: Lsn = third.text("lsn").unwrap().parse().unwrap();
    rig.crash();
    rig.stored.put(third);
    rig.trail.clear();
    rig.started().await;
    rig.settle().await;
    let again: Vec<_> = rig.events().map(shown).collect();
    assert_eq!(again, whole[4..]);
    assert_eq!(rig.events().last().unwrap().hw.count, Some(10));
    // A position inside a transaction never moves the server past it.
    assert!(rig.confirmed().await <= begins);
}

/// One statement of a history; `;;` ends a transaction.
fn step() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..20_i32, 0..9_i32).prop_map(|(id, v)| format!(
            "insert into t values({id},{v}) on conflict (id) do update set v=excluded.v"
        )),
        2 => (0..20_i32).prop_map(|id| format!("delete from t where id={id}")),
        2 => (0..20_i32).prop_map(|id| format!("update t set id=id+20 where id={id} and not exists
              (select from t x where x.id={id}+20)")),
        1 => (0..9_i32).prop_map(|v| format!("insert into uncaptured values({v})")),
        1 => Just("savepoint s; insert into t values(-1,0) on conflict do nothing; rollback to s".to_owned()),
        1 => Just("truncate u".to_owned()),
        2 => (0..9_i32).prop_map(|v| format!("insert into u(v) values({v})")),
        1 => (0..3_u8, any::<bool>()).prop_map(|(c, add)| if add {
            format!("alter table u add column if not exists c{c} int default 1")
        } else {
            format!("alter table u drop column if exists c{c}")
        }),
    ]
}

fn history() -> impl Strategy<Value = Vec<Vec<String>>> {
    prop::collection::vec(prop::collection::vec(step(), 1..5), 1..8)
}

#[test]
fn any_history_crashed_anywhere_and_stored_up_to_anywhere_goes_on_exactly_there() {
    // HW_CASES counts histories without a server, which cost a thousandth.
    let scaled: Option<u32> = std::env::var("HW_CASES").ok().and_then(|cases| cases.parse().ok());
    let cases = scaled.map_or(6, |cases| (cases / 1_000).max(6));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let crashes = prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 1..4);
    let strategy = (prop::sample::select(&["trail", "table"][..]), history(), crashes);
    runner
        .run(&strategy, |(routing, history, crashes)| {
            runtime.block_on(replay(routing, &history, &crashes));
            Ok(())
        })
        .unwrap();
}

async fn replay(routing: &str, history: &[Vec<String>], crashes: &[(prop::sample::Index, bool)]) {
    let mut rig = Rig::new(
        "create table t(id int primary key, v int); create table u(id serial primary key, v int);
         create table uncaptured(id int)",
    )
    .await;
    rig.set("table.exclude.list", "public.uncaptured").set("topic.routing", routing);
    rig.stream("select 1").await;
    rig.trail.clear();
    rig.acknowledge = false;
    for transaction in history {
        rig.sql(&format!("begin; {}; commit", transaction.join("; "))).await;
    }
    rig.settle().await;
    let whole: Vec<_> = rig.trail.iter().map(shown).collect();
    let descriptions = rig.descriptions.clone();
    let offsets: Vec<_> = rig.trail.clone();
    let mut least = 0;
    for (at, described) in crashes {
        // What was stored once is never taken back.
        let mut count = at.index(whole.len() + 1).max(least);
        // Parts of one event are stored together.
        while offsets.get(count).is_some_and(|event| event.hw.part > 0) {
            count -= 1;
        }
        least = count;
        rig.crash();
        store_first(&rig, &offsets, count);
        // The descriptions may have reached the schema topic, or not.
        if *described {
            rig.descriptions.clone_from(&descriptions);
        }
        rig.trail.clear();
        rig.started().await;
        if count < whole.len() {
            let left = whole.len() - count;
            rig.until("the rest", |rig| rig.trail.len() >= left).await;
        }
        let again: Vec<_> = rig.trail.iter().map(shown).collect();
        assert_eq!(again, whole[count..], "from {count} on");
    }
    assert_eq!(rig.descriptions, descriptions);
}
