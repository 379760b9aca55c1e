//! The task: takes what the engine's thread delivers.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use highwater_connector::{
    ConnectorError, Fact, Position, SourceItem, SourceTask, Start, TaskStore,
};
use tokio::time::timeout;

use crate::OracleError;
use crate::engine::{EngineProgress, Stopped};
use crate::engine_thread::EngineThread;
use crate::sessions::Sessions;
use crate::settings::Settings;

/// Bound of one poll; the contract is 200 ms.
const POLL: Duration = Duration::from_millis(150);

/// A poll waits so long at least where nothing is there, or the worker would ask without a pause.
const SHORTEST_POLL: Duration = Duration::from_millis(10);

/// One running reader of an Oracle database.
pub(crate) struct OracleTask {
    settings: Arc<Settings>,
    sessions: Arc<dyn Sessions>,
    engine: Option<EngineThread>,
}

impl OracleTask {
    pub(crate) fn new(settings: Settings, sessions: Arc<dyn Sessions>) -> Self {
        Self { settings: Arc::new(settings), sessions, engine: None }
    }

    /// Why the engine ended by itself.
    async fn ended(&mut self) -> ConnectorError {
        let why = match self.engine.take() {
            Some(engine) => engine.end().await,
            None => None,
        };
        match why {
            Some(Stopped::Failed(error)) => error.into(),
            Some(Stopped::Closed(_)) | None => {
                OracleError::again("the engine has ended and does not say why").into()
            }
        }
    }

    fn progress(&self) -> Option<EngineProgress> {
        *self.engine.as_ref()?.progress.borrow()
    }
}

#[async_trait]
impl SourceTask for OracleTask {
    async fn start(
        &mut self,
        start: Start,
        store: Arc<dyn TaskStore>,
    ) -> Result<(), ConnectorError> {
        let is_first = start.offset.is_none();
        let (settings, sessions) = (Arc::clone(&self.settings), Arc::clone(&self.sessions));
        let spawned = EngineThread::spawn(settings, sessions, start).map_err(|error| {
            OracleError::again(format!("no thread can be started for the engine: {error}"))
        })?;
        let engine = self.engine.insert(spawned);
        let Some(position) = engine.opened().await else { return Err(self.ended().await) };
        if is_first {
            // A restart before the first record would be a first start again, at a later SCN.
            store.store(&position).await?;
        }
        if let Some(engine) = &mut self.engine {
            engine.go();
        }
        Ok(())
    }

    async fn poll(&mut self) -> Result<Vec<SourceItem>, ConnectorError> {
        let most = self.settings.poll_max_records;
        let Some(engine) = &mut self.engine else {
            tokio::time::sleep(POLL).await;
            return Ok(Vec::new());
        };
        let mut items = Vec::new();
        let linger = self.settings.poll_linger.clamp(SHORTEST_POLL, POLL);
        match timeout(linger, engine.items.recv_many(&mut items, most)).await {
            Ok(0) => Err(self.ended().await),
            Ok(_) => Ok(items),
            // Nothing is lost: what was not received waits on.
            Err(_) => Ok(items),
        }
    }

    /// LogMiner keeps nothing for whoever reads, so the database is told nothing.
    async fn committed(&mut self, _: &dyn Position) -> Result<(), ConnectorError> {
        Ok(())
    }

    async fn stop(&mut self) {
        if let Some(engine) = self.engine.take() {
            engine.end().await;
        }
    }

    fn activity(&self) -> String {
        if self.engine.is_none() {
            return "not reading".to_owned();
        }
        let Some(progress) = self.progress() else { return "reading the first redo".to_owned() };
        let EngineProgress { mined_to, open_transactions, .. } = progress;
        if progress.is_lost {
            return format!(
                "the database cannot be asked; trying again from SCN {mined_to}, with \
                 {open_transactions} open transactions kept"
            );
        }
        format!(
            "redo is read up to SCN {mined_to}; {open_transactions} transactions with captured changes \
             are open"
        )
    }

    fn facts(&self) -> Vec<Fact> {
        let Some(progress) = self.progress() else { return Vec::new() };
        vec![
            ("mined_to_scn", progress.mined_to.to_string()),
            ("resume_scn", progress.resume.to_string()),
            ("open_transactions", progress.open_transactions.to_string()),
            ("buffered_bytes", progress.buffered_bytes.to_string()),
            ("spilled_bytes", progress.spilled_bytes.to_string()),
        ]
    }
}
