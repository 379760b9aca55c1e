//! Rows that take back earlier changes of their transaction, and which change each of them means.
//!
//! A rollback to a savepoint, or of one failed statement, takes changes back from the newest to the
//! oldest, each by a row of the inverse verb with the ROWID of the changed row. Its redo address is
//! its own and names no change, so the row's id and the order have to.

use std::sync::Arc;

use super::lob_row_id::PLACEHOLDER;
use crate::{Image, RedoPoint, TableName, Verb};

/// A row with `ROLLBACK` = 1: it takes one earlier change of its transaction back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Undo {
    /// Where its redo stands.
    pub at: RedoPoint,
    /// Verb of the row itself: [`Verb::Delete`] takes an insert back.
    pub verb: Verb,
    /// Table of the row.
    pub table: Arc<TableName>,
    /// The row's id. It is the real one also where the change had only a placeholder.
    pub row_id: Box<str>,
}

/// Whether a change lacks its row's id: it has the placeholder, with or without more behind it that
/// tells such changes apart.
fn lacks_row_id(change: &ChangeKey) -> bool {
    change.row_id.starts_with(PLACEHOLDER)
}

/// What became of the changes that rows of rollbacks took back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct UndoCounts {
    /// Changes that are gone.
    pub removed: u64,
    /// Changes of large objects alone that are kept as updates with unavailable values: one may hold
    /// several calls, of which the row takes back one.
    pub downgraded: u64,
    /// Rows of rollbacks that met no change.
    pub unmatched: u64,
}

impl UndoCounts {
    /// Adds those of another.
    pub(super) const fn add(&mut self, other: Self) {
        self.removed += other.removed;
        self.downgraded += other.downgraded;
        self.unmatched += other.unmatched;
    }
}

/// What names a change that may still be taken back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ChangeKey {
    /// Its number in the transaction, from 0.
    pub(super) number: u64,
    /// Its verb.
    pub(super) verb: Verb,
    /// What its text is.
    pub(super) image: Image,
    /// Its table.
    pub(super) table: Arc<TableName>,
    /// Its row's id.
    pub(super) row_id: Box<str>,
}

/// What an undo does to the newest surviving change of its row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// It takes this one back.
    Takes,
    /// This one is gone, as the row is put back to before it; the undo means an earlier one.
    Voids,
    /// It is left over from a change of large objects that was downgraded.
    Surplus,
}

impl Undo {
    /// Whether the newest surviving change of the transaction is meant although it lacks its row's id.
    pub(super) fn takes_placeholder(&self, newest: &ChangeKey) -> bool {
        lacks_row_id(newest) && newest.table == self.table && newest.verb.inverse() == self.verb
    }
}

/// What a row of a rollback with this verb does to the newest surviving change of its row.
///
/// An UPDATE never takes an INSERT or a DELETE back: several calls on a large object are one change
/// with several undos, and those that are left over would take the row itself.
pub(super) fn verdict(undo: Verb, newest: Verb) -> Verdict {
    if newest.inverse() == undo {
        Verdict::Takes
    } else if undo == Verb::Update {
        Verdict::Surplus
    } else {
        Verdict::Voids
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RedoThread, Scn};

    #[test]
    fn a_row_takes_back_the_inverse_verb() {
        assert_eq!(verdict(Verb::Delete, Verb::Insert), Verdict::Takes);
        assert_eq!(verdict(Verb::Insert, Verb::Delete), Verdict::Takes);
        assert_eq!(verdict(Verb::Update, Verb::Update), Verdict::Takes);
    }

    #[test]
    fn an_update_that_is_left_over_takes_no_row() {
        assert_eq!(verdict(Verb::Update, Verb::Insert), Verdict::Surplus);
        assert_eq!(verdict(Verb::Update, Verb::Delete), Verdict::Surplus);
    }

    #[test]
    fn what_was_done_to_a_row_goes_with_its_insert() {
        assert_eq!(verdict(Verb::Delete, Verb::Update), Verdict::Voids);
        assert_eq!(verdict(Verb::Delete, Verb::Delete), Verdict::Voids);
        assert_eq!(verdict(Verb::Insert, Verb::Update), Verdict::Voids);
    }

    #[test]
    fn a_change_without_a_row_id_is_known_by_table_and_verb() {
        let table = |table: &str| {
            Arc::new(TableName { pdb: None, owner: "SHOP".into(), table: table.into() })
        };
        let at = RedoPoint { thread: RedoThread(1), scn: Scn(9), address: None };
        let (orders, row_id) = (table("ORDERS"), "AAAR3qAAEAAAACXAAA".into());
        let undo = Undo { at, verb: Verb::Delete, table: Arc::clone(&orders), row_id };
        let newest = |table, verb, row_id: &str| {
            let (image, row_id) = (Image::Statement, row_id.into());
            ChangeKey { number: 0, verb, image, table, row_id }
        };
        let (insert, made) = (Verb::Insert, "AAAAAAAAAAAAAAAAAA#9");
        assert!(undo.takes_placeholder(&newest(Arc::clone(&orders), insert, made)));
        assert!(undo.takes_placeholder(&newest(Arc::clone(&orders), insert, PLACEHOLDER)));
        assert!(!undo.takes_placeholder(&newest(Arc::clone(&orders), insert, &undo.row_id)));
        assert!(!undo.takes_placeholder(&newest(Arc::clone(&orders), Verb::Update, made)));
        assert!(!undo.takes_placeholder(&newest(table("LINES"), insert, made)));
    }
}
