//! The objects whose rows are read, and the tables that they belong to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::TableName;
use crate::row::{ObjectId, RedoRow};
use crate::session::TableObject;

use super::ddl_reach::{DdlReach, reach};
use super::table_filter::TableFilter;

/// The container of the root, whose tables are never captured.
const ROOT: u32 = 1;

/// Tables that came and went.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TableChanges {
    /// Captured from now on.
    pub added: Vec<TableName>,
    /// Captured no more.
    pub removed: Vec<TableName>,
}

/// The objects whose rows are read, and the tables that they belong to.
///
/// The dictionary tells the present, and redo is of the past: a table that is gone from the dictionary
/// may have rows ahead. So an object that was captured stays, under the table it had, until the DDL that
/// changes that table comes by in the redo. Numbers are not given twice, so that it harms nobody.
#[derive(Clone, Debug, Default)]
pub struct CapturedObjects {
    filter: TableFilter,
    tables: BTreeMap<ObjectId, Arc<TableName>>,
}

impl CapturedObjects {
    /// None yet, see [`CapturedObjects::refresh`].
    pub const fn new(filter: TableFilter) -> Self {
        Self { filter, tables: BTreeMap::new() }
    }

    /// Takes in what the dictionary lists now. `cause` is the table that a DDL named, at the place of
    /// the redo where reading stands.
    pub fn refresh(&mut self, listed: Vec<TableObject>, cause: Option<&TableName>) -> TableChanges {
        let before = self.names();
        let listed: BTreeMap<ObjectId, TableName> =
            listed.into_iter().map(|object| (object.id, object.table)).collect();
        let is_stale = |id: &ObjectId, table: &TableName| {
            cause.is_some_and(|cause| cause == table || listed.get(id) == Some(cause))
        };
        self.tables.retain(|id, table| !is_stale(id, table));
        let captured = |(id, table): &(ObjectId, TableName)| {
            id.container != ROOT && self.filter.captures(table)
        };
        for (id, table) in listed.into_iter().filter(captured) {
            self.tables.entry(id).or_insert_with(|| Arc::new(table));
        }
        let after = self.names();
        let only = |one: &BTreeSet<Arc<TableName>>, other| {
            one.difference(other).map(|table| TableName::clone(table)).collect()
        };
        TableChanges { added: only(&after, &before), removed: only(&before, &after) }
    }

    fn names(&self) -> BTreeSet<Arc<TableName>> {
        self.tables.values().cloned().collect()
    }

    /// The objects, for a query.
    pub fn ids(&self) -> Vec<ObjectId> {
        self.tables.keys().copied().collect()
    }

    /// The captured tables.
    pub fn tables(&self) -> BTreeSet<Arc<TableName>> {
        self.names()
    }

    /// The table of a row: that of its object, else the one it names itself. Rows of a segment that was
    /// dropped since come without a name.
    pub fn table_of(&self, row: &RedoRow) -> Option<Arc<TableName>> {
        self.tables.get(&row.object).cloned().or_else(|| named_table(row).map(Arc::new))
    }

    /// Whether a DDL row ends the step: it may change which objects are read, or the layout of a table
    /// that is captured, and the dictionary has to be asked before the next row is.
    pub fn is_cut_by(&self, ddl: &RedoRow) -> bool {
        match reach(ddl.sql_redo.as_deref().unwrap_or_default()) {
            DdlReach::Nothing => false,
            DdlReach::Objects => true,
            DdlReach::Layout => named_table(ddl).is_none_or(|table| self.filter.captures(&table)),
        }
    }
}

/// The table that a row names itself.
pub(super) fn named_table(row: &RedoRow) -> Option<TableName> {
    Some(TableName { pdb: row.pdb.clone(), owner: row.owner.clone()?, table: row.table.clone()? })
}
