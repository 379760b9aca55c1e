//! From the trail to the client: reads, has the feed decide, joins records into messages.
//!
//! A message goes out when nothing more is at hand, when it is full, or when its first record has
//! waited for the linger (rule S4). So a single record is sent at once, messages grow with the load,
//! and no record waits long for others.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use highwater_kafka::ReadRecord;
use tokio::time::{Instant, sleep_until};

use crate::batch::Batch;
use crate::change::Undecodable;
use crate::closing::Ending;
use crate::config::Limits;
use crate::cursor::{Cursor, Interruption};
use crate::feed::{Feed, Needed, Outcome};
use crate::gap::Gap;
use crate::qos::OnGone;
use crate::session::Session;
use crate::tables::Tables;

/// Where messages go.
pub(crate) trait Outlet {
    /// Sends one message; returns when it was taken.
    fn send(&self, text: Bytes) -> impl Future<Output = Result<(), Ending>> + Send;
}

/// Moves records from the trail to the client. What it holds is bounded: the records of one fetch
/// and one message.
pub(crate) struct Pump<'a, O> {
    session: &'a Session,
    outlet: &'a O,
    feed: Feed,
    batch: Batch,
    /// The descriptions used last, by the server's name.
    tables: Option<(String, Arc<Tables>)>,
}

impl<'a, O: Outlet> Pump<'a, O> {
    pub(crate) fn new(session: &'a Session, outlet: &'a O) -> Self {
        let qos = session.admission.status.quality_of_service;
        let feed = Feed::new(session.view.clone(), qos, session.start.marks.clone());
        Self { session, outlet, feed, batch: Batch::default(), tables: None }
    }

    pub(crate) async fn run(mut self) -> Ending {
        let Err(ending) = self.pump().await;
        ending
    }

    async fn pump(&mut self) -> Result<Infallible, Ending> {
        let Session { log, view, limits, start, admission, .. } = self.session;
        let buffer = u32::try_from(admission.stream.resource.buffer_size).unwrap_or(u32::MAX);
        let limits = Limits { fetch_bytes: limits.fetch_bytes.min(buffer), ..limits.clone() };
        let cursor = Cursor::new(log.clone(), view, limits, start.begin.offset, start.last).await;
        let mut cursor = cursor.map_err(|interruption| self.ending(0, interruption))?;
        *admission.status.edges.lock() = Some(cursor.edges());
        admission.status.progress.lock().next = cursor.next();
        self.feed.preamble(&start.begin, &mut self.batch);
        if let Some(gap) = start.gap {
            self.batch.add(&gap.record(self.feed.encoding()));
        }
        self.flush().await?;
        loop {
            match self.read(&mut cursor).await? {
                Ok(records) => self.send(&records).await?,
                Err(interruption) => self.interrupted(&mut cursor, interruption).await?,
            }
            admission.status.progress.lock().next = cursor.next();
            if cursor.is_drained() || self.deadline().is_some_and(|over| over <= Instant::now()) {
                self.flush().await?;
            }
        }
    }

    /// When the message that is being filled has to go out; `None` while it is empty.
    fn deadline(&self) -> Option<Instant> {
        Some(self.batch.since()? + self.session.limits.linger)
    }

    /// The next records. A message that waits for them goes out when its time has come.
    async fn read(
        &mut self,
        cursor: &mut Cursor,
    ) -> Result<Result<Vec<ReadRecord>, Interruption>, Ending> {
        let mut reading = pin!(cursor.read());
        if let Some(deadline) = self.deadline() {
            tokio::select! {
                biased;
                read = &mut reading => return Ok(read),
                () = sleep_until(deadline) => self.flush().await?,
            }
        }
        Ok(reading.await)
    }

