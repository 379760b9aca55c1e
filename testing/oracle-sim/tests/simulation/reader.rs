//! The plain reader.

use std::collections::BTreeMap;

use highwater_oracle::{Operation, RedoRow, RedoThread, TransactionKey, Xid};

use crate::lob::{self, Object};
use crate::sql::{self, Edit, Values};

/// A change that is left at the commit.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Change {
    pub(crate) table: String,
    pub(crate) operation: Operation,
    pub(crate) before: Option<Values>,
    pub(crate) after: Option<Values>,
    /// Whether the row has a statement that can be read.
    pub(crate) is_known: bool,
    /// Large objects that it changed.
    lobs: BTreeMap<String, Object>,
    /// Whether rows of large objects may still belong to it.
    is_open: bool,
    row_id: String,
}

/// What `ROW_ID` is where LogMiner does not know it yet.
const PLACEHOLDER: &str = "AAAAAAAAAAAAAAAAAA";

impl Change {
    /// The row after, with the objects that are known.
    pub(crate) fn told(&self) -> Option<Values> {
        let mut after = self.after.clone()?;
        let known = self.lobs.iter().filter_map(|(column, lob)| Some((column, lob.value()?)));
        after.extend(known.map(|(column, value)| (column.clone(), value.clone())));
        Some(after)
    }

    /// Objects that are not known.
    pub(crate) fn lost(&self) -> Vec<String> {
        let lost = self.lobs.iter().filter(|(_, lob)| lob.value().is_none());
        lost.map(|(column, _)| column.clone()).collect()
    }

    /// Whether an update gives nothing but the objects of the insert before it, and its ROWID.
    fn takes(&self, row: &RedoRow, update: &Self) -> bool {
        self.is_open
            && self.operation == Operation::Insert
            && row.operation == Operation::Update
            && self.after == update.after
            && self.after == update.before
            && !update.lobs.is_empty()
    }
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
        use Operation::{
            Commit, Delete, Insert, LobErase, LobLocator, LobTrim, LobWrite, Rollback, Start,
            Unsupported, Update,
        };
        if row.transaction.xid.is_zero() {
            return assert!(matches!(row.operation, Start | Operation::MissingScn));
        }
        let Some(key) = self.owner(row) else {
            return assert_eq!(row.operation, Rollback);
        };
        let changes = self.open.entry(key).or_default();
        match row.operation {
            Insert | Update | Delete | Unsupported if row.is_undo => {
                let is_its = |it: &Change| it.row_id == row.row_id || it.row_id == PLACEHOLDER;
                let newest = changes.iter().rposition(is_its);
                changes.remove(newest.expect("something to undo"));
                close(changes);
            }
            Insert | Update | Delete | Unsupported => add(changes, row),
            LobLocator | LobWrite | LobTrim | LobErase => edit(changes, row),
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

fn close(changes: &mut [Change]) {
    changes.iter_mut().for_each(|change| change.is_open = false);
}

fn add(changes: &mut Vec<Change>, row: &RedoRow) {
    let new = change(row);
    if let Some(insert) = changes.last_mut().filter(|last| last.takes(row, &new)) {
        insert.lobs.extend(new.lobs);
        insert.row_id = new.row_id;
        return close(changes);
    }
    close(changes);
    changes.push(new);
}

/// A row of a large object: to the change before it, or the first of another one.
fn edit(changes: &mut Vec<Change>, row: &RedoRow) {
    if row.operation == Operation::LobLocator {
        if row.row_id != PLACEHOLDER {
            close(changes);
        }
        return;
    }
    let (column, image, edit) = sql::parse_block(row.sql_redo.as_ref().unwrap());
    let is_first = matches!(edit, Edit::Write { offset: 1, .. });
    let is_its = |last: &&mut Change| {
        let is_begun = last.lobs.get(&column).is_some_and(Object::is_begun);
        last.is_open && last.after.as_ref() == Some(&image) && !(is_first && is_begun)
    };
    if changes.last_mut().filter(is_its).is_none() {
        close(changes);
        let (operation, is_open, is_known) = (Operation::Update, true, true);
        let [before, after] = [Some(image.clone()), Some(image.clone())];
        changes.push(Change {
            operation,
            before,
            after,
            is_open,
            is_known,
            ..Change::unknown(row)
        });
    }
    let last = changes.last_mut().unwrap();
    last.lobs.entry(column.clone()).or_insert_with(|| Object::unknown(&column)).edit(edit);
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
    let (table, mut read) = sql::parse(sql);
    let lobs = lob::taken(&mut read.given);
    let is_open = row.row_id == PLACEHOLDER && table.ends_with(".DOCS");
    let (before, after) = match row.operation {
        Operation::Insert => (None, Some(read.given)),
        Operation::Delete => (Some(read.named), None),
        _ => {
            let mut after = read.named.clone();
            after.extend(read.given);
            (Some(read.named), Some(after))
        }
    };
    Change { table: in_pdb(row, &table), before, after, lobs, is_open, ..Change::unknown(row) }
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
            lobs: BTreeMap::new(),
            is_open: false,
            row_id: row.row_id.clone(),
        }
    }
}
