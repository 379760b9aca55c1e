//! The plain reader.

use std::collections::BTreeMap;

use highwater_oracle::{Operation, RedoRow, RedoThread, TransactionKey, Xid};

use crate::sql::{self, Values};

/// A change that is left at the commit.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Change {
    pub(crate) table: String,
    pub(crate) operation: Operation,
    pub(crate) before: Option<Values>,
    pub(crate) after: Option<Values>,
    /// Whether the row has a statement that can be read.
    pub(crate) is_known: bool,
    row_id: String,
}

/// A transaction with its changes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Transaction {
    pub(crate) key: TransactionKey,
    pub(crate) commit: RedoRow,
    pub(crate) changes: Vec<Change>,
}

/// The reader's state.
#[derive(Default)]
struct Reader {
    open: BTreeMap<TransactionKey, Vec<Change>>,
    threads: BTreeMap<RedoThread, Vec<Transaction>>,
}

/// What the rows of each thread commit, transactions without changes left out.
pub(crate) fn replay(rows: &[RedoRow]) -> BTreeMap<RedoThread, Vec<Transaction>> {
    let mut reader = Reader::default();
    joined(rows).for_each(|row| reader.apply(&row));
    reader.threads
}

/// Rows with the texts of those that go on in the next put together.
fn joined(rows: &[RedoRow]) -> impl Iterator<Item = RedoRow> + '_ {
    let mut rows = rows.iter();
    std::iter::from_fn(move || {
        let first = rows.next()?;
        let mut whole = first.clone();
        while whole.is_continued {
            let next = rows.next().expect("the rest of a statement");
            assert_eq!(next.at, first.at);
            whole.sql_redo.as_mut().unwrap().push_str(next.sql_redo.as_ref().unwrap());
            whole.is_continued = next.is_continued;
        }
        Some(whole)
    })
}

impl Reader {
    fn apply(&mut self, row: &RedoRow) {
        use Operation::{Commit, Delete, Insert, Rollback, Start, Unsupported, Update};
        if row.transaction.xid.is_zero() {
            return assert!(matches!(row.operation, Start | Operation::MissingScn));
        }
        let Some(key) = self.owner(row) else {
            return assert_eq!(row.operation, Rollback);
        };
        let changes = self.open.entry(key).or_default();
        match row.operation {
            Insert | Update | Delete | Unsupported if row.is_undo => {
                let newest = changes.iter().rposition(|change| change.row_id == row.row_id);
                changes.remove(newest.expect("something to undo"));
            }
            Insert | Update | Delete | Unsupported => changes.push(change(row)),
            Rollback if row.transaction.xid.is_partial() && !changes.is_empty() => {}
            Rollback => {
                assert!(changes.is_empty(), "{key} rolled back with {changes:?}");
                self.open.remove(&key);
            }
            Commit => self.commit(key, row),
            _ => {}
        }
    }

    /// The transaction of a row; a row that does not say it belongs to the newest one of its slot.
    fn owner(&self, row: &RedoRow) -> Option<TransactionKey> {
        let key = row.transaction;
        let first = TransactionKey { xid: Xid { sequence: 0, ..key.xid }, ..key };
        let last = TransactionKey { xid: Xid { sequence: u32::MAX - 1, ..key.xid }, ..key };
        match key.xid.is_partial() {
            true => self.open.range(first..=last).next_back().map(|(key, _)| *key),
            false => Some(key),
        }
    }

    fn commit(&mut self, key: TransactionKey, row: &RedoRow) {
        let changes = self.open.remove(&key).unwrap();
        if !changes.is_empty() {
            let transaction = Transaction { key, commit: row.clone(), changes };
            self.threads.entry(row.at.thread).or_default().push(transaction);
        }
    }
}

fn change(row: &RedoRow) -> Change {
    let sql = row.sql_redo.as_ref().unwrap();
    if row.operation == Operation::Unsupported {
        assert_eq!((sql.as_str(), row.status), ("Unsupported", 2));
        return Change::unknown(row);
    }
    if row.status == 2 {
        assert!(sql.contains("\"COL ") || row.is_undo, "{sql}");
        return Change::unknown(row);
    }
    let (table, read) = sql::parse(sql);
    let (before, after) = match row.operation {
        Operation::Insert => (None, Some(read.given)),
        Operation::Delete => (Some(read.named), None),
        _ => {
            let mut after = read.named.clone();
            after.extend(read.given);
            (Some(read.named), Some(after))
        }
    };
    Change { table: in_pdb(row, &table), before, after, ..Change::unknown(row) }
}

fn in_pdb(row: &RedoRow, table: &str) -> String {
    row.pdb.as_ref().map_or(table.to_owned(), |pdb| format!("{pdb}.{table}"))
}

impl Change {
    /// A change of which nothing but the row is known.
    fn unknown(row: &RedoRow) -> Self {
        let name = |name: &Option<String>| name.clone().unwrap_or_default();
        Self {
            table: in_pdb(row, &format!("{}.{}", name(&row.owner), name(&row.table))),
            operation: row.operation,
            before: None,
            after: None,
            is_known: row.status == 0,
            row_id: row.row_id.clone(),
        }
    }
}
