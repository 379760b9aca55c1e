//! The position: what a stored offset says, which redo is read again after a restart, and which
//! changes of it were acknowledged.
//!
//! It encodes acknowledged delivery alone. Within one redo thread the acknowledged commits are a
//! prefix of the thread's COMMIT rows in redo order; across threads nothing is compared, so each has
//! a [`Lane`] of its own.

mod available;
mod base;
mod explain;
mod fields;
mod lanes;
mod ledger;
mod offset;
mod offset_change;
mod progress;
mod resume;
mod skip;
mod threads;
mod transaction_positions;

#[cfg(test)]
mod model;
#[cfg(test)]
mod replay_tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::{Code, Cursor, Identity, Marks, OracleError, RedoThread};

pub use available::Available;
pub use base::{Base, StartFloor};
pub use lanes::{Acknowledged, CommitMark, CommitPoint, Lane, Lanes};
pub use ledger::Released;
pub use offset::FIELDS;
pub use offset_change::judge;
pub use progress::Progress;
pub use resume::{OpenBounds, ResumePoint};
pub use skip::Skip;
pub use transaction_positions::TransactionPositions;

/// What a stored offset says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Position {
    /// What rarely changes; shared by the positions of many records.
    pub base: Arc<Base>,
    /// How far each redo thread is.
    pub lanes: Lanes,
}

impl Position {
    /// The position of a first start: redo of all `threads` is read from `resume`.
    pub fn first(
        identity: Identity,
        resume: ResumePoint,
        floor: Option<StartFloor>,
        threads: &BTreeSet<RedoThread>,
    ) -> Self {
        let base = Base { identity, floor, ..Base::default() };
        Self { base: Arc::new(base), lanes: Lanes::starting(resume, threads) }
    }

    /// The rule of a first start, while it holds for a thread: it goes with the first acknowledged
    /// commit, of several threads with the first of each.
    pub fn floor(&self) -> Option<&StartFloor> {
        let is_needed = self.lanes.iter().any(|lane| lane.mark.is_none());
        self.base.floor.as_ref().filter(|_| is_needed)
    }

    /// The cursor that mining starts with. Its marks are inclusive: the record at each is read again.
    pub fn cursor(&self) -> Cursor {
        let marks = match &self.lanes {
            lanes if lanes.are_several() => {
                let marked = |lane: &Lane| Some((lane.thread, lane.resume.address?));
                let threads: BTreeMap<_, _> = lanes.iter().filter_map(marked).collect();
                if threads.is_empty() { Marks::None } else { Marks::Threads(threads) }
            }
            lanes => lanes.lowest().address.map_or(Marks::None, Marks::AnyThread),
        };
        Cursor { scn: self.lanes.lowest().scn, marks }
    }

    /// If it stands inside a transaction, the position before that one: its changes are delivered
    /// again from the first. A transaction whose size is not known counts as one it stands in.
    pub fn before_open_transaction(&self) -> Option<Self> {
        let mut before = self.clone();
        let mut is_inside = false;
        for mark in before.lanes.iter_mut().filter_map(|lane| lane.mark.as_mut()) {
            is_inside |= mark.acknowledged.rewind();
        }
        is_inside.then_some(before)
    }

    /// Whether the position is of this database, and of this incarnation of it.
    ///
    /// # Errors
    /// CDC-5001 when it is not.
    pub fn check_identity(&self, database: Identity) -> Result<(), OracleError> {
        let stored = self.base.identity;
        if stored == database {
            return Ok(());
        }
        Err(OracleError::new(
            Code::Topology,
            format!(
                "the stored position is of DBID {} with RESETLOGS_CHANGE# {}; the database has DBID \
                 {} with RESETLOGS_CHANGE# {}",
                stored.dbid, stored.resetlogs, database.dbid, database.resetlogs
            ),
            "point the connector at the database of the position, or delete the offset and begin \
             again with a snapshot",
        ))
    }
}
