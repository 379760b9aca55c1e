//! The task: opens the source, reads its tables, then its changes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use highwater_connector::{
    ConnectorError, Fact, Hold, Position, SourceItem, SourceTask, Start, TaskStore,
};
use tokio::time::Instant;

use crate::offset::StoredOffset;
use crate::opening::{self, Opened};
use crate::settings::Settings;
use crate::snapshot::Snapshot;
use crate::stream::{Behind, Stream};

/// Bound of one poll; the contract is 200 ms.
const POLL: Duration = Duration::from_millis(150);

enum Phase {
    /// Not started, or stopped, or failed.
    Closed,
    /// Tables are being read.
    Snapshot(Box<Snapshot>),
    /// Changes are being read.
    Streaming(Box<Stream>),
}

/// One running reader of a PostgreSQL database.
pub(crate) struct PostgresTask {
    settings: Arc<Settings>,
    phase: Phase,
}

impl PostgresTask {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { settings: Arc::new(settings), phase: Phase::Closed }
    }

    /// Reads the snapshot on, or goes over to streaming behind it.
    async fn read_tables(
        &mut self,
        mut snapshot: Box<Snapshot>,
    ) -> Result<Vec<SourceItem>, ConnectorError> {
        if !snapshot.is_finished() {
            let items = snapshot.read(self.settings.fetch_size, Instant::now() + POLL).await?;
            self.phase = Phase::Snapshot(snapshot);
            return Ok(items);
        }
        // Its last record bears the position behind it, unless it had none: no tables, or only
        // tables that went away unread.
        let silent = snapshot.is_silent().then(|| SourceItem::Idle(snapshot.position()));
        let behind = if silent.is_some() { Behind::Stored } else { Behind::SnapshotRecords };
        let (maker, session, offset, watch) = snapshot.finish().await?;
        let settings = Arc::clone(&self.settings);
        let stream = Stream::start(settings, session, maker, &offset, behind, watch).await?;
        self.phase = Phase::Streaming(Box::new(stream));
        Ok(silent.into_iter().collect())
    }
}

#[async_trait]
impl SourceTask for PostgresTask {
    async fn start(
        &mut self,
        start: Start,
        store: Arc<dyn TaskStore>,
    ) -> Result<(), ConnectorError> {
        self.phase = match opening::open(&self.settings, start, store.as_ref()).await? {
            Opened::Snapshot(snapshot) => Phase::Snapshot(snapshot),
            Opened::Stream(stream) => Phase::Streaming(stream),
        };
        Ok(())
    }

    async fn poll(&mut self) -> Result<Vec<SourceItem>, ConnectorError> {
        match std::mem::replace(&mut self.phase, Phase::Closed) {
            Phase::Closed => {
                tokio::time::sleep(POLL).await;
                Ok(Vec::new())
            }
            Phase::Snapshot(snapshot) => self.read_tables(snapshot).await,
            Phase::Streaming(mut stream) => {
                let items = stream.read(POLL).await;
                self.phase = Phase::Streaming(stream);
                items
            }
        }
    }

    async fn committed(&mut self, position: &dyn Position) -> Result<(), ConnectorError> {
        // Every position that comes here was made here.
        if let (Phase::Streaming(stream), Ok(stored)) =
            (&mut self.phase, StoredOffset::read(&position.offset()))
        {
            stream.committed(&stored);
        }
        Ok(())
    }

    async fn stop(&mut self) {
        if let Phase::Streaming(stream) = std::mem::replace(&mut self.phase, Phase::Closed) {
            stream.stop().await;
        }
    }

    fn activity(&self) -> String {
        match &self.phase {
            Phase::Closed => "not reading".to_owned(),
            Phase::Snapshot(snapshot) => snapshot.activity(),
            Phase::Streaming(stream) => stream.activity(),
        }
    }

    fn facts(&self) -> Vec<Fact> {
        match &self.phase {
            Phase::Closed => Vec::new(),
            Phase::Snapshot(snapshot) => snapshot.facts(),
            Phase::Streaming(stream) => stream.watch().facts(),
        }
    }

    fn hold(&self) -> Option<Hold> {
        match &self.phase {
            Phase::Closed => None,
            Phase::Snapshot(snapshot) => snapshot.watch().hold(),
            Phase::Streaming(stream) => stream.watch().hold(),
        }
    }
}
