//! Tables are read in an exported snapshot, and the stream goes on exactly behind it.

use highwater_connector::SourceItem;
use highwater_postgres::{Lsn, code};
use serde_json::json;

use crate::rig::{Event, Rig, replayed};

/// The rows of a table, as a consumer of whole rows would hold them.
async fn rows(rig: &Rig, table: &str) -> std::collections::BTreeMap<String, serde_json::Value> {
    let sql = format!("select coalesce(json_agg(t), '[]')::text from {table} t");
    let rows: Vec<serde_json::Value> = serde_json::from_str(&rig.ask(&sql).await.unwrap()).unwrap();
    rows.into_iter().map(|row| (json!({"id": row["id"]}).to_string(), row)).collect()
}

fn of<'a>(rig: &'a Rig, table: &'a str) -> impl Iterator<Item = &'a Event> {
    rig.trail.iter().filter(move |event| event.table() == table)
}

#[tokio::test]
async fn tables_come_in_order_between_marks() {
    let mut rig =
        Rig::new("create table a(id int primary key, v text); create table b(id int primary key)")
            .await;
    rig.sql("insert into a values(1,E'x\\ty\\nz\\\\'),(2,null); insert into b values(7)").await;
    rig.started().await;
    rig.settle().await;
    assert_eq!(
        rig.lines(),
        [
            "snapshot_begin",
            r#"r +{"id":1,"v":"x\ty\nz\\"}"#,
            r#"r +{"id":2,"v":null}"#,
            "snapshot_end",
            "snapshot_begin",
            r#"r +{"id":7}"#,
            "snapshot_end",
        ]
    );
    let snapshot: Vec<_> = rig.trail.iter().filter(|event| event.hw.lane.is_none()).collect();
    let indexes: Vec<_> = snapshot.iter().map(|event| event.hw.index).collect();
    assert_eq!(indexes, (0..indexes.len() as u64).collect::<Vec<_>>());
    let begin = snapshot[0];
    assert_eq!(begin.value["point"], json!(begin.hw.position));
    assert_eq!(begin.value["source"]["snapshot"], json!("true"));
    assert!(snapshot.iter().all(|event| event.boundary));
    assert!(rig.descriptions.iter().all(|known| known.from_position == begin.hw.position));
    // The point is the slot's own: nothing lies between it and the stream.
    let offset = rig.stored.0.lock().unwrap()[1].clone();
    assert_eq!(offset.text("lsn").unwrap().parse::<Lsn>(), begin.hw.position.parse());
}

#[tokio::test]
async fn the_offset_goes_from_intent_over_snapshot_to_streaming() {
    let mut rig = Rig::new("create table a(id int primary key)").await;
    rig.started().await;
    rig.settle().await;
    let states: Vec<String> = {
        let stored = rig.stored.0.lock().unwrap();
        stored.iter().map(|offset| offset.text("state").unwrap().to_owned()).collect()
    };
    let mut distinct = states;
    distinct.dedup();
    assert_eq!(distinct, ["intent", "snapshot", "streaming"]);
}

