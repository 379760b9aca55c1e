//! What the positions of a run have in common.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::Released;
use crate::{Identity, Scn, TransactionKey};

/// What a position says beside how far each thread is.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Base {
    /// Database and incarnation; never changes.
    pub identity: Identity,
    /// One more at each start of the task: chunks of the journal of a later generation were never
    /// acknowledged.
    pub journal_generation: u64,
    /// Reserved; 0.
    pub schema_epoch: u64,
    /// Transactions that were given up.
    pub released: Released,
    /// The snapshot's progress as JSON text; `None` where none was ever started.
    pub snapshot: Option<String>,
    /// Offset of the last signal that was handled.
    pub signal_offset: Option<u64>,
    /// Tables that joined while streaming and wait for a snapshot, as their owner wrote them.
    pub snapshot_pending: Option<String>,
    /// See [`StartFloor`].
    pub floor: Option<StartFloor>,
    /// Fields that this release does not know; written back as they were.
    pub extras: Map<String, Value>,
}

/// The rule of a first start: below `scn` only changes of `open` are kept, and of transactions whose
/// START row is at or after `open_scn`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartFloor {
    /// The start: what was committed below it is not delivered.
    pub scn: Scn,
    /// Read before the open transactions were.
    pub open_scn: Scn,
    /// Transactions that were open.
    pub open: BTreeSet<TransactionKey>,
}
