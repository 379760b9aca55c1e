//! A transaction that has committed.

use crate::change::Change;
use crate::{OracleError, RedoPoint, TransactionKey};

/// Changes that survived, in redo order, read once from the first.
pub type Changes = Box<dyn Iterator<Item = Result<Change, OracleError>> + Send>;

/// A transaction that has committed, with the changes that survived its rollbacks.
pub struct Committed {
    /// Its key.
    pub key: TransactionKey,
    /// Its COMMIT row.
    pub commit: RedoPoint,
    /// Its first captured row.
    pub first: RedoPoint,
    /// Time of the commit, in microseconds since 1970.
    pub time_us: i64,
    /// User who made the changes, where the redo says it.
    pub user: Option<String>,
    /// How many changes there are.
    pub count: u64,
    /// See [`Changes`].
    pub changes: Changes,
}
