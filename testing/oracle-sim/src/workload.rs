//! What clients do, one action after another.

use std::sync::Arc;

use highwater_oracle::ClientSession;

use crate::client::{Client, OpenTransaction, Pace};
use crate::database::Database;
use crate::quirk::Quirk;
use crate::record::{Actor, Content, Form, XidForm};

/// Rows that a statement of several rows has, at most: they share a redo record.
const ROWS_OF_A_STATEMENT: u64 = 8;

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
        self.define_now_and_then();
        self.close_a_pdb();
        self.reset_when_due();
        if self.is_time_for(Quirk::Orphans, 120) {
            self.kill_a_client();
        }
        if self.is_time_for(Quirk::MissingScn, 300) {
            self.lose_redo();
        }
        self.switch_full_logs();
    }

    /// Whether a quirk is on and happens now: once in so many actions.
    pub(crate) fn is_time_for(&mut self, quirk: Quirk, one_in: u64) -> bool {
        self.has(quirk) && self.random.one_in(one_in)
    }

    fn switch_a_log(&mut self) {
        let thread = self.any_thread();
        self.switch(thread);
    }

    /// Redo that no log has: a row says so.
    fn lose_redo(&mut self) {
        let thread = self.any_thread();
        let actor = Arc::new(Actor::default());
        let record = self.stamp(&actor, vec![Content::MissingScn], Form::default());
        self.write(thread, record);
    }

    fn act(&mut self, number: usize) {
        let Some(client) = self.clients.get_mut(number) else { return };
        let transaction = client.transaction.take();
        match transaction {
            None if self.random.one_in(10) => client.session.serial += 1,
            None => {
                let client = client.clone();
                let mut open = self.begin(&client);
                self.work(&client, &mut open);
                self.put_back(number, open);
            }
            Some(open) if self.is_at_rest(&open) => {
                self.put_back(number, open);
            }
            Some(open) => self.go_on(number, open),
        }
    }

    /// Slow transactions rest mostly, unless a DDL waits for them.
    fn is_at_rest(&mut self, open: &OpenTransaction) -> bool {
        let is_awaited = self.awaited.is_some_and(|table| open.touched.contains(&table));
        open.pace == Pace::Slow && !is_awaited && !self.random.one_in(9)
    }

    fn put_back(&mut self, number: usize, open: OpenTransaction) {
        if let Some(client) = self.clients.get_mut(number) {
            client.transaction = Some(open);
        }
    }

    fn begin(&mut self, client: &Client) -> OpenTransaction {
        let has_start = self.is_excluded(client) || !self.is_time_for(Quirk::MissingStart, 4);
        let actor = self.actor(client, has_start);
        let (pace, left) = self.intent();
        let start = self.clock.tick(&mut self.random);
        let mut open = OpenTransaction::new(actor, start, pace, left);
        let has_zero = self.is_time_for(Quirk::ZeroXid, 3);
        if has_zero {
            let form = Form { xid: XidForm::Zero, ..Form::default() };
            self.emit(client.thread, &mut open, vec![Content::Start], form);
        }
        if has_start && !(has_zero && self.random.one_in(2)) {
            let form = self.control_form(Quirk::ZeroAddress, 4);
            self.emit(client.thread, &mut open, vec![Content::Start], form);
        }
        open
    }

    /// Without a START row LogMiner knows neither user nor session.
    fn actor(&mut self, client: &Client, has_start: bool) -> Arc<Actor> {
        let key = self.undo.open(client.container, client.thread, &self.settings, &mut self.random);
        let session = client.session.clone();
        Arc::new(Actor {
            key,
            user: has_start.then(|| client.user.clone()),
            session: if has_start { session } else { ClientSession::default() },
            pdb: client.pdb.clone(),
        })
    }

    /// The form of a control row: its address hidden once in so many.
    pub(crate) fn control_form(&mut self, quirk: Quirk, one_in: u64) -> Form {
        Form { hides_address: self.is_time_for(quirk, one_in), ..Form::default() }
    }

    fn intent(&mut self) -> (Pace, u64) {
        match self.random.below(60) {
            0 => (Pace::Bulk, self.settings.large_transaction.div_ceil(ROWS_OF_A_STATEMENT)),
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
                    self.roll_back_to(client, open, savepoint);
                }
            }
            16..=19 => self.violate(client, open),
            _ => self.change(client, open),
        }
    }

    fn change(&mut self, client: &Client, open: &mut OpenTransaction) {
        let Some(table) = self.pick_table(client, open) else { return };
        let rows = self.tables.get(table).map_or(0, |table| table.rows.len());
        let is_crowded = rows > self.settings.rows_per_table;
        if self.is_time_for(Quirk::ArrayDeletes, 6) {
            return self.delete(client, open, table, ROWS_OF_A_STATEMENT);
        }
        match self.random.below(10) {
            _ if open.pace == Pace::Bulk => self.insert(client, open, table, ROWS_OF_A_STATEMENT),
            0..=3 if !is_crowded => self.insert(client, open, table, 1),
            4..=6 if !is_crowded => self.update(client, open, table),
            7 => self.update(client, open, table),
            _ => self.delete(client, open, table, 1),
        }
    }

    /// An insert that fails for its key after it was made (ORA-00001): its redo and undo are written.
    fn violate(&mut self, client: &Client, open: &mut OpenTransaction) {
        let Some(table) = self.pick_table(client, open) else { return };
        let before = open.done.len();
        self.insert(client, open, table, 1);
        self.roll_back_to(client, open, before);
    }

    /// A table of the client's container. One that a DDL waits for is left to those who have it.
    fn pick_table(&mut self, client: &Client, open: &OpenTransaction) -> Option<usize> {
        let is_left = |number| self.awaited != Some(number) || open.touched.contains(&number);
        let here = self.tables.iter().enumerate().filter(|(number, table)| {
            table.container == client.container && !table.is_dropped && is_left(*number)
        });
        let here: Vec<_> = here.map(|(number, _)| number).collect();
        self.random.pick(&here).copied()
    }
}
