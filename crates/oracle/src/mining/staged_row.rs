//! A row of a step that was read whole.

use crate::RedoRow;

/// A row of a step that was read whole: its statement joined, its transaction known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StagedRow {
    /// A row as LogMiner gave it.
    Whole(RedoRow),
    /// A ROLLBACK row whose transaction was known by its slot alone. It does not by itself end the
    /// transaction: from some servers such a row also closes a rollback to a savepoint. The transaction
    /// has ended if all its changes were taken back.
    PartialRollback(RedoRow),
}

impl StagedRow {
    /// The row.
    pub const fn row(&self) -> &RedoRow {
        match self {
            Self::Whole(row) | Self::PartialRollback(row) => row,
        }
    }
}
