//! Heartbeats, events and dead letters.

use serde_json::json;

use super::*;
use crate::delivery::{DeadLetter, Heartbeat, HeartbeatReason, OpsEvent, OpsKind};
use crate::{ClientSession, Code, ObjectId, Operation, RedoRow, Scn, TableName};

fn delivery() -> Delivery {
    Delivery::new(per_table(), &[])
}

fn shown(record: &SourceRecord) -> (&str, Value, Value) {
    assert!(record.boundary && record.hw.is_none() && record.partition == Some(0));
    assert_eq!(safe(record), 3);
    (&record.topic, super::json(&record.key), value(record))
}

#[test]
fn heartbeats() {
    let server = json!({"server": "shop"});
    let start = Heartbeat { reason: HeartbeatReason::Start, resume: Scn(u64::MAX), mined_to: None };
    let record = delivery().heartbeat(&start, positions()(3), NOW_MS);
    let expected =
        json!({"ts_ms": NOW_MS, "resume_scn": "18446744073709551615", "reason": "start"});
    assert_eq!(shown(&record), ("shop.cdc.heartbeat", server.clone(), expected));
    let quiet =
        Heartbeat { reason: HeartbeatReason::Quiet, resume: Scn(40), mined_to: Some(Scn(50)) };
    let record = delivery().heartbeat(&quiet, positions()(3), NOW_MS);
    let expected =
        json!({"ts_ms": NOW_MS, "resume_scn": "40", "mined_to_scn": "50", "reason": "quiet"});
    assert_eq!(shown(&record), ("shop.cdc.heartbeat", server, expected));
}

#[test]
fn events() {
    let sql = format!("create table t (x number) -- {}", "ä".repeat(3_000));
    let event = OpsEvent::new(OpsKind::DdlSeen, vec![("sql", sql.clone()), ("table", "T".into())]);
    let record = delivery().ops(&event, Some(Scn(7)), positions()(3), NOW_MS);
    let cut: String = sql.chars().take(2_000).collect();
    let expected = json!({
        "v": 1, "type": "ddl-seen", "ts_ms": NOW_MS, "server": "shop", "resume_scn": "7",
        "details": {"sql": cut, "table": "T"},
    });
    assert_eq!(shown(&record), ("shop.cdc.ops", json!({"server": "shop"}), expected));
    let error = OracleError::new(Code::LogGap, "logs are gone", "restore them");
    let record = delivery().ops(&OpsEvent::stop(&error), None, positions()(3), NOW_MS);
    let expected = json!({
        "v": 1, "type": "stop", "ts_ms": NOW_MS, "server": "shop",
        "details": {"code": "CDC-2001", "message": "logs are gone", "action": "restore them"},
    });
    assert_eq!(value(&record), expected);
}

fn unsupported_row() -> RedoRow {
    RedoRow {
        at: sample::at(0x20),
        transaction: KEY,
        operation: Operation::Unsupported,
        is_undo: false,
        is_continued: false,
        status: 2,
        info: Some("Unsupported".to_owned()),
        time_us: 0,
        object: ObjectId { container: 3, number: 1 },
        object_version: 0,
        pdb: Some("PDB1".to_owned()),
        owner: Some("HR".to_owned()),
        table: Some("EMP".to_owned()),
        row_id: String::new(),
        user: None,
        session: ClientSession::default(),
        sql_redo: Some("Unsupported".to_owned()),
    }
}

#[test]
fn dead_letters_of_rows_and_transactions() {
    let table = TableName { pdb: Some("PDB1".to_owned()), ..(*sample::table()).clone() };
    let key = json!({"server": "shop", "xid": "5.12.614"});
    let letter = DeadLetter::unsupported(&unsupported_row(), &table, false);
    let record = delivery().dead_letter(&letter, positions()(3), NOW_MS);
    let expected = json!({
        "v": 1, "kind": "unsupported-row", "ts_ms": NOW_MS, "server": "shop", "con_id": 0,
        "xid": "5.12.614", "pdb": "PDB1", "schema": "HR", "table": "EMP", "scn": "4000",
        "rs_id": "0x000007.00000008.0020", "ssn": "0", "status": "2", "info": "Unsupported",
        "sql_redo": "Unsupported",
    });
    assert_eq!(shown(&record), ("shop.cdc.dlq", key.clone(), expected));
    let withheld = DeadLetter::unsupported(&unsupported_row(), &table, true);
    let record = delivery().dead_letter(&withheld, positions()(3), NOW_MS);
    assert!(value(&record)["sql_redo"].as_str().unwrap().starts_with("(withheld"));

    let range = (sample::at(0x10), sample::at(0x20));
    let letter = DeadLetter::discarded(KEY, range, 12, 86_400_000);
    let record = delivery().dead_letter(&letter, positions()(3), NOW_MS);
    let expected = json!({
        "v": 1, "kind": "transaction-discarded", "ts_ms": NOW_MS, "server": "shop", "con_id": 0,
        "xid": "5.12.614", "first_scn": "4000", "last_scn": "4000", "events": "12",
        "age_ms": "86400000",
    });
    assert_eq!(shown(&record), ("shop.cdc.dlq", key, expected));
}

#[test]
fn topics_may_have_other_names() {
    let mut topics = OwnTopics::of("shop");
    topics.ops = "elsewhere".into();
    let tables = TableTopics::Trail("shop".into());
    let output = Output { topics: TopicNames::new(tables, topics), ..trail() };
    let event = OpsEvent::new(OpsKind::Startup, Vec::new());
    let record = Delivery::new(output, &[]).ops(&event, None, positions()(3), NOW_MS);
    assert_eq!(&*record.topic, "elsewhere");
    assert_eq!(value(&record)["details"], json!({}));
}
