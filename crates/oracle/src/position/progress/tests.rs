use highwater_connector::SourceOffset;
use serde_json::{Value, json};

use super::*;
use crate::{Identity, Marks, RedoAddress, Xid};

use super::super::{ResumePoint, StartFloor};

fn threads(count: u32) -> BTreeSet<RedoThread> {
    (1..=count).map(RedoThread).collect()
}

fn row(thread: u32, scn: u64, block: u64) -> RedoPoint {
    let address = Some(RedoAddress { sequence: 50, block, byte: 16, ssn: 0 });
    RedoPoint { thread: RedoThread(thread), scn: Scn(scn), address }
}

fn key(sequence: u32) -> TransactionKey {
    TransactionKey { container: 3, xid: Xid { usn: 1, slot: 2, sequence } }
}

fn commit(sequence: u32, at: RedoPoint) -> CommitPoint {
    CommitPoint { key: key(sequence), at }
}

fn cursor(scn: u64, rows: &[RedoPoint]) -> Cursor {
    let marks = rows.iter().map(|row| (row.thread, row.address.unwrap())).collect();
    Cursor { scn: Scn(scn), marks: Marks::Threads(marks) }
}

fn first(count: u32) -> Position {
    let resume = ResumePoint { scn: Scn(100), address: None };
    Position::first(Identity::default(), resume, None, &threads(count))
}

fn start(position: Position, count: u32) -> Progress {
    Progress::start(position, &threads(count)).unwrap()
}

fn restart(offset: &SourceOffset, count: u32) -> Progress {
    start(Position::read(offset).unwrap(), count)
}

fn fields(offset: &SourceOffset, names: [&str; 4]) -> [Value; 4] {
    names.map(|name| offset.0.get(name).cloned().unwrap_or_default())
}

const NAMES: [&str; 4] = ["resume_scn", "resume_rs_id", "last_commit_scn", "event_index"];

#[test]
fn a_start_counts_the_generation_up_and_moves_nothing_else() {
    let mut position = first(1);
    Arc::make_mut(&mut position.base).journal_generation = 7;
    let progress = start(position.clone(), 1);
    assert_eq!(progress.generation(), 8);
    let mut expected = position.write();
    expected.set("journal_generation", 8);
    assert_eq!(progress.position().write(), expected);
}

#[test]
fn each_change_bears_the_position_behind_it() {
    let mut progress = start(first(1), 1);
    let open: OpenBounds = [row(1, 205, 25)].into_iter().collect();
    let at = commit(5, row(1, 210, 30));
    let positions = progress.emit(at, row(1, 201, 20), 3, &open, &cursor(100, &[])).unwrap();
    let said = |changes| fields(&positions.at(changes).offset(), NAMES);
    let (first, open) = ("0x000032.00000014.0010", "0x000032.00000019.0010");
    assert_eq!(said(0), [json!(201), json!(first), json!(210), json!(0)]);
    assert_eq!(said(2), [json!(201), json!(first), json!(210), json!(2)]);
    assert_eq!(said(3), [json!(205), json!(open), json!(210), json!(3)]);
    assert_eq!(positions.last().offset(), positions.at(3).offset());
}

#[test]
fn without_open_work_reading_goes_on_at_the_commit_row() {
    let mut progress = start(first(1), 1);
    let at = commit(5, row(1, 210, 30));
    let none = OpenBounds::default();
    let positions = progress.emit(at, row(1, 201, 20), 1, &none, &cursor(100, &[])).unwrap();
    let at_commit = json!("0x000032.0000001e.0010");
    let said = fields(&positions.last().offset(), NAMES);
    assert_eq!(said, [json!(210), at_commit, json!(210), json!(1)]);
}

#[test]
fn a_record_outside_of_transactions_bears_all_that_was_emitted() {
    let mut progress = start(first(1), 1);
    let at = commit(5, row(1, 210, 30));
    let none = OpenBounds::default();
    progress.emit(at, row(1, 201, 20), 4, &none, &cursor(100, &[])).unwrap();
    let read = cursor(300, &[row(1, 290, 40)]);
    let safe = fields(&progress.safe(&none, &read).offset(), NAMES);
    assert_eq!(safe, [json!(300), json!("0x000032.00000028.0010"), json!(210), json!(4)]);
    assert_eq!(progress.resume_scn(), Scn(300));
    // Work that the journal holds may lie before what was resumed from.
    let open: OpenBounds = [row(1, 150, 10)].into_iter().collect();
    assert_eq!(fields(&progress.safe(&open, &read).offset(), NAMES), safe);
}

