//! Which logs hold the redo after the cursor: one copy of each, without a hole, for every thread that
//! may have written some.

use std::collections::{BTreeMap, BTreeSet};

use crate::session::{LogPlace, RedoLog, SessionError, ThreadState};
use crate::{Code, Cursor, Marks, OracleError, RedoThread, Scn};

use super::failure::MiningError;
use super::settings::CaptureMode;

/// The logs of one thread, one copy a sequence, by sequence and without a hole.
pub type ThreadLogs = Vec<RedoLog>;

/// What is asked of an inventory.
#[derive(Clone, Copy, Debug)]
pub struct Need<'a> {
    /// From where logs are needed.
    pub cursor: &'a Cursor,
    /// The database's threads. They have to be read before the logs are listed, and after the current
    /// SCN: a thread that was closed then has all its redo up to that SCN in ended logs.
    pub threads: &'a [ThreadState],
    /// Which logs are mined.
    pub capture: CaptureMode,
    /// Whether `is_open` of a thread can be believed. A standby's control file does not say which
    /// instances of the primary are up.
    pub knows_open: bool,
}

/// The logs that hold the redo after the cursor.
///
/// A thread takes part when it is enabled, or when it has logs after the cursor: redo that a thread
/// wrote before it was disabled is redo still. An open thread goes on behind its newest log, so
/// nothing is known beyond that log's end. A thread that is closed or disabled writes nothing: when
/// its last log was read, it holds back nobody. When it opens again it writes a new log, whose
/// sequence follows the last one; [`choose`] accepts it as the next only if nothing lies between.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inventory {
    /// Logs after the cursor, by thread.
    pub threads: BTreeMap<RedoThread, ThreadLogs>,
    /// First SCN of which some thread's log is not listed yet; [`Scn::MAX`] where all are, those being
    /// written among them.
    pub horizon: Scn,
}

/// Where the log before a given one of its thread ended, as far as the catalog knows.
pub type EndBefore<'a> = &'a mut dyn FnMut(&RedoLog) -> Result<Option<Scn>, SessionError>;

impl Inventory {
    /// Up to where every thread's redo is whole, so that a step may end there. Where a log goes on
    /// beyond the horizon, that is its beginning: rows in its middle could be hidden by the end of the
    /// range, and later ones of the same log not.
    pub fn settled(&self) -> Scn {
        let beyond = |log: &&RedoLog| log.first < self.horizon && self.horizon < log.next;
        let begins = self.logs().filter(beyond).map(|log| log.first);
        begins.min().unwrap_or(self.horizon)
    }

    /// All logs, by thread and sequence.
    pub fn logs(&self) -> impl Iterator<Item = &RedoLog> {
        self.threads.values().flatten()
    }
}

/// Chooses among the logs that a database lists. Archived copies are preferred, and any copy to one
/// that the catalog calls purged.
///
/// # Errors
/// CDC-2002 for a log whose only copies are purged; CDC-2001 for logs that are missing, between others
/// or before a thread's first.
pub fn choose(
    listed: &[RedoLog],
    need: &Need<'_>,
    end_before: EndBefore<'_>,
) -> Result<Inventory, MiningError> {
    let mut threads = BTreeMap::new();
    let mut horizon = Scn::MAX;
    for thread in taking_part(listed, need) {
        let logs = needed(copies(listed, thread, need.capture), thread, need.cursor);
        check_copies(&logs)?;
        check_begin(&logs, need.cursor, end_before)?;
        check_sequences(&logs)?;
        horizon = horizon.min(end_of(thread, &logs, listed, need));
        threads.insert(thread, logs);
    }
    threads.retain(|_, logs: &mut ThreadLogs| !logs.is_empty());
    Ok(Inventory { threads, horizon })
}

/// For each enabled thread the first SCN from which its logs can be read without a hole.
pub fn oldest(
    listed: &[RedoLog],
    threads: &[ThreadState],
    capture: CaptureMode,
) -> BTreeMap<RedoThread, Scn> {
    let enabled = threads.iter().filter(|state| state.is_enabled).map(|state| state.thread);
    enabled
        .filter_map(|thread| Some((thread, first_whole(&copies(listed, thread, capture))?)))
        .collect()
}

/// The beginning of the oldest log behind which none is missing.
fn first_whole(copies: &BTreeMap<u64, &RedoLog>) -> Option<Scn> {
    let mut oldest: Option<&RedoLog> = None;
    for log in copies.values().rev() {
        let is_next = oldest.is_none_or(|later| log.sequence + 1 == later.sequence);
        if !is_next || matches!(log.place, LogPlace::Archived { is_purged: true }) {
            break;
        }
        oldest = Some(log);
    }
    oldest.map(|log| log.first)
}

fn taking_part(listed: &[RedoLog], need: &Need<'_>) -> BTreeSet<RedoThread> {
    let enabled = need.threads.iter().filter(|state| state.is_enabled).map(|state| state.thread);
    let with_redo = listed.iter().filter(|log| holds_redo(log, need.cursor));
    enabled.chain(with_redo.map(|log| log.thread)).collect()
}

/// Whether a log makes its thread take part, enabled or not. The last log of a thread that was disabled
/// long ago may be listed as one without an end; it counts only where the thread was read before.
fn holds_redo(log: &RedoLog, cursor: &Cursor) -> bool {
    let was_read = matches!(&cursor.marks, Marks::Threads(it) if it.contains_key(&log.thread));
    log.next > cursor.scn && (log.next != Scn::MAX || was_read)
}

