use serde_json::{Value, json};

use super::*;
use crate::{Identity, Scn};

fn stored() -> Value {
    json!({
        "v": 1,
        "resume_scn": 500, "resume_rs_id": "0x00002a.00001f40.0010", "resume_ssn": 0,
        "last_commit_scn": 490, "last_commit_xid": "3:5.12.614", "last_commit_thread": 1,
        "last_commit_rs_id": "0x00002a.00001e00.00a0", "last_commit_ssn": 1, "event_count": 9,
        "event_index": 9, "journal_generation": 7, "schema_epoch": 0, "dbid": 5,
        "resetlogs_scn": 1, "released_xids": "3:1.2.3", "theirs": "kept",
    })
}

/// How far another thread is, beside the stored one.
fn stored_of_two() -> Value {
    let block = r#"{"1":{"resume_scn":500,"resume_rs_id":"0x00002a.00001f40.0010","resume_ssn":0,
        "commit_scn":490,"commit_xid":"3:5.12.614","commit_rs_id":"0x00002a.00001e00.00a0",
        "commit_ssn":1},"2":{"resume_scn":700}}"#;
    edited(stored(), json!({"threads": block, "threads_generation": 7}))
}

/// With these fields set, or removed by null.
fn edited(mut offset: Value, edit: Value) -> Value {
    let fields = offset.as_object_mut().unwrap();
    for (field, value) in edit.as_object().unwrap() {
        match value {
            Value::Null => drop(fields.shift_remove(field)),
            value => drop(fields.insert(field.clone(), value.clone())),
        }
    }
    offset
}

fn available() -> Available {
    let oldest = [(RedoThread(1), Scn(100)), (RedoThread(2), Scn(200))].into();
    let identity = Identity { dbid: 5, resetlogs: Scn(1) };
    Available { identity, current: Scn(1000), oldest }
}

fn asked(current: Option<&Value>, wanted: &Value, allow_skip: bool) -> Result<Value, String> {
    let offset = |value: &Value| serde_json::from_value(value.clone()).unwrap();
    let change =
        OffsetChange { current: current.map(offset), wanted: Some(offset(wanted)), allow_skip };
    match judge(&change, &available()) {
        OffsetVerdict::Accepted(offset) => Ok(Value::Object(offset.unwrap().0)),
        OffsetVerdict::Refused { what, remedy } => {
            assert!(!remedy.is_empty());
            Err(what)
        }
    }
}

fn edit(edit: Value, allow_skip: bool) -> Result<Value, String> {
    asked(Some(&stored()), &edited(stored(), edit), allow_skip)
}

/// Another SCN, without its address.
fn at(scn: u64) -> Value {
    json!({"resume_scn": scn, "resume_rs_id": null, "resume_ssn": null})
}

const ALL_FIVE: [&str; 5] = [
    "last_commit_scn",
    "last_commit_xid",
    "last_commit_thread",
    "last_commit_rs_id",
    "last_commit_ssn",
];

#[test]
fn an_earlier_scn_is_accepted_and_keeps_all_else() {
    assert_eq!(edit(at(250), false), Ok(edited(stored(), at(250))));
}

#[test]
fn the_last_commit_can_be_forgotten() {
    let mut forgetting = at(250);
    for field in ALL_FIVE {
        forgetting[field] = Value::Null;
    }
    forgetting["event_index"] = json!(0);
    let accepted = edit(forgetting, false).unwrap();
    assert!(ALL_FIVE.iter().all(|field| accepted.get(field).is_none()), "{accepted}");
    assert_eq!((&accepted["resume_scn"], &accepted["event_index"]), (&json!(250), &json!(0)));
}

#[test]
fn what_is_stored_may_be_stored_again() {
    for offset in [stored(), stored_of_two()] {
        assert!(asked(Some(&offset), &offset, false).is_ok());
    }
}

#[test]
fn redo_that_is_gone_is_refused() {
    assert_eq!(edit(at(200), false).map(drop), Ok(()));
    let refused = edit(at(199), true).unwrap_err();
    assert!(refused.contains("thread 2") && refused.contains("begins at SCN 200"), "{refused}");
}

#[test]
fn forward_needs_to_be_said_in_so_many_words() {
    assert!(edit(at(501), false).unwrap_err().contains("never delivered"));
    assert_eq!(edit(at(501), true).unwrap()["resume_scn"], json!(501));
    assert!(edit(at(500), false).is_ok());
    let by_address = json!({"resume_rs_id": "0x00002a.00001f41.0010"});
    assert!(edit(by_address.clone(), false).is_err());
    assert!(edit(by_address, true).is_ok());
}

