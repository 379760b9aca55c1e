//! The plain reader.

use std::collections::BTreeMap;

use highwater_oracle::{Operation, RedoRow, RedoThread, TransactionKey};

use crate::sql::{self, Values};

/// A change that is left at the commit.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Change {
    pub(crate) table: String,
    pub(crate) operation: Operation,
    pub(crate) before: Option<Values>,
    pub(crate) after: Option<Values>,
    row_id: String,
}

/// A transaction with its changes.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Transaction {
    pub(crate) key: TransactionKey,
    pub(crate) commit: RedoRow,
    pub(crate) changes: Vec<Change>,
}

/// What the rows of each thread commit, transactions without changes left out.
pub(crate) fn replay(rows: &[RedoRow]) -> BTreeMap<RedoThread, Vec<Transaction>> {
    let mut threads: BTreeMap<RedoThread, Vec<Transaction>> = BTreeMap::new();
    let mut open: BTreeMap<TransactionKey, Vec<Change>> = BTreeMap::new();
    for row in rows {
        let changes = open.entry(row.transaction).or_default();
        match row.operation {
            Operation::Insert | Operation::Update | Operation::Delete if row.is_undo => {
                let newest = changes.iter().rposition(|change| change.row_id == row.row_id);
                changes.remove(newest.expect("something to undo"));
            }
            Operation::Insert | Operation::Update | Operation::Delete => changes.push(change(row)),
            Operation::Rollback => {
                assert!(changes.is_empty(), "{:?} rolled back with {changes:?}", row.transaction);
                open.remove(&row.transaction);
            }
            Operation::Commit => {
                let changes = open.remove(&row.transaction).unwrap();
                let transaction =
                    Transaction { key: row.transaction, commit: row.clone(), changes };
                if !transaction.changes.is_empty() {
                    threads.entry(row.at.thread).or_default().push(transaction);
                }
            }
            _ => {}
        }
    }
    threads
}

fn change(row: &RedoRow) -> Change {
    let (table, read) = sql::parse(row.sql_redo.as_ref().unwrap());
    let (before, after) = match row.operation {
        Operation::Insert => (None, Some(read.given)),
        Operation::Delete => (Some(read.named), None),
        _ => {
            let mut after = read.named.clone();
            after.extend(read.given);
            (Some(read.named), Some(after))
        }
    };
    let table = row.pdb.as_ref().map_or(table.clone(), |pdb| format!("{pdb}.{table}"));
    Change { table, operation: row.operation, before, after, row_id: row.row_id.clone() }
}
