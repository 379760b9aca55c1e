//! What every request of a broker sees.

use std::sync::Arc;

use highwater_coordinator::Coordinator;
use highwater_log::{Log, Partition};
use tokio::sync::{Semaphore, watch};

use crate::budget::Budget;
use crate::config::{BrokerConfig, Endpoint};
use crate::fault::Fault;

/// So many at once, whoever sends passwords: hashing is for the processor alone.
pub(crate) const HASHED_AT_ONCE: usize = 2;

/// The one broker of the cluster.
pub(crate) struct Node {
    pub(crate) log: Log,
    pub(crate) coordinator: Coordinator,
    pub(crate) config: BrokerConfig,
    pub(crate) advertised: Endpoint,
    pub(crate) memory: Budget,
    /// Passwords that are hashed at once.
    pub(crate) hashing: Semaphore,
    /// True once the broker shuts down.
    pub(crate) stopping: watch::Receiver<bool>,
}

impl Node {
    /// A partition that exists.
    pub(crate) fn partition(&self, topic: &str, index: i32) -> Result<Arc<Partition>, Fault> {
        self.log.partition(topic, index).ok_or_else(|| Fault::unknown_partition(topic, index))
    }
}
