//! Rollbacks, whole and to a savepoint, and transactions that end without one.

use std::sync::Arc;

use crate::client::{Client, Done, OpenTransaction};
use crate::database::Database;
use crate::quirk::Quirk;
use crate::record::{Content, Form, XidForm};

impl Database {
    /// A rollback to a savepoint, or of one statement.
    pub(crate) fn roll_back_to(
        &mut self,
        client: &Client,
        open: &mut OpenTransaction,
        kept: usize,
    ) {
        if open.done.len() <= kept {
            return;
        }
        let is_partial = self.is_time_for(Quirk::PartialXid, 2);
        let xid = if is_partial { XidForm::PartialOnline } else { XidForm::Whole };
        let form = Form { xid, ..Form::default() };
        self.undo(client, open, kept, form);
        if is_partial {
            self.emit(client.thread, open, vec![Content::SavepointEnd], form);
        }
    }

    /// Rolls the transaction back.
    pub(crate) fn roll_back(&mut self, client: &Client, mut open: OpenTransaction) {
        let is_partial = self.is_time_for(Quirk::PartialXid, 2);
        let xid = if is_partial { XidForm::Partial } else { XidForm::Whole };
        self.undo(client, &mut open, 0, Form { xid, ..Form::default() });
        self.flush(client.thread, &mut open);
        let form = self.control_form(Quirk::ZeroAddress, 2);
        let record = self.stamp(&open.actor, vec![Content::Rollback], Form { xid, ..form });
        self.write(client.thread, record);
        self.undo.close(&open.key());
    }

    /// Takes back what the transaction did after its first `kept` changes, the newest first, each by a
    /// redo record of its own.
    fn undo(&mut self, client: &Client, open: &mut OpenTransaction, kept: usize, form: Form) {
        while open.done.len() > kept {
            let Some(done) = open.done.pop() else { break };
            open.lob_tail = None;
            let undo = Arc::new(done.change.undone());
            self.restore(&done);
            self.emit(client.thread, open, vec![Content::Row(undo)], form);
        }
    }

    /// The row becomes what it was before the change.
    fn restore(&mut self, done: &Done) {
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

    /// A client dies in the middle of its transaction. What it has done is taken back without redo, and
    /// nothing says that the transaction has ended.
    pub(crate) fn kill_a_client(&mut self) {
        let is_open = |client: &&mut Client| client.transaction.is_some();
        let from = self.random.index(self.clients.len());
        let (before, after) = self.clients.split_at_mut(from);
        let Some(client) = after.iter_mut().chain(before).find(is_open) else { return };
        client.session.serial += 1;
        let (thread, transaction) = (client.thread, client.transaction.take());
        let Some(mut open) = transaction else { return };
        self.flush(thread, &mut open);
        while let Some(done) = open.done.pop() {
            self.restore(&done);
        }
        self.undo.abandon(&open.key());
    }
}
