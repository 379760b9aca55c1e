//! Inserts, updates and deletes.

use std::sync::Arc;

use highwater_oracle::Verb;

use crate::client::{Client, Done, OpenTransaction};
use crate::database::Database;
use crate::random::Random;
use crate::record::{Content, Form, RowChange};
use crate::table::{StoredRow, Table};
use crate::value::Row;

impl Database {
    pub(crate) fn is_excluded(&self, client: &Client) -> bool {
        client.user == self.settings.excluded_user
    }

    fn has_lobs(&self, table: usize) -> bool {
        self.tables.get(table).is_some_and(|table| !table.layout.lobs().is_empty())
    }

    /// Inserts rows by one statement, which makes one redo record.
    pub(crate) fn insert(
        &mut self,
        client: &Client,
        open: &mut OpenTransaction,
        table: usize,
        rows: u64,
    ) {
        if self.has_lobs(table) {
            for _ in 0..rows {
                if let Some(done) = self.new_row(client, table) {
                    self.record_insert(client, open, done);
                }
            }
            return;
        }
        let done = (0..rows).filter_map(|_| self.new_row(client, table)).collect();
        self.record(client, open, done, Form::default());
    }

    fn new_row(&mut self, client: &Client, number: usize) -> Option<Done> {
        let is_excluded = self.is_excluded(client);
        let key = self.new_key(number)?;
        let table = self.tables.get_mut(number)?;
        let place = table.fresh_place();
        let image = table.random_row(key, &mut self.random);
        let image = self.with_lobs(number, &image);
        let table = self.tables.get_mut(number)?;
        let (object, row_id) = table.place(key, place);
        let row = StoredRow {
            row_id,
            object,
            image: Arc::clone(&image),
            locked_by: Some(client.number),
            changed: self.clock.scn(),
            is_excluded,
        };
        let change = RowChange {
            after: Some(image),
            told_lobs: table.layout.lobs(),
            ..RowChange::of(number, table, &row, Verb::Insert)
        };
        table.rows.insert(place, row);
        Some(Done { change: Arc::new(change), place, before: None })
    }

    /// A key that no row has, now and then one that a deleted row had.
    fn new_key(&mut self, table: usize) -> Option<u64> {
        let is_used = self.random.one_in(3);
        let table = self.tables.get_mut(table)?;
        match is_used.then(|| table.free_keys.pop()).flatten() {
            Some((key, deleted)) => {
                self.clock.pass_scn(deleted);
                Some(key)
            }
            None => Some(table.fresh_key()),
        }
    }

    /// Updates a row; its statement assigns some of the columns.
    pub(crate) fn update(&mut self, client: &Client, open: &mut OpenTransaction, number: usize) {
        let Some((place, row)) = self.pick_row(client, number) else { return };
        let Some(table) = self.tables.get_mut(number) else { return };
        let change = RowChange {
            before: Some(Arc::clone(&row.image)),
            ..RowChange::of(number, table, &row, Verb::Update)
        };
        if !table.layout.lobs().is_empty() {
            return self.update_lobs(client, open, place, &row, change);
        }
        let (after, set) = updated(table, &row.image, &mut self.random);
        if set.is_empty() {
            return;
        }
        let change = RowChange { after: Some(Arc::clone(&after)), set, ..change };
        let stored = StoredRow { image: after, locked_by: Some(client.number), ..row.clone() };
        table.rows.insert(place, stored);
        let done = Done { change: Arc::new(change), place, before: Some(row) };
        self.record(client, open, vec![done], Form::default());
    }

    /// Deletes rows by one statement. The rows of an array delete cannot be told apart by their address.
    pub(crate) fn delete(
        &mut self,
        client: &Client,
        open: &mut OpenTransaction,
        table: usize,
        rows: u64,
    ) {
        let done = (0..rows).map_while(|_| self.delete_row(client, table)).collect();
        self.record(client, open, done, Form { shares_ssn: true, ..Form::default() });
    }

    fn delete_row(&mut self, client: &Client, number: usize) -> Option<Done> {
        let (place, row) = self.pick_row(client, number)?;
        let table = self.tables.get_mut(number)?;
        table.rows.remove(&place);
        let before = Some(Arc::clone(&row.image));
        let change = RowChange { before, ..RowChange::of(number, table, &row, Verb::Delete) };
        Some(Done { change: Arc::new(change), place, before: Some(row) })
    }

    /// A row that the client may change; the SCN goes past the last change of it.
    fn pick_row(&mut self, client: &Client, table: usize) -> Option<(u64, StoredRow)> {
        let is_excluded = self.is_excluded(client);
        let table = self.tables.get(table)?;
        let place = table.pick(client.number, is_excluded, &mut self.random)?;
        let row = table.rows.get(&place)?.clone();
        self.clock.pass_scn(row.changed);
        Some((place, row))
    }

    /// Writes the redo of a statement.
    fn record(&mut self, client: &Client, open: &mut OpenTransaction, done: Vec<Done>, form: Form) {
        if done.is_empty() {
            return;
        }
        let rows = done.iter().map(|done| Content::Row(Arc::clone(&done.change))).collect();
        self.emit(client.thread, open, rows, form);
        open.touched.extend(done.iter().map(|done| done.change.table));
        let is_captured =
            |done: &Done| self.tables.get(done.change.table).is_some_and(|it| it.is_captured);
        if done.iter().any(is_captured) {
            open.lob_tail = None;
        }
        open.done.extend(done);
    }
}

impl RowChange {
    /// A change without images of a row as it lies in its table now.
    fn of(number: usize, table: &Table, row: &StoredRow, verb: Verb) -> Self {
        Self {
            table: number,
            layout: Arc::clone(&table.layout),
            object: row.object,
            row_id: Arc::clone(&row.row_id),
            verb,
            before: None,
            after: None,
            set: Vec::new(),
            told_lobs: Vec::new(),
            lost_lobs: Vec::new(),
            is_undo: false,
        }
    }
}

/// The row with other values, and the places of those. One update in eight changes the key.
pub(crate) fn updated(table: &mut Table, row: &Row, random: &mut Random) -> (Row, Vec<usize>) {
    let layout = Arc::clone(&table.layout);
    let mut after = row.to_vec();
    let mut set = Vec::new();
    let changes_key = random.one_in(8);
    for (place, column) in layout.columns.iter().enumerate() {
        let is_key = layout.key.contains(&place);
        let value = match (is_key, changes_key && layout.key.first() == Some(&place)) {
            (true, true) => Some(table.fresh_key().to_string().into()),
            (false, _) if random.one_in(3) => column.random_value(random),
            _ => continue,
        };
        if let Some(column) = after.get_mut(place) {
            *column = value;
            set.push(place);
        }
    }
    (after.into(), set)
}