#[tokio::test]
async fn p37_snapshot_and_stream_together_are_the_table() {
    let mut rig = Rig::new("create table t(id int primary key, v int)").await;
    rig.sql("insert into t select g, 0 from generate_series(1,3000) g").await;
    rig.set("snapshot.fetch.size", "100");
    let mut writers = Vec::new();
    for writer in 0..4 {
        let client = crate::server::server().client(&rig.database).await;
        writers.push(tokio::spawn(async move {
            for step in 0..15 {
                let id = writer * 700 + step * 40 + 1;
                let fresh = 10_000 + writer * 100 + step;
                let sql = format!(
                    "begin; update t set v=v+1 where id={id}; delete from t where id={id}+1;
                     insert into t values({fresh},{writer}); commit;
                     update t set id=id+100000 where id={id}+2"
                );
                client.batch_execute(&sql).await.unwrap();
            }
        }));
    }
    rig.started().await;
    for _ in 0..5 {
        rig.poll().await.unwrap();
    }
    for writer in writers {
        writer.await.unwrap();
    }
    rig.settle().await;
    assert_eq!(replayed(of(&rig, "t")), rows(&rig, "t").await);
    // Nothing came by both ways: an insert of a row that was read would say so.
    let mut present = std::collections::BTreeSet::new();
    for event in of(&rig, "t") {
        let key = event.key.as_ref().map(ToString::to_string);
        match event.op() {
            "r" | "c" => assert!(present.insert(key), "{}", event.line()),
            "d" => assert!(present.remove(&key), "{}", event.line()),
            "u" if !event.value["before"].is_null() => {
                assert!(present.remove(&Some(event.value["before"].to_string())));
                assert!(present.insert(key));
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_snapshot_killed_in_the_middle_of_a_table_is_resumed() {
    let mut rig = Rig::new(
        "create table a(id int primary key, v int); create table b(id int primary key, v int)",
    )
    .await;
    rig.sql("insert into a select g,0 from generate_series(1,500) g").await;
    rig.sql("insert into b select g,0 from generate_series(1,500) g").await;
    rig.set("snapshot.fetch.size", "50");
    rig.started().await;
    rig.until("the middle of the second table", |rig| of(rig, "b").count() > 100).await;
    assert!(rig.task.as_ref().unwrap().activity().contains("snapshot of public.b"));
    rig.crash();
    rig.sql(
        "update a set v=1 where id<=10; delete from a where id=11; update b set v=1 where id<=10;
             delete from b where id=11; insert into b values(1000,5)",
    )
    .await;
    rig.started().await;
    rig.settle().await;

    // The second snapshot had a slot of its own, which would hold WAL beside the stream's.
    let temporary = "select count(*)::text from pg_replication_slots
                     where temporary and database = current_database()";
    assert_eq!(rig.ask(temporary).await.as_deref(), Some("0"));
    assert_eq!(of(&rig, "a").filter(|event| event.op() == "snapshot_begin").count(), 1);
    assert_eq!(of(&rig, "b").filter(|event| event.op() == "snapshot_begin").count(), 2);
    assert_eq!(replayed(of(&rig, "a")), rows(&rig, "a").await);
    assert_eq!(replayed(of(&rig, "b")), rows(&rig, "b").await);
    // The changes of a come from the stream, those of b are in its second snapshot.
    assert_eq!(of(&rig, "a").filter(|event| event.hw.lane.is_some()).count(), 11);
    assert_eq!(of(&rig, "b").filter(|event| event.hw.lane.is_some()).count(), 0);
    // Two snapshots never give one identity twice.
    let ids: std::collections::BTreeSet<_> =
        rig.trail.iter().map(|event| event.hw.record_id().to_string()).collect();
    assert_eq!(ids.len(), rig.trail.len());
}

#[tokio::test]
async fn points_hold_until_the_stream_is_past_them() {
    let mut rig = Rig::new("create table a(id int primary key, v int)").await;
    rig.sql("insert into a values(1,0)").await;
    rig.set("snapshot.fetch.size", "1");
    rig.started().await;
    rig.poll().await.unwrap();
    rig.crash();
    rig.sql("update a set v=1").await;
    rig.sql("update a set v=2").await;
    rig.started().await;
    rig.until("the end of the snapshot", |rig| {
        rig.stored.last().is_some_and(|offset| offset.text("state") == Some("streaming"))
    })
    .await;
    // Streaming has not begun, and a crash here must not bring the two updates again.
    rig.crash();
    assert!(rig.stored.last().unwrap().text("snapshot").is_some());
    rig.started().await;
    rig.settle().await;
    assert_eq!(of(&rig, "a").filter(|event| event.op() == "u").count(), 0);
    let last = rig.stored.last().unwrap();
    assert_eq!(last.text("snapshot"), None, "{last}");
}

#[tokio::test]
async fn a_table_that_is_emptied_under_the_snapshot_is_not_taken_for_empty() {
    let mut rig =
        Rig::new("create table a(id int primary key); create table b(id int primary key)").await;
    rig.sql("insert into a select generate_series(1,200); insert into b values(1)").await;
    rig.set("snapshot.fetch.size", "10");
    rig.started().await;
    rig.poll().await.unwrap();
    rig.sql("truncate b; insert into b values(2)").await;
    assert_eq!(rig.fails().await.code, code::REWRITTEN);
    rig.crash();
    rig.started().await;
    rig.settle().await;
    assert_eq!(replayed(of(&rig, "b")), rows(&rig, "b").await);
    assert_eq!(replayed(of(&rig, "a")), rows(&rig, "a").await);
}

#[tokio::test]
async fn p16_a_snapshot_reads_what_the_publication_shows() {
    let mut rig = Rig::new(
        "create table f(id int primary key, n int, hidden text);
         insert into f values(1,5,'x'),(2,50,'y');
         create publication dbz_publication for table f (id, n), hw_mark",
    )
    .await;
    rig.set("publication.autocreate.mode", "disabled");
    rig.started().await;
    rig.settle().await;
    rig.stream("insert into f values(3,60,'z')").await;
    assert_eq!(
        rig.lines(),
        [
            "snapshot_begin",
            r#"r +{"id":1,"n":5}"#,
            r#"r +{"id":2,"n":50}"#,
            "snapshot_end",
            r#"c +{"id":3,"n":60}"#
        ]
    );
}

#[tokio::test]
async fn p15_a_snapshot_has_the_names_of_the_stream() {
    for (via_root, expected) in [("false", vec!["ta", "tb"]), ("true", vec!["t"])] {
        let mut rig = Rig::new(
            "create table t(id int, k text, primary key(id,k)) partition by list(k);
             create table ta partition of t for values in ('a');
             create table tb partition of t for values in ('b');
             insert into t values(1,'a'),(2,'b')",
        )
        .await;
        rig.set("table.include.list", "public.t,public.hw_mark");
        rig.set("publish.via.partition.root", via_root);
        rig.started().await;
        rig.settle().await;
        let begun: Vec<_> = rig
            .events()
            .filter(|event| event.op() == "snapshot_begin")
            .map(|event| event.table())
            .collect();
        assert_eq!(begun, expected);
        assert_eq!(rig.events().filter(|event| event.op() == "r").count(), 2);
    }
}

#[tokio::test]
async fn p19_a_snapshot_of_rows_without_columns() {
    let mut rig = Rig::new("create table none(); alter table none replica identity full").await;
    rig.sql("insert into none default values; insert into none default values").await;
    rig.started().await;
    rig.settle().await;
    assert_eq!(rig.lines(), ["snapshot_begin", "r +{}", "r +{}", "snapshot_end"]);
}

#[tokio::test]
async fn nothing_is_idle_before_everything_is_stored() {
    let mut rig = Rig::new("create table a(id int primary key)").await;
    rig.set("snapshot.mode", "no_data");
    rig.started().await;
    rig.settle().await;
    // From here on nothing is stored any more, as if the log did not answer.
    rig.acknowledge = false;
    rig.sql("insert into a values(1)").await;
    rig.until("the row", |rig| of(rig, "a").count() == 1).await;
    rig.sql(
        "create table uncaptured(id int); insert into uncaptured select generate_series(1,1000)",
    )
    .await;
    let begun = std::time::Instant::now();
    while begun.elapsed().as_millis() < 2_500 {
        let items = rig.task.as_mut().unwrap().poll().await.unwrap();
        assert!(!items.iter().any(|item| matches!(item, SourceItem::Idle(_))), "{items:?}");
    }
    let stored: Lsn = rig.stored.last().unwrap().text("lsn").unwrap().parse().unwrap();
    assert!(rig.confirmed().await <= stored);
}

#[tokio::test]
async fn nothing_is_idle_before_the_snapshot_is_stored() {
    let mut rig = Rig::new("create table a(id int primary key); insert into a values(1)").await;
    rig.acknowledge = false;
    rig.started().await;
    rig.sql("create table uncaptured(id int); insert into uncaptured values(1)").await;
    let begun = std::time::Instant::now();
    let mut records = Vec::new();
    while begun.elapsed().as_millis() < 2_500 {
        for item in rig.task.as_mut().unwrap().poll().await.unwrap() {
            match item {
                SourceItem::Record(record) => records.push(record),
                other => panic!("{other:?}"),
            }
        }
    }
    let last = records.last().unwrap();
    rig.task.as_mut().unwrap().committed(last.position.as_ref()).await.unwrap();
    while begun.elapsed().as_secs() < 20 {
        let items = rig.task.as_mut().unwrap().poll().await.unwrap();
        if items.iter().any(|item| matches!(item, SourceItem::Idle(_))) {
            return;
        }
    }
    panic!("never idle");
}

#[tokio::test]
async fn a_snapshot_of_tables_that_went_away_ends_all_the_same() {
    let mut rig = Rig::new("create table a(id int primary key); insert into a values(1)").await;
    rig.set("table.include.list", "public.a");
    rig.started().await;
    rig.crash();
    rig.sql("drop table a").await;
    rig.started().await;
    rig.until("the end of the snapshot", |rig| {
        rig.stored.last().is_some_and(|offset| offset.text("state") == Some("streaming"))
    })
    .await;
    assert!(rig.trail.is_empty());
}

#[tokio::test]
async fn a_long_poll_comes_back_in_time() {
    let mut rig = Rig::new("create table a(id int primary key)").await;
    rig.set("snapshot.mode", "no_data");
    rig.started().await;
    rig.settle().await;
    let begun = std::time::Instant::now();
    for _ in 0..5 {
        rig.poll().await.unwrap();
    }
    assert!(begun.elapsed().as_millis() < 1_500, "{:?}", begun.elapsed());
}
