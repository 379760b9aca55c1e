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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mining::fake::row;
    use proptest::prelude::*;

    fn key(slot: u32, sequence: u32) -> TransactionKey {
        TransactionKey { container: 3, xid: Xid { usn: 5, slot, sequence } }
    }

    fn partial(slot: u32) -> TransactionKey {
        key(slot, Xid::UNKNOWN_SEQUENCE)
    }

    fn resolved(slots: &mut Slots, operation: Operation, key: TransactionKey) -> Option<StagedRow> {
        slots.resolve(row(1, 10, 1, operation, key))
    }

    #[test]
    fn a_slot_names_the_transaction_that_is_open_in_it() {
        let mut slots = Slots::new([key(0, 614), key(0, 610), key(1, 7)]);
        let undo = resolved(&mut slots, Operation::Delete, partial(0)).unwrap();
        assert!(matches!(undo, StagedRow::Whole(row) if row.transaction == key(0, 614)));
        resolved(&mut slots, Operation::Commit, key(0, 614));
        resolved(&mut slots, Operation::Insert, key(0, 615));
        let undo = resolved(&mut slots, Operation::Delete, partial(0)).unwrap();
        assert_eq!(undo.row().transaction, key(0, 615));
    }

    #[test]
    fn a_slot_without_an_open_transaction_drops_the_row() {
        let mut slots = Slots::new([key(0, 614)]);
        resolved(&mut slots, Operation::Rollback, key(0, 614));
        assert_eq!(resolved(&mut slots, Operation::Delete, partial(0)), None);
        assert_eq!(resolved(&mut slots, Operation::Rollback, partial(2)), None);
        assert_eq!(slots.dropped(), 2);
    }

    #[test]
    fn a_partial_rollback_does_not_end_the_transaction() {
        let mut slots = Slots::new([key(0, 614)]);
        for _ in 0..2 {
            let ended = resolved(&mut slots, Operation::Rollback, partial(0)).unwrap();
            assert!(
                matches!(ended, StagedRow::PartialRollback(row) if row.transaction == key(0, 614))
            );
        }
    }

    #[test]
    fn containers_have_slots_of_their_own() {
        let other = TransactionKey { container: 4, ..key(0, 614) };
        let mut slots = Slots::new([other]);
        assert_eq!(resolved(&mut slots, Operation::Delete, partial(0)), None);
    }

    #[test]
    fn rows_without_a_transaction_pass_untouched() {
        let mut slots = Slots::default();
        let zero = TransactionKey::default();
        let passed = resolved(&mut slots, Operation::Start, zero).unwrap();
        assert_eq!(passed.row().transaction, zero);
        assert_eq!(slots, Slots::default());
    }

    proptest! {
        /// Transactions follow each other in a few slots; each of their rows may come partial.
        #[test]
        fn a_partial_row_reaches_its_own_transaction(
            acts in prop::collection::vec((0_u32..3, 0_u8..4, any::<bool>()), 0..60),
        ) {
            let mut slots = Slots::default();
            let mut open = BTreeMap::new();
            for (number, (slot, act, is_partial)) in (1..).zip(acts) {
                let is_new = !open.contains_key(&slot);
                let own = *open.entry(slot).or_insert(key(slot, number));
                let named = if is_partial && !is_new { partial(slot) } else { own };
                let operation = if act == 0 { Operation::Commit } else { Operation::Update };
                let got = resolved(&mut slots, operation, named).unwrap();
                prop_assert_eq!(got.row().transaction, own);
                if act == 0 {
                    open.remove(&slot);
                }
            }
        }
    }
}
