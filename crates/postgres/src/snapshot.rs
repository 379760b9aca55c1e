//! Reads tables in one exported snapshot, in order, each between two marks.
//!
//! A table that is cut off is read again whole in a later snapshot, with a later point of its
//! own; tables that were finished stay finished. The stream then leaves out, table by table, what
//! was committed before the table's point.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt as _;
use highwater_connector::{ConnectorError, ErrorKind, Fact, Hw, Position, SourceItem};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::CopyOutStream;

use crate::catalog::Catalog;
use crate::copy_text::{self, Lines};
use crate::engine::{Output, undeliverable};
use crate::envelope::{Change, Encoded, Envelope, Origin};
use crate::error::{code, from_query};
use crate::lsn::Lsn;
use crate::name::{TableName, literal, quoted};
use crate::offset::{Positions, State, StoredOffset};
use crate::pgoutput::Tuple;
use crate::preflight::Published;
use crate::progress::Progress;
use crate::session::Session;
use crate::shape::Shape;
use crate::table_form::TableFacts;
use crate::tables::{Seen, Tables};
use crate::watch::Watch;

/// How often the progress is logged at most.
const LOG_PAUSE: Duration = Duration::from_secs(10);

/// What records are made with; goes on to the stream.
pub(crate) struct Maker {
    pub(crate) output: Output,
    pub(crate) envelope: Envelope,
    pub(crate) tables: Tables,
}

/// An exported snapshot and the connection that holds it.
pub(crate) struct Exported {
    /// The connection that made it; the server forgets it at its next command.
    pub(crate) holder: Session,
    /// Its name.
    pub(crate) name: String,
    /// The slot that exports it, where it is there for this alone: it lives as long as its connection.
    pub(crate) temporary: Option<String>,
    /// Transactions whose commit record starts below it are visible, and no others.
    pub(crate) point: Lsn,
}

/// See the module.
pub(crate) struct Snapshot {
    maker: Maker,
    catalog: Catalog,
    holder: Session,
    temporary: Option<String>,
    point: Lsn,
    /// The point as position text.
    position_text: String,
    time_us: i64,
    /// Records so far, over all tables of this snapshot.
    index: u64,
    offset: StoredOffset,
    position: Arc<dyn Position>,
    waiting: VecDeque<Published>,
    reading: Option<Reading>,
    watch: Watch,
    /// About how many rows each table has, by its OID, where statistics say so.
    estimates: HashMap<u32, u64>,
    begun: Instant,
    /// Rows so far, over all tables of this snapshot.
    read: u64,
    logged: Instant,
}

struct Reading {
    table: Published,
    shape: Shape,
    rows: Pin<Box<CopyOutStream>>,
    lines: Lines,
    count: u64,
    /// How long rows were waited for since the last ones came. Time in which the task was not asked
    /// for rows is none of the server's.
    waited: Duration,
}

