//! The objects whose rows are read, and the tables that they belong to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::row::{ObjectId, Operation, RedoRow};
use crate::schema::{DdlClass, classify};
use crate::session::TableObject;
use crate::{Scn, TableName};

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
///
/// An object that came and went before the dictionary was asked is in neither. Its rows have no name, as
/// those of dropped tables of others have; only a dictionary in the redo tells whose they are.
#[derive(Clone, Debug, Default)]
pub struct CapturedObjects {
    filter: TableFilter,
    tables: BTreeMap<ObjectId, Arc<TableName>>,
    /// When the dictionary was asked: from there on no row has an object that was gone by then.
    asked: Scn,
}

impl CapturedObjects {
    /// None yet, see [`CapturedObjects::refresh`].
    pub const fn new(filter: TableFilter) -> Self {
        Self { filter, tables: BTreeMap::new(), asked: Scn(0) }
    }

    /// Objects of captured tables may have come and gone before the dictionary was asked, which was
    /// before this SCN: rows of objects that it does not know may be theirs.
    pub const fn may_have_missed(&mut self, asked: Scn) {
        self.asked = asked;
    }

    /// First SCN whose rows can only be of objects that are known here, if they are captured.
    pub const fn unnamed_until(&self) -> Scn {
        self.asked
    }

    /// Whether a row is of an object that neither this nor the dictionary knows, so that its table may
    /// be a captured one.
    pub fn is_unnamed(&self, row: &RedoRow) -> bool {
        is_of_table(row.operation)
            && row.at.scn < self.asked
            && !self.tables.contains_key(&row.object)
            && named_table(row).is_none()
    }

    /// Whether a row is of a captured table, by its object or by its own name.
    pub fn is_captured(&self, row: &RedoRow) -> bool {
        self.tables.contains_key(&row.object)
            || named_table(row).is_some_and(|table| self.filter.captures(&table))
    }

    /// Whether an object is known.
    pub fn holds(&self, object: ObjectId) -> bool {
        self.tables.contains_key(&object)
    }

