//! Whether a publication has had its tables all the time, decided without I/O.
//!
//! A table that is taken out and put in again looks as before, and its changes in between are
//! nowhere. What tells is the catalog itself: each statement that takes a table out, puts one in
//! or alters what is published of it leaves another row, or another version of it, behind. Rows
//! are named by `oid:xmin`; freezing keeps xmin (PostgreSQL 9.4 and later), and so does a dump of
//! the same server's files.

use std::collections::{BTreeMap, HashSet};

use serde_json::{Map, Value};

use crate::name::TableName;
use crate::preflight::Publication;

/// The rows of the catalog that make the captured tables published.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Membership {
    /// That of the publication.
    publication: String,
    /// Those of each table: its own, those of partitioned tables above it and of its schema;
    /// none in a publication for all tables.
    tables: BTreeMap<TableName, Vec<String>>,
}

/// Why changes may be missing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Gap {
    /// It is another publication.
    Remade,
    /// What it publishes of all tables was altered, or its owner was.
    Altered,
    /// These tables were out of it, or what it publishes of them was altered.
    Tables(Vec<TableName>),
}

impl Membership {
    /// The rows behind these tables.
    pub(crate) fn of<'a>(
        publication: &Publication,
        captured: impl IntoIterator<Item = &'a TableName>,
    ) -> Self {
        let captured: HashSet<&TableName> = captured.into_iter().collect();
        let tables = publication.tables.iter().filter(|table| captured.contains(&table.name));
        Self {
            publication: publication.row.clone(),
            tables: tables.map(|table| (table.name.clone(), table.rows.clone())).collect(),
        }
    }

    /// Whether this table was published.
    pub(crate) fn has(&self, table: &TableName) -> bool {
        self.tables.contains_key(table)
    }

    /// These tables are read anew: whatever became of them before is void.
    pub(crate) fn forget(&mut self, tables: &[TableName]) {
        self.tables.retain(|table, _| !tables.contains(table));
    }

    /// What happened between this and `now`. A table of which one row has stood all the time was
    /// published all the time.
    pub(crate) fn gap(&self, now: &Self) -> Option<Gap> {
        if oid(&self.publication) != oid(&now.publication) {
            return Some(Gap::Remade);
        }
        if self.publication != now.publication {
            return Some(Gap::Altered);
        }
        let stood: HashSet<&String> = self.tables.values().flatten().collect();
        let broken = |(table, rows): &(&TableName, &Vec<String>)| {
            self.has(table) && !rows.is_empty() && !rows.iter().any(|row| stood.contains(row))
        };
        let broken = now.tables.iter().filter(broken).map(|(table, _)| table.clone());
        let broken: Vec<TableName> = broken.collect();
        (!broken.is_empty()).then_some(Gap::Tables(broken))
    }

    /// As JSON text, the publication under no name.
    pub(crate) fn write(&self) -> String {
        let tables = self
            .tables
            .iter()
            .map(|(table, rows)| (table.to_string(), Value::from(rows.join(" "))));
        let publication = (String::new(), Value::from(self.publication.as_str()));
        Value::Object([publication].into_iter().chain(tables).collect()).to_string()
    }

    /// Reads that text.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut entries: Map<String, Value> = serde_json::from_str(text).ok()?;
        let publication = entries.remove("")?.as_str()?.to_owned();
        let rows = |rows: &str| rows.split_whitespace().map(str::to_owned).collect();
        let table =
            |(table, value): (String, Value)| Some((table.parse().ok()?, rows(value.as_str()?)));
        Some(Self { publication, tables: entries.into_iter().map(table).collect::<Option<_>>()? })
    }
}

fn oid(row: &str) -> &str {
    row.split(':').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn membership(publication: &str, tables: &[(&str, &[&str])]) -> Membership {
        let rows = |rows: &[&str]| rows.iter().map(|row| (*row).to_owned()).collect();
        let table = |(table, own): &(&str, &[&str])| (TableName::new("public", *table), rows(own));
        Membership {
            publication: publication.to_owned(),
            tables: tables.iter().map(table).collect(),
        }
    }

    #[test]
    fn what_was_out_in_between_is_told_from_what_stood() {
        let before = membership("9:1", &[("a", &["5:1"]), ("b", &["6:1"]), ("all", &[])]);
        let gap = |now: &Membership| before.gap(now);
        assert_eq!(gap(&before), None);
        assert_eq!(gap(&membership("8:1", &[])), Some(Gap::Remade));
        assert_eq!(gap(&membership("9:2", &[("a", &["5:1"])])), Some(Gap::Altered));
        // One was put in again, one joins.
        let now = membership("9:1", &[("a", &["7:2"]), ("b", &["6:1"]), ("c", &["8:2"])]);
        assert_eq!(gap(&now), Some(Gap::Tables(vec![TableName::new("public", "a")])));
        // Another row of the same table, under which it is published as well, and one altered.
        let now = membership("9:1", &[("a", &["5:1", "7:2"]), ("b", &["6:2"]), ("all", &[])]);
        assert_eq!(gap(&now), Some(Gap::Tables(vec![TableName::new("public", "b")])));
        // What is gone is told elsewhere.
        assert_eq!(gap(&membership("9:1", &[])), None);
    }

    #[test]
    fn it_is_read_back() {
        let before = membership("9:1", &[("a.b", &["5:1", "6:2"]), ("all", &[])]);
        assert_eq!(Membership::read(&before.write()), Some(before));
        for text in ["", "{}", "[]", r#"{"":1}"#, r#"{"":"9:1","a":"5:1"}"#] {
            assert_eq!(Membership::read(text), None, "{text}");
        }
    }
}
