//! Partitions, each with an object number of its own, and the statements that change them.

use crate::database::Database;
use crate::table::{Kind, Table, row_id};
use crate::truth::RowImage;

/// Partitions of a table at first.
pub(crate) const FIRST_PARTITIONS: usize = 4;
/// Partitions of a table, at least.
const FEWEST_PARTITIONS: usize = 2;
/// Partitions of a table, at most.
const MOST_PARTITIONS: usize = 8;

impl Database {
    /// Adds, splits, merges, drops or empties a partition.
    pub(crate) fn change_partitions(&mut self, number: usize) {
        let Some(container) = self.tables.get(number).map(|table| table.container) else { return };
        let first = self.new_object(container);
        let new = [first, first + 1];
        let choice = self.random.below(5);
        let Some(table) = self.tables.get_mut(number) else { return };
        table.highest_object = first + 1;
        let part = self.random.index(table.objects.len());
        let is_few = table.objects.len() <= FEWEST_PARTITIONS;
        let is_many = table.objects.len() >= MOST_PARTITIONS;
        let (text, removed) = match choice {
            0 if !is_many => (table.add_partition(new[0]), Vec::new()),
            1 | 2 if !is_many => (table.split_partition(part, new), Vec::new()),
            3 if !is_few => (table.merge_partitions(new[0]), Vec::new()),
            4 if !is_few => table.drop_partition(part),
            _ => table.truncate_partition(part),
        };
        self.alter(number, &text, removed);
    }
}

impl Table {
    pub(crate) fn is_partitioned(&self) -> bool {
        self.layout.kind == Kind::Partitioned
    }

    fn add_partition(&mut self, new: u64) -> String {
        self.objects.push(new);
        format!("ALTER TABLE {} ADD PARTITION P{new} VALUES (7)", self.sql_name())
    }

    /// Both parts are new segments.
    fn split_partition(&mut self, part: usize, new: [u64; 2]) -> String {
        let old = self.objects.remove(part);
        self.objects.extend(new);
        self.move_rows(
            |object, place| if object == old { new[usize::from(place % 2 == 1)] } else { object },
        );
        let [left, right] = new;
        let table = self.sql_name();
        format!(
            "ALTER TABLE {table} SPLIT PARTITION P{old} VALUES (3) INTO (PARTITION P{left}, PARTITION P{right})"
        )
    }

    fn merge_partitions(&mut self, new: u64) -> String {
        let merged: Vec<_> = self.objects.drain(..2).collect();
        self.objects.push(new);
        self.move_rows(|object, _| if merged.contains(&object) { new } else { object });
        let names: Vec<_> = merged.iter().map(|object| format!("P{object}")).collect();
        format!(
            "ALTER TABLE {} MERGE PARTITIONS {} INTO PARTITION P{new}",
            self.sql_name(),
            names.join(", ")
        )
    }

    fn drop_partition(&mut self, part: usize) -> (String, Vec<RowImage>) {
        let old = self.objects.remove(part);
        let text = format!("ALTER TABLE {} DROP PARTITION P{old}", self.sql_name());
        (text, self.remove_rows(|row| row.object == old))
    }

    fn truncate_partition(&mut self, part: usize) -> (String, Vec<RowImage>) {
        let object = self.objects.get(part).copied().unwrap_or(0);
        let text = format!("ALTER TABLE {} TRUNCATE PARTITION P{object}", self.sql_name());
        (text, self.remove_rows(|row| row.object == object))
    }

    /// Rows that lie in another segment have other ids.
    fn move_rows(&mut self, to: impl Fn(u64, u64) -> u64) {
        for (place, row) in &mut self.rows {
            let object = to(row.object, *place);
            if object != row.object {
                row.object = object;
                row.row_id = row_id(object, *place);
            }
        }
    }
}