/// The best copy of each sequence.
fn copies(listed: &[RedoLog], thread: RedoThread, capture: CaptureMode) -> BTreeMap<u64, &RedoLog> {
    let mut best: BTreeMap<u64, &RedoLog> = BTreeMap::new();
    let is_read = |log: &&RedoLog| capture == CaptureMode::Online || log.place != LogPlace::Online;
    for log in listed.iter().filter(|log| log.thread == thread).filter(is_read) {
        let kept = best.entry(log.sequence).or_insert(log);
        if preference(log) < preference(kept) {
            *kept = log;
        }
    }
    best
}

const fn preference(log: &RedoLog) -> u8 {
    match log.place {
        LogPlace::Archived { is_purged: false } => 0,
        LogPlace::Online => 1,
        LogPlace::Archived { is_purged: true } => 2,
    }
}

const fn is_purged(log: &RedoLog) -> bool {
    matches!(log.place, LogPlace::Archived { is_purged: true })
}

/// Logs that end after the cursor. One that ends just there is read again if its thread's mark lies
/// in it: it may have ended at the very SCN up to which it was read while it was written.
fn needed(copies: BTreeMap<u64, &RedoLog>, thread: RedoThread, cursor: &Cursor) -> ThreadLogs {
    let marked = cursor.mark(thread).map(|mark| mark.sequence);
    let is_needed = |log: &&RedoLog| {
        let ends_there = log.next == cursor.scn && marked.is_some_and(|it| log.sequence >= it);
        log.next > cursor.scn || (ends_there && !is_purged(log))
    };
    copies.into_values().filter(is_needed).cloned().collect()
}

fn check_copies(logs: &[RedoLog]) -> Result<(), OracleError> {
    let purged = logs.iter().find(|log| is_purged(log));
    purged.map_or(Ok(()), |log| Err(purged_error(log)))
}

/// CDC-2002 for a log that is needed and gone.
fn purged_error(log: &RedoLog) -> OracleError {
    OracleError::new(
        Code::LogPurged,
        format!(
            "log {} of thread {}, with SCNs {} to {}, was deleted: {}",
            log.sequence,
            log.thread,
            log.first,
            log.next.previous(),
            log.name
        ),
        format!(
            "RMAN> RESTORE ARCHIVELOG SEQUENCE {} THREAD {}; or reload the tables with a new snapshot",
            log.sequence, log.thread
        ),
    )
}

/// A thread's first log has to begin at or before the cursor, or be the one that the thread's mark lies
/// in, or follow one that ended before the cursor: then the thread was closed in between. The first log
/// of all has none before it.
fn check_begin(
    logs: &[RedoLog],
    cursor: &Cursor,
    end_before: EndBefore<'_>,
) -> Result<(), MiningError> {
    let Some(first) = logs.first() else { return Ok(()) };
    let is_marked = cursor.mark(first.thread).is_some_and(|mark| first.sequence <= mark.sequence);
    if first.first <= cursor.scn || is_marked || first.sequence == 1 {
        return Ok(());
    }
    match end_before(first)? {
        Some(end) if end <= cursor.scn => Ok(()),
        _ => Err(missing_before(cursor, first).into()),
    }
}

fn missing_before(cursor: &Cursor, first: &RedoLog) -> OracleError {
    let last = first.sequence.saturating_sub(1);
    let missing = match cursor.mark(first.thread) {
        Some(mark) => sequences(mark.sequence, last),
        None => format!("those up to sequence {last}"),
    };
    gap(first.thread, &missing, cursor.scn, first.first)
}

fn check_sequences(logs: &[RedoLog]) -> Result<(), OracleError> {
    let hole =
        logs.windows(2).find(|pair| pair[0].sequence.checked_add(1) != Some(pair[1].sequence));
    let Some([before, after]) = hole else { return Ok(()) };
    let missing = sequences(before.sequence.saturating_add(1), after.sequence.saturating_sub(1));
    Err(gap(before.thread, &missing, before.next, after.first))
}

fn sequences(from: u64, to: u64) -> String {
    match from == to {
        true => format!("sequence {from}"),
        false => format!("sequences {from} to {to}"),
    }
}

/// CDC-2001.
fn gap(thread: RedoThread, missing: &str, from: Scn, until: Scn) -> OracleError {
    OracleError::new(
        Code::LogGap,
        format!(
            "logs of thread {thread} are missing: {missing}, with SCNs {from} to {}",
            until.previous()
        ),
        "set cdc.archive.destination to a destination that has them, or restore them with RMAN; else \
         reload the tables with a new snapshot",
    )
}

/// First SCN of which the thread's log is not listed.
fn end_of(thread: RedoThread, logs: &[RedoLog], listed: &[RedoLog], need: &Need<'_>) -> Scn {
    let newest = logs.last();
    let end = newest.map_or(need.cursor.scn, |log| log.next);
    let state = need.threads.iter().find(|state| state.thread == thread);
    let is_enabled = state.is_some_and(|state| state.is_enabled);
    let goes_on = is_enabled && state.is_some_and(|it| it.is_open || !need.knows_open);
    // Of a thread that is read from the archive alone, the last logs may still be online.
    let is_behind = |log: &RedoLog| {
        log.thread == thread
            && log.next > need.cursor.scn
            && newest.is_none_or(|newest| log.sequence > newest.sequence)
            && (is_enabled || log.next != Scn::MAX)
    };
    match goes_on || listed.iter().any(is_behind) {
        true => end,
        false => Scn::MAX,
    }
}
