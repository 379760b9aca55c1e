//! The layouts that a captured table had, by version, and the one that a row is decoded with.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use highwater_connector::{CONNECTOR_NAME, TableDescription};

use super::key::{Key, KeyRules, KeySource};
use crate::{
    Code, ColumnLayout, Cursor, Marks, OracleError, RedoPoint, Scn, SupplementalLogging,
    TableLayout, TableName,
};

/// A layout that the rows of a table have from a point on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LayoutVersion {
    /// The table.
    pub table: TableName,
    /// Number, from 1, never given twice to a table of this name.
    pub number: u32,
    /// First SCN whose rows have it.
    pub from: Scn,
    /// Row of the DDL that began it; `None` where the dictionary was read at a start.
    pub ddl: Option<RedoPoint>,
    /// Whether the dictionary was read before any later DDL on the table. If not, rows up to the next
    /// version may have had yet another layout.
    pub is_exact: bool,
    /// Columns that are neither hidden nor virtual, by their order in the table.
    pub columns: Vec<ColumnLayout>,
    /// See [`Key`].
    pub key: Key,
    /// See [`SupplementalLogging`].
    pub logging: SupplementalLogging,
}

impl LayoutVersion {
    /// The column of this name.
    pub fn column(&self, name: &str) -> Option<&ColumnLayout> {
        self.columns.iter().find(|column| column.name == name)
    }

    /// Whether a table with this layout and key needs no other version.
    pub(crate) fn fits(&self, layout: &TableLayout, key: &Key) -> bool {
        self.columns == layout.columns && self.key == *key && self.logging == layout.logging
    }

    /// Whether it held where reading goes on. By address where both have one, since redo of a private
    /// strand is late in the log under its old SCN.
    pub(crate) fn began_by(&self, resume: &Cursor) -> bool {
        let mark = self.ddl.and_then(|ddl| Some((ddl.address?, mark(resume, ddl)?)));
        mark.map_or(self.from <= resume.scn, |(address, mark)| address <= mark)
    }
}

fn mark(cursor: &Cursor, of: RedoPoint) -> Option<crate::RedoAddress> {
    match &cursor.marks {
        Marks::None => None,
        Marks::AnyThread(address) => Some(*address),
        Marks::Threads(threads) => threads.get(&of.thread).copied(),
    }
}

/// All versions of one table.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableVersions {
    /// By number.
    all: Vec<Arc<LayoutVersion>>,
    current: Option<Arc<LayoutVersion>>,
    /// The greatest number ever given.
    last_number: u32,
}

impl TableVersions {
    pub(crate) fn all(&self) -> &[Arc<LayoutVersion>] {
        &self.all
    }

    pub(crate) const fn current(&self) -> Option<&Arc<LayoutVersion>> {
        self.current.as_ref()
    }

    /// The version that this DDL began when its row was read before.
    pub(crate) fn begun_by(&self, ddl: RedoPoint) -> Option<&Arc<LayoutVersion>> {
        self.all.iter().find(|version| version.ddl == Some(ddl))
    }

    pub(crate) const fn next_number(&self) -> u32 {
        self.last_number.saturating_add(1)
    }

    /// Takes a stored version in, unless it is of no use; its number stays taken.
    pub(crate) fn restore(&mut self, version: LayoutVersion, is_useful: bool) {
        self.last_number = self.last_number.max(version.number);
        if is_useful {
            self.all.push(Arc::new(version));
            self.all.sort_by_key(|version| version.number);
        }
    }

    /// Takes a new version in; it is current.
    pub(crate) fn push(&mut self, version: LayoutVersion) -> Arc<LayoutVersion> {
        self.last_number = self.last_number.max(version.number);
        let version = Arc::new(version);
        self.all.push(Arc::clone(&version));
        self.current = Some(Arc::clone(&version));
        version
    }

    pub(crate) fn set_current(&mut self, version: Option<Arc<LayoutVersion>>) {
        self.current = version;
    }

    /// The version that held at a point, or the oldest.
    pub(crate) fn held_at(&self, resume: &Cursor) -> Option<&Arc<LayoutVersion>> {
        let held = self.all.iter().rev().find(|version| version.began_by(resume));
        held.or_else(|| self.all.first())
    }

