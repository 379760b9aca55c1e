//! Connections: logging in, losing the server, bounds.

use highwater_connector::Retry;
use highwater_postgres::code;

use crate::rig::Rig;
use crate::server::server;

#[tokio::test]
async fn all_ways_to_log_in_work() {
    for (user, password) in
        [("postgres", "secret"), ("legacy", "secret"), ("clear", "secret"), ("open", "")]
    {
        let mut rig = Rig::new("create table t(id int primary key)").await;
        rig.set("database.user", user).set("database.password", password);
        assert_eq!(rig.stream("insert into t values(1)").await, [r#"c +{"id":1}"#], "{user}");
    }
}

#[tokio::test]
async fn a_unix_socket_works() {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    rig.set("database.hostname", &server().dir);
    assert_eq!(rig.stream("insert into t values(1)").await, [r#"c +{"id":1}"#]);
}

#[tokio::test]
async fn a_wrong_password_is_not_tried_again() {
    for user in ["postgres", "legacy", "clear"] {
        let mut rig = Rig::new("create table t(id int primary key)").await;
        rig.set("database.user", user).set("database.password", "wrong");
        let refusal = rig.refused().await;
        assert_eq!((refusal.code, refusal.retry), (code::LOGIN, Retry::Never), "{user}");
        rig.set("database.password", "");
        assert_eq!(rig.refused().await.code, code::LOGIN, "{user}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_tried_again() {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    rig.set("database.port", "1");
    let error = rig.refused().await;
    assert_eq!((error.code, error.retry), (code::CONNECTION, Retry::Backoff));
}

#[tokio::test]
async fn a_peer_that_says_nothing_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut rig = Rig::new("create table t(id int primary key)").await;
    rig.set("database.port", &listener.local_addr().unwrap().port().to_string());
    rig.set("database.connect.timeout.ms", "300");
    let error = rig.refused().await;
    assert_eq!((error.code, error.retry), (code::CONNECTION, Retry::Backoff));
}

#[tokio::test]
async fn a_connection_that_is_cut_is_made_again_and_nothing_is_lost() {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    rig.stream("insert into t values(1)").await;
    rig.sql(
        "select pg_terminate_backend(pid) from pg_stat_replication
         where application_name='highwater' and pid in (select active_pid from pg_replication_slots
         where database=current_database())",
    )
    .await;
    let error = rig.fails().await;
    assert_eq!(error.retry, Retry::Backoff, "{error}");
    rig.crash();
    rig.started().await;
    let lines = rig.stream("insert into t values(2)").await;
    assert_eq!(lines, [r#"c +{"id":2}"#]);
}

#[tokio::test]
async fn keepalives_are_answered_while_nobody_polls() {
    let mut rig = Rig::new("create table t(id int primary key, v text)").await;
    rig.set("snapshot.mode", "no_data").set("status.update.interval.ms", "500");
    // Every session of this database is dropped by the server after a second of silence.
    rig.sql(&format!("alter database {} set wal_sender_timeout = '1s'", rig.database)).await;
    rig.started().await;
    rig.settle().await;
    // More than fits into all queues, so that the reader has to wait for us.
    rig.sql("insert into t select g, repeat('v', 1000) from generate_series(1,8000) g").await;
    tokio::time::sleep(std::time::Duration::from_millis(3_500)).await;
    rig.settle().await;
    assert_eq!(rig.events().count(), 8_000);
}

#[tokio::test]
async fn a_row_above_the_limit_stops_by_name_behind_everything_before_it() {
    let mut rig = Rig::new("create table t(id int primary key, v text)").await;
    rig.set("producer.override.max.request.size", "100000").set("snapshot.mode", "no_data");
    rig.started().await;
    rig.settle().await;
    for size in [99_990, 200_000, 1_000_000] {
        rig.sql("begin; truncate t; insert into t values(1,'small'); commit").await;
        rig.sql(&format!("insert into t values(2,'ok'),(7,repeat('x',{size}))")).await;
        let error = rig.fails().await;
        assert_eq!((error.code, error.retry), (code::TOO_LARGE, Retry::Never));
        assert!(error.what.contains("public.t") && error.what.contains('7'), "{error}");
        assert!(
            error.remedy.contains("max.message.bytes")
                && error.remedy.contains("producer.override.max.request.size")
        );
        assert_eq!(rig.lines().last().unwrap(), r#"c +{"id":2,"v":"ok"}"#);
        // Past it, for the next round.
        rig.crash();
        rig.set("producer.override.max.request.size", "3000000");
        rig.started().await;
        rig.settle().await;
        assert_eq!(rig.events().last().unwrap().value["after"]["id"], 7);
        rig.crash();
        rig.set("producer.override.max.request.size", "100000");
        rig.started().await;
    }
}

#[tokio::test]
async fn a_large_row_of_a_table_that_is_not_captured_does_not_matter() {
    let mut rig = Rig::new(
        "create table t(id int primary key); create table big(id int primary key, v text);
         create publication dbz_publication for table t, big, hw_mark",
    )
    .await;
    rig.set("producer.override.max.request.size", "100000").set("table.exclude.list", "public.big");
    let lines = rig
        .stream(
            "begin; insert into t values(1); insert into big values(1,repeat('x',1000000));
             insert into t values(2); commit",
        )
        .await;
    assert_eq!(lines, [r#"c +{"id":1}"#, r#"c +{"id":2}"#]);
}

#[tokio::test]
async fn a_value_that_is_no_text_stops_and_is_not_tried_again() {
    // A database in SQL_ASCII holds any bytes; the server checks what it sends.
    let name = "ascii_only";
    let maintenance = server().client("postgres").await;
    let sql = format!("create database {name} template template0 encoding 'SQL_ASCII' locale 'C'");
    maintenance.batch_execute(&sql).await.unwrap();
    let mut rig = Rig::new("select 1").await;
    rig.db = server().client(name).await;
    rig.database = name.to_owned();
    rig.sql("create table hw_mark(n int primary key); create table t(id int primary key, v text)")
        .await;
    rig.set("database.dbname", name).set("slot.name", name).set("snapshot.mode", "no_data");
    rig.started().await;
    rig.settle().await;
    rig.sql(r"insert into t values(1, E'\xff')").await;
    let error = rig.fails().await;
    assert_eq!((error.code, error.retry), (code::VALUE, Retry::Never));
    assert!(error.what.contains("0xff"), "{error}");
}
