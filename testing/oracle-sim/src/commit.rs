//! Commits, and the books that are kept of them.

use highwater_oracle::Scn;

use crate::client::{Client, Done, OpenTransaction};
use crate::database::Database;
use crate::quirk::Quirk;
use crate::record::{Content, Form, Record};
use crate::truth::Entry;

impl Database {
    pub(crate) fn commit(&mut self, client: &Client, mut open: OpenTransaction) {
        self.flush(client.thread, &mut open);
        let form = self.control_form(Quirk::ZeroAddress, 8);
        let record = match form.hides_address {
            true => self.stamp_alone(&open, form),
            false => self.stamp(&open.actor, vec![Content::Commit], form),
        };
        let time_us = record.time_us;
        let commit = self.write(client.thread, record);
        self.settle(client, &open, commit.scn);
        let is_captured =
            |done: &Done| self.tables.get(done.change.table).is_some_and(|it| it.is_captured);
        let entry = Entry {
            key: open.key(),
            commit,
            start: open.start,
            time_us,
            user: open.actor.user.clone(),
            changes: open.done.into_iter().filter(is_captured).map(|done| done.change).collect(),
        };
        if let Some(book) = self.books.get_mut(client.thread.0 as usize - 1) {
            book.push(entry);
        }
    }

    /// A COMMIT that only its SCN can place has one that no other row has.
    fn stamp_alone(&mut self, open: &OpenTransaction, form: Form) -> Record {
        let scn = self.clock.advance();
        let record = self.stamp(&open.actor, vec![Content::Commit], form);
        self.clock.advance();
        Record { scn, ..record }
    }

    /// Unlocks what the transaction has changed.
    fn settle(&mut self, client: &Client, open: &OpenTransaction, scn: Scn) {
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
