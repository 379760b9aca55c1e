//! A DDL at its place in the redo.

use std::sync::Arc;

use super::house::now_ms;
use super::{Engine, Stopped};
use crate::delivery::{DdlEffect, DdlEvent, OpsEvent, OpsKind};
use crate::outlet::Outlet;
use crate::position::CommitPoint;
use crate::schema::{Ddl, DdlClass, Effect, LastDdl, classify};
use crate::{RedoRow, TableLayout, TableName};

impl<O: Outlet> Engine<O> {
    /// Reads the layouts of tables that are captured since the last step.
    pub(super) fn meet_tables(&mut self) -> Result<(), Stopped> {
        for table in self.miner.take_table_changes().added {
            if self.layouts.current(&table).is_none() {
                self.meet(&table)?;
            }
        }
        Ok(())
    }

    pub(super) fn meet(&mut self, table: &TableName) -> Result<(), Stopped> {
        let Some(layout) = self.ask(|session| session.layout(table))? else { return Ok(()) };
        let last_ddl = self.last_ddl(&layout)?;
        self.layouts.begin(layout, last_ddl, self.miner.cursor())?;
        Ok(())
    }

    fn last_ddl(&mut self, layout: &TableLayout) -> Result<LastDdl, Stopped> {
        let with_slack = layout.last_ddl_us.saturating_add(crate::schema::TIME_SLACK_US);
        let scn = self.ask(|session| session.scn_at(with_slack))?;
        Ok(scn.map_or(LastDdl::LongAgo, LastDdl::At))
    }

    pub(super) fn ddl(&mut self, row: &RedoRow) -> Result<(), Stopped> {
        let sql = row.sql_redo.as_deref().unwrap_or_default();
        let class = classify(sql);
        if let DdlClass::Index { .. } = class {
            return self.index_ddl(row, &class, sql);
        }
        let Some(table) = named(row) else { return Ok(()) };
        if !self.settings.tables.captures(&table) {
            return Ok(());
        }
        self.apply_ddl(row, &table, &class, sql)
    }

    /// An index may be the key of tables that the statement does not name.
    fn index_ddl(&mut self, row: &RedoRow, class: &DdlClass, sql: &str) -> Result<(), Stopped> {
        let DdlClass::Index { index, on } = class else { return Ok(()) };
        let own = named(row);
        let on = on.as_ref().zip(own.as_ref()).map(|(on, own)| on.beside(own));
        for table in self.layouts.keyed_by(&index.name, on.as_ref()) {
            self.apply_ddl(row, &table, class, sql)?;
        }
        Ok(())
    }

    fn apply_ddl(
        &mut self,
        row: &RedoRow,
        table: &TableName,
        class: &DdlClass,
        sql: &str,
    ) -> Result<(), Stopped> {
        let layout = match class.reads_layout() {
            true => self.ask(|session| session.layout(table))?,
            false => None,
        };
        let before = self.layouts.current(table).map(|version| version.number);
        let ddl = Ddl { at: row.at, time_us: row.time_us, table, class, sql };
        let effect = self.layouts.apply(&ddl, layout)?;
        self.say_ddl(row, table, sql, &effect);
        let after = self.layouts.current(table).map(|version| version.number);
        if let Some(version) = after.or(before).filter(|_| effect.is_record()) {
            self.publish_ddl(row, table, version, &effect)?;
        }
        if let Effect::Forgotten { renamed_to } = effect {
            self.delivery.forget(table);
            if let Some(to) = renamed_to.filter(|to| self.settings.tables.captures(to)) {
                return self.apply_ddl(row, &to, &DdlClass::Create, sql);
            }
        }
        self.flush_if_full()?;
        Ok(())
    }

    /// A DDL commits by itself: its row is the commit of a transaction of one change.
    fn publish_ddl(
        &mut self,
        row: &RedoRow,
        table: &TableName,
        version: u32,
        effect: &Effect,
    ) -> Result<(), Stopped> {
        let commit = CommitPoint { key: row.transaction, at: row.at };
        let Some((_, positions)) = self.passed(commit, row.at, 1)? else { return Ok(()) };
        let event = DdlEvent {
            at: row.at,
            transaction: row.transaction,
            time_us: row.time_us,
            user: row.user.as_deref(),
            table: &Arc::new(table.clone()),
            version,
            effect: match effect {
                Effect::Truncated => DdlEffect::Truncated,
                _ => DdlEffect::Defined,
            },
            sql: row.sql_redo.as_deref().unwrap_or_default(),
        };
        let position = positions.last();
        Ok(self.delivery.ddl(&event, &self.layouts, &position, now_ms(), &mut self.records)?)
    }

    fn say_ddl(&mut self, row: &RedoRow, table: &TableName, sql: &str, effect: &Effect) {
        let kind = match effect {
            Effect::Next { .. } => OpsKind::DdlApplied,
            _ => OpsKind::DdlSeen,
        };
        let details = vec![
            ("table", table.to_string()),
            ("scn", row.at.scn.to_string()),
            ("sql", sql.to_owned()),
        ];
        self.say(&OpsEvent::new(kind, details));
    }

    /// Tells operators of an event.
    pub(super) fn say(&mut self, event: &OpsEvent) {
        let open = self.open_work();
        let position = self.progress.safe(&open, self.miner.cursor());
        let resume = Some(self.progress.resume_scn());
        self.records.push(self.delivery.ops(event, resume, position, now_ms()));
    }
}

/// The table that a row names.
fn named(row: &RedoRow) -> Option<TableName> {
    Some(TableName { pdb: row.pdb.clone(), owner: row.owner.clone()?, table: row.table.clone()? })
}
