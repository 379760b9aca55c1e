//! One connection: reads the trail, sends what is new, ends with a reason.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::WebSocket;
use highwater_connector::TableKey;
use highwater_kafka::ReadRecord;
use tokio::sync::watch;

use crate::batch::Batch;
use crate::closing::Ending;
use crate::config::Limits;
use crate::cursor::{Cursor, Interruption};
use crate::feed::{Feed, Outcome, View};
use crate::gap::Gap;
use crate::opening::Start;
use crate::peer::{self, Liveness, Peer};
use crate::qos::OnGone;
use crate::registry::{Admission, Standing};
use crate::tables::Tables;
use crate::trail::Log;

/// Everything that a connection needs once it is accepted.
pub(crate) struct Session {
    pub(crate) log: Arc<dyn Log>,
    pub(crate) tables: Arc<Tables>,
    pub(crate) limits: Limits,
    pub(crate) admission: Admission,
    pub(crate) view: View,
    pub(crate) start: Start,
    pub(crate) on_gone: OnGone,
}

impl Session {
    /// Serves the connection until it ends.
    pub(crate) async fn run(self, socket: WebSocket) {
        let (peer, mut inbox) = peer::split(socket);
        let stream = &self.admission.stream;
        let mut standing = stream.standing();
        let silence = Duration::from_secs(stream.resource.tcp_keep_alive_timeout);
        let ping_every = self.limits.ping_every.min(silence / 3);
        let ending = tokio::select! {
            biased;
            ending = told(&mut standing, &stream.name) => ending,
            ending = inbox.listen(&peer, Liveness { ping_every, silence }) => ending,
            ending = Pump::new(&self, &peer).run() => ending,
        };
        self.note(&ending);
        if let Ending::Closed { close, code, .. } = &ending {
            let mut last = Batch::default();
            ending.record(&self.view.encoding).iter().for_each(|record| last.add(record));
            let text = last.take().map(|message| message.text);
            inbox.finish(&peer, text, *close, code, self.limits.close_wait).await;
        }
    }

    fn note(&self, ending: &Ending) {
        let (code, what) = match ending {
            Ending::Left => ("client_left", "the client closed the connection"),
            Ending::Closed { code, what, .. } => (*code, what.as_str()),
        };
        let stream = &self.admission.stream.name;
        tracing::info!(stream, session = self.admission.status.id, code, what, "connection ends");
        metrics::counter!("highwater_stream_closes_total", "stream" => stream.clone(), "code" => code)
            .increment(1);
    }
}

/// Waits until the stream tells its connections to end.
async fn told(standing: &mut watch::Receiver<Standing>, stream: &str) -> Ending {
    match standing.wait_for(|standing| *standing != Standing::Open).await.as_deref() {
        Ok(Standing::Stopping) | Err(_) => Ending::shutdown(),
        Ok(Standing::Deleted) => Ending::deleted(stream),
        Ok(Standing::Open | Standing::Reconfigured) => Ending::reconfigured(stream),
    }
}

/// Moves records from the trail to the client. What it holds is bounded: the records of one fetch
/// and one message.
struct Pump<'a> {
    session: &'a Session,
    peer: &'a Peer,
    feed: Feed,
    batch: Batch,
}

impl<'a> Pump<'a> {
    fn new(session: &'a Session, peer: &'a Peer) -> Self {
        let qos = session.admission.status.quality_of_service;
        let feed = Feed::new(session.view.clone(), qos, session.start.marks.clone());
        Self { session, peer, feed, batch: Batch::default() }
    }

    async fn run(mut self) -> Ending {
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
            match cursor.read().await {
                Ok(records) => self.send(&records).await?,
                Err(interruption) => self.interrupted(&mut cursor, interruption)?,
            }
            admission.status.progress.lock().next = cursor.next();
            // Everything that one fetch brought goes out at once: what comes meanwhile shares the
            // next message, so that messages grow with the load and nothing waits for more.
            self.flush().await?;
        }
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
            match outcome.map_err(|error| Ending::undecodable(&self.session.view.topic, &error))? {
                Outcome::Sent => return Ok(()),
                Outcome::Suppressed => {
                    self.session.admission.status.progress.lock().suppressed += 1;
                    self.count("highwater_stream_suppressed_total", 1);
                    return Ok(());
                }
                Outcome::NeedsTable(key) => self.describe(&key).await?,
            }
        }
    }

    async fn describe(&mut self, key: &TableKey) -> Result<(), Ending> {
        let Session { tables, limits, .. } = self.session;
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
        self.peer.send(message.text).await?;
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
    fn interrupted(
        &mut self,
        cursor: &mut Cursor,
        interruption: Interruption,
    ) -> Result<(), Ending> {
        match (interruption, self.session.on_gone) {
            (Interruption::Purged { log_start }, OnGone::Next | OnGone::Earliest) => {
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
            Interruption::HistoryChanged => Ending::history_changed(&self.session.view.topic),
            Interruption::Unavailable(error) => Ending::unavailable(&error),
        }
    }

    fn count(&self, name: &'static str, number: u64) {
        let stream = self.session.admission.stream.name.clone();
        metrics::counter!(name, "stream" => stream).increment(number);
    }
}
