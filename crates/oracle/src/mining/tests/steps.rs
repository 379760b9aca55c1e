//! What one step reads, and what it makes of errors.

use std::time::Duration;

use super::{apply, from, from_scn, miner, miner_with, step, texts};
use crate::mining::fake::{Fake, Fault, error, row, table, transaction};
use crate::mining::{MiningError, MiningMode, MiningSettings, Step, StepEnd};
use crate::row::{ObjectId, Operation, RedoRow};
use crate::session::{
    Dictionary, ErrorClass, Identity, LogPlace, OpenTransaction, RedoLog, TableObject,
};
use crate::{Code, Cursor, Marks, OracleError, RedoAddress, RedoThread, Scn, TransactionKey};

fn stop(step: Result<Step, MiningError>) -> OracleError {
    match step {
        Err(MiningError::Stop(error)) => error,
        other => panic!("{other:?}"),
    }
}

fn address(sequence: u64, block: u64) -> RedoAddress {
    RedoAddress { sequence, block, byte: 16, ssn: 0 }
}

/// Writes rows of one thread and lets the clock run past them.
fn write(fake: &mut Fake, count: u32) {
    for number in 0..count {
        fake.write(1, Operation::Insert, transaction(number));
    }
    fake.tick();
}

fn ddl(fake: &mut Fake, sql: &str, key: TransactionKey) -> RedoRow {
    let scn = fake.tick();
    let row = row(1, scn, fake.next_block(1), Operation::Ddl, key);
    fake.write_row(RedoRow { sql_redo: Some(sql.to_owned()), ..row })
}

const GENERIC: &str = "insert into \"HR\".\"EMP\"(\"COL 1\") values (HEXTORAW('c102'))";

fn write_lagging(fake: &mut Fake) {
    let scn = fake.tick();
    let row = row(1, scn, fake.next_block(1), Operation::Insert, transaction(1));
    fake.write_row(RedoRow { status: 2, sql_redo: Some(GENERIC.to_owned()), ..row });
    fake.tick();
}

#[test]
fn nothing_new_is_idle() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    assert!(matches!(step(&mut miner, &mut fake), Ok(Step::Idle)));
    assert!(fake.starts.is_empty());
}

// L5: nothing is known of rows behind an empty window; the cursor moves to the bound alone.
#[test]
fn an_empty_step_moves_the_cursor_to_its_end() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    fake.scn = 150;
    assert!(apply(&mut miner, &mut fake).is_empty());
    assert_eq!(miner.cursor().scn, Scn(150));
    assert_eq!(miner.cursor().mark(RedoThread(1)), Some(RedoAddress::start_of_log(1)));
}

// L5
#[test]
fn a_commit_at_the_edge_of_a_step_comes_with_the_next_one() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    fake.write(1, Operation::Insert, transaction(1));
    fake.write(1, Operation::Commit, transaction(1));
    assert_eq!(texts(&apply(&mut miner, &mut fake)), ["row 1/1"]);
    fake.tick();
    assert_eq!(texts(&apply(&mut miner, &mut fake)), ["row 1/2"]);
}

// A row above the end of a range, and behind it a late one below: if the range's end hid the first one,
// the mark would pass it.
#[test]
fn a_late_row_behind_one_above_the_end_waits_for_it() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    fake.scn = 104;
    fake.write_late(1, 110, Operation::Insert, transaction(1));
    fake.write_late(1, 102, Operation::Insert, transaction(2));
    assert!(apply(&mut miner, &mut fake).is_empty());
    fake.scn = 120;
    assert_eq!(texts(&apply(&mut miner, &mut fake)), ["row 1/1", "row 1/2"]);
}

