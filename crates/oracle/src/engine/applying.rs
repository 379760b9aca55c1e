//! A row of a staged step, applied at its place in the redo.

use std::sync::Arc;
use std::time::Instant;

use super::house::now_ms;
use super::{Engine, Stopped};
use crate::delivery::{DeadLetter, OnDecodeError, OpsEvent, OpsKind};
use crate::mining::StagedRow;
use crate::outlet::Outlet;
use crate::transaction::entry::Start;
use crate::transaction::undo::Undo;
use crate::{Change, Code, Image, Operation, OracleError, RedoRow, TableName, Verb};

impl<O: Outlet> Engine<O> {
    pub(super) fn row(&mut self, row: StagedRow) -> Result<(), Stopped> {
        let row = match row {
            StagedRow::Whole(row) => row,
            StagedRow::PartialRollback(row) => return self.partial_rollback(&row),
        };
        self.progress.applied(&row.at);
        match row.operation {
            Operation::Start => self.start(&row),
            Operation::Insert => return self.change(row, Verb::Insert),
            Operation::Delete => return self.change(row, Verb::Delete),
            Operation::Update => return self.change(row, Verb::Update),
            Operation::LobLocator
            | Operation::LobWrite
            | Operation::LobTrim
            | Operation::LobErase => return self.large_object(row),
            Operation::Commit => return self.commit(&row),
            Operation::Rollback => self.rollback(&row),
            Operation::Ddl => return self.ddl(&row),
            Operation::Unsupported => return self.unsupported(&row),
            // The miner has stopped at one.
            Operation::MissingScn | Operation::Other(_) => {}
        }
        Ok(())
    }

    fn start(&mut self, row: &RedoRow) {
        let start = Start { at: row.at, user: row.user.clone(), session: row.session.clone() };
        self.buffer.start(row.transaction, start);
    }

    fn change(&mut self, row: RedoRow, verb: Verb) -> Result<(), Stopped> {
        let Some(table) = self.miner.objects().table_of(&row) else { return Ok(()) };
        if row.is_undo {
            return self.undo(row, verb, table);
        }
        let key = row.transaction;
        let change = self.changed(row, verb, table, Image::Statement)?;
        if self.has_large_objects(&change) {
            return self.row_piece(key, change);
        }
        self.close_large_objects(key)?;
        Ok(self.buffer.add(key, change, Instant::now())?)
    }

    /// The change that a row is, under the version of its table that holds here.
    pub(super) fn changed(
        &self,
        row: RedoRow,
        verb: Verb,
        table: Arc<TableName>,
        image: Image,
    ) -> Result<Change, OracleError> {
        // A row of an object that the dictionary does not know has a DDL behind it, too.
        let is_lagging = self.lagging.contains(&*table) || !self.miner.objects().holds(row.object);
        let current = self.layouts.current(&table).filter(|_| !is_lagging);
        let version = match current {
            Some(version) => version,
            None => self.layouts.at(&table, row.at.scn)?,
        };
        Ok(Change {
            at: row.at,
            verb,
            table_version: version.number,
            table,
            row_id: row.row_id.into(),
            image,
            sql: row.sql_redo.unwrap_or_default().into(),
            lobs: Vec::new(),
        })
    }

    fn undo(&mut self, row: RedoRow, verb: Verb, table: Arc<TableName>) -> Result<(), Stopped> {
        self.close_large_objects(row.transaction)?;
        let undo = Undo { at: row.at, verb, table, row_id: row.row_id.into() };
        Ok(self.buffer.undo(row.transaction, &undo)?)
    }

    fn rollback(&mut self, row: &RedoRow) {
        if !self.is_of_earlier(row) {
            self.lobs.forget(row.transaction);
            self.buffer.rollback(row.transaction);
        }
    }

    /// Whether an end is that of an earlier transaction of the same key. Rows without an address are
    /// read again with each step of their log, and keys are used again.
    pub(super) fn is_of_earlier(&self, end: &RedoRow) -> bool {
        let key = end.transaction;
        let buffered = self.buffer.get(key).map(|entry| entry.first().scn);
        let held = self.lobs.open().find(|(open, _)| *open == key).map(|(_, at)| at.scn);
        let began = buffered.into_iter().chain(held).min();
        end.at.address.is_none() && began.is_some_and(|began| began > end.at.scn)
    }

    fn partial_rollback(&mut self, row: &RedoRow) -> Result<(), Stopped> {
        self.close_large_objects(row.transaction)?;
        self.buffer.partial_rollback(row.transaction)?;
        Ok(())
    }

    fn unsupported(&mut self, row: &RedoRow) -> Result<(), Stopped> {
        let Some(table) = self.miner.objects().table_of(row) else { return Ok(()) };
        if self.settings.output.on_decode_error == OnDecodeError::Fail {
            return Err(unsupported(row, &table).into());
        }
        let version = self.layouts.current(&table);
        // Of a table without a layout, columns may be left out.
        let has_excluded = version.is_none_or(|version| self.layouts.has_excluded(version));
        let open = self.open_work();
        let position = self.progress.safe(&open, self.miner.cursor());
        let letter = DeadLetter::unsupported(row, &table, has_excluded);
        self.records.push(self.delivery.dead_letter(&letter, position, now_ms()));
        let details = vec![("table", table.to_string()), ("scn", row.at.scn.to_string())];
        self.say(&OpsEvent::new(OpsKind::UnsupportedRow, details));
        Ok(())
    }
}

fn unsupported(row: &RedoRow, table: &TableName) -> OracleError {
    let info = row.info.as_deref().unwrap_or("no reason is given");
    OracleError::new(
        Code::Decode,
        format!(
            "LogMiner cannot give a row of {table} at SCN {} as a statement: {info}",
            row.at.scn
        ),
        format!(
            "leave {table} out with cdc.tables.exclude, or set cdc.on.decode.error=dlq; a table with a \
             column of a type that LogMiner does not know cannot be captured"
        ),
    )
}
