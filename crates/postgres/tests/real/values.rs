//! Values come as the server's own text, in snapshot and stream alike.

use crate::rig::Rig;

/// Runs the same rows through the stream and through a snapshot: both must give these lines.
async fn both(schema: &str, table: &str, rows: &[&str], expected: &[&str]) {
    let mut rig = Rig::new(schema).await;
    let streamed = rig.stream(&rows.join(";;")).await;
    let after = |lines: &[String]| -> Vec<String> {
        lines.iter().filter_map(|line| Some(line.split_once(" +")?.1.to_owned())).collect()
    };
    let streamed = after(&streamed);
    assert_eq!(streamed, expected, "from the stream");
    rig.crash();

    let slot = format!("{}_again", rig.slot());
    rig.set("snapshot.mode", "initial")
        .set("slot.name", &slot)
        .set("table.include.list", &format!("public.{table},public.hw_mark"));
    rig.stored.0.lock().unwrap().clear();
    rig.trail.clear();
    rig.started().await;
    rig.settle().await;
    assert_eq!(after(&rig.lines()), expected, "from the snapshot");
}

#[tokio::test]
async fn p5_numbers() {
    let tiny = format!("0.{}1", "0".repeat(400));
    both(
        "create table t5(id int primary key, n numeric, n2 numeric(10,2), n3 numeric(5,-2), m money,
         i interval, f4 real, f8 double precision)",
        "t5",
        &[
            "insert into t5 values(1,'NaN','NaN',12345,'-$92233720368547758.08',
             '1 year 2 mons -3 days 04:05:06.000007','NaN','-Infinity')",
            "insert into t5 values(2,'Infinity',null,null,'$0.01','-1 year +2 mons',1.0e-40,'1e308')",
            "insert into t5 values(3,('0.'||repeat('0',400)||'1')::numeric,1.10,149,null,
             '178000000 years',0.1,0.1)",
            "insert into t5 values(4,'-Infinity',-0.00,-50,null,'24:00:00.5','-0','-0')",
        ],
        &[
            r#"{"id":1,"n":"NaN","n2":"NaN","n3":"12300","m":"-$92,233,720,368,547,758.08","i":"1 year 2 mons -3 days +04:05:06.000007","f4":"NaN","f8":"-Infinity"}"#,
            r#"{"id":2,"n":"Infinity","n2":null,"n3":null,"m":"$0.01","i":"-10 mons","f4":1e-40,"f8":1e+308}"#,
            &format!(r#"{{"id":3,"n":"{tiny}","n2":"1.10","n3":"100","m":null,"i":"178000000 years","f4":0.1,"f8":0.1}}"#),
            r#"{"id":4,"n":"-Infinity","n2":"0.00","n3":"-100","m":null,"i":"24:00:00.5","f4":-0,"f8":-0}"#,
        ],
    )
    .await;
}

#[tokio::test]
async fn p6_times() {
    both(
        "create table t6(id int primary key, d date, ts timestamp, tz timestamptz, tm time, tmz timetz);
         do $$ begin execute format('alter database %I set timezone = ''America/New_York''',
                                    current_database()); end $$;",
        "t6",
        &[
            "set timezone='America/New_York'",
            "insert into t6 values(1,'infinity','-infinity','infinity','24:00:00','23:59:59.999999+15:59')",
            "insert into t6 values(2,'4713-01-01 BC','0044-03-15 10:00:00 BC','294276-12-31 23:59:59.999999+00','00:00','00:00-12')",
            "insert into t6 values(3,'5874897-12-31','2026-03-08 02:30:00','2026-11-01 01:30:00 EDT','12:00:00.5','12:00+05:30')",
            "insert into t6 values(4,'1582-10-10','1970-01-01 00:00:00.000001','2026-11-01 01:30:00 EST','12:00','12:00')",
        ],
        &[
            r#"{"id":1,"d":"infinity","ts":"-infinity","tz":"infinity","tm":"24:00:00","tmz":"23:59:59.999999+15:59"}"#,
            r#"{"id":2,"d":"4713-01-01 BC","ts":"0044-03-15 10:00:00 BC","tz":"294276-12-31 23:59:59.999999+00","tm":"00:00:00","tmz":"00:00:00-12"}"#,
            r#"{"id":3,"d":"5874897-12-31","ts":"2026-03-08 02:30:00","tz":"2026-11-01 05:30:00+00","tm":"12:00:00.5","tmz":"12:00:00+05:30"}"#,
            r#"{"id":4,"d":"1582-10-10","ts":"1970-01-01 00:00:00.000001","tz":"2026-11-01 06:30:00+00","tm":"12:00:00","tmz":"12:00:00-05"}"#,
        ],
    )
    .await;
}

