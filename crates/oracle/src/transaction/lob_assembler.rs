//! Puts the rows of large objects together with the row changes that they belong to.
//!
//! A statement that writes a large object gives several rows: the row change with a placeholder for
//! its row id, the pieces of each large object, and of an INSERT sometimes an UPDATE with the rest.
//! One change a transaction is open for them at a time.

use std::collections::HashMap;

use super::lob_change::{Keeping, OpenChange};
use super::lob_piece::{LobEdit, LobHead, LobPiece, RowPiece};
use super::lob_row_id::{is_placeholder, synthetic};
use crate::{Change, LobColumn, LobValue, RedoPoint, TransactionKey};

/// What is published of large objects (`cdc.lob.mode`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LobMode {
    /// Nothing. Rows are put together all the same, so that rows of rollbacks find them.
    Skip,
    /// What the redo holds whole.
    Inline,
    /// As `Inline`; what the redo does not hold is read from the database after the commit.
    Reselect,
}

/// How large objects are handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LobSettings {
    /// See [`LobMode`].
    pub mode: LobMode,
    /// `cdc.lob.max.bytes`: values above it are not kept. Text counts as UTF-8.
    pub max_bytes: u64,
}

/// Changes that are open for the pieces of their large objects, by transaction. They precede nothing
/// that was given out, and a restart has to read each from its first row.
#[derive(Debug)]
pub struct LobAssembler {
    keeping: Keeping,
    transactions: HashMap<TransactionKey, Assembly>,
}

/// Of one transaction.
#[derive(Debug, Default)]
struct Assembly {
    open: Option<OpenChange>,
    /// The last locator, while only rows of large objects follow it.
    locator: Option<Locator>,
}

/// A row that selects the locator of a large object: of itself it changes nothing.
#[derive(Debug)]
struct Locator {
    change: Change,
    head: Option<LobHead>,
    /// Whether no row followed it so far.
    is_fresh: bool,
}

/// A row of a large object with what its locator says.
struct Located {
    /// The change that it opens, if it opens one.
    change: Change,
    head: Option<LobHead>,
    /// Whether it has no locator to open a change with.
    must_join: bool,
}

impl LobAssembler {
    /// Nothing is open.
    pub fn new(settings: LobSettings) -> Self {
        let keeping = match settings.mode {
            LobMode::Skip => Keeping::Nothing,
            LobMode::Inline | LobMode::Reselect => Keeping::UpTo(settings.max_bytes),
        };
        Self { keeping, transactions: HashMap::new() }
    }

    /// Takes a row of a table with large objects, or one with a placeholder for its row id. Returns the
    /// changes that are whole now, in redo order.
    pub fn row(&mut self, key: TransactionKey, piece: RowPiece) -> Vec<Change> {
        let open = self.transactions.remove(&key).and_then(|assembly| assembly.open);
        match open {
            Some(mut open) if open.is_completed_by(&piece) => {
                open.complete(piece);
                vec![open.close()]
            }
            open => self.after(key, open, piece),
        }
    }

    fn after(
        &mut self,
        key: TransactionKey,
        open: Option<OpenChange>,
        piece: RowPiece,
    ) -> Vec<Change> {
        let mut whole: Vec<Change> = open.map(OpenChange::close).into_iter().collect();
        if is_placeholder(&piece.change.row_id) {
            let open = Some(OpenChange::row(piece, self.keeping));
            self.transactions.insert(key, Assembly { open, locator: None });
        } else {
            whole.push(piece.change);
        }
        whole
    }

    /// Takes a row of a large object. Returns the changes that are whole now, in redo order.
    pub fn lob(&mut self, key: TransactionKey, piece: LobPiece) -> Vec<Change> {
        let keeping = self.keeping;
        self.transactions.entry(key).or_default().lob(piece, keeping)
    }

    /// Closes the open change of a transaction: before any other row of it, be it one of a table without
    /// large objects, of a rollback, or its COMMIT.
    pub fn close(&mut self, key: TransactionKey) -> Option<Change> {
        self.transactions.remove(&key)?.open.map(OpenChange::close)
    }

    /// Drops what a transaction has open: it was rolled back, released or discarded.
    pub fn forget(&mut self, key: TransactionKey) {
        self.transactions.remove(&key);
    }

