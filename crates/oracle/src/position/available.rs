//! What a database has of the redo that a position may name.

use std::collections::BTreeMap;

use crate::mining::topology::Topology;
use crate::mining::{MiningError, MiningSettings, inventory};
use crate::session::{LogQuery, Session};
use crate::{Identity, RedoThread, Scn};

/// What the database has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Available {
    /// Database and incarnation.
    pub identity: Identity,
    /// Its SCN now.
    pub current: Scn,
    /// For each enabled redo thread the first SCN from which its logs can be read without a gap.
    pub oldest: BTreeMap<RedoThread, Scn>,
}

impl Available {
    /// Asks a database.
    ///
    /// # Errors
    /// CDC-5001 for a database that is not captured with these settings; else the session's.
    pub fn ask(session: &mut dyn Session, settings: &MiningSettings) -> Result<Self, MiningError> {
        let topology = Topology::probe(session, settings, None)?;
        let threads = session.threads()?;
        let logs = session.logs(&LogQuery {
            from: Scn(0),
            to: Scn::MAX,
            destination: topology.destination,
            with_online: true,
        })?;
        Ok(Self {
            identity: topology.database.identity,
            current: session.current_scn()?,
            oldest: inventory::oldest(&logs, &threads, settings.capture),
        })
    }
}
