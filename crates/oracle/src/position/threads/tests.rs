use highwater_connector::SourceOffset;
use serde_json::json;

use super::super::Position;
use super::*;
use crate::{Code, Marks, RedoAddress, Scn};

/// Thread 2 is behind, and thread 1 has the last commit.
const BLOCK_OF_TWO: &str = concat!(
    r#"{"1":{"resume_scn":500,"resume_rs_id":"0x000032.00000008.0010","resume_ssn":0,"#,
    r#""commit_scn":510,"commit_xid":"3:1.1.9","commit_rs_id":"0x000032.00000009.0010","#,
    r#""commit_ssn":1},"#,
    r#""2":{"resume_scn":400,"resume_rs_id":"0x000007.00000004.0010","resume_ssn":2,"#,
    r#""commit_scn":410,"commit_xid":"3:2.2.8","commit_rs_id":"0x000007.00000003.0010","#,
    r#""commit_ssn":0,"event_index":1,"event_count":3}}"#,
);

fn offset_of_two() -> Value {
    json!({
        "v": 1, "resume_scn": 400, "resume_rs_id": "0x000007.00000004.0010", "resume_ssn": 2,
        "last_commit_scn": 510, "last_commit_xid": "3:1.1.9", "last_commit_thread": 1,
        "last_commit_rs_id": "0x000032.00000009.0010", "last_commit_ssn": 1,
        "event_count": 4, "event_index": 4,
        "journal_generation": 7, "schema_epoch": 0, "dbid": 5, "resetlogs_scn": 1,
        "threads": BLOCK_OF_TWO, "threads_generation": 7,
    })
}

fn read(value: &Value) -> Result<Position, OracleError> {
    Position::read(&serde_json::from_value::<SourceOffset>(value.clone()).unwrap())
}

/// The offset with these fields set, or removed by null.
fn with(fields: Value) -> Value {
    let mut offset = offset_of_two();
    for (field, value) in fields.as_object().unwrap() {
        offset[field] = value.clone();
    }
    offset
}

fn address(sequence: u64, block: u64, ssn: u64) -> RedoAddress {
    RedoAddress { sequence, block, byte: 16, ssn }
}

fn resumes(position: &Position) -> Vec<(u64, Option<RedoAddress>)> {
    position.lanes.iter().map(|lane| (lane.resume.scn.0, lane.resume.address)).collect()
}

fn marks(position: &Position) -> Vec<Option<u64>> {
    let scn = |lane: &Lane| Some(lane.mark?.commit.at.scn.0);
    position.lanes.iter().map(scn).collect()
}

#[test]
fn each_thread_is_written_and_read_by_itself() {
    let position = read(&offset_of_two()).unwrap();
    let stored = [(500, Some(address(50, 8, 0))), (400, Some(address(7, 4, 2)))];
    assert_eq!(resumes(&position), stored);
    assert_eq!(marks(&position), [Some(510), Some(410)]);
    let acknowledged =
        |thread| position.lanes.get(RedoThread(thread)).unwrap().mark.unwrap().acknowledged;
    assert_eq!(acknowledged(1), Acknowledged::First { changes: 4, of: Some(4) });
    assert_eq!(acknowledged(2), Acknowledged::First { changes: 1, of: Some(3) });
    assert_eq!(Value::Object(position.write().0), offset_of_two());
    let threads = [(RedoThread(1), address(50, 8, 0)), (RedoThread(2), address(7, 4, 2))];
    let cursor = position.cursor();
    assert_eq!((cursor.scn, cursor.marks), (Scn(400), Marks::Threads(threads.into())));
}

#[test]
fn another_scn_without_address_is_that_of_every_thread() {
    for scn in [300, 450, 900] {
        let edit = json!({"resume_scn": scn, "resume_rs_id": null, "resume_ssn": null});
        let position = read(&with(edit)).unwrap();
        assert_eq!(resumes(&position), [(scn, None), (scn, None)]);
        assert_eq!(marks(&position), [Some(510), Some(410)]);
        assert_eq!(read(&Value::Object(position.write().0)).unwrap(), position);
    }
}

#[test]
fn addresses_alone_may_be_dropped() {
    let edit = json!({"resume_rs_id": null, "resume_ssn": null});
    assert_eq!(resumes(&read(&with(edit)).unwrap()), [(400, None), (400, None)]);
}

