use serde_json::{Value, json};

use super::*;

fn explain(offset: Value) -> Vec<String> {
    Position::read(&serde_json::from_value(offset).unwrap()).unwrap().explain()
}

#[test]
fn a_position_in_words() {
    let said = explain(json!({
        "v": 1,
        "resume_scn": 4711000, "resume_rs_id": "0x00002a.00001f40.0010", "resume_ssn": 3,
        "last_commit_scn": 4711200, "last_commit_xid": "3:5.12.614", "last_commit_thread": 1,
        "last_commit_rs_id": "0x00002a.00002000.00a0", "last_commit_ssn": 1, "event_count": 9,
        "event_index": 4, "journal_generation": 7, "dbid": 1234567890, "resetlogs_scn": 1,
        "released_xids": "3:1.2.3,0:4.5.6", "snapshot_pending": "HR.JOBS", "signal_offset": 12,
        "theirs": 1,
    }));
    assert_eq!(
        said,
        [
            "The last acknowledged commit is that of transaction 3:5.12.614, at SCN 4711200, \
             0x00002a.00002000.00a0/1, of which 4 of 9 changes are safe.",
            "After a restart redo thread 1 is read again from address 0x00002a.00001f40.0010/3 on, \
             which is included; its log is found by SCN 4711000.",
            "Commits that redo thread 1 wrote before that of 3:5.12.614 (SCN 4711200) are skipped \
             whole, of that one the first 4 changes; all later ones are delivered, also under a lower \
             SCN.",
            "Given up, by orphan detection or by age, were transactions 3:1.2.3, 0:4.5.6: none of \
             their changes is delivered, and a COMMIT of one stops the connector with CDC-7001.",
            "The journal is at generation 7: what a later one wrote was never acknowledged.",
            "It belongs to the database with DBID 1234567890 and RESETLOGS_CHANGE# 1 alone.",
            "Signals up to offset 12 of the signal topic were handled.",
            "These tables joined and wait for their snapshot: HR.JOBS.",
            "Fields that this release does not know are kept: theirs.",
        ]
    );
}

#[test]
fn a_first_start_in_words() {
    let said = explain(json!({"v": 1, "resume_scn": 90, "start_floor_scn": 100,
        "start_open_scn": 99, "start_open_xids": "3:2.1.1,3:9.1.1"}));
    assert_eq!(
        said[..3],
        [
            "No commit was acknowledged yet.",
            "After a restart the redo thread is read again from SCN 90 on.",
            "The first start was at SCN 100: until the first commit is acknowledged, commits below it \
             are skipped, and of changes below it those are kept whose transaction was open at SCN 99 \
             (3:2.1.1, 3:9.1.1) or began later.",
        ]
    );
}

#[test]
fn each_thread_is_told_of() {
    let block = r#"{"1":{"resume_scn":90,"commit_scn":95,"commit_xid":"3:1.1.1"},
        "2":{"resume_scn":80,"commit_scn":85,"commit_xid":"3:2.1.1"}}"#;
    let said = explain(json!({"v": 1, "resume_scn": 80, "last_commit_xid": "3:1.1.1",
        "last_commit_scn": 95, "last_commit_thread": 1, "event_index": 1, "event_count": 1,
        "threads": block}));
    assert_eq!(
        said[..5],
        [
            "The last acknowledged commit is that of transaction 3:1.1.1, at SCN 95, of which its 1 \
             change is safe.",
            "After a restart redo thread 1 is read again from SCN 90 on.",
            "Commits that redo thread 1 wrote before that of 3:1.1.1 (SCN 95) are skipped whole, that \
             one, too; all later ones are delivered, also under a lower SCN.",
            "After a restart redo thread 2 is read again from SCN 80 on.",
            "Commits that redo thread 2 wrote before that of 3:2.1.1 (SCN 85) are skipped whole, that \
             one, too; all later ones are delivered, also under a lower SCN.",
        ]
    );
}
