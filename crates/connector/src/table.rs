//! Table descriptions (rule R4), kept in a schema topic beside the trail.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// Name of the topic that describes the tables of a trail.
pub fn schema_topic(trail: &str) -> String {
    format!("{trail}.schema")
}

/// The qualified name of a table, as descriptions and streams bear it: `public.orders`, or
/// `"My.Schema"."Order.Items"` where a part is empty or holds a dot or a quote, so that two tables
/// never share a name.
pub fn qualified_name(qualifier: &str, table: &str) -> String {
    format!("{}.{}", name_part(qualifier), name_part(table))
}

/// The same where a database has containers, each with tables of its own: `PDB1.HR.EMP`.
pub fn contained_name(container: &str, qualifier: &str, table: &str) -> String {
    format!("{}.{}", name_part(container), qualified_name(qualifier, table))
}

/// One part of a qualified name: as it is, or in quotes where it is empty or holds a dot or a quote.
pub fn name_part(name: &str) -> Cow<'_, str> {
    if name.is_empty() || name.contains(['.', '"']) {
        Cow::Owned(format!("\"{}\"", name.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(name)
    }
}

/// Key of a record of the schema topic, as JSON.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct TableKey {
    /// The table's qualified name, such as `public.orders`.
    pub table: String,
    /// Version, from 1; a new one whenever the shape changes.
    pub version: u32,
}

/// Value of a record of the schema topic, as JSON: a table's shape from a position on.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct TableDescription {
    /// The table's qualified name, such as `public.orders`.
    pub table: String,
    /// Version, from 1.
    pub version: u32,
    /// Position text from which it holds (order-preserving, as in [`crate::Hw::position`]).
    pub from_position: String,
    /// Event index from which it holds.
    pub from_index: u64,
    /// Columns in the source's order.
    pub columns: Vec<Column>,
    /// What the source has to know of it besides, as JSON of its own form; read by nobody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub notes: Option<serde_json::Value>,
}

/// One column.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Column {
    /// Name, verbatim.
    pub name: String,
    /// The source's type, verbatim, such as `numeric(10,2)`.
    pub source_type: String,
    /// JSON primitive that a value has in images: `string`, `number` or `boolean`.
    pub json_type: String,
    /// Whether NULL may occur, as far as the source says.
    pub nullable: bool,
    /// Whether it is part of the key.
    pub key: bool,
    /// The source's own identification of the type (PostgreSQL: `oid:typmod`), compared for
    /// equality only.
    #[serde(default)]
    pub type_id: String,
}

impl TableDescription {
    /// The key under which it is stored.
    pub fn key(&self) -> TableKey {
        TableKey { table: self.table.clone(), version: self.version }
    }

    /// Names of the key columns, in order.
    pub fn key_columns(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().filter(|column| column.key).map(|column| column.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odd_names_stay_apart() {
        assert_eq!(qualified_name("public", "orders"), "public.orders");
        assert_eq!(qualified_name("a.b", "c"), "\"a.b\".c");
        assert_eq!(qualified_name("a", "b.c"), "a.\"b.c\"");
        assert_eq!(qualified_name("a", "q\""), "a.\"q\"\"\"");
        assert_eq!(qualified_name("", "t"), "\"\".t");
        assert_eq!(contained_name("PDB1", "HR", "a.b"), "PDB1.HR.\"a.b\"");
    }
}
