//! The shape of a table's rows at one version, compiled for writing them.

use std::sync::Arc;

use bytes::Bytes;
use highwater_connector::Json;

use super::form::Form;
use crate::schema::{KeySource, LayoutVersion};
use crate::{Code, OracleError, TableName};

/// A column, ready to be written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ShapeColumn {
    /// Its name.
    pub(crate) name: String,
    /// Its name as a JSON member: `"ID":`.
    pub(crate) member: String,
    /// What its values become.
    pub(crate) form: Form,
    /// Whether it is left out of records (`cdc.columns.exclude`).
    pub(crate) is_excluded: bool,
    /// Whether it is part of the record key.
    pub(crate) is_key: bool,
}

/// Where the key of a record comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum KeyPlaces {
    /// Places of the columns, in the key's order.
    Columns(Vec<usize>),
    RowId,
    None,
}

/// A table at one version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Shape {
    /// The table.
    pub(crate) table: Arc<TableName>,
    /// The topic of its records.
    pub(crate) topic: Arc<str>,
    /// Number of the version, which records name.
    pub(crate) version: u32,
    /// The same as header text.
    pub(crate) version_text: Bytes,
    /// Columns in the table's order.
    pub(crate) columns: Vec<ShapeColumn>,
    /// See [`KeyPlaces`].
    pub(crate) key: KeyPlaces,
    /// See [`LayoutVersion::is_exact`].
    pub(crate) is_exact: bool,
    /// Members of the envelope's `source` from `db` to `table`.
    pub(crate) source: String,
    /// The last member of `source`, which names the pluggable database.
    pub(crate) source_end: String,
}

impl Shape {
    /// Compiles a version of a table of this database; `is_excluded` says which columns stay out.
    ///
    /// # Errors
    /// When a column of the key is not there, or stays out.
    pub(crate) fn new(
        (table, topic): (Arc<TableName>, Arc<str>),
        database: &str,
        version: &LayoutVersion,
        is_excluded: impl Fn(&str) -> bool,
    ) -> Result<Self, OracleError> {
        let keys = &version.key.columns;
        let columns: Vec<ShapeColumn> = version
            .columns
            .iter()
            .map(|column| ShapeColumn {
                name: column.name.clone(),
                member: member(&column.name),
                form: Form::of(column),
                is_excluded: is_excluded(&column.name),
                is_key: keys.contains(&column.name),
            })
            .collect();
        let key = match &version.key.source {
            KeySource::RowId => KeyPlaces::RowId,
            KeySource::None => KeyPlaces::None,
            _ => KeyPlaces::Columns(places(&table, &columns, keys)?),
        };
        Ok(Self {
            topic,
            version: version.number,
            version_text: Bytes::from(version.number.to_string()),
            columns,
            key,
            is_exact: version.is_exact,
            source: source(&table, database),
            source_end: source_end(&table),
            table,
        })
    }

    /// The place of a column; `expected` is looked at first, as statements name columns in the table's
    /// order.
    pub(crate) fn place(&self, name: &str, expected: usize) -> Option<usize> {
        let is_it = |column: &ShapeColumn| column.name == name;
        let is_expected = self.columns.get(expected).is_some_and(is_it);
        if is_expected { Some(expected) } else { self.columns.iter().position(is_it) }
    }
}

fn places(
    table: &TableName,
    columns: &[ShapeColumn],
    keys: &[String],
) -> Result<Vec<usize>, OracleError> {
    let place = |key: &String| {
        let place = columns.iter().position(|column| column.name == *key && !column.is_excluded);
        place.ok_or_else(|| {
            OracleError::new(
                Code::Decode,
                format!(
                    "column {key} of the key of {table} is excluded, or the table has none such"
                ),
                "take the column out of cdc.columns.exclude, or set another key in cdc.key.columns",
            )
        })
    };
    keys.iter().map(place).collect()
}

/// A name as a JSON member.
fn member(name: &str) -> String {
    json_text(|json| {
        json.string(name);
        json.raw(":");
    })
}

fn source(table: &TableName, database: &str) -> String {
    json_text(|json| {
        json.raw(r#","db":"#);
        json.string(table.pdb.as_deref().unwrap_or(database));
        json.raw(r#","sequence":null,"schema":"#);
        json.string(&table.owner);
        json.raw(r#","table":"#);
        json.string(&table.table);
    })
}

fn source_end(table: &TableName) -> String {
    json_text(|json| {
        json.raw(r#","pdb":"#);
        match &table.pdb {
            Some(pdb) => json.string(pdb),
            None => json.raw("null"),
        }
        json.raw("}");
    })
}

/// What `write` writes, as a string.
pub(crate) fn json_text(write: impl FnOnce(&mut Json)) -> String {
    let mut json = Json::default();
    write(&mut json);
    String::from_utf8_lossy(&json.finish()).into_owned()
}
