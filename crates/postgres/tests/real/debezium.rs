//! Debezium as the judge: keys, partitions, values and schemas of the same rows, under each of its
//! modes, and a pipeline that goes on at its offset (rule R6).

use std::collections::HashMap;
use std::fmt::Write as _;
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use highwater_connector::OffsetVerdict;
use highwater_postgres::code;
use serde_json::Value;

use crate::rig::{Event, Rig};
use crate::server::Server;

/// Partitions of the topics that a key chooses among.
const PARTITIONS: u32 = 7;

/// Name, then the modes of decimals, times, bytes and intervals.
const RUNS: [[&str; 5]; 6] = [
    ["r1", "precise", "adaptive", "bytes", "numeric"],
    ["r2", "string", "connect", "base64", "string"],
    ["r3", "double", "isostring", "hex", "numeric"],
    ["r4", "precise", "adaptive_time_microseconds", "base64-url-safe", "numeric"],
    ["r5", "precise", "microseconds", "bytes", "numeric"],
    ["r6", "precise", "nanoseconds", "bytes", "numeric"],
];

/// Nanoseconds in 64 bits do not hold these timestamps: Debezium stops there, and so do we.
const FAR: &str = "public.k_timestamp_far";

/// What Debezium made of one record.
struct Judged {
    topic: String,
    key: [Option<Vec<u8>>; 2],
    partition: [Option<u32>; 2],
    value: [Value; 2],
    headers: Vec<String>,
    offset: String,
}

impl Judged {
    fn read(line: &Value) -> Self {
        let bytes = |name: &str| line[name].as_str().map(|text| STANDARD.decode(text).unwrap());
        let json = |name: &str| {
            bytes(name).map_or(Value::Null, |json| serde_json::from_slice(&json).unwrap())
        };
        let number = |name: &str| line[name].as_u64().map(|number| u32::try_from(number).unwrap());
        let names = line["headers"].as_array().unwrap().iter();
        Self {
            topic: line["topic"].as_str().unwrap().to_owned(),
            key: ["key", "key_with_schema"].map(bytes),
            partition: ["partition", "partition_with_schema"].map(number),
            value: ["value", "value_with_schema"].map(json),
            headers: names
                .map(|name| name.as_str().unwrap().to_owned())
                .filter(|name| !name.contains(".context."))
                .collect(),
            offset: String::from_utf8(bytes("offset").unwrap()).unwrap(),
        }
    }
}

