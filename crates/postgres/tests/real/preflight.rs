//! A start never breaks the application's own statements (rule: preflight before publication).

use highwater_connector::Retry;
use highwater_postgres::code;

use crate::rig::Rig;

/// Whether the application can change its table.
async fn works(database: &str) -> bool {
    let client = crate::server::server().client(database).await;
    client.batch_execute("update t set v=v+1; delete from t where v<0").await.is_ok()
}

/// Starts, and checks that the application's UPDATE works afterwards as it did before.
async fn verdict(rig: &mut Rig) -> Option<&'static str> {
    let before = works(&rig.database).await;
    let refusal = rig.start().await.err();
    assert_eq!(works(&rig.database).await, before, "the application's statements work as before");
    if let Some(refusal) = &refusal {
        assert_eq!(refusal.retry, Retry::Never, "{refusal}");
        assert!(!refusal.remedy.is_empty());
    }
    refusal.map(|refusal| refusal.code)
}

#[tokio::test]
async fn p3_a_table_whose_update_would_begin_to_fail_is_refused_by_name() {
    for (schema, mode) in [
        ("create table t(id int, v int)", "filtered"),
        ("create table t(id int, v int)", "all_tables"),
        (
            "create table t(id int primary key, v int); alter table t replica identity nothing",
            "filtered",
        ),
        ("create table t(id int, v int, primary key(id) deferrable)", "filtered"),
        (
            "create table t(id int, v int) partition by range(id);
             create table t_1 partition of t for values from (0) to (100)",
            "filtered",
        ),
    ] {
        let mut rig = Rig::new(schema).await;
        rig.sql("insert into t values(1,1)").await;
        rig.set("publication.autocreate.mode", mode);
        assert_eq!(verdict(&mut rig).await, Some(code::REPLICA_IDENTITY), "{schema}");
        let left = "select (select count(*) from pg_publication)::text || (select count(*) from \
                    pg_replication_slots where database=current_database())::text";
        assert_eq!(rig.ask(left).await.as_deref(), Some("00"), "nothing was made");
        let refusal = rig.refused().await;
        assert!(refusal.what.contains("public.t"), "{refusal}");
        let mend = refusal.remedy.split("; or ").nth(1).unwrap().to_owned();
        rig.sql(&mend).await;
        assert_eq!(verdict(&mut rig).await, None, "{schema}: {mend}");
    }
}

#[tokio::test]
async fn p3_a_table_that_is_left_out_may_lack_a_key() {
    let mut rig =
        Rig::new("create table t(id int, v int); create table good(id int primary key)").await;
    rig.sql("insert into t values(1,1)").await;
    rig.set("table.include.list", "public.good,public.hw_mark");
    assert_eq!(verdict(&mut rig).await, None);
}

#[tokio::test]
async fn p3_a_table_that_would_be_added_later_is_refused_too() {
    let mut rig = Rig::new("create table good(id int primary key)").await;
    rig.started().await;
    rig.settle().await;
    rig.crash();
    rig.sql("create table t(id int, v int); insert into t values(1,1)").await;
    assert_eq!(verdict(&mut rig).await, Some(code::REPLICA_IDENTITY));
    rig.sql("alter table t replica identity full").await;
    rig.started().await;
    rig.stream("update t set v=9").await;
    assert_eq!(rig.lines().last().unwrap(), r#"u -{"id":1,"v":3} +{"id":1,"v":9}"#);
}

#[tokio::test]
async fn p16_a_column_list_with_full_identity_is_refused() {
    let mut rig = Rig::new(
        "create table t(id int primary key, v int); insert into t values(1,1);
         create publication dbz_publication for table t (id), hw_mark;
         alter table t replica identity full",
    )
    .await;
    assert_eq!(verdict(&mut rig).await, Some(code::COLUMN_LIST));
    let refusal = rig.refused().await;
    assert!(refusal.what.contains("public.t"), "{refusal}");
    rig.sql(&refusal.remedy).await;
    assert_eq!(rig.start().await.err().map(|error| error.code), None);
    rig.sql("update t set v=2").await;
}

#[tokio::test]
async fn a_publication_that_leaves_operations_out_is_refused() {
    let mut rig = Rig::new(
        "create table t(id int primary key, v int);
         create publication dbz_publication for table t with (publish='insert')",
    )
    .await;
    let refusal = rig.refused().await;
    assert_eq!(refusal.code, code::PUBLISH);
    assert!(refusal.what.contains("update, delete, truncate"), "{refusal}");
    rig.sql(&refusal.remedy).await;
    assert_eq!(verdict(&mut rig).await, None);
}

#[tokio::test]
async fn p23_tables_that_are_not_there_are_named() {
    let mut rig = Rig::new("create table t(id int primary key, v int)").await;
    rig.set("table.include.list", "public.t,public.nowhere");
    let refusal = rig.refused().await;
    assert_eq!(refusal.code, code::TABLE);
    assert!(refusal.what.contains("public.nowhere") && !refusal.what.contains("public.t,"));
    rig.set("table.include.list", "").set("schema.include.list", "empty");
    assert_eq!(rig.refused().await.code, code::NO_TABLES);
}

#[tokio::test]
async fn p23_disabled_makes_no_publication() {
    let mut rig = Rig::new("create table t(id int primary key, v int)").await;
    rig.set("publication.autocreate.mode", "disabled");
    assert_eq!(rig.refused().await.code, code::PUBLICATION);
}

#[tokio::test]
async fn a_publication_is_widened_and_never_narrowed() {
    let mut rig = Rig::new(
        "create table t(id int primary key, v int); create table other(id int primary key);
         create publication dbz_publication for table other",
    )
    .await;
    rig.set("table.include.list", "public.t,public.hw_mark");
    rig.started().await;
    let tables = "select string_agg(tablename, ',' order by tablename) from pg_publication_tables";
    assert_eq!(rig.ask(tables).await.as_deref(), Some("hw_mark,other,t"));
    rig.stream("insert into other values(1);; insert into t values(1,1)").await;
    let tables: Vec<_> =
        rig.events().filter(|event| event.op() == "c").map(|event| event.table()).collect();
    assert_eq!(tables, ["t"], "what the publication has beyond is not delivered");
}

#[tokio::test]
async fn a_table_that_may_not_be_read_is_refused_before_anything_is_made() {
    let mut rig = Rig::new("create table t(id int primary key, v int)").await;
    let user = format!("reader_{}", rig.database);
    rig.sql(&format!("create role {user} login replication password 'secret'")).await;
    rig.set("database.user", &user);
    let refusal = rig.refused().await;
    assert_eq!(refusal.code, code::PRIVILEGE);
    assert!(refusal.remedy.contains("GRANT SELECT ON"), "{refusal}");
    rig.sql(&refusal.remedy).await;
    // It may read now, and still make no publication: the server says so.
    assert_eq!(rig.refused().await.code, code::PRIVILEGE);
    rig.sql("create publication dbz_publication for table t, hw_mark").await;
    assert_eq!(rig.start().await.err().map(|error| error.to_string()), None);
}

#[tokio::test]
async fn a_user_without_replication_is_refused() {
    let mut rig = Rig::new("create table t(id int primary key, v int)").await;
    let user = format!("plain_{}", rig.database);
    rig.sql(&format!("create role {user} login password 'secret'")).await;
    rig.set("database.user", &user);
    assert_eq!(rig.refused().await.code, code::PRIVILEGE);
}