impl Snapshot {
    /// Opens the snapshot and plans to read what `offset` has not finished.
    ///
    /// # Errors
    /// When the server refuses.
    pub(crate) async fn open(
        exported: Exported,
        catalog: Catalog,
        maker: Maker,
        mut offset: StoredOffset,
        published: &[Published],
        watch: Watch,
    ) -> Result<Self, ConnectorError> {
        let Exported { holder, name, temporary, point } = exported;
        let begin = format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET TRANSACTION SNAPSHOT {}",
            literal(&name)
        );
        catalog.statement("opening the snapshot", &begin).await?;
        let clock = "SELECT (extract(epoch FROM now()) * 1e6)::int8";
        let time_us = catalog.one("reading the clock", clock, &[]).await?.get(0);
        let mut waiting = VecDeque::new();
        for progress in offset.snapshot.iter_mut().filter(|progress| !progress.done) {
            match published.iter().find(|table| table.name == progress.table) {
                Some(table) => waiting.push_back(table.clone()),
                // Dropped, or taken out of the publication, since.
                None => {
                    progress.done = true;
                    progress.point = Some(point);
                }
            }
        }
        let mut snapshot = Self {
            maker,
            holder,
            temporary,
            point,
            position_text: point.sortable(),
            time_us,
            index: 0,
            position: Arc::new(Positions::new(&offset).whole(&offset)),
            offset,
            estimates: catalog
                .row_estimates(waiting.iter().map(|table| table.oid).collect())
                .await?,
            catalog,
            waiting,
            reading: None,
            watch,
            begun: Instant::now(),
            read: 0,
            logged: Instant::now(),
        };
        snapshot.settle();
        Ok(snapshot)
    }

    /// Whether everything is read.
    pub(crate) fn is_finished(&self) -> bool {
        self.reading.is_none() && self.waiting.is_empty()
    }

    /// Whether it has given no record.
    pub(crate) const fn is_silent(&self) -> bool {
        self.index == 0
    }

    /// Ends it, and gives what the stream goes on with.
    ///
    /// # Errors
    /// When the server fails.
    pub(crate) async fn finish(
        mut self,
    ) -> Result<(Maker, Session, StoredOffset, Watch), ConnectorError> {
        if let Some(slot) = &self.temporary {
            // The stream keeps the connection, and with it the slot would go on holding WAL.
            self.holder.query(&format!("DROP_REPLICATION_SLOT {}", quoted(slot))).await?;
        }
        Ok((self.maker, self.holder, self.offset, self.watch))
    }

    /// What is seen of the server meanwhile.
    pub(crate) const fn watch(&self) -> &Watch {
        &self.watch
    }

    /// Up to `most` rows, or as many as come until `deadline`.
    ///
    /// # Errors
    /// When the server fails or a row cannot be delivered.
    pub(crate) async fn read(
        &mut self,
        most: usize,
        deadline: Instant,
    ) -> Result<Vec<SourceItem>, ConnectorError> {
        let mut items = Vec::new();
        while items.len() < most && !self.is_finished() {
            if let Some(mut reading) = self.reading.take() {
                let asked = Instant::now();
                match timeout_at(deadline, reading.rows.next()).await {
                    Err(_) => {
                        reading.waited += asked.elapsed();
                        self.catalog.check_silence(reading.waited)?;
                        self.reading = Some(reading);
                        break;
                    }
                    Ok(Some(chunk)) => {
                        reading.waited = Duration::ZERO;
                        let chunk = chunk.map_err(|error| from_query("reading a table", &error))?;
                        self.rows(&mut reading, chunk, &mut items)?;
                        self.reading = Some(reading);
                    }
                    Ok(None) => self.end(&reading, &mut items)?,
                }
            } else if let Some(table) = self.waiting.pop_front() {
                self.reading = Some(self.begin(table, &mut items).await?);
            }
        }
        if self.logged.elapsed() >= LOG_PAUSE {
            self.logged = Instant::now();
            tracing::info!("{}", self.activity());
        }
        Ok(items)
    }

    /// What it is doing, in one sentence.
    pub(crate) fn activity(&self) -> String {
        let (done, tables) = self.done();
        self.progress().map_or_else(
            || format!("snapshot: {done} of {tables} tables are read"),
            |progress| progress.says(),
        )
    }

    /// The numbers of that sentence.
    pub(crate) fn facts(&self) -> Vec<Fact> {
        self.progress().map(|progress| progress.facts()).unwrap_or_default()
    }

    fn done(&self) -> (usize, usize) {
        let tables = &self.offset.snapshot;
        (tables.iter().filter(|table| table.done).count(), tables.len())
    }

    fn progress(&self) -> Option<Progress> {
        let Reading { table, count, .. } = self.reading.as_ref()?;
        let (done, tables) = self.done();
        let estimate = |table: &Published| self.estimates.get(&table.oid).copied();
        Some(Progress {
            table: table.name.to_string(),
            number: (done + 1).min(tables),
            tables,
            rows: *count,
            estimate: estimate(table).unwrap_or(0),
            waiting: self.waiting.iter().map(estimate).sum(),
            read: self.read,
            elapsed: self.begun.elapsed(),
        })
    }

    async fn begin(
        &mut self,
        table: Published,
        items: &mut Vec<SourceItem>,
    ) -> Result<Reading, ConnectorError> {
        self.lock(&table).await?;
        let columns = self.catalog.columns(&table).await?;
        let sql = copy_statement(&table, columns.iter().map(|column| column.name.as_str()));
        let facts = match self.maker.output.forms {
            Some(_) => self.catalog.table_facts(table.oid).await?,
            None => TableFacts::default(),
        };
        let mut seen = Seen { columns, keys_certain: true, nulls_certain: true };
        self.maker.output.retype(&mut seen, &facts);
        let name = table.name.to_string();
        let resolved = self.maker.tables.resolve(&name, seen, (&self.position_text, 0));
        if resolved.fresh {
            let position = Arc::clone(&self.position);
            let record = self.maker.output.description(&resolved.description, position);
            items.push(SourceItem::Record(record));
        }
        let name = table.name.clone();
        let shape = self.maker.output.shape(name, &resolved.description, None, &facts)?;
        self.mark(&shape, Change::SnapshotBegin(self.point), items)?;
        let rows = Box::pin(self.catalog.copy(&sql).await?);
        Ok(Reading {
            table,
            shape,
            rows,
            lines: Lines::default(),
            count: 0,
            waited: Duration::ZERO,
        })
    }

    /// Keeps the table as it is until the snapshot ends, and makes sure that it is still the one
    /// of the snapshot: to an older snapshot a table that was rewritten or emptied since looks
    /// empty (manual, "Caveats" of concurrency control).
    async fn lock(&self, table: &Published) -> Result<(), ConnectorError> {
        let only = if table.partitioned { "" } else { "ONLY " };
        let lock = format!("LOCK TABLE {only}{} IN ACCESS SHARE MODE", table.name.sql());
        self.catalog.statement(&lock, &lock).await?;
        let sql = "SELECT coalesce(bool_and(c.relfilenode = pg_relation_filenode(c.oid)), true)
                   FROM pg_class c
                   WHERE c.relkind = 'r'
                   AND (c.oid = $1 OR c.oid IN (SELECT relid FROM pg_partition_tree($1::oid::regclass)))";
        let row = self.catalog.one("looking at the table's file", sql, &[&table.oid]).await?;
        if !row.get::<_, bool>(0) {
            return Err(ConnectorError::again(
                code::REWRITTEN,
                ErrorKind::Source,
                format!("{} was rewritten or emptied since the snapshot began", table.name),
            ));
        }
        Ok(())
    }

    fn rows(
        &mut self,
        reading: &mut Reading,
        chunk: Bytes,
        items: &mut Vec<SourceItem>,
    ) -> Result<(), ConnectorError> {
        for line in reading.lines.feed(chunk) {
            let row = copy_text::row(&line, reading.shape.columns.len());
            let row = row.map_err(|error| {
                undeliverable(&reading.table.name, &self.origin(), &error.to_string())
            })?;
            self.row(&reading.shape, &row, items)?;
            reading.count += 1;
            self.read += 1;
        }
        Ok(())
    }

    fn row(
        &mut self,
        shape: &Shape,
        row: &Tuple,
        items: &mut Vec<SourceItem>,
    ) -> Result<(), ConnectorError> {
        let origin = self.origin();
        let encoded = self
            .maker
            .envelope
            .row(shape, Change::Read { new: row }, &origin)
            .map_err(|error| undeliverable(&shape.name, &origin, &error.to_string()))?;
        self.push(shape, encoded, items)
    }

    /// Finishes a table: the mark's position says so.
    fn end(
        &mut self,
        reading: &Reading,
        items: &mut Vec<SourceItem>,
    ) -> Result<(), ConnectorError> {
        let name = &reading.table.name;
        let point = self.left_out_below();
        if let Some(table) = self.offset.snapshot.iter_mut().find(|table| table.table == *name) {
            table.done = true;
            table.point = Some(point);
        }
        self.settle();
        self.mark(&reading.shape, Change::SnapshotEnd(self.point), items)
    }

    /// Below which a table's changes are left out of the stream, as part of its snapshot.
    ///
    /// On a trail SNAPSHOT_BEGIN voids what a cut-off snapshot delivered. The topic of a table has
    /// no such mark, and a row that was read, then deleted, then left out of the next snapshot
    /// would stay there for ever. So nothing that the slot gives is left out, and a reader that
    /// keeps rows by their keys comes out right.
    fn left_out_below(&self) -> Lsn {
        if self.maker.output.names.per_table() { self.offset.lsn } else { self.point }
    }

    /// Makes the position that holds now.
    fn settle(&mut self) {
        if self.offset.snapshot.iter().all(|table| table.done) {
            self.offset.state = State::Streaming;
        }
        self.position = Arc::new(Positions::new(&self.offset).whole(&self.offset));
    }

    /// The position behind everything that was read.
    pub(crate) fn position(&self) -> Arc<dyn Position> {
        Arc::clone(&self.position)
    }

    /// A mark of the trail. Readers of a table's topic know none; the position stands alone there.
    fn mark(
        &mut self,
        shape: &Shape,
        change: Change<'_>,
        items: &mut Vec<SourceItem>,
    ) -> Result<(), ConnectorError> {
        if self.maker.output.names.per_table() {
            if matches!(change, Change::SnapshotEnd(_)) {
                items.push(SourceItem::Idle(self.position()));
            }
            return Ok(());
        }
        let origin = self.origin();
        let value = self.maker.envelope.mark(shape, change, &origin);
        self.push(shape, Encoded::bare(value), items)
    }

    fn push(
        &mut self,
        shape: &Shape,
        encoded: Encoded,
        items: &mut Vec<SourceItem>,
    ) -> Result<(), ConnectorError> {
        let hw = Hw {
            generation: self.maker.output.generation,
            lane: None,
            position: self.position_text.clone(),
            index: self.index,
            part: 0,
            commit_time_us: Some(self.time_us),
            table_version: Some(shape.version),
            xid: None,
            count: None,
        };
        self.index += 1;
        let position = Arc::clone(&self.position);
        // A task may stop behind any row: the table is read again whole.
        let record = self.maker.output.event(shape, encoded, hw, position, true)?;
        items.push(SourceItem::Record(record));
        Ok(())
    }

    const fn origin(&self) -> Origin {
        Origin {
            time_us: self.time_us,
            xid: None,
            lsn: self.point,
            sequence: (self.point, self.point),
            snapshot: true,
        }
    }
}

