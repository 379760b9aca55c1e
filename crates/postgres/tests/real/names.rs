//! Names of tables and columns are delivered verbatim.

use serde_json::json;

use crate::rig::Rig;

#[tokio::test]
async fn p18_odd_names() {
    let mut rig = Rig::new(
        r#"create schema "My.Schema";
           create table "My.Schema"."Order.Items ""q"""("Id" int primary key, "select" text,
             "a.b" int, "ключ" text, " " text)"#,
    )
    .await;
    rig.sql(r#"insert into "My.Schema"."Order.Items ""q""" values(0,'s',1,'ь','x')"#).await;
    rig.started().await;
    rig.settle().await;
    let lines =
        rig.stream(r#"insert into "My.Schema"."Order.Items ""q""" values(1,'x',2,'ы','sp')"#).await;
    assert_eq!(lines, [r#"c +{"Id":1,"select":"x","a.b":2,"ключ":"ы"," ":"sp"}"#]);
    let event = rig.events().last().unwrap();
    assert_eq!(event.value["source"]["schema"], json!("My.Schema"));
    assert_eq!(event.value["source"]["table"], json!("Order.Items \"q\""));
    assert_eq!(event.key, Some(json!({"Id": 1})));
    let described = r#""My.Schema"."Order.Items ""q""""#;
    assert!(rig.descriptions.iter().any(|known| known.table == described));
    let read = rig.events().find(|event| event.op() == "r").unwrap();
    assert_eq!(read.value["after"]["ключ"], json!("ь"));
}

#[tokio::test]
async fn p18b_columns_that_differ_only_by_case() {
    let mut rig = Rig::new(r#"create table q1("A" int primary key, a text, "a.b" text)"#).await;
    let lines = rig.stream("insert into q1 values(1,'low','dot')").await;
    assert_eq!(lines, [r#"c +{"A":1,"a":"low","a.b":"dot"}"#]);
}
