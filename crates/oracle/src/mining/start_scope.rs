//! Which rows from before the start of a first start are captured.

use std::collections::BTreeSet;

use crate::row::{Operation, RedoRow};
use crate::{Scn, TransactionKey};

/// A first start begins to read before the SCN that it captures from, so that a transaction open then
/// arrives whole. Below that SCN only such transactions are kept: those that were listed as open, and
/// those that began after `listed`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartScope {
    /// First SCN whose commits are captured.
    pub floor: Scn,
    /// SCN that was taken before the open transactions were listed.
    pub listed: Scn,
    /// Transactions that were listed as open.
    pub open: BTreeSet<TransactionKey>,
    /// Transactions whose START row was seen since `listed`, and not their end.
    started: BTreeSet<TransactionKey>,
}

impl StartScope {
    /// A scope of which nothing was read yet.
    pub const fn new(floor: Scn, listed: Scn, open: BTreeSet<TransactionKey>) -> Self {
        Self { floor, listed, open, started: BTreeSet::new() }
    }

    /// Whether the next row of the redo is kept. A DDL from below the floor is not: the dictionary that
    /// was read at the start knows it.
    pub fn keeps(&mut self, row: &RedoRow) -> bool {
        let key = row.transaction;
        let is_below = row.at.scn < self.floor;
        if is_below && row.operation == Operation::Start && row.at.scn >= self.listed {
            self.started.insert(key);
        }
        let is_captured = self.open.contains(&key) || self.started.contains(&key);
        if matches!(row.operation, Operation::Commit | Operation::Rollback) {
            self.started.remove(&key);
        }
        !is_below || (is_captured && row.operation != Operation::Ddl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mining::fake::{row, transaction};

    fn scope() -> StartScope {
        StartScope::new(Scn(100), Scn(50), [transaction(1)].into())
    }

    #[test]
    fn above_the_floor_every_row_is_kept() {
        assert!(scope().keeps(&row(1, 100, 1, Operation::Insert, transaction(9))));
        assert!(scope().keeps(&row(1, 100, 1, Operation::Ddl, transaction(9))));
    }

    #[test]
    fn below_it_only_what_was_open_or_began_since() {
        let mut scope = scope();
        assert!(scope.keeps(&row(1, 20, 1, Operation::Insert, transaction(1))));
        assert!(!scope.keeps(&row(1, 20, 2, Operation::Insert, transaction(2))));
        assert!(!scope.keeps(&row(1, 49, 3, Operation::Start, transaction(3))));
        assert!(!scope.keeps(&row(1, 60, 4, Operation::Insert, transaction(3))));
        assert!(scope.keeps(&row(1, 50, 5, Operation::Start, transaction(4))));
        assert!(scope.keeps(&row(1, 60, 6, Operation::Insert, transaction(4))));
        assert!(scope.keeps(&row(1, 61, 7, Operation::Commit, transaction(4))));
        assert!(!scope.keeps(&row(1, 61, 8, Operation::Ddl, transaction(1))));
    }

    #[test]
    fn a_transaction_that_ended_is_forgotten() {
        let mut scope = scope();
        for (scn, operation) in [(50, Operation::Start), (51, Operation::Rollback)] {
            assert!(scope.keeps(&row(1, scn, scn, operation, transaction(4))));
        }
        assert!(!scope.keeps(&row(1, 52, 52, Operation::Insert, transaction(4))));
    }
}