#[test]
fn without_a_last_commit_no_thread_has_one() {
    let edit = json!({"last_commit_scn": null, "last_commit_xid": null, "event_index": 0,
        "last_commit_thread": null, "last_commit_rs_id": null, "last_commit_ssn": null});
    let position = read(&with(edit)).unwrap();
    assert_eq!(marks(&position), [None, None]);
    assert_eq!(resumes(&position)[0], (500, Some(address(50, 8, 0))));
}

#[test]
fn the_count_of_the_last_commit_is_that_of_the_flat_field() {
    let position = read(&with(json!({"event_index": 0}))).unwrap();
    let last = position.lanes.last().unwrap();
    assert_eq!(last.acknowledged, Acknowledged::First { changes: 0, of: Some(4) });
    assert_eq!(position.lanes.get(RedoThread(1)).unwrap().mark.as_ref(), Some(last));
}

#[test]
fn an_edit_that_cannot_be_for_all_threads_is_refused() {
    for edit in [
        json!({"resume_scn": 300}),
        json!({"resume_rs_id": "0x000007.00000002.0010"}),
        json!({"last_commit_scn": 509}),
        json!({"last_commit_xid": "3:1.1.8"}),
        json!({"last_commit_thread": 2}),
        json!({"last_commit_thread": null}),
    ] {
        let error = read(&with(edit.clone())).unwrap_err();
        assert_eq!(error.code, Code::Corruption, "{edit}");
        assert!(error.what.contains("remove"), "{error}");
    }
}

/// A release that does not know the block has run: it counted the generation up.
#[test]
fn a_block_that_a_release_has_carried_along_is_ignored() {
    for moved in [
        json!({"resume_scn": 900, "resume_rs_id": "0x000033.00000001.0010", "resume_ssn": 0}),
        json!({"resume_scn": 900, "resume_rs_id": null, "resume_ssn": null}),
        json!({"last_commit_scn": 600, "last_commit_xid": "3:1.1.10"}),
        json!({"last_commit_scn": null, "last_commit_xid": null}),
    ] {
        let mut offset = with(moved);
        offset["journal_generation"] = json!(8);
        let position = read(&offset).unwrap();
        assert!(!position.lanes.are_several(), "{offset}");
        let written = position.write();
        assert!(written.0.keys().all(|field| !field.starts_with("threads")), "{written}");
    }
}

#[test]
fn a_block_of_another_generation_counts_while_it_agrees() {
    for generation in [json!(8), json!(null)] {
        let agreeing = read(&with(json!({"threads_generation": generation}))).unwrap();
        assert_eq!(agreeing.lanes, read(&offset_of_two()).unwrap().lanes);
    }
    // Whose flat address is another.
    let theirs = json!({"threads_generation": null, "resume_rs_id": "0x000032.00000008.0010"});
    assert_eq!(read(&with(theirs)).unwrap().lanes, read(&offset_of_two()).unwrap().lanes);
}

#[test]
fn a_commit_in_the_block_needs_one_in_the_flat_fields() {
    let uncommitted = json!({"last_commit_xid": null, "threads_generation": null});
    assert!(!read(&with(uncommitted)).unwrap().lanes.are_several());
}

#[test]
fn a_block_of_one_thread_says_nothing_more() {
    let block = r#"{"1":{"resume_scn":400,"commit_scn":1,"commit_xid":"1.1.1"}}"#;
    let position = read(&with(json!({"threads": block}))).unwrap();
    assert_eq!(resumes(&position), [(400, Some(address(7, 4, 2)))]);
    assert_eq!(marks(&position), [Some(510)]);
}

#[test]
fn a_damaged_block_is_named() {
    for block in [
        "[]",
        r#"{"x":{}}"#,
        r#"{"1":5,"2":{}}"#,
        r#"{"1":{"resume_scn":-1},"2":{}}"#,
        r#"{"1":{"commit_scn":1},"2":{}}"#,
        r#"{"1":{"commit_xid":"1.1.1"},"2":{}}"#,
    ] {
        assert_eq!(read(&with(json!({"threads": block}))).unwrap_err().code, Code::Corruption);
    }
}
