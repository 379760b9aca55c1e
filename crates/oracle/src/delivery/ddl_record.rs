//! TRUNCATE and other DDL: records of their own, without a row (rule R2).

use std::sync::Arc;

use bytes::Bytes;
use highwater_connector::{Hw, Position, SourceRecord};

use super::envelope::{Op, Origin, TransactionText};
use super::event::Encoded;
use super::output::Delivery;
use super::position_text;
use super::shape::Shape;
use crate::schema::Layouts;
use crate::{OracleError, RedoPoint, TableName, TransactionKey};

/// What a DDL did to a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DdlEffect {
    /// All rows are gone.
    Truncated,
    /// Its definition is another, or it is new or gone.
    Defined,
}

/// A DDL on a captured table.
#[derive(Clone, Copy, Debug)]
pub struct DdlEvent<'a> {
    /// The DDL row.
    pub at: RedoPoint,
    /// Its transaction.
    pub transaction: TransactionKey,
    /// Time of the row, in microseconds since 1970.
    pub time_us: i64,
    /// Who ran it, where the redo says it.
    pub user: Option<&'a str>,
    /// The table.
    pub table: &'a Arc<TableName>,
    /// A version of its layout that is known: that behind the DDL, or before it where the table is gone.
    pub version: u32,
    /// See [`DdlEffect`].
    pub effect: DdlEffect,
    /// The statement.
    pub sql: &'a str,
}

impl Delivery {
    /// Adds the records of a DDL to `out`. The topic of a table bears its TRUNCATE and no other DDL: its
    /// readers expect rows, and the descriptions tell the rest.
    ///
    /// # Errors
    /// When the version of the table is not known, or it has no topic.
    pub fn ddl(
        &mut self,
        ddl: &DdlEvent<'_>,
        layouts: &Layouts,
        position: &Arc<dyn Position>,
        now_ms: i64,
        out: &mut Vec<SourceRecord>,
    ) -> Result<(), OracleError> {
        let op = match ddl.effect {
            DdlEffect::Truncated => Op::Truncate,
            DdlEffect::Defined if self.output.topics.are_per_table() => return Ok(()),
            DdlEffect::Defined => Op::Ddl(ddl.sql),
        };
        let (lane, place) = position_text::place(&ddl.at, &ddl.transaction);
        let version = (ddl.table, ddl.version);
        let shape = self.shape(version, layouts, (&place, 0), || Arc::clone(position), out)?;
        let RedoPoint { scn, thread, address } = ddl.at;
        let transaction =
            TransactionText::new(&ddl.transaction, scn, thread, ddl.time_us, ddl.user);
        let origin = Origin { scn, address, row_id: None, orders: None };
        let value = self.envelope.mark(&shape, op, &transaction, &origin, now_ms);
        let hw = Hw {
            generation: self.output.generation,
            lane,
            position: place,
            index: 0,
            part: 0,
            commit_time_us: Some(ddl.time_us),
            table_version: Some(shape.version),
            xid: Some(ddl.transaction.xid.to_string()),
            count: Some(1),
        };
        out.push(self.mark(&shape, value, hw, position));
        Ok(())
    }

    /// A record without a row, after which a task may stop.
    pub(super) fn mark(
        &self,
        shape: &Shape,
        value: Bytes,
        hw: Hw,
        position: &Arc<dyn Position>,
    ) -> SourceRecord {
        let encoded = Encoded::bare(value);
        let record = self.record(shape, encoded, hw, Vec::new(), Arc::clone(position));
        SourceRecord { boundary: true, ..record }
    }
}