#[test]
fn a_late_row_of_a_quiet_thread_is_seen() {
    let mut fake = Fake::new(2);
    let settings = MiningSettings { is_rac_enabled: true, ..MiningSettings::default() };
    let mut miner = miner_with(&mut fake, from_scn(100), settings);
    write(&mut fake, 3);
    apply(&mut miner, &mut fake);
    assert_eq!(miner.cursor().mark(RedoThread(2)), Some(RedoAddress::start_of_log(1)));
    fake.write_late(2, 101, Operation::Insert, transaction(9));
    fake.tick();
    assert_eq!(texts(&apply(&mut miner, &mut fake)), ["row 2/1"]);
}

#[test]
fn a_step_that_was_not_applied_comes_again() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    write(&mut fake, 2);
    for _ in 0..3 {
        assert!(
            matches!(step(&mut miner, &mut fake), Ok(Step::Rows(step)) if step.rows.len() == 2)
        );
    }
    assert_eq!(apply(&mut miner, &mut fake).len(), 2);
}

#[test]
fn after_a_restart_the_row_at_the_mark_comes_again_and_then_no_more() {
    let mut fake = Fake::new(1);
    write(&mut fake, 3);
    for marks in
        [Marks::AnyThread(address(1, 2)), Marks::Threads([(RedoThread(1), address(1, 2))].into())]
    {
        let mut miner = miner(&mut fake, from(Cursor { scn: Scn(102), marks }));
        assert_eq!(texts(&apply(&mut miner, &mut fake)), ["row 1/2", "row 1/3"]);
        fake.tick();
        assert!(apply(&mut miner, &mut fake).is_empty());
    }
}

// dbz-2504: the error in the middle of a step was taken for its end.
#[test]
fn an_ora_00310_inside_a_step_reads_it_again_from_the_same_cursor() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    write(&mut fake, 4);
    fake.faults.push_back(Fault::AfterRows(2, error(310, ErrorClass::StepRetry)));
    assert!(
        matches!(step(&mut miner, &mut fake), Ok(Step::Retry(reason)) if reason.contains("00310"))
    );
    assert_eq!(miner.cursor().scn, Scn(100));
    assert_eq!(apply(&mut miner, &mut fake).len(), 4);
}

#[test]
fn the_twenty_first_failure_in_a_row_stops() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    write(&mut fake, 1);
    for _ in 0..20 {
        fake.faults.push_back(Fault::AtStart(error(1291, ErrorClass::StepRetry)));
        assert!(matches!(step(&mut miner, &mut fake), Ok(Step::Retry(_))));
    }
    fake.faults.push_back(Fault::AtStart(error(1291, ErrorClass::StepRetry)));
    assert_eq!(stop(step(&mut miner, &mut fake)).code, Code::MiningStepRetry);
}

// L12
#[test]
fn errors_are_told_apart_by_their_class() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    write(&mut fake, 1);
    fake.faults.push_back(Fault::AtClock(error(3113, ErrorClass::Transient)));
    let lost = step(&mut miner, &mut fake);
    assert!(matches!(lost, Err(MiningError::Session(error)) if error.ora == Some(3113)));
    for (class, code) in [
        (ErrorClass::Privilege, Code::Privilege),
        (ErrorClass::LogPurged, Code::LogPurged),
        (ErrorClass::Unknown, Code::TransientDatabase),
    ] {
        fake.faults.push_back(Fault::AfterRows(0, error(1, class)));
        assert_eq!(stop(step(&mut miner, &mut fake)).code, code);
    }
}

// L2
#[test]
fn memory_that_is_used_up_opens_the_session_anew() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    write(&mut fake, 1);
    fake.faults.push_back(Fault::AfterRows(1, error(4036, ErrorClass::OutOfMemory)));
    assert!(matches!(step(&mut miner, &mut fake), Ok(Step::TimedOut)));
    assert_eq!(fake.reconnects, 0);
    assert_eq!(apply(&mut miner, &mut fake).len(), 1);
    assert_eq!(fake.reconnects, 1);
}

