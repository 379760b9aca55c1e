//! Statements on tables with large objects, each with the rows that it was seen to give.

use std::sync::Arc;

use highwater_oracle::Verb;

use crate::client::{Client, Done, OpenTransaction};
use crate::column::ColumnType;
use crate::database::Database;
use crate::dml::updated;
use crate::lob::{LobCall, LobRow};
use crate::quirk::Quirk;
use crate::record::{Content, Form, RowChange};
use crate::render::NO_ROW;
use crate::table::StoredRow;
use crate::value::{Row, Value};

/// Characters or bytes of one write.
const PIECE: usize = 600;
/// The same, where statements go on in further rows.
const LONG_PIECE: usize = 5000;

impl Database {
    fn piece(&self) -> usize {
        if self.has(Quirk::SplitStatements) { LONG_PIECE } else { PIECE }
    }

    fn large_value(&mut self, kind: ColumnType) -> Arc<str> {
        kind.large_lob(self.piece(), &mut self.random)
    }

    fn lob_value(&mut self, kind: ColumnType) -> Value {
        match self.random.below(8) {
            0 | 1 => None,
            2..=4 => Some(kind.small_lob(&mut self.random)),
            _ => Some(self.large_value(kind)),
        }
    }

    /// The image with values for its large objects.
    pub(crate) fn with_lobs(&mut self, number: usize, image: &Row) -> Row {
        let Some(table) = self.tables.get(number) else { return Arc::clone(image) };
        let layout = Arc::clone(&table.layout);
        if layout.lobs().is_empty() {
            return Arc::clone(image);
        }
        let columns = layout.columns.iter().zip(image.iter());
        columns
            .map(|(column, value)| match column.kind.is_lob() {
                true => self.lob_value(column.kind),
                false => value.clone(),
            })
            .collect()
    }

    /// The rows of an insert: the row with empty objects, the writes of large ones, and an update that
    /// gives the others and the ROWID.
    fn insert_contents(&self, change: &RowChange) -> Vec<Content> {
        let Some(row) = &change.after else { return Vec::new() };
        let mut contents = vec![Content::Row(Arc::new(change.without_row_id()))];
        let mut others = Vec::new();
        for place in change.layout.lobs() {
            match row
                .get(place)
                .cloned()
                .flatten()
                .filter(|value| change.layout.is_large(place, value))
            {
                Some(value) => contents.extend(self.writes(change, place, row, &value)),
                None => others.push(place),
            }
        }
        if !others.is_empty() {
            contents.push(Content::Row(Arc::new(RowChange {
                verb: Verb::Update,
                before: Some(Arc::clone(row)),
                set: others,
                ..change.clone()
            })));
        }
        contents
    }

    /// The locator of an object and writes that cover its value.
    fn writes(&self, change: &RowChange, place: usize, row: &Row, value: &str) -> Vec<Content> {
        let Some(column) = change.layout.columns.get(place) else { return Vec::new() };
        let pieces = column.kind.lob_pieces(value, self.piece()).into_iter();
        let writes = pieces.map(|(offset, data)| LobCall::Write { offset, data });
        let calls = std::iter::once(LobCall::Locator).chain(writes);
        calls.map(|call| lob_row(change, place, row, NO_ROW, call)).collect()
    }

    /// Writes the redo of an insert that was made.
    pub(crate) fn record_insert(
        &mut self,
        client: &Client,
        open: &mut OpenTransaction,
        done: Done,
    ) {
        let contents = self.insert_contents(&done.change);
        self.record_lobs(client, open, done, contents);
    }

    /// Writes the redo of a statement, each row in a record of its own. What follows on the same row is
    /// kept apart, as nobody could tell where one statement ends and the next begins.
    fn record_lobs(
        &mut self,
        client: &Client,
        open: &mut OpenTransaction,
        done: Done,
        contents: Vec<Content>,
    ) {
        for content in contents {
            self.emit(client.thread, open, vec![content], Form::default());
        }
        open.touched.insert(done.change.table);
        open.lob_tail = Some((done.change.table, done.place));
        open.done.push(done);
    }

    /// Updates a row of a table with large objects.
    pub(crate) fn update_lobs(
        &mut self,
        client: &Client,
        open: &mut OpenTransaction,
        place: u64,
        row: &StoredRow,
        change: RowChange,
    ) {
        let lobs = change.layout.lobs();
        let Some(lob) = self.random.pick(&lobs).copied() else { return };
        let value = row.image.get(lob).cloned().flatten();
        let is_after_lobs = open.lob_tail == Some((change.table, place));
        let (change, contents) = match (self.random.below(4), value) {
            (0, Some(value)) if !is_after_lobs && !value.is_empty() => {
                self.call_lob(change, lob, &value, row)
            }
            (0..=2, value) if !is_after_lobs => self.write_lob(change, lob, value.is_some(), row),
            _ => self.assign(change, row, is_after_lobs),
        };
        let stored = StoredRow {
            image: change.after.clone().unwrap_or_else(|| Arc::clone(&row.image)),
            locked_by: Some(client.number),
            ..row.clone()
        };
        if let Some(table) = self.tables.get_mut(change.table) {
            table.rows.insert(place, stored);
        }
        let is_plain = matches!(contents.as_slice(), [Content::Row(_)]);
        let done = Done { change: Arc::new(change), place, before: Some(row.clone()) };
        self.record_lobs(client, open, done, contents);
        if is_plain {
            open.lob_tail = None;
        }
    }

