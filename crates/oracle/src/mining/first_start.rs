//! Where capture begins when no position is stored.

use std::collections::BTreeSet;

use crate::session::{OpenTransaction, Session};
use crate::{Code, Cursor, Marks, OracleError, Scn};

use super::failure::MiningError;
use super::settings::MiningSettings;
use super::start_scope::StartScope;
use super::survey::survey;
use super::topology::Topology;

/// Where capture begins when no position is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FirstStart {
    /// Where mining begins.
    pub cursor: Cursor,
    /// What is kept of what lies before the floor; `None` where nothing does.
    pub scope: Option<StartScope>,
}

impl FirstStart {
    /// Takes the current SCN, lists the open transactions, and takes the current SCN again: that, or
    /// `cdc.start.scn`, is the floor. A transaction that is open at the floor was listed, or began after
    /// the first SCN was taken. Mining begins with the oldest of them. Every open transaction counts,
    /// whether or not it will touch a captured table: nothing tells before its rows are read.
    ///
    /// On a standby no transaction is listed, as they are open on the primary; one that is open at the
    /// floor arrives without what it did before.
    ///
    /// # Errors
    /// CDC-5001 for a `cdc.start.scn` ahead of the database, CDC-2002 if redo back to the oldest open
    /// transaction is gone; else the session's.
    pub fn take(
        session: &mut dyn Session,
        settings: &MiningSettings,
        topology: &Topology,
    ) -> Result<Self, MiningError> {
        let before = session.current_scn()?;
        let open = session.open_transactions()?;
        let after = session.current_scn()?;
        let floor = settings.start_scn.unwrap_or(after);
        if floor > after {
            return Err(ahead(floor, after).into());
        }
        let start = Self::plan(before.min(floor), &open, floor);
        check_redo(session, settings, topology, &start, &open)?;
        Ok(start)
    }

    fn plan(listed: Scn, open: &[OpenTransaction], floor: Scn) -> Self {
        let open: Vec<_> = open.iter().filter(|open| open.start < floor).collect();
        let oldest = open.iter().map(|open| open.start).min();
        let from = oldest.map_or(listed, |oldest| oldest.min(listed));
        let keys: BTreeSet<_> = open.iter().map(|open| open.key).collect();
        let scope = (from < floor).then_some(StartScope { floor, listed, open: keys });
        Self { cursor: Cursor { scn: from, marks: Marks::None }, scope }
    }
}

fn ahead(floor: Scn, current: Scn) -> OracleError {
    OracleError::new(
        Code::Topology,
        format!("cdc.start.scn is {floor}, and the database is at SCN {current}"),
        "set cdc.start.scn to an SCN that the database has passed, or remove it",
    )
}

/// A start later than the oldest open transaction would lose its rows, so none is chosen.
fn check_redo(
    session: &mut dyn Session,
    settings: &MiningSettings,
    topology: &Topology,
    start: &FirstStart,
    open: &[OpenTransaction],
) -> Result<(), MiningError> {
    match survey(session, settings, topology, &start.cursor) {
        Err(MiningError::Stop(error)) if is_missing_redo(error.code) => {
            Err(gone(start, open, &error).into())
        }
        other => other.map(drop),
    }
}

const fn is_missing_redo(code: Code) -> bool {
    matches!(code, Code::LogGap | Code::LogPurged)
}

fn gone(start: &FirstStart, open: &[OpenTransaction], error: &OracleError) -> OracleError {
    let from = start.cursor.scn;
    let holds = open.iter().find(|open| open.start == from);
    let what = match holds {
        Some(open) => format!(
            "transaction {} is open since SCN {from}, and redo from there on is gone: {}",
            open.key, error.what
        ),
        None => format!("redo from the start at SCN {from} on is gone: {}", error.what),
    };
    OracleError::new(
        Code::LogPurged,
        what,
        "restore the logs, or let that transaction end, then start again",
    )
}