    /// Drops what no row from there on needs.
    fn prune(&mut self, resume: &Cursor) {
        let Some(oldest) = self.held_at(resume).map(|version| version.number) else { return };
        self.all.retain(|version| version.number >= oldest);
    }
}

/// Says whether a column of a table is left out of what is captured.
pub type IsExcluded = Arc<dyn Fn(&TableName, &str) -> bool + Send + Sync>;

/// The layouts of all captured tables.
#[derive(Clone)]
pub struct Layouts {
    pub(crate) rules: KeyRules,
    pub(crate) is_excluded: IsExcluded,
    pub(crate) tables: BTreeMap<TableName, TableVersions>,
}

impl fmt::Debug for Layouts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(&self.tables).finish()
    }
}

impl Layouts {
    /// None yet; keys will be chosen by these rules.
    pub fn new(rules: KeyRules, is_excluded: IsExcluded) -> Self {
        Self { rules, is_excluded, tables: BTreeMap::new() }
    }

    /// The version that rows of a table have now; `None` for a table that is not captured, or gone.
    pub fn current(&self, table: &TableName) -> Option<&Arc<LayoutVersion>> {
        self.tables.get(table)?.current()
    }

    /// The version that a change was staged under.
    ///
    /// # Errors
    /// CDC-6003 when there is no such version.
    pub fn numbered(
        &self,
        table: &TableName,
        number: u32,
    ) -> Result<&Arc<LayoutVersion>, OracleError> {
        let found = self.versions(table).iter().find(|version| version.number == number);
        found.ok_or_else(|| not_stored(table, number))
    }

    /// The version of a row that the dictionary of today does not describe, so that LogMiner was given
    /// an older one: the newest from its SCN or before.
    ///
    /// # Errors
    /// CDC-6001 when there is none, or it may not be the layout that the row has.
    pub fn at(&self, table: &TableName, scn: Scn) -> Result<&Arc<LayoutVersion>, OracleError> {
        let held = self.versions(table).iter().rev().find(|version| version.from <= scn);
        held.filter(|version| version.is_exact).ok_or_else(|| no_layout(table, scn, held))
    }

    /// The record that stores a version of a captured table, which holds from this position text and
    /// event index on.
    pub fn description(&self, version: &LayoutVersion, from: (&str, u64)) -> TableDescription {
        version.description(from, |column| self.is_excluded(&version.table, column))
    }

    /// Whether a column is left out of what is captured.
    pub fn is_excluded(&self, table: &TableName, column: &str) -> bool {
        (self.is_excluded)(table, column)
    }

    /// Whether some column of a version is left out of what is captured.
    pub fn has_excluded(&self, version: &LayoutVersion) -> bool {
        let mut columns = version.columns.iter();
        columns.any(|column| self.is_excluded(&version.table, &column.name))
    }

    /// Drops versions that no row from `resume` on can have. Rows of transactions that began earlier
    /// and are kept elsewhere count, too.
    pub fn prune(&mut self, resume: &Cursor) {
        self.tables.values_mut().for_each(|versions| versions.prune(resume));
    }

    /// Tables whose key a unique index may change: the one it is said to be on, or those whose key it
    /// is.
    pub fn keyed_by(&self, index: &str, on: Option<&TableName>) -> Vec<TableName> {
        let is_on = |version: &LayoutVersion| match on {
            Some(table) => version.table == *table,
            None => version.key.source == KeySource::UniqueIndex(index.to_owned()),
        };
        let current = self.tables.values().filter_map(TableVersions::current);
        current.filter(|version| is_on(version)).map(|version| version.table.clone()).collect()
    }

    fn versions(&self, table: &TableName) -> &[Arc<LayoutVersion>] {
        self.tables.get(table).map_or(&[], TableVersions::all)
    }
}

/// The command that moves a position: an SCN alone says where to read, so the addresses go.
pub(crate) fn move_position(scn: &str, flags: &str) -> String {
    format!(
        "highwater offsets set {CONNECTOR_NAME} resume_scn={scn} --remove resume_rs_id --remove \
         resume_ssn {flags}--reason TEXT"
    )
}

