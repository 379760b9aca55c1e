//! The main cells of rule P3's matrix on a real server.

use highwater_connector::Retry;
use highwater_postgres::{Lsn, code};

use crate::rig::{Event, Rig, replayed};

/// A rig that streamed one row and stopped.
async fn stopped() -> Rig {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    rig.stream("insert into t values(1)").await;
    rig.task.take().unwrap().stop().await;
    rig
}

fn edit(rig: &Rig, change: impl FnOnce(&mut highwater_connector::SourceOffset)) {
    let mut offset = rig.stored.last().unwrap();
    change(&mut offset);
    rig.stored.put(offset);
}

#[tokio::test]
async fn an_intent_is_stored_before_the_slot_is_made() {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    rig.started().await;
    let stored = rig.stored.0.lock().unwrap().clone();
    assert_eq!(stored[0].text("state"), Some("intent"));
    assert_eq!(stored[0].text("slot"), Some(rig.slot()));
    assert!(stored[0].text("system_id").is_some() && stored[0].text("lsn").is_none());
    assert_eq!(stored[1].text("state"), Some("snapshot"));
}

#[tokio::test]
async fn without_a_stored_intent_no_slot_is_made() {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    *rig.stored.1.lock().unwrap() = Some(0);
    assert_eq!(rig.refused().await.code, "LOG_AWAY");
    let slots = "select count(*)::text from pg_replication_slots where database=current_database()";
    assert_eq!(rig.ask(slots).await.as_deref(), Some("0"));
    // The publication comes before both.
    assert_eq!(rig.ask("select count(*)::text from pg_publication").await.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_slot_whose_position_was_not_stored_is_made_again() {
    let mut rig = Rig::new("create table t(id int primary key); insert into t values(1)").await;
    *rig.stored.1.lock().unwrap() = Some(1);
    assert_eq!(rig.refused().await.code, "LOG_AWAY");
    assert_eq!(rig.stored.last().unwrap().text("state"), Some("intent"));
    let old = rig.confirmed().await;
    *rig.stored.1.lock().unwrap() = None;
    rig.started().await;
    assert!(rig.confirmed().await > old);
    rig.settle().await;
    assert_eq!(rig.lines(), ["snapshot_begin", r#"r +{"id":1}"#, "snapshot_end"]);
}

#[tokio::test]
async fn an_intent_with_its_slot_begins_again() {
    let mut rig = Rig::new("create table t(id int primary key); insert into t values(1)").await;
    rig.started().await;
    rig.crash();
    let intent = rig.stored.0.lock().unwrap()[0].clone();
    let old = rig.confirmed().await;
    rig.stored.0.lock().unwrap().clear();
    rig.stored.put(intent);
    rig.started().await;
    assert!(rig.confirmed().await > old, "it is another slot");
    rig.settle().await;
    assert_eq!(rig.lines(), ["snapshot_begin", r#"r +{"id":1}"#, "snapshot_end"]);
}

#[tokio::test]
async fn a_position_without_a_slot_is_refused_and_no_slot_is_made() {
    let mut rig = stopped().await;
    rig.sql(&format!("select pg_drop_replication_slot('{}')", rig.slot())).await;
    let refusal = rig.refused().await;
    assert_eq!((refusal.code, refusal.retry), (code::SLOT_MISSING, Retry::Never));
    let slots = rig
        .ask("select count(*)::text from pg_replication_slots where database=current_database()")
        .await;
    assert_eq!(slots.as_deref(), Some("0"));
}

#[tokio::test]
async fn p28_a_slot_whose_log_was_removed_is_refused() {
    let server = crate::server::Server::start();
    let mut rig =
        Rig::on(&server, "create table t(id int primary key); create table noisy(v text)").await;
    rig.set("table.include.list", "public.t,public.hw_mark");
    rig.stream("insert into t values(1)").await;
    rig.task.take().unwrap().stop().await;
    rig.sql("alter system set max_slot_wal_keep_size = '16MB'").await;
    rig.sql("select pg_reload_conf()").await;
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
    let refusal = rig.refused().await;
    assert_eq!((refusal.code, refusal.retry), (code::SLOT_LOST, Retry::Never));
    assert!(refusal.remedy.contains("pg_drop_replication_slot"), "{refusal}");
}

#[tokio::test]
async fn p39_a_slot_that_was_moved_on_is_refused_with_both_numbers() {
    let mut rig = stopped().await;
    rig.sql("insert into t values(2)").await;
    let sql = format!("select pg_replication_slot_advance('{}', pg_current_wal_lsn())", rig.slot());
    rig.sql(&sql).await;
    let refusal = rig.refused().await;
    assert_eq!((refusal.code, refusal.retry), (code::BEHIND, Retry::Never));
    let stored = rig.stored.last().unwrap();
    assert!(refusal.what.contains(stored.text("lsn").unwrap()), "{refusal}");
    assert!(refusal.what.contains(&rig.confirmed().await.to_string()), "{refusal}");
}

#[tokio::test]
async fn p39_the_remedy_that_is_named_works() {
    let mut rig = stopped().await;
    rig.sql("insert into t values(2)").await;
    let sql = format!("select pg_replication_slot_advance('{}', pg_current_wal_lsn())", rig.slot());
    rig.sql(&sql).await;
    let confirmed = rig.confirmed().await;
    let verdict = rig.edit(&format!(r#"{{"lsn":"{confirmed}"}}"#), true).await;
    let highwater_connector::OffsetVerdict::Accepted(Some(offset)) = verdict else {
        panic!("{verdict:?}")
    };
    rig.stored.put(offset);
    let lines = rig.stream("insert into t values(3)").await;
    assert_eq!(lines, [r#"c +{"id":3}"#]);
}

#[tokio::test]
async fn a_slot_without_an_offset_is_refused_and_stays() {
    let mut rig = stopped().await;
    rig.stored.0.lock().unwrap().clear();
    let before = rig.confirmed().await;
    assert_eq!(rig.refused().await.code, code::SLOT_FOREIGN);
    assert_eq!(rig.confirmed().await, before);
    assert!(rig.stored.last().is_none(), "a refusal stores nothing");
}

#[tokio::test]
async fn a_slot_without_an_offset_is_adopted_where_it_stands() {
    let mut rig = stopped().await;
    rig.sql("insert into t values(2)").await;
    rig.stored.0.lock().unwrap().clear();
    let before = rig.events().count();
    rig.set("slot.adopt", "stream");
    rig.started().await;
    rig.settle().await;
    let lines: Vec<_> = rig.lines().split_off(before);
    assert_eq!(lines.last().unwrap(), r#"c +{"id":2}"#);
    assert!(lines.iter().all(|line| line.starts_with('c')));
}

#[tokio::test]
async fn a_slot_without_an_offset_is_made_again_when_told() {
    let mut rig = stopped().await;
    rig.stored.0.lock().unwrap().clear();
    rig.trail.clear();
    rig.set("slot.adopt", "resnapshot").set("snapshot.mode", "initial");
    rig.started().await;
    rig.settle().await;
    assert_eq!(rig.lines(), ["snapshot_begin", r#"r +{"id":1}"#, "snapshot_end"]);
}

#[tokio::test]
async fn a_slot_of_another_plugin_or_database_is_refused() {
    let mut rig = stopped().await;
    rig.sql(&format!("select pg_drop_replication_slot('{}')", rig.slot())).await;
    let make =
        format!("select pg_create_logical_replication_slot('{}','test_decoding')", rig.slot());
    rig.sql(&make).await;
    assert_eq!(rig.refused().await.code, code::SLOT_PLUGIN);
    rig.sql(&format!("select pg_drop_replication_slot('{}')", rig.slot())).await;
    let make = format!("select pg_create_logical_replication_slot('{}','pgoutput')", rig.slot());
    crate::server::server().client("postgres").await.batch_execute(&make).await.unwrap();
    assert_eq!(rig.refused().await.code, code::SLOT_DATABASE);
}

#[tokio::test]
async fn a_position_of_the_future_or_of_another_server_is_refused() {
    let mut rig = stopped().await;
    edit(&rig, |offset| offset.set("lsn", "FFFF/0"));
    assert_eq!(rig.refused().await.code, code::AHEAD);
    rig.stored.0.lock().unwrap().pop();
    edit(&rig, |offset| offset.set("system_id", "1"));
    assert_eq!(rig.refused().await.code, code::OTHER_SERVER);
    rig.stored.0.lock().unwrap().pop();
    edit(&rig, |offset| offset.set("timeline", 9));
    assert_eq!(rig.refused().await.code, code::TIMELINE);
    rig.stored.0.lock().unwrap().pop();
    edit(&rig, |offset| offset.set("lsn", 17));
    assert_eq!(rig.refused().await.code, code::OFFSET);
}

#[tokio::test]
async fn an_offset_without_identity_is_given_the_servers_and_keeps_what_it_does_not_know() {
    let mut rig = stopped().await;
    let lsn = rig.stored.last().unwrap().text("lsn").unwrap().to_owned();
    let bare = format!(r#"{{"lsn":"{lsn}","note":"by hand"}}"#);
    rig.stored.put(serde_json::from_str(&bare).unwrap());
    let lines = rig.stream("insert into t values(2)").await;
    assert_eq!(lines, [r#"c +{"id":2}"#]);
    let offset = rig.stored.last().unwrap();
    assert!(offset.text("system_id").is_some() && offset.number("timeline") == Some(1));
    assert_eq!(offset.text("note"), Some("by hand"));
}

#[tokio::test]
async fn a_slot_that_somebody_reads_is_waited_for() {
    let mut rig = stopped().await;
    let mut other = Rig::new("create table t(id int primary key)").await;
    other.values.clone_from(&rig.values);
    other.stored.put(rig.stored.last().unwrap());
    other.started().await;
    let error = rig.refused().await;
    assert_eq!((error.code, error.retry), (code::SLOT_ACTIVE, Retry::Backoff));
    other.task.take().unwrap().stop().await;
    assert_eq!(rig.stream("insert into t values(2)").await, [r#"c +{"id":2}"#]);
}

#[tokio::test]
async fn an_open_transaction_that_keeps_the_slot_from_being_made_is_named() {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    rig.set("slot.create.timeout.ms", "1000");
    let open = crate::server::server().client(&rig.database).await;
    open.batch_execute("begin; insert into t values(1)").await.unwrap();
    let error = rig.refused().await;
    assert_eq!((error.code, error.retry), (code::SLOT_WAITS, Retry::Backoff));
    assert!(error.what.contains("transaction ") && error.what.contains("postgres"), "{error}");
    open.batch_execute("commit").await.unwrap();
    rig.started().await;
    rig.settle().await;
    assert_eq!(rig.lines(), ["snapshot_begin", r#"r +{"id":1}"#, "snapshot_end"]);
}

#[tokio::test]
async fn a_stop_tells_the_server_nothing_new() {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    rig.stream("insert into t values(1)").await;
    rig.acknowledge = false;
    rig.sql("insert into t values(2)").await;
    rig.until("the row", |rig| rig.events().count() == 2).await;
    rig.task.take().unwrap().stop().await;
    // Before the row came an idle position may have been stored, and told.
    let stored: Lsn = rig.stored.last().unwrap().text("lsn").unwrap().parse().unwrap();
    assert!(rig.confirmed().await <= stored);
}

#[tokio::test]
async fn a_publication_that_went_away_is_not_made_again_behind_a_position() {
    let mut rig = stopped().await;
    rig.sql("drop publication dbz_publication").await;
    assert_eq!(rig.refused().await.code, code::PUBLICATION);
    assert_eq!(rig.ask("select count(*)::text from pg_publication").await.as_deref(), Some("0"));
}

#[tokio::test]
async fn a_table_that_joins_is_read_before_its_changes() {
    let mut rig = Rig::new(
        "create table a(id int primary key); create table late(id int primary key, v text)",
    )
    .await;
    rig.set("table.include.list", "public.a,public.hw_mark");
    rig.started().await;
    rig.settle().await;
    rig.sql("insert into late values(1,'before'); insert into a values(1)").await;
    rig.settle().await;
    rig.crash();
    // While nobody reads, too.
    rig.sql("insert into late values(2,'between'); insert into a values(2)").await;
    rig.set("table.include.list", "public.a,public.late,public.hw_mark");
    // A crash behind the publication and before the snapshot does not forget it.
    rig.started().await;
    rig.crash();
    rig.started().await;
    rig.sql("insert into late values(3,'after'); update late set v='changed' where id=1").await;
    rig.settle().await;
    let of = |table: &str| replayed(rig.events().filter(|event| event.table() == table));
    let late: Vec<String> = of("late").values().map(|row| row["v"].to_string()).collect();
    assert_eq!(late, [r#""changed""#, r#""between""#, r#""after""#]);
    // The other table is not read again, and none of its changes is left out or doubled.
    let a: Vec<String> =
        rig.events().filter(|event| event.table() == "a").map(Event::line).collect();
    assert_eq!(a.iter().filter(|line| line.starts_with("c ")).count(), 2, "{a:?}");
}
