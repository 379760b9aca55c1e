//! Which rows from before the start of a first start are captured.

use std::collections::BTreeSet;

use crate::row::{Operation, RedoRow};
use crate::{Scn, TransactionKey};

/// A first start begins to read before the SCN that it captures from, so that a transaction open then
/// arrives whole. Below that SCN rows of transactions that were listed as open are kept, and all rows from
/// `listed` on: who is not listed began there, or has ended before the floor, and then its commit is not
/// captured. It is told by the row alone, so that a restart in between keeps the same rows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StartScope {
    /// First SCN whose commits are captured.
    pub floor: Scn,
    /// SCN that was taken before the open transactions were listed.
    pub listed: Scn,
    /// Transactions that were listed as open.
    pub open: BTreeSet<TransactionKey>,
}

impl StartScope {
    /// Whether a row is kept. A DDL from below the floor is not: the dictionary that was read at the start
    /// knows it.
    pub fn keeps(&self, row: &RedoRow) -> bool {
        let is_captured = row.at.scn >= self.listed || self.open.contains(&row.transaction);
        // Of who is not captured a commit ends nothing, but the row behind it may need its address.
        let is_harmless = row.operation == Operation::Commit;
        row.at.scn >= self.floor || is_harmless || (is_captured && row.operation != Operation::Ddl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mining::fake::{row, transaction};

    fn scope() -> StartScope {
        StartScope { floor: Scn(100), listed: Scn(50), open: [transaction(1)].into() }
    }

    #[test]
    fn above_the_floor_every_row_is_kept() {
        assert!(scope().keeps(&row(1, 100, 1, Operation::Insert, transaction(9))));
        assert!(scope().keeps(&row(1, 100, 1, Operation::Ddl, transaction(9))));
    }

    #[test]
    fn below_it_what_was_open_or_may_have_begun_since() {
        let scope = scope();
        assert!(scope.keeps(&row(1, 20, 1, Operation::Insert, transaction(1))));
        assert!(!scope.keeps(&row(1, 20, 2, Operation::Insert, transaction(2))));
        assert!(!scope.keeps(&row(1, 49, 3, Operation::Start, transaction(3))));
        assert!(!scope.keeps(&row(1, 61, 8, Operation::Ddl, transaction(1))));
    }

    /// A restart between the START row of a transaction and its first change does not see that row again.
    #[test]
    fn a_row_is_kept_whether_or_not_its_start_was_seen() {
        assert!(scope().keeps(&row(1, 60, 6, Operation::Insert, transaction(4))));
        assert!(scope().keeps(&row(1, 61, 7, Operation::Commit, transaction(4))));
    }
}