    /// Transactions with an open change, and where it begins. It is open work: no restart may begin
    /// behind it.
    pub fn open(&self) -> impl Iterator<Item = (TransactionKey, RedoPoint)> + '_ {
        let begin = |(key, assembly): (&TransactionKey, &Assembly)| Some((*key, assembly.begin()?));
        self.transactions.iter().filter_map(begin)
    }

    /// Bytes of memory that texts and values of open changes take. One transaction takes at most
    /// `cdc.lob.max.bytes` for each large object of one row.
    pub fn bytes(&self) -> u64 {
        let open = self.transactions.values().filter_map(|assembly| assembly.open.as_ref());
        open.map(OpenChange::bytes).sum()
    }
}

impl Assembly {
    fn lob(&mut self, piece: LobPiece, keeping: Keeping) -> Vec<Change> {
        let LobPiece { change, head, edit } = piece;
        if edit == LobEdit::Locator {
            self.locator = Some(Locator { change, head, is_fresh: true });
            return Vec::new();
        }
        let at = change.at;
        let row = self.located(change, head, &edit);
        let Some(head) = row.head else { return self.unlocated(row.change) };
        let closed = match &self.open {
            Some(_) if row.must_join => None,
            Some(open) if open.takes(&row.change, &head, &edit) => None,
            _ => self.open.replace(OpenChange::lobs(row.change, head.row, keeping)),
        };
        if let Some(open) = &mut self.open {
            open.edit(head.target, edit, at);
        }
        closed.map(OpenChange::close).into_iter().collect()
    }

    /// What a row does not tell is told by the locator before it. What it opens begins with that locator.
    fn located(&mut self, change: Change, head: Option<LobHead>, edit: &LobEdit) -> Located {
        let locator = self.locator.as_mut();
        let is_fresh = locator.as_ref().is_some_and(|locator| locator.is_fresh);
        match (locator, head) {
            (Some(locator), None) => {
                locator.is_fresh = false;
                Located {
                    change: Change {
                        at: locator.begin(is_fresh, change.at),
                        ..locator.change.clone()
                    },
                    head: locator.head.clone(),
                    must_join: !is_fresh,
                }
            }
            (Some(locator), head) if is_fresh => {
                locator.is_fresh = false;
                let at = locator.begin(true, change.at);
                let row_id = row_id(change.row_id, &locator.change.row_id);
                Located { change: Change { at, row_id, ..change }, head, must_join: false }
            }
            (_, head) => Located { change: self.joined(change, edit), head, must_join: false },
        }
    }

    /// Rows of a trim or an erase have the placeholder whatever they follow.
    fn joined(&self, mut change: Change, edit: &LobEdit) -> Change {
        if let (LobEdit::Trim { .. } | LobEdit::Erase { .. }, Some(open)) = (edit, &self.open) {
            change.row_id = row_id(change.row_id, open.row_id());
        }
        change
    }

    /// A call that follows no locator names no row: an error if it commits.
    fn unlocated(&mut self, mut change: Change) -> Vec<Change> {
        let closed = self.open.take().map(OpenChange::close);
        let why = "a call on a large object follows no locator, so its row is not known";
        let value = LobValue::Undecodable(why.to_owned());
        change.lobs = vec![LobColumn { column: String::new(), value, last: change.at }];
        if is_placeholder(&change.row_id) {
            change.row_id = synthetic(&change.at);
        }
        closed.into_iter().chain([change]).collect()
    }

    /// Where what is open begins.
    fn begin(&self) -> Option<RedoPoint> {
        let locator = self.locator.as_ref().map(|locator| locator.change.at);
        self.open.as_ref().map(OpenChange::at).or(locator.filter(|at| at.address.is_some()))
    }
}

impl Locator {
    /// Where a change begins whose first row is at `at` and follows this locator.
    fn begin(&self, is_fresh: bool, at: RedoPoint) -> RedoPoint {
        if is_fresh && self.change.at.address.is_some() { self.change.at } else { at }
    }
}

/// The row's own id, or the other where the redo does not tell it.
fn row_id(own: Box<str>, other: &str) -> Box<str> {
    if is_placeholder(&own) { other.into() } else { own }
}
