//! The broker that looks after a group or a transactional id: finding it, and asking it on a
//! connection of its own, since a broker holds back all of a connection while somebody joins on it.

use std::sync::Arc;
use std::time::Duration;

use highwater_protocol::{ErrorCode, FindCoordinatorRequest, FindCoordinatorResponse, Request};
use tokio::sync::Mutex;

use crate::KafkaError;
use crate::cluster::{Cluster, Failure, address, refused};
use crate::connection::{CallError, Connection};

/// What is looked after.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeyType {
    Group = 0,
    Transaction = 1,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Coordinator {
    cluster: Arc<Cluster>,
    key_type: KeyType,
    key: String,
    /// Held while looking, so that one answer serves all who wait for it.
    link: Mutex<Option<Arc<Connection>>>,
}

impl Coordinator {
    pub(crate) fn new(cluster: Arc<Cluster>, key_type: KeyType, key: &str) -> Self {
        Self { cluster, key_type, key: key.to_owned(), link: Mutex::default() }
    }

    /// The same one on a connection of its own.
    pub(crate) fn apart(&self) -> Self {
        Self::new(Arc::clone(&self.cluster), self.key_type, &self.key)
    }

    /// Asks it once. One that cannot be asked is looked for the next time.
    pub(crate) async fn ask<R: Request>(&self, request: &R) -> Result<R::Response, Failure> {
        self.ask_within(request, self.cluster.limits.request).await
    }

    /// As [`Self::ask`], for a request that it may hold for a while.
    pub(crate) async fn ask_within<R: Request>(
        &self,
        request: &R,
        patience: Duration,
    ) -> Result<R::Response, Failure> {
        let connection = self.connection().await?;
        match connection.call_within(request, patience).await {
            Ok(answer) => Ok(answer),
            Err(error) => {
                if matches!(error, CallError::Lost(_)) {
                    self.forget().await;
                }
                Err(self.cluster.failure(error))
            }
        }
    }

    /// Asks until it answers, for as long as the cluster's own calls are tried again.
    pub(crate) async fn persist<T, F>(&self, attempt: impl FnMut() -> F) -> Result<T, KafkaError>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        self.cluster.persist(attempt).await
    }

    /// What its error code means: for some it has to be looked for again.
    pub(crate) async fn check(
        &self,
        code: ErrorCode,
        what: impl FnOnce() -> String,
    ) -> Result<(), Failure> {
        if code.is_ok() {
            return Ok(());
        }
        if is_elsewhere(code) {
            self.forget().await;
        }
        let error = refused(what(), code, None);
        Err(if code.is_retriable() { Failure::Transient(error) } else { Failure::Final(error) })
    }

    /// Looks for it the next time it is asked. What is on its way is answered to nobody.
    pub(crate) async fn forget(&self) {
        *self.link.lock().await = None;
    }

    async fn connection(&self) -> Result<Arc<Connection>, Failure> {
        let mut link = self.link.lock().await;
        if let Some(open) = link.as_ref().filter(|open| !open.is_closed()) {
            return Ok(Arc::clone(open));
        }
        *link = None;
        let address = self.find().await?;
        let (limits, security) = (&self.cluster.limits, &self.cluster.bootstrap().security);
        let opened = Connection::open(&address, limits, security).await;
        let opened = opened.map_err(|error| self.cluster.failure(error))?;
        Ok(Arc::clone(link.insert(Arc::new(opened))))
    }

    async fn find(&self) -> Result<String, Failure> {
        let request = FindCoordinatorRequest {
            key: self.key.clone(),
            key_type: self.key_type as i8,
            coordinator_keys: vec![self.key.clone()],
        };
        let answer = self.cluster.ask_any(&request).await?;
        let (code, message, host, port) = found(answer);
        if code.is_ok() {
            return Ok(address(&host, port));
        }
        let error =
            refused(format!("find the coordinator of {}", self.key), code, message.as_deref());
        Err(if code.is_retriable() { Failure::Transient(error) } else { Failure::Final(error) })
    }
}

/// Whether another broker has to be asked.
pub(crate) fn is_elsewhere(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::NOT_COORDINATOR | ErrorCode::COORDINATOR_NOT_AVAILABLE)
}

/// From version 4 the answer is a list.
fn found(answer: FindCoordinatorResponse) -> (ErrorCode, Option<String>, String, i32) {
    match answer.coordinators.into_iter().next() {
        Some(told) => (told.error_code, told.error_message, told.host, told.port),
        None => (answer.error_code, answer.error_message, answer.host, answer.port),
    }
}
