//! Rollbacks, whole and to a savepoint.

use std::sync::Arc;

use crate::client::{Client, Done, OpenTransaction};
use crate::database::Database;
use crate::record::{Content, Record};

impl Database {
    /// Takes back what the transaction did after its first `kept` changes, the newest first, each by a
    /// redo record of its own.
    pub(crate) fn undo_to(&mut self, client: &Client, open: &mut OpenTransaction, kept: usize) {
        while open.done.len() > kept {
            let Some(done) = open.done.pop() else { break };
            let undo = Arc::new(done.change.undone());
            self.restore(&done);
            self.emit(client.thread, open, vec![Content::Row(undo)]);
        }
    }

    /// The row becomes what it was before the change.
    pub(crate) fn restore(&mut self, done: &Done) {
        let Some(table) = self.tables.get_mut(done.change.table) else { return };
        match &done.before {
            Some(row) => {
                table.rows.insert(done.place, row.clone());
            }
            None => {
                table.rows.remove(&done.place);
                table.free.push(done.place);
            }
        }
    }

    /// Rolls the transaction back.
    pub(crate) fn roll_back(&mut self, client: &Client, mut open: OpenTransaction) {
        self.undo_to(client, &mut open, 0);
        self.flush(client.thread, &mut open);
        let scn = self.clock.tick(&mut self.random);
        let (time_us, actor) = (self.clock.time_us(), Arc::clone(&open.actor));
        self.write(client.thread, Record { scn, time_us, actor, rows: vec![Content::Rollback] });
        self.undo.close(&open.key());
    }
}
