//! `SQL_REDO` of row changes, as LogMiner writes it with `NO_ROWID_IN_STMT` and `NO_SQL_DELIMITER`.

use highwater_oracle::{SupplementalLogging, Verb};

use crate::column::{Column, quoted};
use crate::record::RowChange;
use crate::table::{Kind, Layout};
use crate::value::Value;

/// By which dictionary names and values are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Names {
    /// One that knows the table as it was when the row was written.
    Known,
    /// One that knows another definition of the table: columns are `COL n`, values are raw.
    Generic,
    /// One that does not know the table at all.
    Lost,
}

impl RowChange {
    /// Whether the statement names the column's value before: in its WHERE.
    pub(crate) fn names(&self, place: usize) -> bool {
        let is_lob = self.layout.columns.get(place).is_some_and(|column| column.kind.is_lob());
        let is_wanted = match (self.verb, self.layout.logging) {
            (Verb::Update, SupplementalLogging::All) | (Verb::Delete, _) => true,
            (Verb::Update, _) => self.layout.key.contains(&place) || self.set.contains(&place),
            (Verb::Insert, _) => false,
        };
        is_wanted && !is_lob
    }

    /// Whether the redo tells the column's value after.
    pub(crate) fn tells(&self, place: usize) -> bool {
        let is_lob = self.layout.columns.get(place).is_some_and(|column| column.kind.is_lob());
        match self.verb {
            _ if is_lob => self.told_lobs.contains(&place),
            Verb::Insert => true,
            Verb::Update => self.set.contains(&place) || self.names(place),
            Verb::Delete => false,
        }
    }

    /// The statement.
    pub(crate) fn statement(&self, names: Names) -> String {
        let writer = Writer { layout: &self.layout, object: self.object, names };
        let before = self.before.as_deref().unwrap_or_default();
        let after = self.after.as_deref().unwrap_or_default();
        match (self.verb, self.is_undo) {
            (Verb::Insert, _) => writer.insert(after),
            (Verb::Delete, true) if self.layout.kind != Kind::IndexOrganised => {
                format!("delete from {} where ROWID = {}", writer.table(), quoted(&self.row_id))
            }
            (Verb::Delete, _) => {
                format!(
                    "delete from {} where {}",
                    writer.table(),
                    writer.condition(before, |place| self.names(place))
                )
            }
            // The undo of an update has no WHERE.
            (Verb::Update, true) => {
                format!("update {} set {}", writer.table(), self.assignments(&writer, after))
            }
            (Verb::Update, false) => format!(
                "update {} set {} where {}",
                writer.table(),
                self.assignments(&writer, after),
                writer.condition(before, |place| self.names(place))
            ),
        }
    }

    fn assignments(&self, writer: &Writer<'_>, row: &[Value]) -> String {
        let terms = self.set.iter().filter_map(|place| {
            let value = writer.literal(*place, row.get(*place)?);
            Some(format!("{} = {value}", writer.column(*place)))
        });
        terms.collect::<Vec<_>>().join(", ")
    }
}

/// Writes by a dictionary.
pub(crate) struct Writer<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) object: u64,
    pub(crate) names: Names,
}

impl Writer<'_> {
    pub(crate) fn table(&self) -> String {
        match self.names {
            Names::Lost => format!("\"UNKNOWN\".\"OBJ# {}\"", self.object),
            _ => format!("{}.{}", name(&self.layout.name.owner), name(&self.layout.name.table)),
        }
    }

    pub(crate) fn column(&self, place: usize) -> String {
        match (self.names, self.layout.columns.get(place)) {
            (Names::Known, Some(column)) => name(&column.name),
            _ => format!("\"COL {}\"", place + 1),
        }
    }

    /// The values of a row by `and`, those that are named.
    pub(crate) fn condition(&self, row: &[Value], names: impl Fn(usize) -> bool) -> String {
        let named = row.iter().enumerate().filter(|(place, _)| names(*place));
        let terms = named.map(|(place, value)| match value {
            None => format!("{} IS NULL", self.column(place)),
            Some(_) => format!("{} = {}", self.column(place), self.literal(place, value)),
        });
        terms.collect::<Vec<_>>().join(" and ")
    }

    fn literal(&self, place: usize, value: &Value) -> String {
        match (value, self.layout.columns.get(place)) {
            // A value that is empty, or too long for a literal.
            (Some(value), Some(column))
                if column.kind.is_lob() && (value.is_empty() || column.kind.is_large(value)) =>
            {
                column.kind.empty_lob().to_owned()
            }
            (Some(value), Some(column)) if self.names == Names::Known => column.kind.literal(value),
            (Some(value), _) => format!("HEXTORAW('{}')", raw(value)),
            (None, _) => "NULL".to_owned(),
        }
    }

    fn insert(&self, row: &[Value]) -> String {
        let columns: Vec<_> = (0..row.len()).map(|place| self.column(place)).collect();
        let values: Vec<_> = row
            .iter()
            .zip(&self.layout.columns)
            .enumerate()
            .map(|(place, (value, column))| self.inserted(place, column, value))
            .collect();
        format!("insert into {}({}) values ({})", self.table(), columns.join(","), values.join(","))
    }

    /// The content of a large object comes in rows of its own.
    fn inserted(&self, place: usize, column: &Column, value: &Value) -> String {
        match column.kind.is_lob() {
            true => column.kind.empty_lob().to_owned(),
            false => self.literal(place, value),
        }
    }
}

/// A name in double quotes.
pub(crate) fn name(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// The bytes of a value. The true inner form of numbers and dates is not modelled: nobody can read them
/// without the dictionary.
fn raw(value: &str) -> String {
    value.bytes().map(|byte| format!("{byte:02x}")).collect()
}
