//! The running broker.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use highwater_coordinator::Coordinator;
use highwater_log::Log;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::budget::Budget;
use crate::config::{BrokerConfig, Endpoint, Reach};
use crate::counters;
use crate::error::BrokerError;
use crate::listener;
use crate::node::{HASHED_AT_ONCE, Node};

/// A running broker. Dropping it stops it without waiting.
#[derive(Debug)]
pub struct Broker {
    local_addr: SocketAddr,
    stop: watch::Sender<bool>,
    listening: JoinHandle<()>,
    patience: Duration,
}

impl Broker {
    /// Listens and answers Kafka clients from `log` and its coordinators, which all brokers in front of one
    /// log share.
    ///
    /// # Errors
    /// When the address is taken, cannot be listened on, or may not be.
    pub async fn start(
        config: BrokerConfig,
        log: Log,
        coordinator: Coordinator,
    ) -> Result<Self, BrokerError> {
        check_address(&config)?;
        counters::describe_metrics();
        let address = config.listen;
        let failed = |error| BrokerError::listening(address, error);
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let local_addr = listener.local_addr().map_err(failed)?;
        let (stop, stopping) = watch::channel(false);
        let patience = config.limits.shutdown;
        let node = Arc::new(Node {
            log,
            coordinator,
            advertised: advertised(&config, local_addr),
            memory: Budget::new(config.limits.memory_bytes),
            hashing: Semaphore::new(HASHED_AT_ONCE),
            config,
            stopping,
        });
        let listening = tokio::spawn(listener::run(node, listener));
        Ok(Self { local_addr, stop, listening, patience })
    }

    /// The address that is listened on.
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Stops listening, lets answers that are under way out, and closes every connection, within
    /// [`Limits::shutdown`](crate::Limits::shutdown).
    pub async fn shutdown(mut self) {
        let _ = self.stop.send(true);
        if timeout(self.patience, &mut self.listening).await.is_err() {
            tracing::warn!(patience = ?self.patience, "connections are cut: answers took too long");
            self.listening.abort();
        }
    }
}

fn check_address(config: &BrokerConfig) -> Result<(), BrokerError> {
    let address = config.listen;
    let guarded = config.tls.is_some() && config.access.everybody().is_none();
    if config.reach == Reach::Loopback && !address.ip().is_loopback() && !guarded {
        return Err(BrokerError::Unguarded { address });
    }
    if address.ip().is_unspecified() && config.advertise.is_none() {
        return Err(BrokerError::AdvertiseMissing { address });
    }
    Ok(())
}

fn advertised(config: &BrokerConfig, local: SocketAddr) -> Endpoint {
    config
        .advertise
        .clone()
        .unwrap_or_else(|| Endpoint { host: local.ip().to_string(), port: local.port() })
}