    /// Other columns, and objects by literals: one row. Where it could be taken for a part of the
    /// statement before it, it assigns a column that is no object.
    fn assign(
        &mut self,
        change: RowChange,
        row: &StoredRow,
        is_after_lobs: bool,
    ) -> (RowChange, Vec<Content>) {
        let Some(table) = self.tables.get_mut(change.table) else { return (change, Vec::new()) };
        let (after, mut set) = updated(table, &row.image, &mut self.random);
        let layout = Arc::clone(&change.layout);
        let mut after = after.to_vec();
        let is_lob = |place: &usize| layout.lobs().contains(place);
        if set.is_empty() || (is_after_lobs && set.iter().all(is_lob)) {
            set.insert(0, layout.title());
        }
        for place in set.iter().filter(|place| is_lob(place)) {
            let kind = layout.columns.get(*place).map_or(ColumnType::Clob, |column| column.kind);
            let is_null = self.random.one_in(4);
            if let Some(value) = after.get_mut(*place) {
                *value = (!is_null).then(|| kind.small_lob(&mut self.random));
            }
        }
        let told_lobs = set.iter().copied().filter(is_lob).collect();
        let change = RowChange { after: Some(after.into()), set, told_lobs, ..change };
        let content = Content::Row(Arc::new(change.clone()));
        (change, vec![content])
    }

    /// A large value by a bind variable, with or without other columns.
    fn write_lob(
        &mut self,
        change: RowChange,
        lob: usize,
        had_value: bool,
        row: &StoredRow,
    ) -> (RowChange, Vec<Content>) {
        let Some(kind) = change.layout.columns.get(lob).map(|column| column.kind) else {
            return (change, Vec::new());
        };
        let value = self.large_value(kind);
        let (others, mut set) = self.other_columns(&change, row);
        let after = with_value(&others, lob, Some(Arc::clone(&value)));
        let mut contents = Vec::new();
        if !had_value {
            // The object is created empty.
            let empty = with_value(&others, lob, Some("".into()));
            set.push(lob);
            contents.push(piece(&change, empty, set.clone()));
        } else if !set.is_empty() {
            contents.push(piece(&change, Arc::clone(&others), set.clone()));
        }
        contents.extend(self.writes(&change, lob, &others, &value));
        if had_value {
            // BasicFile selects the locator again.
            let is_basic = self.random.one_in(2);
            let locator = is_basic.then_some(LobCall::Locator);
            let calls =
                locator.into_iter().chain([LobCall::Trim { length: kind.lob_length(&value) }]);
            contents.extend(calls.map(|call| lob_row(&change, lob, &others, NO_ROW, call)));
            set.push(lob);
        }
        (RowChange { after: Some(after), set, told_lobs: vec![lob], ..change }, contents)
    }

    /// Columns that are no objects, with other values; none of them in half of all cases.
    fn other_columns(&mut self, change: &RowChange, row: &StoredRow) -> (Row, Vec<usize>) {
        let is_alone = self.random.one_in(2);
        let Some(table) = self.tables.get_mut(change.table).filter(|_| !is_alone) else {
            return (Arc::clone(&row.image), Vec::new());
        };
        let (after, mut set) = updated(table, &row.image, &mut self.random);
        let lobs = change.layout.lobs();
        set.retain(|place| !lobs.contains(place));
        let kept = |(place, value): (usize, &Value)| match lobs.contains(&place) {
            true => row.image.get(place).cloned().flatten(),
            false => value.clone(),
        };
        (after.iter().enumerate().map(kept).collect(), set)
    }

    /// A call of `DBMS_LOB`: the redo does not tell the whole value.
    fn call_lob(
        &mut self,
        change: RowChange,
        lob: usize,
        value: &str,
        row: &StoredRow,
    ) -> (RowChange, Vec<Content>) {
        let Some(kind) = change.layout.columns.get(lob).map(|column| column.kind) else {
            return (change, Vec::new());
        };
        let length = kind.lob_length(value);
        let offset = 1 + self.random.index(length);
        let (after, call, row_id) = match self.random.below(3) {
            0 => {
                let data = kind.lob_prefix(&self.large_value(kind), 30);
                let after = format!("{value}{data}").into();
                (after, LobCall::Write { offset: length + 1, data }, &*row.row_id)
            }
            1 => (kind.lob_prefix(value, offset), LobCall::Trim { length: offset }, NO_ROW),
            _ => {
                let amount = 1 + self.random.index(length + 1 - offset);
                let after = kind.lob_erased(value, offset, amount);
                (after, LobCall::Erase { offset, amount }, NO_ROW)
            }
        };
        let contents = vec![
            lob_row(&change, lob, &row.image, &row.row_id, LobCall::Locator),
            lob_row(&change, lob, &row.image, row_id, call),
        ];
        let after = with_value(&row.image, lob, Some(after));
        (RowChange { after: Some(after), set: vec![lob], lost_lobs: vec![lob], ..change }, contents)
    }
}

fn with_value(row: &Row, place: usize, value: Value) -> Row {
    let replaced =
        |(at, old): (usize, &Value)| if at == place { value.clone() } else { old.clone() };
    row.iter().enumerate().map(replaced).collect()
}

/// The row piece of an update whose objects follow.
fn piece(change: &RowChange, after: Row, set: Vec<usize>) -> Content {
    let piece = RowChange { after: Some(after), set, ..change.without_row_id() };
    Content::Row(Arc::new(piece))
}

fn lob_row(change: &RowChange, column: usize, row: &Row, row_id: &str, call: LobCall) -> Content {
    Content::Lob(Arc::new(LobRow {
        table: change.table,
        layout: Arc::clone(&change.layout),
        object: change.object,
        column,
        row: Arc::clone(row),
        row_id: row_id.into(),
        call,
    }))
}
