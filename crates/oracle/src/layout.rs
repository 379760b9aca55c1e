//! What the dictionary says of a table.

use std::fmt;

/// A table's name. Names are as the dictionary has them, in capitals unless they were quoted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TableName {
    /// Pluggable database; `None` in a database without containers.
    pub pdb: Option<String>,
    /// Owner.
    pub owner: String,
    /// Table.
    pub table: String,
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(pdb) = &self.pdb {
            write!(f, "{pdb}.")?;
        }
        write!(f, "{}.{}", self.owner, self.table)
    }
}

/// A column as the dictionary describes it (`CDB_TAB_COLS`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ColumnLayout {
    /// Name.
    pub name: String,
    /// Type as the dictionary writes it, such as `TIMESTAMP(6) WITH TIME ZONE`.
    pub type_name: String,
    /// Length in characters or bytes, where the type has one.
    pub length: Option<u32>,
    /// Precision of a number.
    pub precision: Option<u32>,
    /// Scale of a number; below zero it counts tens.
    pub scale: Option<i32>,
    /// Whether it may be null.
    pub is_nullable: bool,
}

/// A unique index all of whose columns are NOT NULL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UniqueIndex {
    /// Name.
    pub name: String,
    /// Its columns, in order.
    pub columns: Vec<String>,
}

/// What is logged beside the changed columns of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum SupplementalLogging {
    /// Nothing: rows of updates cannot be keyed.
    #[default]
    None,
    /// The primary key.
    PrimaryKey,
    /// All columns.
    All,
}

/// The layout of a table at a moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableLayout {
    /// Name.
    pub name: TableName,
    /// Columns that are neither hidden nor virtual, by their order in the table.
    pub columns: Vec<ColumnLayout>,
    /// Columns of the primary key, in its order; empty without one.
    pub primary_key: Vec<String>,
    /// Other keys, by name.
    pub unique_indexes: Vec<UniqueIndex>,
    /// See [`SupplementalLogging`].
    pub logging: SupplementalLogging,
    /// `LAST_DDL_TIME`, in microseconds since 1970.
    pub last_ddl_us: i64,
}