fn not_stored(table: &TableName, number: u32) -> OracleError {
    OracleError::new(
        Code::SchemaMismatch,
        format!("a change of {table} has version {number} of its layout, which is not stored"),
        format!(
            "move the position back to before that change, so that its redo is read again: {}",
            move_position("SCN", "")
        ),
    )
}

fn no_layout(table: &TableName, scn: Scn, held: Option<&Arc<LayoutVersion>>) -> OracleError {
    let fault = match held {
        Some(version) => format!(
            "version {} from SCN {} was read after a later DDL, so it may not be the row's",
            version.number, version.from
        ),
        None => "no layout from that SCN or before is known".to_owned(),
    };
    OracleError::new(
        Code::DictionaryUnavailable,
        format!("a row of {table} at SCN {scn} is older than a DDL on it: {fault}"),
        format!(
            "move the position past the DDL and load the table again: {}",
            move_position("SCN", "--allow-skip ")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::sample::{self, cursor, point, version};

    fn layouts(versions: Vec<LayoutVersion>) -> Layouts {
        let mut layouts = sample::layouts();
        for version in versions {
            layouts.tables.entry(version.table.clone()).or_default().push(version);
        }
        layouts
    }

    fn number_at(layouts: &Layouts, scn: u64) -> Result<u32, Code> {
        let found = layouts.at(&sample::table(), Scn(scn));
        found.map(|version| version.number).map_err(|error| error.code)
    }

    #[test]
    fn a_lagging_row_has_the_newest_version_from_its_scn_or_before() {
        let inexact = LayoutVersion { is_exact: false, ..version(2, 200) };
        let layouts = layouts(vec![version(1, 100), inexact, version(3, 300)]);
        assert_eq!(number_at(&layouts, 99), Err(Code::DictionaryUnavailable));
        assert_eq!(number_at(&layouts, 100), Ok(1));
        assert_eq!(number_at(&layouts, 199), Ok(1));
        assert_eq!(number_at(&layouts, 200), Err(Code::DictionaryUnavailable));
        assert_eq!(number_at(&layouts, 299), Err(Code::DictionaryUnavailable));
        assert_eq!(number_at(&layouts, 300), Ok(3));
        let other = TableName { table: "U".to_owned(), ..sample::table() };
        assert_eq!(layouts.at(&other, Scn(1)).unwrap_err().code, Code::DictionaryUnavailable);
    }

    #[test]
    fn a_change_keeps_the_version_that_it_was_staged_under() {
        let layouts = layouts(vec![version(1, 100), version(2, 200)]);
        let table = sample::table();
        assert_eq!(layouts.current(&table).unwrap().number, 2);
        assert_eq!(layouts.numbered(&table, 1).unwrap().from, Scn(100));
        assert_eq!(layouts.numbered(&table, 3).unwrap_err().code, Code::SchemaMismatch);
    }

    #[test]
    fn a_version_held_by_address_where_there_is_one() {
        let ddl = LayoutVersion { ddl: Some(point(1, 200, 50)), ..version(2, 200) };
        // A late strand: the SCN is lower, the place in the log is behind the DDL.
        assert!(ddl.began_by(&cursor(150, Some(60))));
        assert!(ddl.began_by(&cursor(150, Some(50))));
        assert!(!ddl.began_by(&cursor(250, Some(40))));
        assert!(ddl.began_by(&cursor(200, None)) && !ddl.began_by(&cursor(199, None)));
        let other_thread = LayoutVersion { ddl: Some(point(2, 200, 50)), ..version(2, 200) };
        assert!(!other_thread.began_by(&sample::threads(150, &[(1, 60)])));
        assert!(other_thread.began_by(&sample::threads(150, &[(1, 10), (2, 60)])));
        assert!(version(1, 100).began_by(&cursor(100, Some(1))));
    }

    #[test]
    fn versions_are_kept_from_the_one_that_holds_on() {
        let mut layouts = layouts(vec![version(1, 100), version(2, 200), version(3, 300)]);
        layouts.prune(&cursor(250, None));
        let table = sample::table();
        assert!(layouts.numbered(&table, 1).is_err());
        assert!(layouts.numbered(&table, 2).is_ok() && layouts.numbered(&table, 3).is_ok());
        layouts.prune(&cursor(1, None));
        assert!(layouts.numbered(&table, 2).is_ok());
    }
}
