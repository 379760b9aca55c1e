//! What the database says before a step: how far it is, which threads there are, which logs.

use crate::session::{LogQuery, RedoLog, Session, SessionError};
use crate::{Cursor, Scn};

use super::failure::MiningError;
use super::inventory::{self, Inventory, Need};
use super::settings::MiningSettings;
use super::topology::{Topology, check_threads};

/// What the database says before a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Survey {
    /// The current SCN.
    pub current: Scn,
    /// See [`Inventory`].
    pub inventory: Inventory,
}

/// Asks for the current SCN, then the threads, then the logs. The order matters, see [`Need::threads`].
///
/// # Errors
/// CDC-2001 and CDC-2002 for redo that is missing, CDC-5001 for a thread too many; else the session's.
pub fn survey(
    session: &mut dyn Session,
    settings: &MiningSettings,
    topology: &Topology,
    cursor: &Cursor,
) -> Result<Survey, MiningError> {
    let current = session.current_scn()?;
    let threads = session.threads()?;
    check_threads(&threads, settings)?;
    let need = Need {
        cursor,
        threads: &threads,
        capture: settings.capture,
        knows_open: !topology.is_standby(),
    };
    // Archived logs and online ones are two lists, read one after the other. A log that was archived,
    // and its group overwritten, between the two reads is in neither: so a hole is looked at twice.
    let inventory = match look(session, topology, &need) {
        Err(MiningError::Stop(_)) => look(session, topology, &need)?,
        looked => looked?,
    };
    Ok(Survey { current, inventory })
}

fn look(
    session: &mut dyn Session,
    topology: &Topology,
    need: &Need<'_>,
) -> Result<Inventory, MiningError> {
    let listed = list(session, topology, need.cursor.scn.previous(), Scn::MAX)?;
    inventory::choose(&listed, need, &mut |log| end_before(session, topology, log))
}

/// Asks as far back as the catalog goes.
fn end_before(
    session: &mut dyn Session,
    topology: &Topology,
    log: &RedoLog,
) -> Result<Option<Scn>, SessionError> {
    let older = list(session, topology, Scn(0), log.first)?;
    let is_before = |older: &&RedoLog| {
        older.thread == log.thread && older.sequence.checked_add(1) == Some(log.sequence)
    };
    Ok(older.iter().find(is_before).map(|older| older.next))
}

/// Online logs are listed even where they are not read: they tell what still waits for the archiver.
pub(super) fn list(
    session: &mut dyn Session,
    topology: &Topology,
    from: Scn,
    to: Scn,
) -> Result<Vec<RedoLog>, SessionError> {
    let destination = topology.destination;
    session.logs(&LogQuery { from, to, destination, with_online: true })
}