const P7: &str = r#"
create extension hstore; create extension citext; create extension ltree;
create type mood as enum('sad','ok'); create domain posint as int check(value>0);
create type pt as (x int, y text);
create table t7(id int primary key, a int[], b text[], c mood[], d posint, e pt, f pt[],
  g int4range, h nummultirange, j json, jb jsonb, hs hstore, ct citext, lt ltree, ip inet,
  mc macaddr8, bt bit varying, by bytea, ch char(5), q "char", x xml, tv tsvector, u uuid,
  m mood, bo boolean);"#;

#[tokio::test]
async fn p7_shapes() {
    both(
        P7,
        "t7",
        &[
            r#"insert into t7 values(1,'{{1,2},{3,NULL}}','{"a,b","c\"d",NULL,"NULL",""}','{sad,ok}',5,
             '(1,"a ""q"" b")','{"(1,x)",NULL}','[1,5)','{[1.5,2),[3,4]}',
             '{"a":1,"a":2, "b":1.10}','{"a":1,"a":2,"b":1.10}','a=>1,b=>NULL','CiTeXt','a.b.c',
             '10.0.0.1/24','08:00:2b:01:02:03:04:05','101','\x00ff41','ab','z','<a>1</a>','a:1 b:2',
             '0189f7a0-0000-7000-8000-000000000001','sad',true)"#,
            "insert into t7(id,a,b,bo) values(2,'[2:3]={7,8}','{}',false)",
        ],
        &[
            r#"{"id":1,"a":"{{1,2},{3,NULL}}","b":"{\"a,b\",\"c\\\"d\",NULL,\"NULL\",\"\"}","c":"{sad,ok}","d":5,"e":"(1,\"a \"\"q\"\" b\")","f":"{\"(1,x)\",NULL}","g":"[1,5)","h":"{[1.5,2),[3,4]}","j":"{\"a\":1,\"a\":2, \"b\":1.10}","jb":"{\"a\": 2, \"b\": 1.10}","hs":"\"a\"=>\"1\", \"b\"=>NULL","ct":"CiTeXt","lt":"a.b.c","ip":"10.0.0.1/24","mc":"08:00:2b:01:02:03:04:05","bt":"101","by":"\\x00ff41","ch":"ab   ","q":"z","x":"<a>1</a>","tv":"'a':1 'b':2","u":"0189f7a0-0000-7000-8000-000000000001","m":"sad","bo":true}"#,
            r#"{"id":2,"a":"[2:3]={7,8}","b":"{}","c":null,"d":null,"e":null,"f":null,"g":null,"h":null,"j":null,"jb":null,"hs":null,"ct":null,"lt":null,"ip":null,"mc":null,"bt":null,"by":null,"ch":null,"q":null,"x":null,"tv":null,"u":null,"m":null,"bo":false}"#,
        ],
    )
    .await;
}

#[tokio::test]
async fn p7_enum_labels_that_are_added_and_renamed_in_mid_stream() {
    let mut rig = Rig::new(
        "create type mood as enum('sad','ok'); create table t(id int primary key, m mood)",
    )
    .await;
    let lines = rig
        .stream(
            "insert into t values(1,'sad');; alter type mood add value 'great';;
             insert into t values(2,'great');; alter type mood rename value 'sad' to 'blue';;
             insert into t values(3,'blue')",
        )
        .await;
    let expected =
        [r#"c +{"id":1,"m":"sad"}"#, r#"c +{"id":2,"m":"great"}"#, r#"c +{"id":3,"m":"blue"}"#];
    assert_eq!(lines, expected);
}

#[tokio::test]
async fn p7b_enums_of_one_name_in_two_schemas() {
    both(
        "create schema e1; create schema e2; create type e1.st as enum('a'); create type e2.st as enum('b');
         create table t(id int primary key, x e1.st, y e2.st)",
        "t",
        &["insert into t values(1,'a','b')"],
        &[r#"{"id":1,"x":"a","y":"b"}"#],
    )
    .await;
}

#[tokio::test]
async fn types_are_described_as_the_source_writes_them() {
    let mut rig = Rig::new(
        "create schema e1; create type e1.st as enum('a'); create domain pos as int;
         create table t(id bigint primary key, n numeric(10,2), x e1.st, y pos, z varchar(7)[])",
    )
    .await;
    rig.stream("insert into t values(1,1,'a',2,'{x}')").await;
    let description = rig.descriptions.iter().find(|known| known.table == "public.t").unwrap();
    let types: Vec<String> = description
        .columns
        .iter()
        .map(|column| format!("{} {} {}", column.source_type, column.json_type, column.key))
        .collect();
    assert_eq!(
        types,
        [
            "bigint number true",
            "numeric(10,2) string false",
            "e1.st string false",
            "public.pos number false",
            "character varying(7)[] string false",
        ]
    );
}