#[test]
fn three_time_outs_at_one_log_stop() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    write(&mut fake, 1);
    let mut time_out = || {
        fake.faults.push_back(Fault::AfterRows(0, error(1013, ErrorClass::Timeout)));
        step(&mut miner, &mut fake)
    };
    assert!(matches!(time_out(), Ok(Step::TimedOut)));
    assert!(matches!(time_out(), Ok(Step::TimedOut)));
    assert_eq!(stop(time_out()).code, Code::MiningStalled);
}

#[test]
fn an_old_session_is_opened_anew() {
    let mut fake = Fake::new(1);
    let settings = MiningSettings { session_max_age: Duration::ZERO, ..MiningSettings::default() };
    let mut miner = miner_with(&mut fake, from_scn(100), settings);
    write(&mut fake, 1);
    assert_eq!(apply(&mut miner, &mut fake).len(), 1);
    assert_eq!(fake.reconnects, 1);
}

#[test]
fn another_incarnation_after_a_reconnect_stops() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    miner.reconnect(&mut fake).unwrap();
    fake.about.identity = Identity { dbid: 4711, resetlogs: Scn(99) };
    let Err(MiningError::Stop(error)) = miner.reconnect(&mut fake) else { panic!() };
    assert_eq!(error.code, Code::Topology);
    assert!(error.what.contains("RESETLOGS at SCN 99"));
}

#[test]
fn redo_that_logminer_lacks_stops() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    fake.write(1, Operation::MissingScn, transaction(0));
    fake.tick();
    assert_eq!(stop(step(&mut miner, &mut fake)).code, Code::Corruption);
}

// zero-rs-id
#[test]
fn a_rollback_without_an_address_is_read_and_never_becomes_the_mark() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    fake.write(1, Operation::Insert, transaction(1));
    let scn = fake.tick();
    let mut end = row(1, scn, 0, Operation::Rollback, transaction(1));
    end.at.address = None;
    fake.write_row(end);
    fake.tick();
    let rows = apply(&mut miner, &mut fake);
    assert_eq!(rows[1].operation, Operation::Rollback);
    assert_eq!(miner.cursor().mark(RedoThread(1)), Some(address(1, 1)));
}

// zero-rs-id
#[test]
fn a_change_without_an_address_stops() {
    for operation in [Operation::Insert, Operation::Ddl, Operation::Unsupported] {
        let mut fake = Fake::new(1);
        let mut miner = miner(&mut fake, from_scn(100));
        let mut change = row(1, 100, 0, operation, transaction(1));
        change.at.address = None;
        fake.write_row(change);
        fake.tick();
        assert_eq!(stop(step(&mut miner, &mut fake)).code, Code::Corruption, "{operation:?}");
    }
}

// partial-xid
#[test]
fn rows_of_a_rollback_reach_the_transaction_of_their_slot() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    let key = transaction(5);
    let partial = TransactionKey { xid: key.xid.partial(), ..key };
    fake.write(1, Operation::Delete, partial);
    fake.write(1, Operation::Rollback, partial);
    fake.tick();
    let open = &mut [key].into_iter();
    let Ok(Step::Rows(mut read)) = miner.step(&mut fake, open) else { panic!() };
    let keys: Vec<_> = read.rows.by_ref().map(|row| row.unwrap().row().transaction).collect();
    assert_eq!(keys, [key, key]);
    let Ok(Step::Rows(read)) = step(&mut miner, &mut fake) else { panic!() };
    assert_eq!((read.rows.len(), read.without_transaction), (0, 2));
}

// rac-single-thread
#[test]
fn a_second_enabled_thread_stops_before_a_row_of_it_is_read() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    fake.add_thread(2);
    write(&mut fake, 1);
    let error = stop(step(&mut miner, &mut fake));
    assert_eq!(error.code, Code::Topology);
    assert!(error.what.contains("1, 2"), "{error}");
    assert!(fake.queries.is_empty());
}

