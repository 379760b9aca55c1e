//! Tables: their definition, and the rows that they hold now.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_oracle::{Scn, SupplementalLogging, TableLayout, TableName};

use crate::column::Column;
use crate::random::Random;
use crate::render::NO_ROW;
use crate::truth::{self, RowImage};
use crate::value::{Row, Value};

/// The definition of a table from one DDL to the next.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Layout {
    pub(crate) name: TableName,
    /// `DATA_OBJV#`.
    pub(crate) version: u64,
    pub(crate) columns: Vec<Column>,
    /// Places of the key's columns.
    pub(crate) key: Vec<usize>,
    pub(crate) logging: SupplementalLogging,
    pub(crate) kind: Kind,
}

impl Layout {
    /// Places of its large objects.
    pub(crate) fn lobs(&self) -> Vec<usize> {
        let columns = self.columns.iter().enumerate();
        columns.filter(|(_, column)| column.kind.is_lob()).map(|(place, _)| place).collect()
    }

    /// Whether a value of an object is too long for a literal.
    pub(crate) fn is_large(&self, place: usize, value: &str) -> bool {
        self.columns.get(place).is_some_and(|column| column.kind.is_large(value))
    }

    /// The place of a column that is neither key nor object.
    pub(crate) fn title(&self) -> usize {
        let lobs = self.lobs();
        let mut places = 0..self.columns.len();
        places.find(|place| !self.key.contains(place) && !lobs.contains(place)).unwrap_or(0)
    }
}

/// How rows are stored, which decides what their redo looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    /// By ROWID, in one segment.
    Heap,
    /// In its key's index: rows have no ROWID of a block.
    IndexOrganised,
    /// In several segments.
    Partitioned,
    /// The same as a heap, with a type that LogMiner cannot write.
    Unsupported,
}

/// A row as it is stored.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoredRow {
    pub(crate) row_id: Arc<str>,
    /// `DATA_OBJ#` of where it lies.
    pub(crate) object: u64,
    pub(crate) image: Row,
    /// The client whose transaction has changed it.
    pub(crate) locked_by: Option<usize>,
    /// When it was last changed for good.
    pub(crate) changed: Scn,
    /// Whether it belongs to the excluded user.
    pub(crate) is_excluded: bool,
}

/// A table.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) container: u32,
    pub(crate) layout: Arc<Layout>,
    /// Whether its owner's tables are those captured.
    pub(crate) is_captured: bool,
    pub(crate) is_dropped: bool,
    /// `OBJECT_ID`.
    pub(crate) own: u64,
    /// `DATA_OBJ#` of its rows: its own number, that of its top index, or one a partition.
    pub(crate) objects: Vec<u64>,
    /// The highest number that it has used; numbers are not given twice.
    pub(crate) highest_object: u64,
    pub(crate) last_ddl_us: i64,
    pub(crate) rows: BTreeMap<u64, StoredRow>,
    /// Places of deleted rows, which later transactions use again.
    pub(crate) free: Vec<u64>,
    /// Keys of deleted rows, with the SCN of the deletion.
    pub(crate) free_keys: Vec<(u64, Scn)>,
    next_place: u64,
    next_key: u64,
}

impl Table {
    pub(crate) fn new(container: u32, layout: Layout, own: u64, objects: Vec<u64>) -> Self {
        Self {
            container,
            is_captured: layout.name.owner == crate::schema::CAPTURED_OWNER,
            layout: Arc::new(layout),
            is_dropped: false,
            own,
            highest_object: objects.iter().copied().fold(own, u64::max),
            objects,
            last_ddl_us: 0,
            rows: BTreeMap::new(),
            free: Vec::new(),
            free_keys: Vec::new(),
            next_place: 0,
            next_key: 100,
        }
    }

    /// A key that no row has.
    pub(crate) fn fresh_key(&mut self) -> u64 {
        self.next_key += 1;
        self.next_key
    }

    /// A place for a new row.
    pub(crate) fn fresh_place(&mut self) -> u64 {
        self.free.pop().unwrap_or_else(|| {
            self.next_place += 1;
            self.next_place
        })
    }

