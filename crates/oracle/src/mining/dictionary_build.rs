//! Which dictionary in the redo decodes a step that the present one does not.

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