// rac-single-thread
#[test]
fn a_row_of_a_thread_that_was_not_there_at_the_start_stops() {
    let mut fake = Fake::new(2);
    fake.state(2).is_enabled = false;
    let mut miner = miner(&mut fake, from_scn(100));
    fake.write(2, Operation::Insert, transaction(1));
    fake.end_log(2);
    fake.tick();
    let error = stop(step(&mut miner, &mut fake));
    assert_eq!(error.code, Code::Topology);
    assert!(error.what.contains("redo of thread 2"), "{error}");
}

// A log switch in progress: the newest log has ended, and the next one is not listed yet.
#[test]
fn a_log_switch_in_progress_is_no_gap() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    write(&mut fake, 2);
    let first = fake.end_log(1);
    write(&mut fake, 2);
    assert_eq!(apply(&mut miner, &mut fake).len(), 2);
    assert_eq!(miner.cursor().scn, Scn(first));
    assert!(matches!(step(&mut miner, &mut fake), Ok(Step::Idle)));
    fake.list_log(1, first);
    assert_eq!(texts(&apply(&mut miner, &mut fake)), ["row 1/1", "row 1/2"]);
}

// L1, and dbz-2713: no later start is chosen where redo is gone.
#[test]
fn a_hole_in_the_logs_stops_and_is_named() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    (0..3).for_each(|_| fake.switch(1));
    fake.logs.retain(|log| log.sequence != 2);
    let error = stop(step(&mut miner, &mut fake));
    assert_eq!(error.code, Code::LogGap);
    assert!(error.what.contains("thread 1") && error.what.contains("sequence 2"), "{error}");
    assert!(error.what.contains("SCNs 101 to 101"), "{error}");
    assert_eq!(miner.cursor().scn, Scn(100));
}

// dbz-2713
#[test]
fn a_deleted_log_stops_and_is_named() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    fake.switch(1);
    fake.tick();
    fake.log(1, 1).place = LogPlace::Archived { is_purged: true };
    let error = stop(step(&mut miner, &mut fake));
    assert_eq!(error.code, Code::LogPurged);
    assert!(error.what.contains("log 1 of thread 1, with SCNs 100 to 100"), "{error}");
    assert!(error.what.contains("/arch/1_1.arc"), "{error}");
}

#[test]
fn a_log_that_cannot_be_opened_is_named() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    fake.switch(1);
    fake.tick();
    let mut failure = error(1284, ErrorClass::LogPurged);
    failure.message = "ORA-01284: file /arch/1_1.arc cannot be opened".to_owned();
    fake.faults.push_back(Fault::AtStart(failure));
    let error = stop(step(&mut miner, &mut fake));
    assert_eq!(error.code, Code::LogPurged);
    assert!(
        error.what.contains("log 1 of thread 1") && error.what.contains("ORA-01284"),
        "{error}"
    );
}

// dbz-24
#[test]
fn rows_of_an_excluded_user_are_not_read() {
    let mut fake = Fake::new(1);
    let excluded_users = vec!["BATCH".to_owned()];
    let settings = MiningSettings { excluded_users, ..MiningSettings::default() };
    let mut miner = miner_with(&mut fake, from_scn(100), settings);
    for operation in [Operation::Start, Operation::Insert, Operation::Commit] {
        let scn = fake.tick();
        let row = row(1, scn, fake.next_block(1), operation, transaction(1));
        fake.write_row(RedoRow { user: Some("BATCH".to_owned()), ..row });
    }
    fake.write(1, Operation::Insert, transaction(2));
    fake.tick();
    assert_eq!(texts(&apply(&mut miner, &mut fake)), ["row 1/4"]);
}

// L13
#[test]
fn a_statement_whose_end_is_not_written_yet_waits_with_all_behind_it() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    fake.write(1, Operation::Insert, transaction(1));
    let scn = fake.tick();
    let piece = row(1, scn, fake.next_block(1), Operation::Insert, transaction(2));
    let piece = fake.write_row(RedoRow { is_continued: true, ..piece });
    fake.write(1, Operation::Insert, transaction(3));
    fake.tick();
    assert_eq!(texts(&apply(&mut miner, &mut fake)), ["row 1/1"]);
    assert_eq!(miner.cursor().scn, Scn(scn));
    assert!(matches!(step(&mut miner, &mut fake), Ok(Step::Retry(_))));
    fake.write_row(RedoRow { is_continued: false, sql_redo: Some(" end".to_owned()), ..piece });
    assert_eq!(texts(&apply(&mut miner, &mut fake)), ["row 1/2 end", "row 1/3"]);
}