    /// Values of a new row with this key.
    pub(crate) fn random_row(&self, key: u64, random: &mut Random) -> Row {
        let column = |(place, column): (usize, &Column)| match self.layout.key.first() {
            Some(first) if *first == place => Some(key.to_string().into()),
            _ => column.random_value(random),
        };
        self.layout.columns.iter().enumerate().map(column).collect()
    }

    /// The object that a row with this key lies in, and its id there.
    pub(crate) fn place(&self, key: u64, place: u64) -> (u64, Arc<str>) {
        let part = usize::try_from(key).unwrap_or(0) % self.objects.len().max(1);
        let object = self.objects.get(part).copied().unwrap_or(0);
        match self.layout.kind {
            Kind::IndexOrganised => (object, NO_ROW.into()),
            _ => (object, row_id(object, place)),
        }
    }

    /// The first column of a row's key, as the number it is.
    pub(crate) fn key_number(&self, row: &[Value]) -> u64 {
        let key = self.layout.key.first().and_then(|place| row.get(*place));
        key.and_then(|value| value.as_deref()?.parse().ok()).unwrap_or(0)
    }

    /// A row that a client of this kind may change: any from a random place on.
    pub(crate) fn pick(
        &self,
        client: usize,
        is_excluded: bool,
        random: &mut Random,
    ) -> Option<u64> {
        let from = random.below(self.next_place + 1);
        let mut rows = self.rows.range(from..).chain(self.rows.range(..from));
        let is_free = |row: &StoredRow| row.locked_by.is_none_or(|holder| holder == client);
        rows.find(|(_, row)| row.is_excluded == is_excluded && is_free(row))
            .map(|(place, _)| *place)
    }

    /// Takes rows out without redo of theirs; gives the keys of those that are in the books.
    pub(crate) fn remove_rows(&mut self, is_gone: impl Fn(&StoredRow) -> bool) -> Vec<RowImage> {
        let mut removed = Vec::new();
        let layout = Arc::clone(&self.layout);
        self.rows.retain(|_, row| {
            let goes = is_gone(row);
            if goes && !row.is_excluded {
                removed
                    .push(truth::image(&layout, &row.image, |place| layout.key.contains(&place)));
            }
            !goes
        });
        removed
    }

    /// The name in a statement of a person.
    pub(crate) fn sql_name(&self) -> String {
        format!("{}.{}", self.layout.name.owner, self.layout.name.table)
    }

    /// A row is gone for good: its place is free again, and so is its key unless a row has it.
    pub(crate) fn release(&mut self, place: u64, before: Option<&StoredRow>, scn: Scn) {
        if self.free.contains(&place) {
            return;
        }
        self.free.push(place);
        let Some(key) = before.map(|row| self.key_number(&row.image)) else { return };
        if self.rows.values().all(|row| self.key_number(&row.image) != key) {
            self.free_keys.push((key, scn));
        }
    }

    /// As the dictionary describes it.
    pub(crate) fn dictionary(&self) -> TableLayout {
        let layout = &self.layout;
        let key = layout.key.iter().filter_map(|place| layout.columns.get(*place));
        TableLayout {
            name: layout.name.clone(),
            columns: layout.columns.iter().map(Column::layout).collect(),
            primary_key: key.map(|column| column.name.clone()).collect(),
            unique_indexes: Vec::new(),
            logging: layout.logging,
            last_ddl_us: self.last_ddl_us,
        }
    }
}

const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
/// Rows of a block, in this model.
const ROWS_OF_A_BLOCK: u64 = 40;

/// A ROWID: object, file, block and row, in digits of 64.
pub(crate) fn row_id(object: u64, place: u64) -> Arc<str> {
    let parts =
        [(object, 6), (7, 3), (128 + place / ROWS_OF_A_BLOCK, 6), (place % ROWS_OF_A_BLOCK, 3)];
    let digits = parts.into_iter().flat_map(|(number, width)| {
        (0..width)
            .rev()
            .map(move |place| char::from(DIGITS[((number >> (6 * place)) & 63) as usize]))
    });
    digits.collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_id_has_eighteen_digits_of_sixty_four() {
        // 70000 = 17 * 4096 + 5 * 64 + 48; block 129, row 2.
        assert_eq!(&*row_id(70_000, 42), "AAARFwAAHAAAACBAAC");
    }
}
