//! The streams that exist and the connections to them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::http::StatusCode;
use highwater_kafka::Watermarks;
use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;

use crate::begin::Begin;
use crate::config::Limits;
use crate::qos::QualityOfService;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::state::{Restored, Unreadable};
use crate::time;

/// What the connections of a stream are told.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Notice {
    /// Go on.
    Open,
    /// The configuration is another one now.
    Reconfigured,
    /// The stream is no more.
    Deleted,
    /// The server stops.
    Stopping,
}

/// One stream under one configuration. A changed configuration is another `Stream`.
pub(crate) struct Stream {
    pub(crate) name: String,
    pub(crate) resource: Resource,
    notice: watch::Sender<Notice>,
    sessions: Mutex<BTreeMap<u64, Arc<SessionStatus>>>,
}

/// What one connection has done; read by the status endpoint.
#[derive(Debug)]
pub(crate) struct SessionStatus {
    pub(crate) id: u64,
    pub(crate) since: String,
    pub(crate) begin: &'static str,
    pub(crate) quality_of_service: QualityOfService,
    pub(crate) progress: Mutex<Progress>,
    pub(crate) edges: Mutex<Option<watch::Receiver<Watermarks>>>,
}

/// How far a connection has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Progress {
    /// Offset of the last record sent.
    pub(crate) last_sent: Option<i64>,
    /// Next offset to read.
    pub(crate) next: i64,
    pub(crate) records: u64,
    pub(crate) bytes: u64,
    pub(crate) suppressed: u64,
}

impl SessionStatus {
    /// Records between what was read and the end of what may be read; `None` when unknown.
    pub(crate) fn lag(&self) -> Option<i64> {
        let last_stable = self.edges.lock().as_ref()?.borrow().last_stable;
        Some((last_stable - self.progress.lock().next).max(0))
    }
}

impl Stream {
    pub(crate) fn new(name: &str, resource: Resource) -> Arc<Self> {
        Arc::new(Self {
            name: name.to_owned(),
            resource,
            notice: watch::Sender::new(Notice::Open),
            sessions: Mutex::default(),
        })
    }

    pub(crate) fn notice(&self) -> watch::Receiver<Notice> {
        self.notice.subscribe()
    }

    pub(crate) fn sessions(&self) -> Vec<Arc<SessionStatus>> {
        self.sessions.lock().values().cloned().collect()
    }

    fn end(&self, notice: Notice) {
        self.notice.send_replace(notice);
    }
}

/// All streams, by name.
pub(crate) struct Registry {
    limits: Limits,
    streams: RwLock<BTreeMap<String, Arc<Stream>>>,
    /// Stored streams that this release cannot read, by name.
    unreadable: RwLock<BTreeMap<String, Unreadable>>,
    next_session: AtomicU64,
    open: watch::Sender<usize>,
}

impl Registry {
    pub(crate) fn new(limits: Limits, restored: Restored) -> Self {
        let named = |stream: Arc<Stream>| (stream.name.clone(), stream);
        let streams = restored.streams.into_iter().map(named).collect();
        let named = |unreadable: Unreadable| (unreadable.stream.clone(), unreadable);
        let unreadable = restored.unreadable.into_iter().map(named).collect();
        Self {
            limits,
            streams: RwLock::new(streams),
            unreadable: RwLock::new(unreadable),
            next_session: AtomicU64::new(1),
            open: watch::Sender::new(0),
        }
    }

    pub(crate) fn all(&self) -> Vec<Arc<Stream>> {
        self.streams.read().values().cloned().collect()
    }

    pub(crate) fn unreadable(&self) -> Vec<Unreadable> {
        self.unreadable.read().values().cloned().collect()
    }

    /// # Errors
    /// When there is no such stream, or it cannot be read.
    pub(crate) fn get(&self, name: &str) -> Result<Arc<Stream>, Refusal> {
        if let Some(unreadable) = self.unreadable.read().get(name) {
            return Err(Refusal::stream_unreadable(unreadable));
        }
        self.streams.read().get(name).cloned().ok_or_else(|| Refusal::not_found(name))
    }