#[test]
fn a_ddl_ends_the_step_and_the_objects_are_looked_up_again() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    ddl(&mut fake, "create table dept (id number)", transaction(1));
    write(&mut fake, 1);
    let Ok(Step::Rows(mut read)) = step(&mut miner, &mut fake) else { panic!() };
    assert_eq!(read.rows.by_ref().count(), 1);
    assert!(matches!(&read.ended_by, StepEnd::Cut(ddl) if ddl.operation == Operation::Ddl));
    miner.applied(*read);
    let id = ObjectId { container: 0, number: 78 };
    fake.objects.push(TableObject { id, table: table("DEPT") });
    assert_eq!(apply(&mut miner, &mut fake).len(), 1);
    assert_eq!(fake.queries.last().unwrap().objects.len(), 2);
    assert_eq!(miner.take_table_changes().added, [table("EMP"), table("DEPT")]);
}

#[test]
fn a_ddl_waits_until_its_transaction_has_ended() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    let key = transaction(1);
    write(&mut fake, 1);
    ddl(&mut fake, "create table dept (id number)", key);
    fake.tick();
    fake.open.push(OpenTransaction { key, start: Scn(100) });
    assert_eq!(texts(&apply(&mut miner, &mut fake)), ["row 1/1"]);
    assert!(matches!(step(&mut miner, &mut fake), Ok(Step::Idle)));
    fake.open.clear();
    assert_eq!(texts(&apply(&mut miner, &mut fake)), ["create table dept (id number)"]);
}

#[test]
fn a_ddl_does_not_wait_for_a_later_transaction_of_its_key() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    let key = transaction(1);
    ddl(&mut fake, "create table dept (id number)", key);
    let start = Scn(fake.tick());
    fake.open.push(OpenTransaction { key, start });
    assert_eq!(texts(&apply(&mut miner, &mut fake)), ["create table dept (id number)"]);
}

#[test]
fn a_harmless_ddl_ends_no_step() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    ddl(&mut fake, "grant select on emp to x", transaction(1));
    write(&mut fake, 1);
    assert_eq!(apply(&mut miner, &mut fake).len(), 2);
}

#[test]
fn rows_from_before_a_ddl_are_read_by_a_dictionary_in_the_redo() {
    let mut fake = Fake::new(1);
    fake.switch(1);
    fake.switch(1);
    for sequence in [1, 2] {
        fake.log(1, sequence).begins_dictionary = sequence == 1;
        fake.log(1, sequence).ends_dictionary = sequence == 2;
    }
    let scn = fake.scn;
    let mut miner = miner(&mut fake, from_scn(scn));
    write_lagging(&mut fake);
    let Ok(Step::Lagging { tables, .. }) = step(&mut miner, &mut fake) else { panic!() };
    assert_eq!(tables, [table("EMP")].into());
    // The fake gives the same row again: it stands for one that no dictionary decodes.
    let error = stop(miner.replay(&mut fake, &mut std::iter::empty()));
    assert_eq!(error.code, Code::DictionaryUnavailable);
    let start = fake.starts.last().unwrap();
    assert_eq!(start.dictionary, Dictionary::Redo);
    let sequences: Vec<_> = start.logs.iter().map(|log| log.sequence).collect();
    assert_eq!((sequences, start.start), (vec![1, 2, 3], Scn(scn)));
}

