//! What was committed, from the database's own books: whatever an engine makes of the redo is judged by
//! it.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_oracle::{RedoPoint, RedoThread, Scn, TableName, TransactionKey, Verb};

use crate::record::RowChange;
use crate::table::Layout;
use crate::value::Value;

/// Values by column; `None` is NULL. A column that is not here is not told by the redo.
pub type RowImage = BTreeMap<String, Option<String>>;

/// A change that survived the rollbacks of its transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommittedChange {
    /// Table of the row.
    pub table: TableName,
    /// What was done.
    pub verb: Verb,
    /// Columns of the primary key after the change; before it, for a delete.
    pub key: RowImage,
    /// The row before, as far as the redo tells: the columns that the WHERE of its statement names.
    pub before: Option<RowImage>,
    /// The row after, as far as the redo tells.
    pub after: Option<RowImage>,
    /// Large objects that it changed without the redo telling their value: what they were does not
    /// hold any more.
    pub lost: Vec<String>,
}

/// A transaction that has committed and changed captured tables.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CommittedTransaction {
    /// Its key.
    pub key: TransactionKey,
    /// Its COMMIT row. The address is where it was written, also where LogMiner does not give it.
    pub commit: RedoPoint,
    /// SCN of its start.
    pub start: Scn,
    /// Time of the commit, in microseconds since 1970.
    pub time_us: i64,
    /// User.
    pub user: Option<String>,
    /// Changes of captured tables, in redo order.
    pub changes: Vec<CommittedChange>,
}

/// What a redo thread has committed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ThreadHistory {
    /// The thread.
    pub thread: RedoThread,
    /// Transactions, by the redo order of their COMMIT rows.
    pub transactions: Vec<CommittedTransaction>,
}

/// A statement on a captured table that changed its definition, or its rows without redo of theirs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Definition {
    /// Its DDL row.
    pub at: RedoPoint,
    /// Its time, in microseconds since 1970.
    pub time_us: i64,
    /// The table.
    pub table: TableName,
    /// The statement.
    pub text: String,
    /// Keys of the rows that it took out of the table.
    pub removed: Vec<RowImage>,
}

/// A transaction that is open.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpenNow {
    /// Its key.
    pub key: TransactionKey,
    /// Its thread.
    pub thread: RedoThread,
    /// SCN of its start.
    pub start: Scn,
    /// User.
    pub user: String,
    /// Changes of captured tables that would be committed now.
    pub changes: usize,
}

/// A commit in the books.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: TransactionKey,
    pub(crate) commit: RedoPoint,
    pub(crate) start: Scn,
    pub(crate) time_us: i64,
    pub(crate) user: Option<String>,
    pub(crate) changes: Vec<Arc<RowChange>>,
}

impl Entry {
    pub(crate) fn committed(&self) -> CommittedTransaction {
        CommittedTransaction {
            key: self.key,
            commit: self.commit,
            start: self.start,
            time_us: self.time_us,
            user: self.user.clone(),
            changes: self.changes.iter().map(|change| committed(change)).collect(),
        }
    }
}

fn committed(change: &RowChange) -> CommittedChange {
    let layout = &change.layout;
    let newest = change.after.as_ref().or(change.before.as_ref());
    CommittedChange {
        table: layout.name.clone(),
        verb: change.verb,
        key: newest
            .map(|row| image(layout, row, |place| layout.key.contains(&place)))
            .unwrap_or_default(),
        before: change.before.as_ref().map(|row| image(layout, row, |place| change.names(place))),
        after: change.after.as_ref().map(|row| image(layout, row, |place| change.tells(place))),
        lost: change
            .lost_lobs
            .iter()
            .filter_map(|place| Some(layout.columns.get(*place)?.name.clone()))
            .collect(),
    }
}

/// The columns of a row that are wanted.
pub(crate) fn image(layout: &Layout, row: &[Value], wanted: impl Fn(usize) -> bool) -> RowImage {
    let columns = layout.columns.iter().zip(row).enumerate().filter(|(place, _)| wanted(*place));
    columns.map(|(_, (column, value))| (column.name.clone(), text(value))).collect()
}

fn text(value: &Value) -> Option<String> {
    value.as_deref().map(str::to_owned)
}
