//! What clients do.

use std::sync::Arc;

use highwater_oracle::{Scn, Verb};

use crate::client::{Client, Done, OpenTransaction, Pace};
use crate::database::Database;
use crate::record::{Actor, Content, Record, RowChange};
use crate::table::StoredRow;
use crate::truth::Entry;
use crate::value::Row;

/// Rows that a statement of a bulk transaction inserts, at most: they share a redo record.
const BULK_ROWS: u64 = 8;

impl Database {
    /// Does one action.
    pub(crate) fn step(&mut self) {
        self.actions += 1;
        self.clock.pass(&mut self.random);
        self.archive_logs();
        let client = self.random.index(self.clients.len());
        match self.random.below(400) {
            0 => self.switch_a_log(),
            1..=20 => {}
            _ => self.act(client),
        }
        self.switch_full_logs();
    }

    fn switch_a_log(&mut self) {
        let thread = self.random.index(self.threads.len());
        if let Some(thread) = self.threads.get(thread).map(|redo| redo.thread) {
            self.switch(thread);
        }
    }

    fn act(&mut self, number: usize) {
        let Some(client) = self.clients.get_mut(number) else { return };
        match client.transaction.take() {
            None if self.random.one_in(10) => self.log_on_again(number),
            None => {
                let client = client.clone();
                let mut open = self.begin(&client);
                self.work(&client, &mut open);
                self.put_back(number, open);
            }
            Some(open) if open.pace == Pace::Slow && !self.random.one_in(9) => {
                self.put_back(number, open);
            }
            Some(open) => self.go_on(number, open),
        }
    }

    fn put_back(&mut self, number: usize, open: OpenTransaction) {
        if let Some(client) = self.clients.get_mut(number) {
            client.transaction = Some(open);
        }
    }

    /// The client leaves and another one comes with its number and the next serial.
    fn log_on_again(&mut self, number: usize) {
        if let Some(client) = self.clients.get_mut(number) {
            client.session.serial += 1;
        }
    }

    fn begin(&mut self, client: &Client) -> OpenTransaction {
        let key = self.undo.open(client.container, client.thread, &mut self.random);
        let (pace, left) = self.intent();
        let actor = Arc::new(Actor {
            key,
            user: Some(client.user.clone()),
            session: client.session.clone(),
            pdb: client.pdb.clone(),
        });
        let mut open = OpenTransaction {
            actor,
            start: Scn(0),
            pace,
            left,
            done: Vec::new(),
            savepoint: None,
            strand: Vec::new(),
        };
        open.start = self.emit(client.thread, &mut open, vec![Content::Start]);
        open
    }

    fn intent(&mut self) -> (Pace, u64) {
        match self.random.below(60) {
            0 => (Pace::Bulk, self.settings.large_transaction.div_ceil(BULK_ROWS)),
            1..=6 => (Pace::Slow, self.random.between(2, 12)),
            _ => (Pace::Brisk, self.random.between(0, 6)),
        }
    }

    fn go_on(&mut self, number: usize, mut open: OpenTransaction) {
        let Some(client) = self.clients.get(number).cloned() else { return };
        if open.left > 0 {
            open.left -= 1;
            self.work(&client, &mut open);
            return self.put_back(number, open);
        }
        match self.random.percent(15) {
            true => self.roll_back(&client, open),
            false => self.commit(&client, open),
        }
    }

    /// One statement.
    fn work(&mut self, client: &Client, open: &mut OpenTransaction) {
        match self.random.below(100) {
            0..=7 => open.savepoint = Some(open.done.len()),
            8..=15 => {
                if let Some(savepoint) = open.savepoint {
                    self.undo_to(client, open, savepoint);
                }
            }
            16..=19 => self.violate(client, open),
            _ => self.change(client, open),
        }
    }

    fn change(&mut self, client: &Client, open: &mut OpenTransaction) {
        let Some(table) = self.pick_table(client) else { return };
        let rows = self.tables.get(table).map_or(0, |table| table.rows.len());
        let is_crowded = rows > self.settings.rows_per_table;
        match self.random.below(10) {
            _ if open.pace == Pace::Bulk => self.insert(client, open, table, BULK_ROWS),
            0..=3 if !is_crowded => self.insert(client, open, table, 1),
            0..=6 if !is_crowded => self.update(client, open, table),
            7 => self.update(client, open, table),
            _ => self.delete(client, open, table),
        }
    }

    /// A table of the client's container.
    fn pick_table(&mut self, client: &Client) -> Option<usize> {
        let is_here =
            |table: &crate::table::Table| table.container == client.container && !table.is_dropped;
        let here: Vec<_> = self
            .tables
            .iter()
            .enumerate()
            .filter(|(_, table)| is_here(table))
            .map(|it| it.0)
            .collect();
        self.random.pick(&here).copied()
    }

    fn is_excluded(&self, client: &Client) -> bool {
        client.user == self.settings.excluded_user
    }

    /// Inserts rows by one statement, which makes one redo record.
    fn insert(&mut self, client: &Client, open: &mut OpenTransaction, table: usize, rows: u64) {
        let mut done = Vec::new();
        for _ in 0..rows {
            done.extend(self.new_row(client, table));
        }
        self.record(client, open, done);
    }

