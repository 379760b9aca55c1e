//! What the operations of a database give.

use serde_json::json;

use crate::rig::Rig;

#[tokio::test]
async fn p1_toast() {
    let mut rig = Rig::new(
        "create table t1(id int primary key, n int, big text);
         alter table t1 alter big set storage external",
    )
    .await;
    rig.stream(
        "insert into t1 values(1,1,repeat('x',20000));; update t1 set n=2;;
         alter table t1 replica identity full;; update t1 set n=3;; delete from t1",
    )
    .await;
    let events: Vec<_> = rig.events().cloned().collect();
    let x = "x".repeat(20_000);
    assert_eq!(events.len(), 4, "a new replica identity is no new shape");
    assert_eq!(events[0].value["after"]["big"], json!(x));

    let placeholder = json!({"id": 1, "n": 2, "big": "__debezium_unavailable_value"});
    assert_eq!(events[1].value["after"], placeholder);
    assert_eq!(events[1].value["before"], json!(null));
    assert_eq!(events[1].unchanged, ["big"]);

    assert_eq!(events[2].value["before"], json!({"id": 1, "n": 2, "big": x}));
    assert_eq!(events[2].value["after"], json!({"id": 1, "n": 3, "big": x}));
    assert!(events[2].unchanged.is_empty());

    assert_eq!(events[3].value["before"], json!({"id": 1, "n": 3, "big": x}));
    assert_eq!(events[3].value["after"], json!(null));
    assert!(events.iter().all(|event| event.key == Some(json!({"id": 1}))));
}

#[tokio::test]
async fn p2_key_change() {
    let mut rig = Rig::new("create table t2(id int primary key, v text)").await;
    let lines = rig
        .stream(
            "insert into t2 values(1,'a');; update t2 set id=2 where id=1;;
             update t2 set v='b' where id=2;; update t2 set v='b' where id=2",
        )
        .await;
    assert_eq!(
        lines,
        [
            r#"c +{"id":1,"v":"a"}"#,
            r#"u -{"id":1} +{"id":2,"v":"a"}"#,
            r#"u +{"id":2,"v":"b"}"#,
            r#"u +{"id":2,"v":"b"}"#,
        ]
    );
    let keys: Vec<_> = rig.events().map(|event| event.key.clone().unwrap()["id"].clone()).collect();
    assert_eq!(keys, [1, 2, 2, 2]);
}

