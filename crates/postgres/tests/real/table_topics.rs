//! One topic a table: keys that change, tombstones, snapshots without marks.

use highwater_connector::OtherKey;
use highwater_postgres::code;
use serde_json::json;

use crate::rig::{Rig, replayed};

async fn rig(schema: &str) -> Rig {
    let mut rig = Rig::new(schema).await;
    rig.set("topic.routing", "table");
    rig
}

/// Topic, operation and key of each event.
fn told(rig: &Rig) -> Vec<String> {
    let key = |key: &Option<serde_json::Value>| key.as_ref().map(ToString::to_string);
    rig.events()
        .map(|event| {
            format!("{} {} {}", event.topic, event.op(), key(&event.key).unwrap_or_default())
        })
        .collect()
}

#[tokio::test]
async fn each_table_has_a_topic_and_an_altered_one_is_told_on_none() {
    let mut rig =
        rig("create table a(id int primary key, v int); create table \"B b\"(n int); alter table \"B b\" replica identity full").await;
    rig.stream(
        "insert into a values(1, 1);; insert into \"B b\" values(7);; alter table a drop column v;;
         update a set id=2;; delete from a;; truncate a",
    )
    .await;
    assert_eq!(
        told(&rig),
        [
            r#"shop.public.a c {"id":1}"#,
            "shop.public.B_b c ",
            r#"shop.public.a d {"id":1}"#,
            r#"shop.public.a tombstone {"id":1}"#,
            r#"shop.public.a c {"id":2}"#,
            r#"shop.public.a d {"id":2}"#,
            r#"shop.public.a tombstone {"id":2}"#,
            "shop.public.a t ",
        ]
    );
    let changed: Vec<_> = rig.events().skip(2).take(3).collect();
    let parts: Vec<_> = changed.iter().map(|event| (event.hw.index, event.hw.part)).collect();
    assert_eq!(parts, [(0, 0), (0, 1), (0, 2)]);
    let (new, old) = (changed[2].key_bytes.clone().unwrap(), changed[0].key_bytes.clone().unwrap());
    let headers: Vec<_> = changed.iter().map(|event| event.other_key.clone().unwrap()).collect();
    assert_eq!(headers, [OtherKey::New(new.clone()), OtherKey::New(new), OtherKey::Old(old)]);
}

#[tokio::test]
async fn tombstones_can_be_left_out() {
    let mut rig = rig("create table a(id int primary key)").await;
    rig.set("tombstones.on.delete", "false");
    rig.stream("insert into a values(1);; update a set id=2;; delete from a").await;
    let ops: Vec<_> = rig.events().map(|event| (event.op().to_owned(), event.hw.part)).collect();
    let expected = [("c", 0), ("d", 0), ("c", 2), ("d", 0)];
    assert_eq!(ops, expected.map(|(op, part)| (op.to_owned(), part)));
}

#[tokio::test]
async fn a_changed_key_keeps_what_the_update_did_not_touch() {
    let mut rig =
        rig("create table a(id int primary key, v text); alter table a replica identity full")
            .await;
    let large = "x".repeat(200);
    rig.sql("alter table a alter column v set storage external").await;
    rig.stream("insert into a values(1, (select string_agg(md5(g::text), '') from generate_series(1,200) g));; update a set id=2").await;
    let created = rig.events().next_back().unwrap();
    assert_eq!((created.op(), created.value["before"].is_null()), ("c", true));
    assert!(created.value["after"]["v"].as_str().unwrap().len() > large.len());
    assert!(created.unchanged.is_empty());
}

#[tokio::test]
async fn a_snapshot_that_was_cut_off_leaves_no_row_behind() {
    let mut rig =
        rig("create table a(id int primary key, v int); create table e(id int primary key)").await;
    rig.sql("insert into a select g,0 from generate_series(1,500) g").await;
    rig.set("snapshot.fetch.size", "50");
    rig.started().await;
    rig.until("the middle of the table", |rig| rig.events().count() > 100).await;
    rig.crash();
    rig.sql(
        "update a set v=1 where id<=10; delete from a where id=11; insert into a values(1000,5)",
    )
    .await;
    rig.started().await;
    rig.settle().await;
    assert!(rig.events().all(|event| ["r", "c", "u", "d", "tombstone"].contains(&event.op())));
    let rows = replayed(rig.events());
    let count = rig.ask("select count(*)::text from a").await.unwrap();
    assert_eq!(rows.len().to_string(), count, "the row that was read and then deleted is gone");
    assert_eq!(rows[r#"{"id":1}"#], json!({"id": 1, "v": 1}));
    let state = rig.stored.last().unwrap();
    assert_eq!(state.text("state"), Some("streaming"));
}

#[tokio::test]
async fn two_tables_with_one_topic_are_refused_by_name() {
    let mut rig =
        rig("create table \"a b\"(id int primary key); create table a_b(id int primary key)").await;
    let error = rig.refused().await;
    assert_eq!(error.code, code::TOPIC_NAME);
    assert!(error.what.contains("shop.public.a_b"), "{error}");
}
