//! The streams service: what the binary starts, mounts and stops.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Router;
use highwater_connector::Finding;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::checkup;
use crate::config::StreamsConfig;
use crate::error::StreamsError;
use crate::kafka_log::KafkaLog;
use crate::registry::Registry;
use crate::rest;
use crate::state;
use crate::tables::Tables;
use crate::trail::Log;

/// Connections that may read back over a trail at a time; others wait their turn.
const SCANS: usize = 4;

/// All data streams of a server. Cheap to clone; clones are the same service.
#[derive(Clone)]
pub struct Streams {
    service: Arc<Service>,
}

/// What the handlers share.
pub(crate) struct Service {
    pub(crate) config: StreamsConfig,
    pub(crate) log: Arc<dyn Log>,
    pub(crate) registry: Arc<Registry>,
    /// Changes of resources happen one after the other.
    pub(crate) changing: tokio::sync::Mutex<()>,
    /// Places for those who read back over a trail.
    pub(crate) scans: Semaphore,
    tables: Mutex<HashMap<String, (Uuid, Arc<Tables>)>>,
}

impl std::fmt::Debug for Streams {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams").field("config", &self.service.config).finish_non_exhaustive()
    }
}

impl Streams {
    /// Starts the service over the log that `config` names, with the streams that the state topic
    /// holds.
    ///
    /// # Errors
    /// When the state topic cannot be made or read, or holds a stream that this release cannot
    /// read.
    pub async fn start(config: StreamsConfig) -> Result<Self, StreamsError> {
        let log = Arc::new(KafkaLog::new(&config.bootstrap));
        Self::start_over(log, config).await
    }

    pub(crate) async fn start_over(
        log: Arc<dyn Log>,
        config: StreamsConfig,
    ) -> Result<Self, StreamsError> {
        let streams = state::restore(log.as_ref(), &config.state_topic).await?;
        tracing::info!(streams = streams.len(), topic = config.state_topic, "streams restored");
        let registry = Arc::new(Registry::new(config.limits.clone(), streams));
        let changing = tokio::sync::Mutex::default();
        let tables = Mutex::default();
        let scans = Semaphore::new(SCANS);
        let service = Service { config, log, registry, changing, scans, tables };
        Ok(Self { service: Arc::new(service) })
    }

    /// The routes: `/services/v2/stream…` and `/highwater/v1/streams…`. Who may address them by a
    /// browser (rule A3) is decided in front of them.
    pub fn router(&self) -> Router {
        rest::router(self.service.clone())
    }

    /// What an operator should know of the streams.
    pub async fn examine(&self) -> Vec<Finding> {
        checkup::examine(&self.service).await
    }

    /// Closes every connection with code 1001 and returns when they are closed.
    pub async fn shutdown(&self) {
        self.service.registry.stop().await;
        self.service.log.close().await;
    }
}

impl Service {
    /// The table descriptions of a trail, shared by everyone who reads it. A topic made anew
    /// shares nothing with the one before.
    pub(crate) fn tables(&self, trail: &str, topic_id: Uuid) -> Arc<Tables> {
        let mut tables = self.tables.lock();
        let fresh = || (topic_id, Arc::new(Tables::of_trail(self.log.clone(), trail)));
        let entry = tables.entry(trail.to_owned()).or_insert_with(fresh);
        if entry.0 != topic_id {
            *entry = fresh();
        }
        entry.1.clone()
    }
}