    /// Whether a DDL may have brought objects to a captured table. Tables of others that come and go do
    /// not, and there are many of them.
    pub fn may_gain_by(&self, ddl: &RedoRow) -> bool {
        let class = classify(ddl.sql_redo.as_deref().unwrap_or_default());
        let is_of_one_table = matches!(class, DdlClass::Create | DdlClass::Drop);
        !is_of_one_table || named_table(ddl).is_none_or(|table| self.filter.captures(&table))
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

/// Whether a row of this kind belongs to an object.
pub(super) const fn is_of_table(operation: Operation) -> bool {
    (operation.is_content() && !matches!(operation, Operation::Ddl))
        || matches!(operation, Operation::LobLocator)
}

/// The table that a row names itself.
pub(super) fn named_table(row: &RedoRow) -> Option<TableName> {
    Some(TableName { pdb: row.pdb.clone(), owner: row.owner.clone()?, table: row.table.clone()? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mining::fake::{row, table, transaction};
    use crate::row::Operation;

    fn id(number: u64) -> ObjectId {
        ObjectId { container: 0, number }
    }

    fn listed(objects: &[(u64, &str)]) -> Vec<TableObject> {
        let object =
            |(number, name): &(u64, &str)| TableObject { id: id(*number), table: table(name) };
        objects.iter().map(object).collect()
    }

    fn captured(objects: &[(u64, &str)]) -> CapturedObjects {
        let include = [r"HR\.(EMP|DEPT|NEW)".to_owned()];
        let mut captured = CapturedObjects::new(TableFilter::new(&include, &[], false).unwrap());
        captured.refresh(listed(objects), None);
        captured
    }

    fn row_of(number: u64, name: Option<&str>) -> RedoRow {
        let row = row(1, 1, 1, Operation::Insert, transaction(1));
        RedoRow { object: id(number), table: name.map(str::to_owned), ..row }
    }

    #[test]
    fn partitions_belong_to_their_table_and_others_are_left_out() {
        let objects = captured(&[(1, "EMP"), (2, "EMP"), (3, "OTHER")]);
        assert_eq!(objects.ids(), [id(1), id(2)]);
        assert_eq!(objects.tables().len(), 1);
    }

    #[test]
    fn the_root_is_never_captured() {
        let root = TableObject { id: ObjectId { container: 1, number: 9 }, table: table("EMP") };
        let mut objects = captured(&[]);
        assert_eq!(objects.refresh(vec![root], None), TableChanges::default());
        assert!(objects.ids().is_empty());
    }

    #[test]
    fn a_row_is_named_by_its_object_and_then_by_itself() {
        let objects = captured(&[(1, "EMP")]);
        assert_eq!(*objects.table_of(&row_of(1, None)).unwrap(), table("EMP"));
        assert_eq!(*objects.table_of(&row_of(1, Some("WRONG"))).unwrap(), table("EMP"));
        assert_eq!(*objects.table_of(&row_of(5, Some("SEEN"))).unwrap(), table("SEEN"));
        assert_eq!(objects.table_of(&row_of(5, None)), None);
    }

    #[test]
    fn a_table_that_is_dropped_ahead_stays_until_its_ddl_comes_by() {
        let mut objects = captured(&[(1, "EMP"), (2, "DEPT")]);
        let now = [(1, "EMP"), (3, "NEW")];
        let changes = objects.refresh(listed(&now), Some(&table("NEW")));
        assert_eq!(changes, TableChanges { added: vec![table("NEW")], removed: Vec::new() });
        assert_eq!(objects.ids(), [id(1), id(2), id(3)]);
        let changes = objects.refresh(listed(&now), Some(&table("DEPT")));
        assert_eq!(changes, TableChanges { added: Vec::new(), removed: vec![table("DEPT")] });
        assert_eq!(objects.ids(), [id(1), id(3)]);
    }

    #[test]
    fn a_table_that_is_renamed_ahead_keeps_its_name_until_its_ddl_comes_by() {
        for cause in ["EMP", "NEW"] {
            let mut objects = captured(&[(1, "EMP"), (2, "DEPT")]);
            let now = [(1, "NEW"), (2, "DEPT")];
            objects.refresh(listed(&now), Some(&table("DEPT")));
            assert_eq!(*objects.table_of(&row_of(1, None)).unwrap(), table("EMP"));
            objects.refresh(listed(&now), Some(&table(cause)));
            assert_eq!(*objects.table_of(&row_of(1, None)).unwrap(), table("NEW"));
        }
    }

    #[test]
    fn a_table_that_is_renamed_out_of_the_patterns_leaves_with_its_ddl() {
        let mut objects = captured(&[(1, "EMP")]);
        objects.refresh(listed(&[(1, "ARCHIVE")]), None);
        assert_eq!(objects.ids(), [id(1)]);
        let changes = objects.refresh(listed(&[(1, "ARCHIVE")]), Some(&table("EMP")));
        assert_eq!(changes.removed, [table("EMP")]);
        assert!(objects.ids().is_empty());
    }

    #[test]
    fn an_exchange_of_partitions_moves_objects_between_tables() {
        let mut objects = captured(&[(1, "EMP"), (2, "DEPT")]);
        objects.refresh(listed(&[(2, "EMP"), (1, "DEPT")]), Some(&table("EMP")));
        assert_eq!(*objects.table_of(&row_of(1, None)).unwrap(), table("DEPT"));
        assert_eq!(*objects.table_of(&row_of(2, None)).unwrap(), table("EMP"));
    }

    #[test]
    fn a_ddl_of_columns_cuts_only_at_a_captured_table() {
        let objects = captured(&[(1, "EMP")]);
        let ddl = |name: Option<&str>, sql: &str| {
            objects.is_cut_by(&RedoRow { sql_redo: Some(sql.to_owned()), ..row_of(1, name) })
        };
        assert!(ddl(Some("EMP"), "alter table emp add (c number)"));
        assert!(ddl(None, "alter table emp add (c number)"));
        assert!(!ddl(Some("OTHER"), "alter table other add (c number)"));
        assert!(ddl(Some("OTHER"), "alter table other rename to emp"));
        assert!(!ddl(Some("EMP"), "truncate table emp"));
        assert!(objects.is_cut_by(&RedoRow { sql_redo: None, ..row_of(1, Some("OTHER")) }));
    }
}
