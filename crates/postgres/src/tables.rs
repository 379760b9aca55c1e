//! Which version of a table's description holds at a point of the history (rule R4).
//!
//! The same history must give the same versions however often it is read, because a version
//! that begins inside a transaction is an event of its own and counts.

use std::collections::HashMap;
use std::sync::Arc;

use highwater_connector::{Column, TableDescription};

/// A point of the history: position text and event index.
pub(crate) type At<'a> = (&'a str, u64);

/// The columns that a table is seen to have.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// In the table's order.
    pub(crate) columns: Vec<Column>,
    /// Whether the key flags come from the history itself. Flags that were looked up in the
    /// catalog of today shape a new version but never make one.
    pub(crate) keys_certain: bool,
    /// Whether it is known which columns may be null; the stream does not tell.
    pub(crate) nulls_certain: bool,
}

/// The description that holds.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    /// The description.
    pub(crate) description: Arc<TableDescription>,
    /// Whether it is new and has to be stored.
    pub(crate) fresh: bool,
    /// The one that held before, where it begins here.
    pub(crate) before: Option<Arc<TableDescription>>,
}

/// All descriptions of a trail.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tables {
    versions: HashMap<String, Vec<Arc<TableDescription>>>,
}

impl Tables {
    /// The descriptions that are stored.
    pub(crate) fn new(stored: Vec<TableDescription>) -> Self {
        let mut tables = Self::default();
        for description in stored {
            tables.insert(Arc::new(description));
        }
        tables
    }

    /// Whether any version of this table is stored.
    pub(crate) fn knows(&self, table: &str) -> bool {
        self.versions.contains_key(table)
    }

    /// The description of a table that is seen with these columns at this point.
    pub(crate) fn resolve(&mut self, table: &str, seen: Seen, at: At<'_>) -> Resolved {
        let before = self.in_force(table, at);
        if let Some(description) = before.as_ref().filter(|known| fits(known, &seen)) {
            let description = Arc::clone(description);
            return Resolved { description, fresh: false, before: None };
        }
        if let Some(description) = self.beginning(table, at).find(|known| fits(known, &seen)) {
            let description = Arc::clone(description);
            return Resolved { description, fresh: false, before };
        }
        let description = Arc::new(self.minted(table, seen, at, before.as_deref()));
        self.insert(Arc::clone(&description));
        Resolved { description, fresh: true, before }
    }

    /// The newest version that begins below `at`.
    fn in_force(&self, table: &str, at: At<'_>) -> Option<Arc<TableDescription>> {
        let below = self.of(table).iter().filter(|known| begins(known) < at);
        below.max_by_key(|known| (begins(known), known.version)).cloned()
    }

    fn beginning<'a>(
        &'a self,
        table: &str,
        at: At<'a>,
    ) -> impl Iterator<Item = &'a Arc<TableDescription>> {
        self.of(table).iter().filter(move |known| begins(known) == at)
    }

    fn of(&self, table: &str) -> &[Arc<TableDescription>] {
        self.versions.get(table).map_or(&[], Vec::as_slice)
    }

    fn insert(&mut self, description: Arc<TableDescription>) {
        self.versions.entry(description.table.clone()).or_default().push(description);
    }

    fn minted(
        &self,
        table: &str,
        seen: Seen,
        (position, index): At<'_>,
        before: Option<&TableDescription>,
    ) -> TableDescription {
        let before = before.filter(|_| !seen.nulls_certain);
        let newest = self.of(table).iter().map(|known| known.version).max().unwrap_or(0);
        TableDescription {
            table: table.to_owned(),
            version: newest.saturating_add(1),
            from_position: position.to_owned(),
            from_index: index,
            columns: carried(seen.columns, before),
            notes: None,
        }
    }
}

fn begins(description: &TableDescription) -> At<'_> {
    (&description.from_position, description.from_index)
}

fn fits(known: &TableDescription, seen: &Seen) -> bool {
    let same = |(known, seen_column): (&Column, &Column)| {
        known.name == seen_column.name
            && known.type_id == seen_column.type_id
            && (known.key == seen_column.key || !seen.keys_certain)
    };
    known.columns.len() == seen.columns.len() && known.columns.iter().zip(&seen.columns).all(same)
}

/// What is known of columns that may be null stays known.
fn carried(mut columns: Vec<Column>, before: Option<&TableDescription>) -> Vec<Column> {
    for column in &mut columns {
        let known = before.and_then(|known| known.columns.iter().find(|k| k.name == column.name));
        if let Some(known) = known {
            column.nullable = known.nullable && !column.key;
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(names: &[&str]) -> Seen {
        let column = |name: &&str| Column {
            name: (*name).to_owned(),
            source_type: "integer".to_owned(),
            json_type: "number".to_owned(),
            nullable: true,
            key: *name == "id",
            type_id: "23:-1".to_owned(),
        };
        Seen {
            columns: names.iter().map(column).collect(),
            keys_certain: true,
            nulls_certain: false,
        }
    }

    #[test]
    fn a_replay_finds_the_versions_of_the_first_run() {
        let mut first = Tables::default();
        let one = first.resolve("t", seen(&["id"]), ("0A", 0));
        assert!(one.fresh && one.before.is_none() && one.description.version == 1);
        let two = first.resolve("t", seen(&["id", "b"]), ("0A", 1));
        assert!(two.fresh && two.description.version == 2);
        assert_eq!(two.before.map(|before| before.version), Some(1));

        let stored = [one.description, two.description].map(|known| (*known).clone());
        let mut replay = Tables::new(stored.to_vec());
        let one = replay.resolve("t", seen(&["id"]), ("0A", 0));
        assert!(!one.fresh && one.before.is_none() && one.description.version == 1);
        let two = replay.resolve("t", seen(&["id", "b"]), ("0A", 1));
        assert!(!two.fresh && two.before.is_some() && two.description.version == 2);
        let later = replay.resolve("t", seen(&["id", "b"]), ("0B", 0));
        assert!(!later.fresh && later.before.is_none());
    }

    #[test]
    fn keys_of_the_catalog_make_no_version() {
        let mut tables = Tables::default();
        tables.resolve("t", seen(&["id", "b"]), ("0A", 0));
        let mut uncertain = seen(&["id", "b"]);
        uncertain.keys_certain = false;
        uncertain.columns[0].key = false;
        let resolved = tables.resolve("t", uncertain, ("0B", 0));
        assert!(!resolved.fresh && resolved.description.columns[0].key);
    }

    #[test]
    fn what_may_be_null_stays_known() {
        let mut tables = Tables::default();
        let mut shape = seen(&["id", "b"]);
        shape.columns[1].nullable = false;
        tables.resolve("t", shape, ("0A", 0));
        let next = tables.resolve("t", seen(&["id", "b", "c"]), ("0B", 0)).description;
        let nullable: Vec<bool> = next.columns.iter().map(|column| column.nullable).collect();
        assert_eq!(nullable, [false, false, true]);
    }
}
