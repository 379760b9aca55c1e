//! The handle that a program holds.

use std::sync::Arc;

use axum::Router;
use highwater_connector::Finding;
use highwater_kafka::{ErrorCode, KafkaError};

use tokio::sync::Mutex;

use crate::WorkerConfig;
use crate::applier::Applier;
use crate::checkup;
use crate::herder::Herder;
use crate::log_checkup;
use crate::plugins::{Plugin, Plugins};
use crate::rest;

/// Why a worker could not start.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The log refused or could not be reached within the start time-out.
    #[error("the worker cannot use the log at {bootstrap}: {source}")]
    Log {
        /// Address list that was tried.
        bootstrap: String,
        /// What the log said last.
        source: KafkaError,
    },
    /// The group of workers has members of another kind, such as Kafka Connect's own workers.
    #[error("the group of workers {group} is in use by others than Highwater's workers: {source}")]
    GroupTaken {
        /// Name of the group.
        group: String,
        /// What the log said.
        source: KafkaError,
    },
}

/// A running worker. Cheap to clone; clones are the same worker.
#[derive(Clone)]
pub struct Worker {
    herder: Arc<Herder>,
    /// Follows the folder of connector files.
    applier: Arc<Mutex<Option<Applier>>>,
}

impl Worker {
    /// Restores everything from the log and starts the connectors that shall run.
    ///
    /// # Errors
    /// When the log cannot be used within [`WorkerConfig::start_timeout`], or the group of workers is
    /// one of another kind.
    pub async fn start(config: WorkerConfig, connectors: Vec<Plugin>) -> Result<Self, WorkerError> {
        let (bootstrap, group) = (config.bootstrap.to_string(), config.group_id.clone());
        let (sharing, address) = (config.sharing.clone(), bootstrap.clone());
        let herder = Herder::start(config, Plugins::new(connectors))
            .await
            .map_err(|source| WorkerError::Log { bootstrap, source })?;
        if let Some(sharing) = sharing {
            let joined = herder.join(sharing).await;
            joined.map_err(|source| match source.is(ErrorCode::INCONSISTENT_GROUP_PROTOCOL) {
                true => WorkerError::GroupTaken { group, source },
                false => WorkerError::Log { bootstrap: address, source },
            })?;
        }
        let applier = Arc::new(Mutex::new(Applier::start(&herder)));
        Ok(Self { herder, applier })
    }

    /// Kafka Connect's REST API. It answers unknown paths too, so a router that is merged with it
    /// must have no fallback of its own.
    pub fn router(&self) -> Router {
        rest::router(Arc::clone(&self.herder))
    }

    /// The numbers of all tasks, in Prometheus' text format.
    pub fn metrics(&self) -> String {
        self.herder.shared.meters.text()
    }

    /// What an operator should know of the connectors and of their sources.
    pub async fn examine(&self) -> Vec<Finding> {
        // Boxed: the whole of it, with a source's connection inside, is too deep for a caller's type.
        Box::pin(checkup::examine(&self.herder)).await
    }

    /// What an operator should know of the cluster that keeps the log: how it keeps the topics that the
    /// worker relies on, the brokers' clocks and disks.
    pub async fn examine_cluster(&self) -> Vec<Finding> {
        Box::pin(log_checkup::examine(&self.herder)).await
    }

    /// Drains all tasks to the end of a transaction, each within its bound, and ends them. What
    /// operators want stays as it is: the next start goes on.
    pub async fn shutdown(&self) {
        let applier = self.applier.lock().await.take();
        if let Some(applier) = applier {
            applier.stop().await;
        }
        self.herder.shutdown().await;
    }
}
