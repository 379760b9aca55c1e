//! Clients of the database, and their transactions.

use std::collections::BTreeSet;
use std::sync::Arc;

use highwater_oracle::{ClientSession, RedoThread, Scn, TransactionKey};

use crate::record::{Actor, Record, RowChange};
use crate::table::StoredRow;

/// A connection that does transactions, one after another.
#[derive(Clone, Debug)]
pub(crate) struct Client {
    /// Its place among all.
    pub(crate) number: usize,
    pub(crate) thread: RedoThread,
    pub(crate) container: u32,
    pub(crate) pdb: Option<String>,
    pub(crate) user: String,
    pub(crate) session: ClientSession,
    pub(crate) transaction: Option<OpenTransaction>,
}

/// What a transaction has done, so that it can be taken back.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) change: Arc<RowChange>,
    /// Where the row lies in its table.
    pub(crate) place: u64,
    /// The row as it was.
    pub(crate) before: Option<StoredRow>,
}

/// How often a transaction does something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pace {
    /// Whenever it may.
    Brisk,
    /// Seldom: it stays open long.
    Slow,
    /// Many rows by each statement.
    Bulk,
}

/// A transaction that has not ended.
#[derive(Clone, Debug)]
pub(crate) struct OpenTransaction {
    pub(crate) actor: Arc<Actor>,
    pub(crate) start: Scn,
    pub(crate) pace: Pace,
    /// Statements until it ends.
    pub(crate) left: u64,
    pub(crate) done: Vec<Done>,
    /// Tables that it has changed, also if it has taken that back: their definition cannot change.
    pub(crate) touched: BTreeSet<usize>,
    /// How much was done when the savepoint was set.
    pub(crate) savepoint: Option<usize>,
    /// The row that the last redo of captured tables belongs to, where it is of large objects.
    pub(crate) lob_tail: Option<(usize, u64)>,
    /// Redo that is not in the log yet.
    pub(crate) strand: Vec<Record>,
}

impl OpenTransaction {
    /// A transaction that has done nothing yet.
    pub(crate) const fn new(actor: Arc<Actor>, start: Scn, pace: Pace, left: u64) -> Self {
        Self {
            actor,
            start,
            pace,
            left,
            done: Vec::new(),
            touched: BTreeSet::new(),
            savepoint: None,
            lob_tail: None,
            strand: Vec::new(),
        }
    }

    pub(crate) fn key(&self) -> TransactionKey {
        self.actor.key
    }
}
