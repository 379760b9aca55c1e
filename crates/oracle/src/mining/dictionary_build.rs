//! Which dictionary in the redo decodes a step that the present one does not.

use crate::row::RedoRow;
use crate::session::{LogPlace, RedoLog, ThreadState};
use crate::{Code, Cursor, Marks, OracleError, Scn};

use super::inventory::{self, Need};
use super::plan::Plan;
use super::settings::CaptureMode;

/// The logs from the newest dictionary that was complete when the step begins up to the step's end.
/// `listed` holds every log that the catalog knows.
///
/// # Errors
/// CDC-6001 if there is no such dictionary, or a log between it and the step's end is gone.
pub fn logs_with_dictionary(
    listed: &[RedoLog],
    plan: &Plan,
    threads: &[ThreadState],
    capture: CaptureMode,
) -> Result<Vec<RedoLog>, OracleError> {
    let from = newest_build(listed, plan.start).ok_or_else(|| {
        unavailable(&format!("no dictionary was built into the redo before SCN {}", plan.start))
    })?;
    let cursor = Cursor { scn: from, marks: Marks::None };
    let need = Need { cursor: &cursor, threads, capture, knows_open: true };
    let mut end_before = |log: &RedoLog| {
        let is_before = |older: &&RedoLog| {
            older.thread == log.thread && older.sequence.checked_add(1) == Some(log.sequence)
        };
        Ok(listed.iter().find(is_before).map(|older| older.next))
    };
    let inventory = inventory::choose(listed, &need, &mut end_before).map_err(|error| {
        unavailable(&format!(
            "redo between the dictionary at SCN {from} and the step is missing: {error}"
        ))
    })?;
    Ok(inventory.logs().filter(|log| log.first < plan.mined_until).cloned().collect())
}

/// First SCN of the newest build that was complete at `start` and whose ends can still be read. A build
/// may lie in several logs of one thread.
fn newest_build(listed: &[RedoLog], start: Scn) -> Option<Scn> {
    let is_readable = |log: &&RedoLog| log.place == LogPlace::Archived { is_purged: false };
    let complete = listed.iter().filter(|log| log.ends_dictionary && log.next <= start);
    let begin_of = |end: &RedoLog| {
        let begins = listed.iter().filter(is_readable).filter(|log| {
            log.begins_dictionary && log.thread == end.thread && log.sequence <= end.sequence
        });
        begins.max_by_key(|log| log.sequence).map(|begin| (end.next, begin.first))
    };
    complete.filter(is_readable).filter_map(begin_of).max().map(|(_, first)| first)
}

fn unavailable(what: &str) -> OracleError {
    OracleError::new(
        Code::DictionaryUnavailable,
        format!("rows from before a DDL cannot be decoded: {what}"),
        "keep the archived logs since the last dictionary build, and let capture build dictionaries \
         (DBMS_LOGMNR_D); to go on, move the position behind the DDL and reload the table",
    )
}

/// CDC-6001 where logs cannot be named, so that none with a dictionary can be.
pub fn unavailable_in_range_mode() -> OracleError {
    unavailable(
        "a session in a pluggable database cannot read a dictionary in the redo (ORA-01371)",
    )
}

/// CDC-6001 for rows that not even the dictionary in the redo decodes.
pub fn still_generic(table: &str) -> OracleError {
    unavailable(&format!("the dictionary in the redo does not know the columns of {table}"))
}

/// CDC-6001 for a row whose table not even the dictionary in the redo knows.
pub fn still_unnamed(row: &RedoRow) -> OracleError {
    unavailable(&format!(
        "the dictionary in the redo does not know the table of object {} in container {}, which has a \
         row at SCN {}",
        row.object.number, row.object.container, row.at.scn
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RedoThread;

    /// Archived logs 1 to 6 of thread 1, ten SCNs each from 100 on.
    fn logs(builds: &[(u64, u64)]) -> Vec<RedoLog> {
        let log = |sequence: u64| RedoLog {
            thread: RedoThread(1),
            sequence,
            first: Scn(90 + sequence * 10),
            next: Scn(100 + sequence * 10),
            name: format!("/arch/{sequence}"),
            place: LogPlace::Archived { is_purged: false },
            begins_dictionary: builds.iter().any(|build| build.0 == sequence),
            ends_dictionary: builds.iter().any(|build| build.1 == sequence),
        };
        (1..=6).map(log).collect()
    }

    /// A step over log 6.
    fn plan() -> Plan {
        Plan { until: Scn(155), mined_until: Scn(160), start: Scn(150), logs: Vec::new() }
    }

    fn chosen(listed: &[RedoLog]) -> Result<Vec<u64>, OracleError> {
        let threads = [ThreadState { thread: RedoThread(1), is_enabled: true, is_open: true }];
        let logs = logs_with_dictionary(listed, &plan(), &threads, CaptureMode::Online)?;
        Ok(logs.iter().map(|log| log.sequence).collect())
    }

    #[test]
    fn the_newest_complete_build_is_taken_and_every_log_since() {
        assert_eq!(chosen(&logs(&[(1, 2), (3, 4)])), Ok(vec![3, 4, 5, 6]));
        assert_eq!(chosen(&logs(&[(2, 2)])), Ok(vec![2, 3, 4, 5, 6]));
    }

    #[test]
    fn a_build_that_was_not_complete_when_the_step_begins_is_none() {
        assert_eq!(chosen(&logs(&[(1, 2), (5, 6)])), Ok(vec![1, 2, 3, 4, 5, 6]));
        let error = chosen(&logs(&[(5, 6)])).unwrap_err();
        assert_eq!(error.code, Code::DictionaryUnavailable);
    }

    #[test]
    fn a_build_whose_ends_are_deleted_gives_way_to_an_older_one() {
        for gone in [2, 3] {
            let mut listed = logs(&[(1, 1), (3, 4)]);
            listed[gone].place = LogPlace::Archived { is_purged: true };
            let error = chosen(&listed).unwrap_err();
            assert_eq!(error.code, Code::DictionaryUnavailable, "a log since log 1 is deleted");
        }
    }

    #[test]
    fn a_log_that_is_gone_since_the_build_stops() {
        let mut listed = logs(&[(2, 3)]);
        listed.remove(4);
        let error = chosen(&listed).unwrap_err();
        assert!(error.what.contains("sequence 5"), "{error}");
    }
}