#[tokio::test]
async fn p4_a_delete_holds_the_key_and_nothing_else() {
    let mut rig =
        Rig::new("create table t4(id int primary key, a int not null, b text not null)").await;
    let lines = rig.stream("insert into t4 values(1,10,'q');; delete from t4").await;
    assert_eq!(lines, [r#"c +{"id":1,"a":10,"b":"q"}"#, r#"d -{"id":1}"#]);
    assert_eq!(rig.events().last().unwrap().key, Some(json!({"id": 1})));
}

#[tokio::test]
async fn p9_truncate_and_cascades() {
    let mut rig = Rig::new(
        "create table p(id int primary key);
         create table c(id serial primary key, p int references p on delete cascade)",
    )
    .await;
    let lines = rig
        .stream(
            "insert into p values(1),(2);; insert into c(p) values(1),(1);;
             delete from p where id=1;; truncate p restart identity cascade",
        )
        .await;
    assert_eq!(
        lines[4..],
        [r#"d -{"id":1}"#, r#"d -{"id":1}"#, r#"d -{"id":2}"#, "t", "t"].map(str::to_owned)
    );
    let events: Vec<_> = rig.events().collect();
    let truncated: Vec<_> = events[7..].iter().map(|event| event.table()).collect();
    assert_eq!(truncated, ["p", "c"]);
    assert_eq!(events[8].hw.count, Some(2));
    assert_eq!(events[8].key, None);
}

#[tokio::test]
async fn p10_logical_messages_are_covered_and_move_no_index() {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    rig.stream("insert into t values(1)").await;
    let before = rig.confirmed().await;
    rig.stream(
        "begin; select pg_logical_emit_message(true,'app','tx-msg');
         select pg_logical_emit_message(false,'app','nontx-msg'); rollback;;
         begin; select pg_logical_emit_message(true,'app','kept'); commit;;
         begin; insert into t values(2); select pg_logical_emit_message(true,'app','kept');
         insert into t values(3); commit",
    )
    .await;
    let places: Vec<_> = rig.events().map(|event| (event.hw.index, event.hw.count)).collect();
    assert_eq!(places, [(0, Some(1)), (0, None), (1, Some(2))]);
    rig.told(before).await;
}

#[tokio::test]
async fn p13_interleaved_transactions_come_whole_and_in_commit_order() {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    rig.stream("select 1").await;
    let mut other = crate::server::server().client(&rig.database).await;
    let a = other.transaction().await.unwrap();
    a.batch_execute("insert into t values(100)").await.unwrap();
    rig.sql("insert into t values(200)").await;
    a.batch_execute("insert into t values(101)").await.unwrap();
    a.commit().await.unwrap();
    rig.settle().await;
    let ids: Vec<_> = rig.events().map(|event| event.value["after"]["id"].clone()).collect();
    assert_eq!(ids, [200, 100, 101]);
    let positions: Vec<_> =
        rig.events().map(|event| (event.hw.position.clone(), event.hw.index)).collect();
    assert!(positions.is_sorted());
    let lsn = |at: usize| rig.events().nth(at).unwrap().value["source"]["lsn"].as_u64().unwrap();
    assert!(lsn(1) < lsn(0), "the row came first, its transaction did not");
}

const P15: &str = "create table t15(id int, k text, v int, primary key(id,k)) partition by list(k);
    create table t15a partition of t15 for values in ('a');
    create table t15b partition of t15 for values in ('b')";

const P15_WORK: &str = "insert into t15 values(1,'a',1);; update t15 set v=2 where id=1;;
    update t15 set k='b' where id=1;; truncate t15a";

#[tokio::test]
async fn p15_partitions_under_their_own_names() {
    let mut rig = Rig::new(P15).await;
    rig.set("table.include.list", "public.t15,public.hw_mark");
    rig.stream(P15_WORK).await;
    let seen: Vec<_> =
        rig.events().map(|event| format!("{} {}", event.op(), event.table())).collect();
    assert_eq!(seen, ["c t15a", "u t15a", "d t15a", "c t15b", "t t15a"]);
}

#[tokio::test]
async fn p15_partitions_under_the_name_of_their_root() {
    let mut rig = Rig::new(P15).await;
    rig.set("table.include.list", "public.t15,public.hw_mark");
    rig.set("publish.via.partition.root", "true");
    rig.stream(P15_WORK).await;
    let seen: Vec<_> =
        rig.events().map(|event| format!("{} {}", event.op(), event.table())).collect();
    assert_eq!(seen, ["c t15", "u t15", "d t15", "c t15"]);
}

#[tokio::test]
async fn p15_a_partition_that_is_made_later_is_captured_through_its_root() {
    let mut rig = Rig::new(P15).await;
    rig.set("table.include.list", "public.t15,public.hw_mark");
    rig.stream("select 1").await;
    let lines = rig
        .stream(
            "create table t15c partition of t15 for values in ('c');;
             insert into t15 values(1,'c',1)",
        )
        .await;
    assert_eq!(lines, [r#"c +{"id":1,"k":"c","v":1}"#]);
}

#[tokio::test]
async fn p19_odd_tables() {
    let mut rig = Rig::new(
        "create table none(); create unlogged table u(id int primary key);
         create table base(id int primary key); create materialized view mv as select * from base;
         create index base_i on base(id); alter table none replica identity full",
    )
    .await;
    let lines = rig
        .stream(
            "insert into none default values;; insert into u values(1);;
             create temporary table tt(id int primary key);; insert into tt values(1);;
             insert into base values(1);; refresh materialized view mv;; vacuum full base;;
             cluster base using base_i",
        )
        .await;
    assert_eq!(lines, ["c +{}", r#"c +{"id":1}"#]);
}

#[tokio::test]
async fn p20_identity_by_index() {
    let mut rig = Rig::new(
        "create table t(id int primary key, a int not null, b text);
         create unique index t_a on t(a); alter table t replica identity using index t_a",
    )
    .await;
    let lines = rig
        .stream(
            "insert into t values(1,10,'x');; update t set b='y';; update t set a=11;;
             delete from t",
        )
        .await;
    assert_eq!(
        lines,
        [
            r#"c +{"id":1,"a":10,"b":"x"}"#,
            r#"u +{"id":1,"a":10,"b":"y"}"#,
            r#"u -{"a":10} +{"id":1,"a":11,"b":"y"}"#,
            r#"d -{"a":11}"#,
        ]
    );
    let keys: Vec<_> = rig.events().map(|event| event.key.clone().unwrap().to_string()).collect();
    assert_eq!(keys, [r#"{"a":10}"#, r#"{"a":10}"#, r#"{"a":11}"#, r#"{"a":11}"#]);
}

#[tokio::test]
async fn p22_copy_upsert_and_merge() {
    let mut rig = Rig::new("create table t(id int primary key, v text)").await;
    let lines = rig
        .stream(
            "insert into t select g, 'c' from generate_series(1,2) g;;
             insert into t values(1,'u') on conflict (id) do update set v=excluded.v;;
             insert into t values(1,'n') on conflict do nothing;;
             merge into t using (values(2),(3)) s(id) on t.id=s.id
               when matched then delete when not matched then insert values(s.id,'m')",
        )
        .await;
    assert_eq!(
        lines,
        [
            r#"c +{"id":1,"v":"c"}"#,
            r#"c +{"id":2,"v":"c"}"#,
            r#"u +{"id":1,"v":"u"}"#,
            r#"d -{"id":2}"#,
            r#"c +{"id":3,"v":"m"}"#,
        ]
    );
}

#[tokio::test]
async fn p22_rows_of_one_copy_share_an_lsn_and_no_identity() {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    rig.stream("select 1").await;
    let sink = rig.db.copy_in::<_, bytes::Bytes>("copy t from stdin").await.unwrap();
    let mut sink = Box::pin(sink);
    futures_util::SinkExt::send(&mut sink, bytes::Bytes::from_static(b"1\n2\n3\n")).await.unwrap();
    sink.as_mut().finish().await.unwrap();
    rig.settle().await;
    let lsns: std::collections::BTreeSet<_> =
        rig.events().map(|event| event.value["source"]["lsn"].as_u64()).collect();
    let ids: std::collections::BTreeSet<_> =
        rig.events().map(|event| event.hw.record_id().to_string()).collect();
    assert_eq!((lsns.len(), ids.len()), (1, 3));
}

#[tokio::test]
async fn p23_a_table_is_captured_from_its_publication_on() {
    let mut rig = Rig::new(
        "create table a(id int primary key); create table late(id int primary key);
         create publication dbz_publication for table a, hw_mark",
    )
    .await;
    rig.set("publication.autocreate.mode", "disabled");
    let lines = rig
        .stream(
            "insert into late values(1);; alter publication dbz_publication add table late;;
             insert into late values(2)",
        )
        .await;
    assert_eq!(lines, [r#"c +{"id":2}"#]);
}

#[tokio::test]
async fn p26_a_quiet_table_lets_the_slot_follow_the_log() {
    let mut rig =
        Rig::new("create table quiet(id int primary key); create table noisy(id int, v text)")
            .await;
    rig.set("table.include.list", "public.quiet,public.hw_mark");
    rig.stream("insert into quiet values(1)").await;
    rig.sql("insert into noisy select g, repeat('z',1000) from generate_series(1,5000) g").await;
    let end: highwater_postgres::Lsn =
        rig.ask("select pg_current_wal_lsn()::text").await.unwrap().parse().unwrap();
    rig.told(highwater_postgres::Lsn(end.0 - 1)).await;
    // The server was told of nothing that was not stored before.
    let stored: highwater_postgres::Lsn =
        rig.stored.last().unwrap().text("lsn").unwrap().parse().unwrap();
    assert!(stored >= rig.confirmed().await);
}

#[tokio::test]
async fn rolled_back_work_gives_nothing() {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    let lines = rig
        .stream(
            "begin; insert into t values(1); rollback;;
             begin; insert into t values(2); savepoint a; insert into t values(3);
             rollback to a; insert into t values(4); commit",
        )
        .await;
    assert_eq!(lines, [r#"c +{"id":2}"#, r#"c +{"id":4}"#]);
    assert_eq!(rig.events().last().unwrap().hw.count, Some(2));
}