    fn new_row(&mut self, client: &Client, number: usize) -> Option<Done> {
        let is_excluded = self.is_excluded(client);
        let table = self.tables.get_mut(number)?;
        let used = self.random.one_in(3).then(|| table.free_keys.pop()).flatten();
        let key = match used {
            Some((key, deleted)) => {
                self.clock.pass_scn(deleted);
                key
            }
            None => table.fresh_key(),
        };
        let place = table.fresh_place();
        let image = table.random_row(key, &mut self.random);
        let (object, row_id) = table.place(key, place);
        let row = StoredRow {
            row_id,
            object,
            image: Arc::clone(&image),
            locked_by: Some(client.number),
            changed: self.clock.scn(),
            is_excluded,
        };
        let change = row_change(number, table, &row, Verb::Insert, None, Some(image));
        table.rows.insert(place, row);
        Some(Done { change: Arc::new(change), place, before: None })
    }

    fn update(&mut self, client: &Client, open: &mut OpenTransaction, number: usize) {
        let Some((place, row)) = self.pick_row(client, number) else { return };
        let Some(table) = self.tables.get_mut(number) else { return };
        let (after, set) = updated(table, &row.image, &mut self.random);
        if set.is_empty() {
            return;
        }
        let before = Some(Arc::clone(&row.image));
        let change =
            row_change(number, table, &row, Verb::Update, before, Some(Arc::clone(&after)));
        let stored = StoredRow { image: after, locked_by: Some(client.number), ..row.clone() };
        table.rows.insert(place, stored);
        let change = Arc::new(RowChange { set, ..change });
        self.record(client, open, vec![Done { change, place, before: Some(row) }]);
    }

    fn delete(&mut self, client: &Client, open: &mut OpenTransaction, number: usize) {
        let Some((place, row)) = self.pick_row(client, number) else { return };
        let Some(table) = self.tables.get_mut(number) else { return };
        table.rows.remove(&place);
        let change =
            row_change(number, table, &row, Verb::Delete, Some(Arc::clone(&row.image)), None);
        self.record(
            client,
            open,
            vec![Done { change: Arc::new(change), place, before: Some(row) }],
        );
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
    fn record(&mut self, client: &Client, open: &mut OpenTransaction, done: Vec<Done>) {
        if done.is_empty() {
            return;
        }
        let rows = done.iter().map(|done| Content::Row(Arc::clone(&done.change))).collect();
        self.emit(client.thread, open, rows);
        open.done.extend(done);
    }

    /// An insert that fails for its key after it was made (ORA-00001): its redo and undo are written.
    fn violate(&mut self, client: &Client, open: &mut OpenTransaction) {
        let Some(table) = self.pick_table(client) else { return };
        let before = open.done.len();
        self.insert(client, open, table, 1);
        self.undo_to(client, open, before);
    }

    pub(crate) fn commit(&mut self, client: &Client, mut open: OpenTransaction) {
        self.flush(client.thread, &mut open);
        let scn = self.clock.tick(&mut self.random);
        let time_us = self.clock.time_us();
        let actor = Arc::clone(&open.actor);
        let rows = vec![Content::Commit];
        let commit = self.write(client.thread, Record { scn, time_us, actor, rows });
        self.settle(client, &open, scn);
        let captured = |done: Done| {
            let is_captured =
                self.tables.get(done.change.table).is_some_and(|table| table.is_captured);
            is_captured.then_some(done.change)
        };
        let entry = Entry {
            key: open.key(),
            commit,
            start: open.start,
            time_us,
            user: open.actor.user.clone(),
            changes: open.done.into_iter().filter_map(captured).collect(),
        };
        if let Some(book) = self.books.get_mut(client.thread.0 as usize - 1) {
            book.push(entry);
        }
    }

    /// Unlocks what the transaction has changed.
    pub(crate) fn settle(&mut self, client: &Client, open: &OpenTransaction, scn: Scn) {
        for done in &open.done {
            let Some(table) = self.tables.get_mut(done.change.table) else { continue };
            match table.rows.get_mut(&done.place) {
                Some(row) if row.locked_by == Some(client.number) => {
                    row.locked_by = None;
                    row.changed = scn;
                }
                Some(_) => {}
                None => table.release(done.place, done.before.as_ref(), scn),
            }
        }
        self.undo.close(&open.key());
    }
}

/// A change of a row as it lies in its table now.
fn row_change(
    number: usize,
    table: &crate::table::Table,
    row: &StoredRow,
    verb: Verb,
    before: Option<Row>,
    after: Option<Row>,
) -> RowChange {
    RowChange {
        table: number,
        layout: Arc::clone(&table.layout),
        object: row.object,
        row_id: Arc::clone(&row.row_id),
        verb,
        before,
        after,
        set: Vec::new(),
        is_undo: false,
    }
}

/// The row with other values, and the places of those. One update in eight changes the key.
fn updated(
    table: &mut crate::table::Table,
    row: &Row,
    random: &mut crate::random::Random,
) -> (Row, Vec<usize>) {
    let layout = Arc::clone(&table.layout);
    let mut after = row.to_vec();
    let mut set = Vec::new();
    let changes_key = random.one_in(8);
    for (place, column) in layout.columns.iter().enumerate() {
        let is_key = layout.key.contains(&place);
        if is_key && changes_key && layout.key.first() == Some(&place) {
            after[place] = Some(table.fresh_key().to_string().into());
            set.push(place);
        } else if !is_key && random.one_in(3) {
            after[place] = column.random_value(random);
            set.push(place);
        }
    }
    (after.into(), set)
}
