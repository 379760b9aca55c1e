//! The streams service: what the binary starts, mounts and stops.

use std::sync::Arc;

use axum::Router;
use highwater_connector::Finding;
use tokio::sync::Semaphore;

use crate::checkup;
use crate::config::StreamsConfig;
use crate::error::StreamsError;
use crate::kafka_log::KafkaLog;
use crate::registry::Registry;
use crate::rest;
use crate::state;
use crate::tables::Descriptions;
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
    pub(crate) descriptions: Arc<Descriptions>,
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
    /// When the state topic cannot be made or read. A stream in it that this release cannot read is
    /// refused by name; the others work.
    pub async fn start(config: StreamsConfig) -> Result<Self, StreamsError> {
        let log = Arc::new(KafkaLog::new(&config.bootstrap));
        Self::start_over(log, config).await
    }

    pub(crate) async fn start_over(
        log: Arc<dyn Log>,
        config: StreamsConfig,
    ) -> Result<Self, StreamsError> {
        let restored = state::restore(log.as_ref(), &config.state_topic).await?;
        let streams = restored.streams.len();
        tracing::info!(streams, topic = config.state_topic, "streams restored");
        let registry = Arc::new(Registry::new(config.limits.clone(), restored));
        let changing = tokio::sync::Mutex::default();
        let descriptions = Arc::new(Descriptions::new(log.clone()));
        let scans = Semaphore::new(SCANS);
        let service = Service { config, log, registry, changing, scans, descriptions };
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