#[test]
fn an_unfinished_transaction_is_skipped_in_part_and_the_rest_counts_on() {
    let mut progress = start(first(1), 1);
    let at = commit(5, row(1, 210, 30));
    let none = OpenBounds::default();
    let positions = progress.emit(at, row(1, 201, 20), 3, &none, &cursor(100, &[])).unwrap();
    for (changes, skip) in [(0, Skip::Nothing), (2, Skip::First(2)), (3, Skip::Whole)] {
        let again = restart(&positions.at(changes).offset(), 1);
        assert_eq!(again.skip(&at, 3), Ok(skip));
        assert_eq!(again.skip(&commit(4, row(1, 250, 29)), 3), Ok(Skip::Whole));
        assert_eq!(again.skip(&commit(6, row(1, 150, 31)), 3), Ok(Skip::Nothing));
    }
}

#[test]
fn a_commit_of_one_thread_says_nothing_about_another() {
    let mut progress = start(first(2), 2);
    let none = OpenBounds::default();
    let at = commit(5, row(1, 210, 30));
    let positions = progress.emit(at, row(1, 201, 20), 1, &none, &cursor(100, &[])).unwrap();
    let again = restart(&positions.last().offset(), 2);
    assert_eq!(again.skip(&at, 1), Ok(Skip::Whole));
    assert_eq!(again.skip(&commit(6, row(2, 150, 3)), 1), Ok(Skip::Nothing));
}

#[test]
fn the_rest_of_a_transaction_is_not_lost_behind_a_commit_of_another_thread() {
    let mut progress = start(first(2), 2);
    let none = OpenBounds::default();
    let (at, before) = (commit(5, row(1, 210, 30)), cursor(100, &[]));
    let positions = progress.emit(at, row(1, 201, 20), 3, &none, &before).unwrap();
    let mut again = restart(&positions.at(2).offset(), 2);
    let other = commit(6, row(2, 150, 3));
    let positions = again.emit(other, row(2, 140, 2), 4, &none, &before).unwrap();
    for changes in [1, 4] {
        let third = restart(&positions.at(changes).offset(), 2);
        assert_eq!(third.skip(&at, 3), Ok(Skip::First(2)));
        let skip = if changes == 4 { Skip::Whole } else { Skip::First(1) };
        assert_eq!(third.skip(&other, 4), Ok(skip));
    }
}

fn floored(count: u32) -> Position {
    let mut position = first(count);
    let floor = StartFloor { scn: Scn(200), open_scn: Scn(190), open: [key(9)].into() };
    Arc::make_mut(&mut position.base).floor = Some(floor);
    position
}

#[test]
fn the_first_commit_ends_the_rule_of_a_first_start() {
    let mut progress = start(floored(1), 1);
    assert_eq!(progress.position().write().number("start_floor_scn"), Some(200));
    assert_eq!(progress.skip(&commit(4, row(1, 199, 9)), 1), Ok(Skip::Whole));
    let (none, before) = (OpenBounds::default(), cursor(100, &[]));
    let at = commit(5, row(1, 210, 30));
    let positions = progress.emit(at, row(1, 201, 20), 2, &none, &before).unwrap();
    assert_eq!(positions.at(1).offset().number("start_floor_scn"), None);
    assert_eq!(progress.skip(&commit(6, row(1, 199, 31)), 1), Ok(Skip::Nothing));
}

#[test]
fn of_several_threads_the_first_commit_of_each_ends_it() {
    let mut progress = start(floored(2), 2);
    let (none, before) = (OpenBounds::default(), cursor(100, &[]));
    let at = commit(5, row(1, 210, 30));
    let positions = progress.emit(at, row(1, 201, 20), 2, &none, &before).unwrap();
    let again = restart(&positions.last().offset(), 2);
    assert_eq!(again.skip(&commit(6, row(1, 199, 31)), 1), Ok(Skip::Nothing));
    assert_eq!(again.skip(&commit(7, row(2, 199, 5)), 1), Ok(Skip::Whole));
    let other = commit(8, row(2, 205, 6));
    let positions = progress.emit(other, row(2, 204, 4), 1, &none, &before).unwrap();
    assert_eq!(positions.last().offset().number("start_floor_scn"), None);
}

#[test]
fn several_threads_stop_at_a_commit_from_below_where_they_resumed() {
    let late = commit(5, row(2, 99, 3));
    assert_eq!(start(first(2), 2).skip(&late, 1).unwrap_err().code, Code::CommitBelowFloor);
    let late = commit(5, row(1, 99, 3));
    assert_eq!(start(first(1), 1).skip(&late, 1), Ok(Skip::Nothing));
}