#[test]
fn without_a_dictionary_rows_from_before_a_ddl_stop() {
    let mut fake = Fake::new(1);
    fake.switch(1);
    let scn = fake.scn;
    let mut miner = miner(&mut fake, from_scn(scn));
    write_lagging(&mut fake);
    assert!(matches!(step(&mut miner, &mut fake), Ok(Step::Lagging { .. })));
    let error = stop(miner.replay(&mut fake, &mut std::iter::empty()));
    assert_eq!(error.code, Code::DictionaryUnavailable);
}

#[test]
fn inside_a_pluggable_database_a_range_is_mined() {
    let mut fake = Fake::new(1);
    fake.about.is_in_pdb = true;
    let mut miner = miner(&mut fake, from_scn(100));
    write(&mut fake, 1);
    assert_eq!(apply(&mut miner, &mut fake).len(), 1);
    assert!(fake.starts.iter().all(|start| start.logs.is_empty()));
    write_lagging(&mut fake);
    assert_eq!(stop(step(&mut miner, &mut fake)).code, Code::DictionaryUnavailable);
}

#[test]
fn a_closed_thread_holds_back_nobody_and_loses_nothing_when_it_opens_again() {
    let mut fake = Fake::new(2);
    let settings = MiningSettings { is_rac_enabled: true, ..MiningSettings::default() };
    let mut miner = miner_with(&mut fake, from_scn(100), settings);
    fake.write(2, Operation::Insert, transaction(1));
    fake.end_log(2);
    fake.state(2).is_open = false;
    write(&mut fake, 2);
    assert_eq!(texts(&apply(&mut miner, &mut fake)), ["row 2/1"]);
    assert_eq!(apply(&mut miner, &mut fake).len(), 2);
    write(&mut fake, 1);
    assert_eq!(apply(&mut miner, &mut fake).len(), 1);
    let first = fake.tick();
    fake.list_log(2, first);
    fake.state(2).is_open = true;
    fake.write(2, Operation::Insert, transaction(2));
    fake.tick();
    assert_eq!(texts(&apply(&mut miner, &mut fake)), ["row 2/1"]);
}

#[test]
fn a_thread_that_opens_again_with_a_hole_before_its_log_stops() {
    let mut fake = Fake::new(2);
    let settings = MiningSettings { is_rac_enabled: true, ..MiningSettings::default() };
    let mut miner = miner_with(&mut fake, from_scn(100), settings);
    fake.end_log(2);
    fake.state(2).is_open = false;
    write(&mut fake, 1);
    while !matches!(step(&mut miner, &mut fake), Ok(Step::Idle)) {
        apply(&mut miner, &mut fake);
    }
    let first = fake.tick();
    fake.list_log(2, first);
    fake.state(2).is_open = true;
    fake.switch(2);
    fake.tick();
    fake.logs.retain(|log| (log.thread.0, log.sequence) != (2, 2));
    let error = stop(step(&mut miner, &mut fake));
    assert_eq!(error.code, Code::LogGap);
    assert!(error.what.contains("thread 2 are missing: sequence 2"), "{error}");
}

#[test]
fn logs_cannot_be_named_in_a_pluggable_database() {
    let mut fake = Fake::new(1);
    fake.about.is_in_pdb = true;
    let settings = MiningSettings { mode: MiningMode::Logs, ..MiningSettings::default() };
    let refused = crate::mining::Miner::new(&mut fake, settings, super::filter(), from_scn(100));
    assert!(matches!(refused, Err(MiningError::Stop(error)) if error.code == Code::Topology));
}

#[test]
fn a_copy_in_the_archive_is_read_rather_than_the_online_one() {
    let mut fake = Fake::new(1);
    let mut miner = miner(&mut fake, from_scn(100));
    let online = fake.log(1, 1).clone();
    fake.switch(1);
    let next = fake.log(1, 1).next;
    fake.logs.push(RedoLog { next, ..online });
    fake.tick();
    apply(&mut miner, &mut fake);
    let names: Vec<_> = fake.starts[0].logs.iter().map(|log| log.name.as_str()).collect();
    assert_eq!(names, ["/arch/1_1.arc"]);
}