/// Reads what the stream would show of a table: its published columns, and no rows of tables that inherit from it.
fn copy_statement<'a>(table: &Published, columns: impl Iterator<Item = &'a str>) -> String {
    let columns: Vec<String> = columns.map(quoted).collect();
    let only = if table.partitioned { "" } else { "ONLY " };
    format!("COPY (SELECT {} FROM {only}{}) TO STDOUT", columns.join(", "), table.name.sql())
}

/// Tables of a publication that are captured, in the order in which they are read.
pub(crate) fn progress_of(tables: &[TableName]) -> Vec<crate::offset::TableProgress> {
    let fresh = |table: &TableName| crate::offset::TableProgress {
        table: table.clone(),
        point: None,
        done: false,
    };
    tables.iter().map(fresh).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_as_it_is_published() {
        let mut table = Published {
            oid: 1,
            name: TableName::new("s", "t\""),
            columns: None,
            filter: None,
            partitioned: false,
            rows: Vec::new(),
        };
        assert_eq!(
            copy_statement(&table, ["a", "b\""].into_iter()),
            "COPY (SELECT \"a\", \"b\"\"\" FROM ONLY \"s\".\"t\"\"\") TO STDOUT"
        );
        table.partitioned = true;
        assert_eq!(
            copy_statement(&table, std::iter::empty()),
            "COPY (SELECT  FROM \"s\".\"t\"\"\") TO STDOUT"
        );
    }
}