#[test]
fn what_was_given_up_must_not_commit() {
    let mut progress = start(first(1), 1);
    assert_eq!(progress.check_released(key(5)), Ok(()));
    let before = progress.safe(&OpenBounds::default(), &cursor(100, &[]));
    progress.release(key(5));
    assert_eq!(before.offset().text("released_xids"), None);
    let after = progress.safe(&OpenBounds::default(), &cursor(100, &[]));
    assert_eq!(after.offset().text("released_xids"), Some("3:1.2.5"));
    let error = restart(&after.offset(), 1).check_released(key(5)).unwrap_err();
    assert_eq!(error.code, Code::OrphanReleaseViolation);
}

#[test]
fn what_is_set_stands_in_later_positions() {
    let mut progress = start(first(1), 1);
    progress.set_snapshot(Some("{}".to_owned()));
    progress.set_signal_offset(4);
    progress.set_snapshot_pending(Some("HR.JOBS".to_owned()));
    let offset = progress.position().write();
    let said = fields(&offset, ["snapshot", "signal_offset", "snapshot_pending", "threads"]);
    assert_eq!(said, [json!("{}"), json!(4), json!("HR.JOBS"), Value::Null]);
    progress.set_snapshot_pending(None);
    assert_eq!(progress.position().write().text("snapshot_pending"), None);
}

#[test]
fn a_position_of_one_thread_is_not_one_of_several() {
    let error = Progress::start(first(1), &threads(2)).unwrap_err();
    assert_eq!(error.code, Code::Topology);
    assert!(error.what.contains("threads 1, 2"), "{error}");
    let other = Progress::start(first(1), &[RedoThread(2)].into()).unwrap_err();
    assert_eq!(other.code, Code::Topology);
    assert!(Progress::start(first(1), &BTreeSet::new()).is_err());
}

#[test]
fn a_position_without_a_thread_is_of_the_one_there_is() {
    let text = r#"{"v":1,"resume_scn":100,"last_commit_xid":"3:1.2.5","last_commit_scn":210}"#;
    let progress = restart(&serde_json::from_str(text).unwrap(), 1);
    assert_eq!(progress.skip(&commit(5, row(1, 209, 30)), 1), Ok(Skip::Whole));
    assert_eq!(progress.position().write().number("last_commit_thread"), Some(1));
}

#[test]
fn a_new_thread_begins_at_the_lowest_point_and_an_old_one_stays() {
    let mut progress = start(first(2), 2);
    let read = cursor(300, &[row(1, 290, 40), row(2, 280, 50)]);
    let offset = progress.safe(&OpenBounds::default(), &read).offset();
    let joined =
        Progress::start(Position::read(&offset).unwrap(), &[RedoThread(3)].into()).unwrap();
    let lanes = &joined.position().lanes;
    let resume = ResumePoint { scn: Scn(300), address: None };
    assert_eq!(lanes.get(RedoThread(3)), Some(&Lane { thread: RedoThread(3), resume, mark: None }));
    assert_eq!(lanes.get(RedoThread(2)).unwrap().resume.address, row(2, 0, 50).address);
}

#[test]
fn a_thread_that_is_not_captured_stops() {
    let mut progress = start(first(2), 2);
    let at = commit(5, row(3, 210, 30));
    assert_eq!(progress.skip(&at, 1).unwrap_err().code, Code::Topology);
    let emitted = progress.emit(at, at.at, 1, &OpenBounds::default(), &cursor(100, &[]));
    assert_eq!(emitted.unwrap_err().code, Code::Topology);
}

#[test]
fn a_commit_without_address_stands_behind_what_was_applied() {
    let bare = |sequence, scn| commit(sequence, RedoPoint { address: None, ..row(1, scn, 0) });
    let none = OpenBounds::default();
    for (applied, last, place) in [(20, 10, 20), (20, 30, 30)] {
        let mut progress = start(first(1), 1);
        let read = cursor(200, &[row(1, 205, applied)]);
        let earlier = commit(4, row(1, 206, last));
        progress.emit(earlier, row(1, 201, 5), 1, &none, &read).unwrap();
        let positions = progress.emit(bare(5, 210), row(1, 202, 6), 2, &none, &read).unwrap();
        let again = restart(&positions.at(1).offset(), 1);
        assert_eq!(again.skip(&earlier, 1), Ok(Skip::Whole));
        assert_eq!(again.skip(&bare(5, 210), 2), Ok(Skip::First(1)));
        assert_eq!(again.skip(&commit(6, row(1, 207, place + 1)), 1), Ok(Skip::Nothing));
        // It is never what is resumed from.
        let resume = restart(&positions.last().offset(), 1).position().lanes.lowest();
        assert_eq!(resume.address, row(1, 0, place).address);
    }
}

#[test]
fn positions_can_be_sent_between_threads() {
    fn sent<T: Send + Sync>() {}
    sent::<TransactionPositions>();
    sent::<Progress>();
}