    /// Whether a stream of this name is stored, be it readable or not.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn known(&self, name: &str) -> Result<(), Refusal> {
        let known = self.unreadable.read().contains_key(name);
        if known { Ok(()) } else { self.get(name).map(drop) }
    }

    /// Whether another stream may be made.
    pub(crate) fn is_full(&self) -> bool {
        self.streams.read().len() + self.unreadable.read().len() >= self.limits.streams
    }

    /// Puts a stream in the place of the one of its name.
    pub(crate) fn put(&self, stream: Arc<Stream>) {
        let before = self.streams.write().insert(stream.name.clone(), stream);
        if let Some(before) = before {
            before.end(Notice::Reconfigured);
        }
    }

    pub(crate) fn remove(&self, name: &str) {
        self.unreadable.write().remove(name);
        let before = self.streams.write().remove(name);
        if let Some(before) = before {
            before.end(Notice::Deleted);
        }
    }

    /// Ends all connections and waits until they are closed.
    pub(crate) async fn stop(&self) {
        self.all().iter().for_each(|stream| stream.end(Notice::Stopping));
        let mut open = self.open.subscribe();
        // The sender lives in self, so the channel cannot close; sessions bound their own end.
        let closed = open.wait_for(|open| *open == 0);
        let bound = self.limits.close_wait * 2;
        if tokio::time::timeout(bound, closed).await.is_err() {
            tracing::warn!("some stream connections did not close in time");
        }
    }

    /// Takes a place for a connection.
    ///
    /// # Errors
    /// When there are too many, or the server stops: a client that comes back at once would keep
    /// it from ending.
    pub(crate) fn admit(
        self: &Arc<Self>,
        stream: &Arc<Stream>,
        begin: &Begin,
        quality_of_service: QualityOfService,
    ) -> Result<Admission, Refusal> {
        if *stream.notice.borrow() == Notice::Stopping {
            return Err(stopping());
        }
        let mut sessions = stream.sessions.lock();
        let mut admitted = sessions.len() < self.limits.sessions_per_stream;
        self.open.send_if_modified(|open| {
            admitted &= *open < self.limits.sessions;
            *open += usize::from(admitted);
            admitted
        });
        if !admitted {
            return Err(too_many(&stream.name, &self.limits));
        }
        let status = Arc::new(SessionStatus {
            id: self.next_session.fetch_add(1, Ordering::Relaxed),
            since: time::now(),
            begin: begin.name(),
            quality_of_service,
            progress: Mutex::default(),
            edges: Mutex::default(),
        });
        sessions.insert(status.id, status.clone());
        metrics::gauge!("highwater_stream_sessions", "stream" => stream.name.clone())
            .increment(1.0);
        Ok(Admission { registry: self.clone(), stream: stream.clone(), status })
    }
}

fn stopping() -> Refusal {
    Refusal::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "server_stopping",
        "the server is stopping",
        "reconnect in a few seconds with the pos of the last record that you processed",
    )
}

fn too_many(stream: &str, limits: &Limits) -> Refusal {
    let Limits { sessions, sessions_per_stream, .. } = limits;
    Refusal::new(
        StatusCode::TOO_MANY_REQUESTS,
        "too_many_connections",
        format!(
            "stream {stream} has no free connection: {sessions_per_stream} may be open to one \
             stream and {sessions} in all"
        ),
        "close a connection, then try again",
    )
}

/// A connection's place; given back when dropped.
pub(crate) struct Admission {
    registry: Arc<Registry>,
    pub(crate) stream: Arc<Stream>,
    pub(crate) status: Arc<SessionStatus>,
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.stream.sessions.lock().remove(&self.status.id);
        self.registry.open.send_modify(|open| *open -= 1);
        metrics::gauge!("highwater_stream_sessions", "stream" => self.stream.name.clone())
            .decrement(1.0);
    }
}