    async fn send(&mut self, records: &[ReadRecord]) -> Result<(), Ending> {
        for record in records {
            if let Err(ending) = self.take(record).await {
                // What stands before the fault is whole and shall arrive.
                self.flush().await?;
                return Err(ending);
            }
            if self.batch.is_full(self.session.admission.stream.resource.buffer_size) {
                self.flush().await?;
            }
        }
        Ok(())
    }

    async fn take(&mut self, record: &ReadRecord) -> Result<(), Ending> {
        loop {
            let outcome = self.feed.take(record, &mut self.batch);
            match outcome.map_err(|error| self.undecodable(&error))? {
                Outcome::Sent | Outcome::Passed => return Ok(()),
                Outcome::Suppressed => {
                    self.session.admission.status.progress.lock().suppressed += 1;
                    self.count("highwater_stream_suppressed_total", 1);
                    return Ok(());
                }
                Outcome::NeedsTable(needed) => self.describe(&needed).await?,
            }
        }
    }

    /// Sends what is held before something that is no record takes its place.
    async fn let_go(&mut self) -> Result<(), Ending> {
        while let Some(needed) =
            self.feed.let_go(&mut self.batch).map_err(|error| self.undecodable(&error))?
        {
            self.describe(&needed).await?;
        }
        Ok(())
    }

    fn undecodable(&self, error: &Undecodable) -> Ending {
        Ending::undecodable(&self.session.view.source, error)
    }

    async fn tables(&mut self, server: &str) -> Result<Arc<Tables>, Ending> {
        match &self.tables {
            Some((name, tables)) if name == server => Ok(tables.clone()),
            _ => {
                let found = self.session.descriptions.of_server(server).await;
                let found = found.map_err(|error| Ending::unavailable(&error))?;
                self.tables = Some((server.to_owned(), found.clone()));
                Ok(found)
            }
        }
    }

    async fn describe(&mut self, needed: &Needed) -> Result<(), Ending> {
        let Needed { key, server } = needed;
        let tables = self.tables(server).await?;
        let limits = &self.session.limits;
        match tables.get(key, limits.table_wait).await {
            Some(table) => {
                self.feed.describe(&table, &mut self.batch);
                Ok(())
            }
            None => Err(Ending::undescribed(&key.table, key.version, tables.topic())),
        }
    }

    async fn flush(&mut self) -> Result<(), Ending> {
        let Some(message) = self.batch.take() else { return Ok(()) };
        let bytes = message.text.len() as u64;
        self.outlet.send(message.text).await?;
        let mut progress = self.session.admission.status.progress.lock();
        progress.records += message.records;
        progress.bytes += bytes;
        progress.last_sent = message.last.map(|last| last.offset).or(progress.last_sent);
        drop(progress);
        self.count("highwater_stream_records_total", message.records);
        self.count("highwater_stream_bytes_total", bytes);
        Ok(())
    }

    /// Goes on behind a gap where that was asked for; else says why not.
    async fn interrupted(
        &mut self,
        cursor: &mut Cursor,
        interruption: Interruption,
    ) -> Result<(), Ending> {
        match (interruption, self.session.on_gone) {
            (Interruption::Purged { log_start }, OnGone::Next | OnGone::Earliest) => {
                self.let_go().await?;
                let gap = Gap { after: cursor.next() - 1, until: log_start };
                self.batch.add(&gap.record(self.feed.encoding()));
                cursor.skip_to(log_start);
                Ok(())
            }
            (interruption, _) => Err(self.ending(cursor.next(), interruption)),
        }
    }

    fn ending(&self, next: i64, interruption: Interruption) -> Ending {
        match interruption {
            Interruption::Purged { log_start } => Ending::purged(next, log_start),
            Interruption::HistoryChanged => {
                Ending::history_changed(&self.session.view.source.topic)
            }
            Interruption::Unavailable(error) => Ending::unavailable(&error),
        }
    }

    fn count(&self, name: &'static str, number: u64) {
        let stream = self.session.admission.stream.name.clone();
        metrics::counter!(name, "stream" => stream).increment(number);
    }
}
