//! Rows of a snapshot, and on a trail the marks around those of a table (rule R2).

use std::sync::Arc;

use highwater_connector::{Hw, Position, SourceRecord};

use super::envelope::{Op, Origin, SnapshotMark, TransactionText};
use super::event::Encoded;
use super::headers;
use super::image::Row;
use super::key::key;
use super::output::Delivery;
use super::shape::Shape;
use crate::schema::Layouts;
use crate::statement::Columns;
use crate::{OracleError, Scn, TableName, Verb};

/// What the records of a table's snapshot have alike.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotTable<'a> {
    /// The table.
    pub table: &'a Arc<TableName>,
    /// Version of its layout.
    pub version: u32,
    /// SCN that it is read at.
    pub point: Scn,
    /// When it is read, in microseconds since 1970.
    pub time_us: i64,
}

/// A row of a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotRow<'a> {
    /// Its columns, each as LogMiner would write it, so that a row reads the same from either.
    pub columns: &'a Columns<'a>,
    /// Its id.
    pub row_id: Option<&'a str>,
    /// Whether it is the first or the last.
    pub mark: SnapshotMark,
}

/// On which side of a table's rows a mark stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SnapshotEdge {
    /// Before them; it voids those of an earlier one.
    Begin,
    /// Behind them.
    End,
}

impl Delivery {
    /// Adds the record of a row of a snapshot to `out`. `index` counts the records of the snapshot.
    ///
    /// # Errors
    /// When a value has no form, or the table no topic.
    pub fn snapshot_row(
        &mut self,
        (table, row): (&SnapshotTable<'_>, &SnapshotRow<'_>),
        index: u64,
        layouts: &Layouts,
        position: &Arc<dyn Position>,
        out: &mut Vec<SourceRecord>,
    ) -> Result<(), OracleError> {
        let shape = self.snapshot_shape(table, index, layouts, position, out)?;
        let none = Columns::new();
        let image = Row { verb: Verb::Insert, before: &none, after: row.columns, lobs: &[] };
        self.images.read(&shape, &image)?;
        let key = key(&mut self.envelope.json, &shape, &image, &self.images.after, row.row_id)?;
        let transaction = TransactionText::snapshot(table.time_us, row.mark);
        let origin = Origin { scn: table.point, address: None, row_id: row.row_id, orders: None };
        let (op, now_ms) = (Op::Read, table.time_us.div_euclid(1_000));
        let written = (op, &image, &self.images);
        let value = self.envelope.row(&shape, written, &transaction, &origin, now_ms)?;
        let headers = headers::snapshot(&mut self.envelope.json, &shape, table.point);
        let hw = self.snapshot_hw(&shape, table, index);
        let encoded = Encoded::new(key, value);
        let record = self.record(&shape, encoded, hw, headers, Arc::clone(position));
        out.push(SourceRecord { boundary: true, ..record });
        Ok(())
    }

    /// Adds the mark before or behind a table's rows to `out`, if they go to a trail.
    ///
    /// # Errors
    /// When the version of the table is not known.
    pub fn snapshot_edge(
        &mut self,
        (table, edge): (&SnapshotTable<'_>, SnapshotEdge),
        index: u64,
        layouts: &Layouts,
        position: &Arc<dyn Position>,
        out: &mut Vec<SourceRecord>,
    ) -> Result<(), OracleError> {
        if self.output.topics.are_per_table() {
            return Ok(());
        }
        let shape = self.snapshot_shape(table, index, layouts, position, out)?;
        let transaction = TransactionText::snapshot(table.time_us, SnapshotMark::True);
        let origin = Origin { scn: table.point, address: None, row_id: None, orders: None };
        let op = match edge {
            SnapshotEdge::Begin => Op::SnapshotBegin(table.point),
            SnapshotEdge::End => Op::SnapshotEnd(table.point),
        };
        let now_ms = table.time_us.div_euclid(1_000);
        let value = self.envelope.mark(&shape, op, &transaction, &origin, now_ms);
        let hw = self.snapshot_hw(&shape, table, index);
        out.push(self.mark(&shape, value, hw, position));
        Ok(())
    }

    fn snapshot_shape(
        &mut self,
        table: &SnapshotTable<'_>,
        index: u64,
        layouts: &Layouts,
        position: &Arc<dyn Position>,
        out: &mut Vec<SourceRecord>,
    ) -> Result<Arc<Shape>, OracleError> {
        let place = place(table.point);
        let version = (table.table, table.version);
        self.shape(version, layouts, (&place, index), || Arc::clone(position), out)
    }

    /// Rows of a snapshot have no order (rule P5).
    fn snapshot_hw(&self, shape: &Shape, table: &SnapshotTable<'_>, index: u64) -> Hw {
        Hw {
            generation: self.output.generation,
            lane: None,
            position: place(table.point),
            index,
            part: 0,
            commit_time_us: Some(table.time_us),
            table_version: Some(shape.version),
            xid: None,
            count: None,
        }
    }
}

/// The position that rows of a snapshot at an SCN bear.
fn place(point: Scn) -> String {
    format!("snapshot.{:016x}", point.0)
}
