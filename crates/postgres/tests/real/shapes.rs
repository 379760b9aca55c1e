//! Table descriptions and DDL records (rule R4).

use crate::rig::Rig;

#[tokio::test]
async fn p8_ddl_inside_a_transaction() {
    let mut rig = Rig::new("create table t8(id int primary key, a int, b text)").await;
    rig.stream("insert into t8 values(1,1,'x')").await;
    let lines = rig
        .stream(
            "begin; insert into t8 values(2,2,'y'); alter table t8 add column c int default 7;
             insert into t8 values(3,3,'z'); alter table t8 drop column a;
             insert into t8(id,b) values(4,'w'); alter table t8 rename column b to bb;
             update t8 set bb='v' where id=1; alter table t8 alter column c type bigint;
             update t8 set bb='u' where id=2; commit",
        )
        .await;
    assert_eq!(
        lines,
        [
            r#"c +{"id":2,"a":2,"b":"y"}"#,
            "ddl",
            r#"c +{"id":3,"a":3,"b":"z","c":7}"#,
            "ddl",
            r#"c +{"id":4,"b":"w","c":7}"#,
            "ddl",
            r#"u +{"id":1,"bb":"v","c":7}"#,
            "ddl",
            r#"u +{"id":2,"bb":"u","c":7}"#,
        ]
    );
    let ddl: Vec<_> = rig
        .events()
        .filter(|event| event.op() == "ddl")
        .map(|event| {
            event.value["ddl"].as_str().unwrap().replace("ALTER TABLE \"public\".\"t8\" ", "")
        })
        .collect();
    assert_eq!(
        ddl,
        [
            r#"ADD COLUMN "c" integer"#,
            r#"DROP COLUMN "a""#,
            r#"RENAME COLUMN "b" TO "bb""#,
            r#"ALTER COLUMN "c" TYPE bigint"#,
        ]
    );
    let versions: Vec<_> = rig.events().map(|event| event.hw.table_version.unwrap()).collect();
    assert_eq!(versions, [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
    let indexes: Vec<_> = rig.events().skip(1).map(|event| event.hw.index).collect();
    assert_eq!(indexes, (0..9).collect::<Vec<_>>());
    assert_eq!(rig.events().last().unwrap().hw.count, Some(9));

    // Each description begins where its DDL record stands.
    let described: Vec<_> = rig
        .descriptions
        .iter()
        .filter(|known| known.table == "public.t8")
        .map(|known| (known.version, known.from_index))
        .collect();
    assert_eq!(described, [(1, 0), (2, 1), (3, 3), (4, 5), (5, 7)]);
}

#[tokio::test]
async fn a_shape_that_changes_between_transactions_is_told_before_its_first_row() {
    let mut rig =
        Rig::new("create table t(id int primary key); create table o(id int primary key)").await;
    rig.stream("insert into t values(1)").await;
    let lines = rig
        .stream(
            "alter table t add column n int;; insert into o values(1);; insert into t values(2,3)",
        )
        .await;
    assert_eq!(lines, [r#"c +{"id":1}"#, "ddl", r#"c +{"id":2,"n":3}"#]);
}

#[tokio::test]
async fn a_new_primary_key_makes_a_version() {
    let mut rig =
        Rig::new("create table t(id int not null, n int not null, primary key(id))").await;
    rig.stream("insert into t values(1,1)").await;
    let lines = rig
        .stream(
            "begin; alter table t drop constraint t_pkey; alter table t add primary key (n); commit;;
             insert into t values(1,2)",
        )
        .await;
    assert_eq!(lines, ["ddl", r#"c +{"id":1,"n":2}"#]);
    let last = rig.events().last().unwrap();
    assert_eq!(last.key, Some(serde_json::json!({"n": 2})));
}

#[tokio::test]
async fn p17_generated_columns_are_in_neither_phase() {
    let mut rig = Rig::new(
        "create table t(id int primary key, g int generated always as (id*2) stored, n int)",
    )
    .await;
    rig.sql("insert into t(id,n) values(1,5)").await;
    rig.started().await;
    let lines = rig.stream("insert into t(id,n) values(2,6)").await;
    assert_eq!(lines.last().unwrap(), r#"c +{"id":2,"n":6}"#);
    let lines = rig.lines();
    assert!(lines.contains(&r#"r +{"id":1,"n":5}"#.to_owned()), "{lines:?}");
    assert!(!lines.contains(&"ddl".to_owned()), "both phases see one shape");
}