/// Runs Debezium once over what every slot gives.
fn judge(rig: &Rig) -> HashMap<String, Vec<Judged>> {
    let root = format!("{}/../..", env!("CARGO_MANIFEST_DIR"));
    let folder = std::env::temp_dir().join(format!("hw-judge-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let fetched = Command::new(format!("{root}/testing/debezium/fetch.sh")).output().unwrap();
    assert!(fetched.status.success(), "{}", String::from_utf8_lossy(&fetched.stderr));
    let classpath = String::from_utf8(fetched.stdout).unwrap();
    let classpath = std::fs::read_to_string(classpath.trim()).unwrap();
    let mut java = Command::new("java");
    java.args(["-Xshare:auto", "-Dorg.slf4j.simpleLogger.defaultLogLevel=error", "-cp"])
        .arg(classpath)
        .arg(format!("{root}/testing/debezium/Keys.java"));
    for run in &RUNS {
        let file = folder.join(run[0]);
        std::fs::write(&file, properties(rig, run)).unwrap();
        java.arg(file);
    }
    let done = java.output().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let mut runs: HashMap<String, Vec<Judged>> = HashMap::new();
    for line in String::from_utf8(done.stdout).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        runs.entry(line["run"].as_str().unwrap().to_owned()).or_default().push(Judged::read(&line));
    }
    runs
}

fn properties(rig: &Rig, [name, decimals, times, binaries, intervals]: &[&str; 5]) -> String {
    let mut text = format!(
        "name={name}\ntopic.prefix={name}\nslot.name={name}\n\
         connector.class=io.debezium.connector.postgresql.PostgresConnector\n\
         plugin.name=pgoutput\nsnapshot.mode=no_data\nskipped.operations=none\n\
         publication.autocreate.mode=disabled\n\
         offset.storage=org.apache.kafka.connect.storage.MemoryOffsetBackingStore\n\
         decimal.handling.mode={decimals}\ntime.precision.mode={times}\n\
         binary.handling.mode={binaries}\ninterval.handling.mode={intervals}\n\
         table.exclude.list=public.hw_mark{}\npartitions={PARTITIONS}\nlast=public.z_last\n",
        if *name == "r6" { format!(",{FAR}") } else { String::new() }
    );
    for key in ["hostname", "port", "user", "password", "dbname"] {
        writeln!(text, "database.{key}={}", rig.values[&format!("database.{key}")]).unwrap();
    }
    text
}

/// Sets what a pipeline states that is taken over from this run.
fn state(rig: &mut Rig, run: &[&str; 5], schemas: bool) {
    let [name, decimals, times, binaries, intervals] = *run;
    let converter = "org.apache.kafka.connect.json.JsonConverter";
    let schemas = schemas.to_string();
    for (key, value) in [
        ("topic.routing", "table"),
        ("topic.prefix", name),
        ("publication.autocreate.mode", "disabled"),
        ("snapshot.mode", "no_data"),
        ("key.converter", converter),
        ("key.converter.schemas.enable", &schemas),
        ("value.converter", converter),
        ("value.converter.schemas.enable", &schemas),
        ("decimal.handling.mode", decimals),
        ("time.precision.mode", times),
        ("binary.handling.mode", binaries),
        ("interval.handling.mode", intervals),
        ("table.exclude.list", if name == "r6" { FAR } else { "" }),
    ] {
        rig.set(key, value);
    }
}

async fn slot(rig: &Rig, name: &str) {
    rig.sql(&format!("SELECT pg_create_logical_replication_slot('{name}', 'pgoutput')")).await;
}

/// A rig whose slots stand before the rows of all types.
async fn rig(server: &Server) -> Rig {
    let mut rig = Rig::on(server, include_str!("keys_schema.sql")).await;
    rig.sql("CREATE TABLE z_last (id int PRIMARY KEY); CREATE PUBLICATION dbz_publication FOR ALL TABLES")
        .await;
    for run in &RUNS {
        slot(&rig, run[0]).await;
        for form in ["plain", "schema"] {
            slot(&rig, &format!("{}_{form}", run[0])).await;
        }
    }
    slot(&rig, "taken_over").await;
    for statement in include_str!("keys_rows.sql").lines().filter(|line| !line.starts_with("--")) {
        rig.sql(statement).await;
    }
    rig.sql("INSERT INTO z_last VALUES (1)").await;
    rig.set("slot.adopt", "stream");
    rig
}

/// Kafka's hash of a key, and the partition that its producer chooses.
fn partition(key: &[u8]) -> u32 {
    const M: u32 = 0x5bd1_e995;
    let mut hash = 0x9747_b28c ^ u32::try_from(key.len()).unwrap();
    let mut words = key.chunks_exact(4);
    for word in &mut words {
        let mut k = u32::from_le_bytes(word.try_into().unwrap()).wrapping_mul(M);
        k = (k ^ (k >> 24)).wrapping_mul(M);
        hash = hash.wrapping_mul(M) ^ k;
    }
    let rest = words.remainder();
    if !rest.is_empty() {
        let word = rest.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        hash = (hash ^ word).wrapping_mul(M);
    }
    hash = (hash ^ (hash >> 13)).wrapping_mul(M);
    ((hash ^ (hash >> 15)) & 0x7fff_ffff) % PARTITIONS
}

fn shown(bytes: Option<&[u8]>) -> String {
    bytes.map_or_else(|| "none".into(), String::from_utf8_lossy).into_owned()
}

/// Compares one record; what differs is added to `differences`.
fn compare(ours: &Event, judged: &Judged, form: usize, differences: &mut Vec<String>) {
    let topic = &judged.topic;
    let mut same = |what: &str, ours: String, judged: String| {
        if ours != judged {
            differences.push(format!("{topic} {what}:\n  ours     {ours}\n  Debezium {judged}"));
        }
    };
    same("topic", ours.topic.clone(), topic.clone());
    let key = ours.key_bytes.as_deref();
    same("key", shown(key), shown(judged.key[form].as_deref()));
    let chosen = judged.partition[form];
    same("partition", format!("{:?}", key.map(partition)), format!("{chosen:?}"));
    let other = ours.other_key.as_ref().map(|other| other.header().0).into_iter();
    same("headers", format!("{:?}", other.collect::<Vec<_>>()), format!("{:?}", judged.headers));
    let judged = &judged.value[form];
    let payload = |value: &Value| value.get("payload").unwrap_or(value).clone();
    same("schema", ours.value["schema"].to_string(), judged["schema"].to_string());
    let (ours, judged) = (payload(&ours.value), payload(judged));
    same("op", ours["op"].to_string(), judged["op"].to_string());
    same("after", ours["after"].to_string(), judged["after"].to_string());
    // Columns that the server did not send are left out; Debezium makes NULLs of them.
    for (name, value) in ours["before"].as_object().into_iter().flatten() {
        same("before", value.to_string(), judged["before"][name].to_string());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_values_are_debeziums_under_each_mode() {
    // Its slots are many, and all at once.
    let server = Server::start();
    let mut rig = rig(&server).await;
    let judged = judge(&rig);
    let mut differences = Vec::new();
    for run in &RUNS {
        for (form, name) in ["plain", "schema"].into_iter().enumerate() {
            rig.crash();
            rig.trail.clear();
            rig.stored = std::sync::Arc::default();
            rig.descriptions.clear();
            state(&mut rig, run, form == 1);
            rig.set("slot.name", &format!("{}_{name}", run[0]));
            rig.started().await;
            rig.settle().await;
            let expected = &judged[run[0]];
            let ours: Vec<&Event> = rig.events().collect();
            let last = ours.iter().position(|event| event.topic.ends_with("z_last")).unwrap();
            assert_eq!(last + 1, expected.len(), "{} records of {}", name, run[0]);
            for (ours, judged) in ours.iter().zip(expected) {
                compare(ours, judged, form, &mut differences);
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    goes_on_at_debeziums_offset(&mut rig, &judged["r1"]).await;
}

/// A pipeline that is taken over loses nothing and stays in order, and without its forms it does
/// not start.
async fn goes_on_at_debeziums_offset(rig: &mut Rig, judged: &[Judged]) {
    // The second of three rows of one transaction.
    let at = judged.iter().position(|record| record.topic.ends_with("k_int4")).unwrap() + 1;
    rig.crash();
    rig.trail.clear();
    rig.descriptions.clear();
    rig.stored = std::sync::Arc::default();
    rig.stored.put(serde_json::from_str(&judged[at].offset).unwrap());
    rig.set("slot.adopt", "").set("slot.name", "taken_over");
    for key in ["key.converter", "value.converter", "decimal.handling.mode"] {
        rig.set(key, "");
    }
    rig.set("time.precision.mode", "")
        .set("binary.handling.mode", "")
        .set("interval.handling.mode", "");
    let refused = rig.refused().await;
    assert_eq!(refused.code, code::FORMS, "{refused}");
    let refused = rig.edit(&judged[at].offset, false).await;
    assert!(matches!(refused, OffsetVerdict::Refused { .. }), "{refused:?}");
    state(rig, &RUNS[0], false);
    let accepted = rig.edit(&judged[at].offset, false).await;
    assert!(matches!(accepted, OffsetVerdict::Accepted(Some(_))), "{accepted:?}");
    rig.started().await;
    rig.settle().await;
    let ours: Vec<_> = rig.events().map(|event| event.key_bytes.clone().map(Vec::from)).collect();
    let rest = &judged[at - 1..];
    let expected: Vec<_> = rest.iter().map(|record| record.key[0].clone()).collect();
    assert_eq!(ours[..expected.len()], expected);
}
