//! Transactions of rows that name only their undo slot.

use std::collections::BTreeMap;

use crate::row::{Operation, RedoRow};
use crate::{TransactionKey, Xid};

use super::staged_row::StagedRow;

/// An undo slot: container, segment, slot. At most one transaction is active in one.
type Slot = (u32, u32, u32);

const fn slot(key: &TransactionKey) -> Slot {
    (key.container, key.xid.usn, key.xid.slot)
}

/// The transaction that is open in each slot, at one place of the redo. Rows that a rollback wrote come
/// from some servers without the sequence of their transaction; a slot and a place in the redo name it
/// as well.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Slots {
    open: BTreeMap<Slot, TransactionKey>,
    dropped: u64,
}

impl Slots {
    /// Of the transactions that are open at the start of a step. Where a slot has several, the one with
    /// the highest sequence is active.
    pub fn new(open: impl IntoIterator<Item = TransactionKey>) -> Self {
        let mut slots = Self::default();
        open.into_iter().for_each(|key| slots.open(key));
        slots
    }

    fn open(&mut self, key: TransactionKey) {
        let active = self.open.entry(slot(&key)).or_insert(key);
        if active.xid.sequence < key.xid.sequence {
            *active = key;
        }
    }

    /// Gives the next row of the redo its transaction. `None` for a row of a slot without an open
    /// transaction: nothing of that transaction was captured.
    pub fn resolve(&mut self, row: RedoRow) -> Option<StagedRow> {
        if row.transaction.xid.is_partial() {
            return self.resolve_partial(row);
        }
        if !row.transaction.xid.is_zero() {
            self.follow(&row.transaction, row.operation);
        }
        Some(StagedRow::Whole(row))
    }

    fn follow(&mut self, key: &TransactionKey, operation: Operation) {
        match operation {
            Operation::Commit | Operation::Rollback => self.close(key),
            _ => self.open(*key),
        }
    }

    fn close(&mut self, key: &TransactionKey) {
        if self.open.get(&slot(key)).is_some_and(|active| active.xid.sequence <= key.xid.sequence) {
            self.open.remove(&slot(key));
        }
    }

    fn resolve_partial(&mut self, mut row: RedoRow) -> Option<StagedRow> {
        let Some(active) = self.open.get(&slot(&row.transaction)).copied() else {
            self.dropped += 1;
            return None;
        };
        row.transaction = active;
        match row.operation {
            Operation::Rollback => Some(StagedRow::PartialRollback(row)),
            operation => {
                self.follow(&active, operation);
                Some(StagedRow::Whole(row))
            }
        }
    }

    /// How many rows had no transaction.
    pub const fn dropped(&self) -> u64 {
        self.dropped
    }
}

impl Xid {
    /// This id as rows of a rollback have it from some servers.
    #[cfg(test)]
    pub(super) const fn partial(self) -> Self {
        Self { sequence: Self::UNKNOWN_SEQUENCE, ..self }
    }
}
