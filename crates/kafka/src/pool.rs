//! The connections that all readers share.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use crate::backoff::Backoff;
use crate::connection::{CallError, Connection, Limits};
use crate::security::Security;

/// Connections a broker. A broker works on one request of a connection at a time, so one alone
/// would put a quick question behind a large fetch.
const WIDTH: usize = 2;

/// A few connections to each broker, made when needed and made again when lost.
#[derive(Debug)]
pub(crate) struct Pool {
    limits: Limits,
    security: Security,
    next: AtomicUsize,
    brokers: Mutex<HashMap<String, [Arc<Slot>; WIDTH]>>,
}

/// A place for one connection. Its lock is held while connecting, so that one attempt serves all.
type Slot = tokio::sync::Mutex<Link>;

#[derive(Debug, Default)]
struct Link {
    connection: Option<Arc<Connection>>,
    backoff: Backoff,
    /// The last failure, and until when it answers for a new attempt.
    failed: Option<(Instant, CallError)>,
}

impl Pool {
    pub(crate) fn new(limits: Limits, security: Security) -> Self {
        Self { limits, security, next: AtomicUsize::new(0), brokers: Mutex::default() }
    }

    /// A connection to the broker at `address`.
    pub(crate) async fn connection(&self, address: &str) -> Result<Arc<Connection>, CallError> {
        let slot = self.slot(address);
        slot.lock().await.connection(address, &self.limits, &self.security).await
    }

    fn slot(&self, address: &str) -> Arc<Slot> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed) % WIDTH;
        let mut brokers = self.brokers.lock();
        let [first, second] = brokers.entry(address.to_owned()).or_default();
        Arc::clone(if turn == 0 { first } else { second })
    }
}

impl Link {
    async fn connection(
        &mut self,
        address: &str,
        limits: &Limits,
        security: &Security,
    ) -> Result<Arc<Connection>, CallError> {
        if let Some(connection) = self.connection.as_ref().filter(|open| !open.is_closed()) {
            return Ok(Arc::clone(connection));
        }
        if let Some((until, error)) = &self.failed
            && Instant::now() < *until
        {
            return Err(error.clone());
        }
        let opened = Connection::open(address, limits, security).await;
        opened.map(|connection| self.keep(connection)).map_err(|error| self.fail(error))
    }

    fn keep(&mut self, connection: Connection) -> Arc<Connection> {
        self.backoff.reset();
        self.failed = None;
        Arc::clone(self.connection.insert(Arc::new(connection)))
    }

    fn fail(&mut self, error: CallError) -> CallError {
        self.connection = None;
        self.failed = Some((Instant::now() + self.backoff.pause(), error.clone()));
        error
    }
}
