use serde_json::json;

use super::*;
use crate::{Code, RedoAddress, RedoThread, Xid};

fn offset(value: Value) -> SourceOffset {
    serde_json::from_value(value).unwrap()
}

fn read(value: Value) -> Position {
    Position::read(&offset(value)).unwrap()
}

/// All fields of one thread, as they are written.
fn whole() -> Value {
    json!({
        "v": 1,
        "resume_scn": 4711000, "resume_rs_id": "0x00002a.00001f40.0010", "resume_ssn": 3,
        "last_commit_scn": 4711200, "last_commit_xid": "3:5.12.614", "last_commit_thread": 1,
        "last_commit_rs_id": "0x00002a.00002000.00a0", "last_commit_ssn": 1, "event_count": 9,
        "event_index": 4,
        "journal_generation": 7, "schema_epoch": 0, "dbid": 1234567890, "resetlogs_scn": 1,
        "released_xids": "3:1.2.3,0:4.5.6",
        "snapshot": "{\"v\":1,\"complete\":true}", "snapshot_pending": "HR.JOBS",
        "signal_offset": 12,
        "theirs": {"kept": [1, null]},
    })
}

#[test]
fn an_offset_says_what_its_fields_say() {
    let position = read(whole());
    let [lane] = position.lanes.iter().as_slice() else { panic!() };
    let address = |block, byte, ssn| Some(RedoAddress { sequence: 42, block, byte, ssn });
    assert_eq!(lane.resume, ResumePoint { scn: Scn(4_711_000), address: address(8000, 16, 3) });
    let key = TransactionKey { container: 3, xid: Xid { usn: 5, slot: 12, sequence: 614 } };
    let thread = RedoThread(1);
    let at = RedoPoint { thread, scn: Scn(4_711_200), address: address(8192, 160, 1) };
    let acknowledged = Acknowledged::First { changes: 4, of: Some(9) };
    let mark = CommitMark { commit: CommitPoint { key, at }, acknowledged };
    assert_eq!((lane.thread, lane.mark), (thread, Some(mark)));
    assert_eq!(position.lanes.last(), Some(&mark));
    let base = &position.base;
    assert_eq!(base.identity, Identity { dbid: 1_234_567_890, resetlogs: Scn(1) });
    assert_eq!((base.journal_generation, base.signal_offset), (7, Some(12)));
    assert_eq!(base.released.iter().map(|key| key.container).collect::<Vec<_>>(), [3, 0]);
    assert_eq!(base.snapshot.as_deref(), Some(r#"{"v":1,"complete":true}"#));
    assert_eq!(base.snapshot_pending.as_deref(), Some("HR.JOBS"));
}

#[test]
fn an_offset_is_written_as_it_was_read() {
    assert_eq!(Value::Object(read(whole()).write().0), whole());
}

#[test]
fn what_is_absent_or_null_is_not_there() {
    let bare = json!({
        "v": 1, "resume_scn": 5, "event_index": 0, "journal_generation": 0, "schema_epoch": 0,
        "dbid": 0, "resetlogs_scn": 0,
    });
    for read_from in [
        json!({"v": 1, "resume_scn": 5}),
        json!({"v": 1, "resume_scn": 5,
        "resume_rs_id": null, "resume_ssn": null, "last_commit_xid": null, "snapshot": null,
        "threads": null, "released_xids": null, "start_floor_scn": null}),
    ] {
        assert_eq!(Value::Object(read(read_from).write().0), bare);
    }
}

#[test]
fn forms_of_earlier_releases_are_read() {
    let position = read(json!({
        "v": "1", "resume_scn": "123456789", "last_commit_scn": "123456800",
        "last_commit_xid": "3:7.21.1042", "last_commit_thread": 1, "event_index": "2",
        "journal_generation": 4, "schema_epoch": 1, "dbid": "77", "resetlogs_scn": 9,
        "resume_rs_id": " 0x00002a.00001f40.0010 ",
        "released_xids": ["3:1.2.3", "4:1.2.3"], "snapshot": {"v": 1, "complete": true},
        "newer": 5,
    }));
    assert_eq!(position.lanes.lowest().scn, Scn(123_456_789));
    assert_eq!(position.lanes.lowest().address.map(|address| address.block), Some(8000));
    let mark = position.lanes.last().unwrap();
    assert_eq!(mark.commit.at.address, None);
    assert_eq!(mark.acknowledged, Acknowledged::First { changes: 2, of: None });
    let written = position.write();
    assert_eq!(written.text("released_xids"), Some("3:1.2.3,4:1.2.3"));
    assert_eq!(written.text("snapshot"), Some(r#"{"v":1,"complete":true}"#));
    assert_eq!((written.number("newer"), written.number("schema_epoch")), (Some(5), Some(1)));
}

#[test]
fn a_transaction_without_a_container_is_of_none() {
    let position = read(json!({"v": 1, "last_commit_xid": "5.12.614"}));
    assert_eq!(position.lanes.last().unwrap().commit.key.container, 0);
    assert_eq!(position.write().text("last_commit_xid"), Some("0:5.12.614"));
}

#[test]
fn an_address_of_all_zeros_is_none() {
    let position = read(json!({"v": 1, "resume_rs_id": "0x000000.00000000.0000"}));
    assert_eq!(position.lanes.lowest().address, None);
}

#[test]
fn the_oldest_of_too_many_released_transactions_go() {
    let keys: Vec<String> = (0..258).map(|number| format!("3:1.1.{number}")).collect();
    let written = read(json!({"v": 1, "released_xids": keys.join(",")})).write();
    let kept: Vec<&str> = written.text("released_xids").unwrap().split(',').collect();
    assert_eq!((kept.len(), kept[0], kept[255]), (256, "3:1.1.2", "3:1.1.257"));
}

#[test]
fn another_version_is_refused() {
    for (value, said) in [
        (json!({}), "no field v"),
        (json!({"resume_scn": 5}), "no field v"),
        (json!({"v": 2, "resume_scn": 5}), "version 2"),
        (json!({"v": 0}), "version 0"),
    ] {
        let error = Position::read(&offset(value)).unwrap_err();
        assert_eq!(error.code, Code::Corruption);
        assert!(error.what.contains(said), "{error}");
    }
}

#[test]
fn a_field_that_cannot_be_read_is_named() {
    for (field, value) in [
        ("resume_scn", json!(-1)),
        ("last_commit_scn", json!("-5")),
        ("event_index", json!(-1)),
        ("resume_scn", json!(1.5)),
        ("resume_scn", json!(true)),
        ("dbid", json!(9_223_372_036_854_775_808_u64)),
        ("last_commit_thread", json!(4_294_967_296_u64)),
        ("resume_rs_id", json!("42")),
        ("last_commit_rs_id", json!(42)),
        ("last_commit_xid", json!("5.12")),
        ("released_xids", json!("3:1.2.3,x")),
        ("released_xids", json!([7])),
        ("start_open_xids", json!(7)),
        ("snapshot", json!("[1")),
        ("snapshot_pending", json!(7)),
        ("signal_offset", json!("x")),
        ("threads", json!("{")),
    ] {
        let mut given = json!({"v": 1, "last_commit_xid": "1.2.3", "start_floor_scn": 5});
        given[field] = value.clone();
        let error = Position::read(&offset(given)).unwrap_err();
        assert_eq!(error.code, Code::Corruption);
        assert!(error.what.contains(field), "{field} {value}: {error}");
    }
}

#[test]
fn the_snapshots_text_is_not_shown() {
    let error = Position::read(&offset(json!({"v": 1, "snapshot": "{secret"}))).unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[test]
fn a_field_that_is_kept_never_stands_over_a_known_one() {
    let mut position = read(json!({"v": 1, "resume_scn": 5, "mine": 1}));
    let extras = &mut Arc::make_mut(&mut position.base).extras;
    extras.insert("resume_scn".to_owned(), json!(9));
    assert_eq!(position.write().number("resume_scn"), Some(5));
    assert_eq!(position.write().number("mine"), Some(1));
}

#[test]
fn the_rule_of_a_first_start_is_kept_until_a_commit_is_acknowledged() {
    let started = json!({"v": 1, "resume_scn": 5, "start_floor_scn": 9, "start_open_scn": 8,
        "start_open_xids": "3:9.1.1,3:2.1.1"});
    let written = read(started.clone()).write();
    assert_eq!(
        (written.number("start_floor_scn"), written.number("start_open_scn")),
        (Some(9), Some(8))
    );
    assert_eq!(written.text("start_open_xids"), Some("3:2.1.1,3:9.1.1"));
    let mut acknowledged = started;
    acknowledged["last_commit_xid"] = json!("3:2.1.1");
    acknowledged["last_commit_scn"] = json!(10);
    let written = read(acknowledged).write();
    assert!(written.0.keys().all(|field| !field.starts_with("start_")), "{written}");
}

#[test]
fn the_offset_of_the_runbook_is_read() {
    let position = read(json!({"v": 1, "resume_scn": 4711000, "dbid": 1234567890,
        "resetlogs_scn": 1, "journal_generation": 7, "schema_epoch": 0}));
    let resume = ResumePoint { scn: Scn(4_711_000), address: None };
    assert_eq!(position.lanes, Lanes::one(Lane { thread: Lanes::UNNAMED, resume, mark: None }));
}

#[test]
fn the_position_before_an_open_transaction_counts_none_of_its_changes() {
    let before = read(whole()).before_open_transaction().unwrap().write();
    assert_eq!((before.number("event_index"), before.number("event_count")), (Some(0), Some(9)));
    assert_eq!(before.text("last_commit_xid"), Some("3:5.12.614"));
    for end in [json!(9), json!(0)] {
        let mut at_an_end = whole();
        at_an_end["event_index"] = end;
        assert_eq!(read(at_an_end).before_open_transaction(), None);
    }
}

#[test]
fn another_database_is_refused() {
    let position = read(whole());
    let own = Identity { dbid: 1_234_567_890, resetlogs: Scn(1) };
    assert_eq!(position.check_identity(own), Ok(()));
    for other in [Identity { dbid: 8, ..own }, Identity { resetlogs: Scn(2), ..own }] {
        assert_eq!(position.check_identity(other).unwrap_err().code, Code::Topology);
    }
}
