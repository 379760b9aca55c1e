//! The streaming phase: batches of the reader through the decoder and the engine.

use std::time::Duration;

use highwater_connector::{ConnectorError, SourceItem};
use std::sync::Arc;
use tokio::time::{Instant, timeout};

use crate::catalog::Catalog;
use crate::engine::Engine;
use crate::error::connection;
use crate::holding::bytes;
use crate::lsn::Lsn;
use crate::name::{literal, quoted};
use crate::offset::{Reached, State, StoredOffset};
use crate::pgoutput::{Decoder, Message, Relation};
use crate::reader::{Reader, Wal};
use crate::relation::RelationFacts;
use crate::session::Session;
use crate::settings::Settings;
use crate::snapshot::Maker;
use crate::watch::Watch;

/// An idle position is stored at most this often (rule P1).
const IDLE_PAUSE: Duration = Duration::from_secs(1);

/// Bound of a question to the catalog.
const CATALOG_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection that stayed open would keep a smart shutdown of the server waiting.
const CATALOG_IDLE: Duration = Duration::from_secs(2);

/// Room for what a message has beside a record's own bytes: headers, and nulls of key tuples.
const FRAME_SLACK: usize = 64 * 1024;

/// What lies before the stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Behind {
    /// Everything is stored.
    Stored,
    /// Records of a snapshot, which may not be stored yet: nothing is idle before they are.
    SnapshotRecords,
}

/// See the module.
pub(crate) struct Stream {
    settings: Arc<Settings>,
    reader: Reader,
    decoder: Decoder,
    engine: Engine,
    /// With the time of the last question.
    catalog: Option<(Catalog, Instant)>,
    watch: Watch,
    stored: Reached,
    behind: Behind,
    idle_since: Option<Instant>,
    last_change: Option<Instant>,
    /// Raised by the next read.
    failed: Option<ConnectorError>,
}

impl Stream {
    /// Begins to stream over `session` at the offset.
    ///
    /// # Errors
    /// When the server refuses.
    pub(crate) async fn start(
        settings: Arc<Settings>,
        mut session: Session,
        maker: Maker,
        offset: &StoredOffset,
        behind: Behind,
        watch: Watch,
    ) -> Result<Self, ConnectorError> {
        let sql = start_statement(&settings, offset.lsn);
        session.start_replication(&sql, settings.record_limit + FRAME_SLACK).await?;
        let Maker { output, envelope, tables } = maker;
        let filter = settings.filter.clone();
        Ok(Self {
            reader: Reader::spawn(session, offset.lsn, Arc::clone(&settings)),
            decoder: Decoder::default(),
            engine: Engine::new(output, envelope, filter, tables, offset),
            catalog: None,
            watch,
            stored: (offset.lsn, offset.partial),
            behind,
            idle_since: None,
            last_change: None,
            failed: None,
            settings,
        })
    }

    /// The next items, or nothing when none came in time.
    ///
    /// # Errors
    /// When the stream ends or something in it cannot be delivered.
    pub(crate) async fn read(&mut self, wait: Duration) -> Result<Vec<SourceItem>, ConnectorError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if let Some(trouble) = self.watch.trouble() {
            return Err(trouble);
        }
        self.catalog.take_if(|(_, asked)| asked.elapsed() > CATALOG_IDLE);
        let deadline = Instant::now() + wait;
        let mut items = Vec::new();
        let mut batch = self.reader.next(wait).await?;
        loop {
            if let Err(error) = self.take_all(batch, &mut items).await {
                // What came before is delivered before the error is.
                self.engine.give_up(&mut items);
                if items.is_empty() {
                    return Err(error);
                }
                self.failed = Some(error);
            }
            // Batches without changes of ours are frequent, and cheap.
            let enough = !items.is_empty() || Instant::now() >= deadline;
            match if enough { None } else { self.reader.waiting()? } {
                Some(next) => batch = next,
                None => break,
            }
        }
        if items.is_empty() {
            items.extend(self.idle());
        } else {
            self.last_change = Some(Instant::now());
        }
        Ok(items)
    }

    /// A position is stored: the server may be told.
    pub(crate) fn committed(&mut self, stored: &StoredOffset) {
        self.stored = self.stored.max((stored.lsn, stored.partial));
        if stored.state == State::Streaming {
            self.behind = Behind::Stored;
        }
        self.reader.acknowledge(self.stored.0);
    }

    /// Ends it in order.
    pub(crate) async fn stop(self) {
        self.reader.stop().await;
    }

    /// What it is doing, in one sentence.
    pub(crate) fn activity(&self) -> String {
        let slot = &self.settings.slot;
        let (read, stored) = (self.engine.floor(), self.stored.0);
        let state = match (self.engine.in_transaction(), self.last_change) {
            (true, _) => "in the middle of a transaction".to_owned(),
            (false, None) => "no change has come since the start".to_owned(),
            (false, Some(last)) => {
                format!("the last change came {} s ago", last.elapsed().as_secs())
            }
        };
        let behind = match self.watch.behind() {
            Some(behind) => format!("; {} behind the end of the server's log", bytes(behind)),
            None => String::new(),
        };
        format!(
            "streaming from slot {slot}: read up to {read}, stored up to {stored}; {state}{behind}"
        )
    }

    /// What is seen of the server meanwhile.
    pub(crate) const fn watch(&self) -> &Watch {
        &self.watch
    }

    async fn take_all(
        &mut self,
        batch: Vec<Wal>,
        items: &mut Vec<SourceItem>,
    ) -> Result<(), ConnectorError> {
        for wal in batch {
            self.take(wal, items).await?;
        }
        Ok(())
    }

    async fn take(&mut self, wal: Wal, items: &mut Vec<SourceItem>) -> Result<(), ConnectorError> {
        match wal {
            Wal::Reached(lsn) => self.engine.reached(lsn),
            Wal::Cut { size, prefix } => self.engine.cut(prefix, size),
            Wal::Data { lsn, payload } => match self.decoder.decode(payload)?.1 {
                Message::Relation(relation) => {
                    let facts = self.facts(&relation).await?;
                    self.engine.relation(relation, facts);
                    Ok(())
                }
                message => self.engine.apply(&message, lsn, items),
            },
        }
    }

    fn idle(&mut self) -> Option<SourceItem> {
        let pause = self.idle_since.is_some_and(|since| since.elapsed() < IDLE_PAUSE);
        if pause || self.behind == Behind::SnapshotRecords {
            return None;
        }
        let position = self.engine.idle(self.stored)?;
        self.idle_since = Some(Instant::now());
        Some(SourceItem::Idle(Arc::new(position)))
    }

    /// Asks the catalog, over a connection that is made when it is needed and made again when it
    /// broke.
    async fn facts(&mut self, relation: &Relation) -> Result<RelationFacts, ConnectorError> {
        let question = async {
            let catalog = match self.catalog.take().filter(|(catalog, _)| catalog.is_open()) {
                Some((catalog, _)) => catalog,
                None => Catalog::connect(&self.settings.login).await?,
            };
            let facts = catalog.facts(relation, self.settings.forms.is_some()).await;
            self.catalog = Some((catalog, Instant::now()));
            facts
        };
        match timeout(CATALOG_TIMEOUT, question).await {
            Ok(facts) => facts,
            Err(_) => Err(connection("the catalog did not answer in time")),
        }
    }
}

fn start_statement(settings: &Settings, lsn: Lsn) -> String {
    format!(
        "START_REPLICATION SLOT {} LOGICAL {lsn} (proto_version '1', publication_names {})",
        quoted(&settings.slot),
        literal(&quoted(&settings.publication))
    )
}