#[test]
fn forward_inside_of_a_transaction_counts_none_of_its_changes() {
    let inside = edited(stored(), json!({"event_index": 4}));
    let index = |scn| {
        asked(Some(&inside), &edited(inside.clone(), at(scn)), true).unwrap()["event_index"].clone()
    };
    assert_eq!((index(501), index(400)), (json!(0), json!(4)));
}

#[test]
fn ahead_of_the_database_is_refused() {
    assert!(edit(at(1000), true).is_ok());
    assert!(edit(at(1001), true).unwrap_err().contains("at 1000"));
}

#[test]
fn what_ties_it_to_its_history_must_be_kept() {
    for change in [
        json!({"dbid": 6}),
        json!({"dbid": null}),
        json!({"resetlogs_scn": 2}),
        json!({"journal_generation": 6}),
        json!({"journal_generation": null}),
    ] {
        assert!(edit(change.clone(), true).is_err(), "{change}");
    }
    let refused = edit(json!({"released_xids": null}), false).unwrap_err();
    assert!(refused.contains("3:1.2.3"), "{refused}");
    assert!(edit(json!({"released_xids": "3:1.2.4,3:1.2.3"}), false).is_ok());
    assert!(edit(json!({"released_xids": null}), true).is_ok());
}

#[test]
fn a_last_commit_cannot_be_set() {
    for change in [
        json!({"last_commit_scn": 491}),
        json!({"last_commit_xid": "3:5.12.615"}),
        json!({"last_commit_xid": null}),
        json!({"last_commit_rs_id": null, "last_commit_ssn": null}),
        json!({"last_commit_thread": 2}),
    ] {
        assert!(edit(change.clone(), true).is_err(), "{change}");
    }
}

#[test]
fn more_of_the_last_commit_counts_only_if_asked() {
    let inside = edited(stored(), json!({"event_index": 4}));
    let index = |index, allow_skip| {
        asked(Some(&inside), &edited(inside.clone(), json!({"event_index": index})), allow_skip)
    };
    assert!(index(3, false).is_ok());
    assert!(index(5, false).unwrap_err().contains("from 4 to 5"));
    assert!(index(5, true).is_ok());
}

#[test]
fn an_scn_that_is_moved_without_its_address_is_refused() {
    let refused = edit(json!({"resume_scn": 250}), true).unwrap_err();
    assert!(refused.contains("nothing would move"), "{refused}");
}

#[test]
fn an_edit_applies_to_every_thread() {
    let of = |wanted: Value, allow_skip| asked(Some(&stored_of_two()), &wanted, allow_skip);
    let accepted = of(edited(stored_of_two(), at(250)), false).unwrap();
    let block: Value = serde_json::from_str(accepted["threads"].as_str().unwrap()).unwrap();
    assert_eq!((&block["1"]["resume_scn"], &block["2"]["resume_scn"]), (&json!(250), &json!(250)));
    assert_eq!(block["1"]["commit_scn"], json!(490));
    // Thread 1 goes forward, and thread 2 does not.
    assert!(of(edited(stored_of_two(), at(600)), false).is_err());
    assert!(of(edited(stored_of_two(), json!({"threads": null})), true).is_err());
}

#[test]
fn a_field_that_nobody_reads_is_refused() {
    assert!(edit(json!({"resume_snc": 400}), true).unwrap_err().contains("mean resume_scn?"));
}

#[test]
fn without_a_readable_offset_the_database_is_the_witness() {
    let wanted = json!({"v": 1, "resume_scn": 250, "dbid": 5, "resetlogs_scn": 1});
    for current in [None, Some(json!({"v": 2}))] {
        assert!(asked(current.as_ref(), &wanted, false).is_ok());
        let other = edited(wanted.clone(), json!({"dbid": 6}));
        assert!(asked(current.as_ref(), &other, false).is_err());
        let gone = edited(wanted.clone(), json!({"resume_scn": 100}));
        assert!(asked(current.as_ref(), &gone, false).is_err());
    }
}

#[test]
fn an_offset_that_cannot_be_read_is_refused() {
    assert!(edit(json!({"v": null}), true).unwrap_err().contains("no field v"));
    assert!(edit(json!({"resume_scn": -1}), true).unwrap_err().contains("resume_scn"));
}

#[test]
fn removing_is_always_accepted() {
    let change = OffsetChange { current: None, wanted: None, allow_skip: false };
    assert_eq!(judge(&change, &available()), OffsetVerdict::Accepted(None));
}
