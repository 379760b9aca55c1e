//! One connection to one broker: requests go out as they come, answers come back in that order.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use highwater_protocol::{
    ApiVersionsRequest, ApiVersionsResponse, ErrorCode, Message, Reader, Request, ResponseHeader,
    frame,
};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::{RwLock, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;

use crate::counters::{self, OpenConnection};
use crate::lease::{Lease, Leased};
use crate::security::{Sasl, Security};
use crate::{sasl, tls};

/// Requests that may wait for their answers on one connection.
const IN_FLIGHT: usize = 64;

/// Memory set aside for an answer before its bytes have arrived.
const BELIEVED: usize = 1 << 20;

/// The part of a login's life after which it is renewed, as Kafka's clients do it: between these, so
/// that not all come together.
const RENEWED: std::ops::Range<f64> = 0.85..0.95;

/// Before the broker's versions are known. Version 3 names the client (KIP-511).
const API_VERSIONS: i16 = 3;

/// Bounds of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) connect: Duration,
    pub(crate) request: Duration,
    pub(crate) max_frame: usize,
    /// While it holds, requests are sent; none: always.
    pub(crate) lease: Option<Lease>,
}

/// Why a request has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CallError {
    /// The connection could not be made, ended, or was too slow. Another attempt may succeed.
    #[error("{0}")]
    Lost(String),
    /// The answer is not what it should be.
    #[error("the answer of {address} to {what} cannot be read: {detail}")]
    Malformed { address: Arc<str>, what: String, detail: String },
    /// The broker does not speak an API in a version that we speak.
    #[error("{0}")]
    Unsupported(String),
    /// The broker does not let us in, or is not whom it should be. Another attempt ends likewise.
    #[error("{0}")]
    Denied(String),
}

/// Whether others may ask meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Line {
    Shared,
    /// While logging in, a broker takes nothing else.
    Alone,
}

/// A request on its way out.
struct Outgoing {
    frame: Bytes,
    asked: Asked,
}

/// A request that waits for its answer.
struct Asked {
    correlation_id: i32,
    answer: oneshot::Sender<Bytes>,
}

/// An open connection. Dropping it closes it.
#[derive(Debug)]
pub(crate) struct Connection {
    address: Arc<str>,
    outgoing: mpsc::Sender<Outgoing>,
    next_id: AtomicI32,
    task: AbortHandle,
    /// Lowest and highest version the broker speaks, by API key.
    versions: HashMap<i16, (i16, i16)>,
    request_timeout: Duration,
    sasl: Option<Sasl>,
    /// When to log in again; none where that is for good.
    renew_at: Mutex<Option<Instant>>,
    /// Held alone while logging in again, shared while a request joins those on their way.
    line: RwLock<()>,
    /// Why it ended, where that says more than that it did.
    ended: Arc<OnceLock<CallError>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// Connects, asks for the broker's versions, and logs in.
    pub(crate) async fn open(
        address: &str,
        limits: &Limits,
        security: &Security,
    ) -> Result<Self, CallError> {
        let lost = |detail: String| CallError::Lost(format!("{address}: {detail}"));
        let opened = timeout(limits.connect, async {
            let tcp = dial(address).await.map_err(|error| lost(error.to_string()))?;
            let tcp = Leased::over(tcp, limits.lease.clone());
            let mut connection = match &security.tls {
                None => Self::over(tcp, address, limits),
                Some(tls) => Self::over(tls::wrap(tls, address, tcp).await?, address, limits),
            };
            connection.versions = connection.ask_versions().await?;
            connection.sasl.clone_from(&security.sasl);
            connection.log_in().await?;
            Ok(connection)
        });
        let too_slow = |_| lost(format!("no connection within {} ms", limits.connect.as_millis()));
        let opened = opened.await.map_err(too_slow).flatten();
        counters::connect(&opened);
        opened
    }

    /// Speaks over a stream that is connected, and encrypted where it shall be.
    fn over(
        io: impl AsyncRead + AsyncWrite + Send + 'static,
        address: &str,
        limits: &Limits,
    ) -> Self {
        let (outgoing, queue) = mpsc::channel(IN_FLIGHT);
        let (address, ended) = (Arc::<str>::from(address), Arc::default());
        let task = run(io, queue, limits.max_frame, Arc::clone(&address), Arc::clone(&ended));
        Self {
            address,
            outgoing,
            next_id: AtomicI32::new(0),
            task: tokio::spawn(task).abort_handle(),
            versions: HashMap::new(),
            request_timeout: limits.request,
            sasl: None,
            renew_at: Mutex::default(),
            line: RwLock::default(),
            ended,
        }
    }

    /// Logs in, where we have somebody to log in as.
    async fn log_in(&self) -> Result<(), CallError> {
        let Some(sasl) = &self.sasl else { return Ok(()) };
        let lifetime = sasl::log_in(self, sasl).await?;
        let renewed = |lifetime: Duration| lifetime.mul_f64(rand::random_range(RENEWED));
        *self.renew_at.lock() = lifetime.map(|lifetime| Instant::now() + renewed(lifetime));
        Ok(())
    }

    fn is_to_renew(&self) -> bool {
        self.renew_at.lock().is_some_and(|at| at <= Instant::now())
    }

    /// Logs in again before the broker ends a connection whose login has run out (KIP-368).
    async fn renew(&self) -> Result<(), CallError> {
        if !self.is_to_renew() {
            return Ok(());
        }
        let _alone = self.line.write().await;
        if !self.is_to_renew() {
            return Ok(());
        }
        tracing::debug!(address = %self.address, "logging in again");
        self.log_in().await.inspect_err(|_| self.task.abort())
    }

    /// Whether it has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.outgoing.is_closed()
    }

    /// The highest version of a request that both sides speak.
    pub(crate) fn version<R: Request>(&self) -> Result<i16, CallError> {
        let ours = R::VERSIONS;
        let common = self.versions.get(&(R::KEY as i16)).and_then(|(lowest, highest)| {
            let version = *highest.min(ours.end());
            (version >= *lowest.max(ours.start())).then_some(version)
        });
        common.ok_or_else(|| CallError::Unsupported(format!("{:?} in versions {ours:?}", R::KEY)))
    }

    /// Sends a request and waits for its answer.
    pub(crate) async fn call<R: Request>(&self, request: &R) -> Result<R::Response, CallError> {
        self.call_within(request, self.request_timeout).await
    }

    /// As [`Self::call`], for a request that the broker may hold for a while.
    pub(crate) async fn call_within<R: Request>(
        &self,
        request: &R,
        patience: Duration,
    ) -> Result<R::Response, CallError> {
        self.renew().await?;
        let version = self.version::<R>()?;
        let answer = self.exchange(request, version, patience, Line::Shared).await?;
        self.read::<R>(answer, version)
    }

    /// As [`Self::call`], while nobody else asks: a part of logging in.
    pub(crate) async fn call_alone<R: Request>(
        &self,
        request: &R,
    ) -> Result<R::Response, CallError> {
        let version = self.version::<R>()?;
        let answer = self.exchange(request, version, self.request_timeout, Line::Alone).await?;
        self.read::<R>(answer, version)
    }

    /// Queues a request at once, so that requests go out in the order of these calls; what comes
    /// back waits for the answer. `None` while too many requests wait, or the login is renewed.
    pub(crate) fn begin<R: Request>(
        self: &Arc<Self>,
        request: &R,
    ) -> Result<Option<impl Future<Output = Result<R::Response, CallError>> + use<R>>, CallError>
    {
        let version = self.version::<R>()?;
        if self.is_to_renew() {
            let connection = Arc::clone(self);
            tokio::spawn(async move { connection.renew().await });
            return Ok(None);
        }
        let Ok(_shared) = self.line.try_read() else { return Ok(None) };
        let place = match self.outgoing.try_reserve() {
            Ok(place) => place,
            Err(mpsc::error::TrySendError::Full(())) => return Ok(None),
            Err(mpsc::error::TrySendError::Closed(())) => return Err(self.why_ended("it ended")),
        };
        let (outgoing, answered) = self.question(request, version);
        place.send(outgoing);
        let connection = Arc::clone(self);
        Ok(Some(async move {
            let patience = connection.request_timeout;
            let answer = timeout(patience, async { answered.await.ok() }).await;
            let answer = connection.in_time::<R>(answer.ok(), patience)?;
            connection.read::<R>(answer, version)
        }))
    }

    /// Bytes behind the body are let pass, as Kafka's own clients do: some brokers send them.
    fn read<R: Request>(&self, mut answer: Bytes, version: i16) -> Result<R::Response, CallError> {
        ResponseHeader::decode(&mut answer, R::KEY, version)
            .and_then(|_| R::Response::decode(&mut Reader::new(answer), version))
            .map_err(|error| self.malformed::<R>(&error))
    }

    /// A request as it goes out, and where its answer comes.
    fn question<R: Request>(
        &self,
        request: &R,
        version: i16,
    ) -> (Outgoing, oneshot::Receiver<Bytes>) {
        let correlation_id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let mut frame = BytesMut::new();
        frame::encode_request(&mut frame, version, correlation_id, Some("highwater"), request);
        let (answer, answered) = oneshot::channel();
        let asked = Asked { correlation_id, answer };
        (Outgoing { frame: frame.freeze(), asked }, answered)
    }

    /// Sends a request at a version and waits for the frame that answers it.
    async fn exchange<R: Request>(
        &self,
        request: &R,
        version: i16,
        patience: Duration,
        line: Line,
    ) -> Result<Bytes, CallError> {
        let (outgoing, answered) = self.question(request, version);
        let exchange = async {
            let shared = match line {
                Line::Shared => Some(self.line.read().await),
                Line::Alone => None,
            };
            self.outgoing.send(outgoing).await.ok()?;
            drop(shared);
            answered.await.ok()
        };
        self.in_time::<R>(timeout(patience, exchange).await.ok(), patience)
    }

    /// What a wait for an answer gave: nothing in time, or the end of the connection, or the answer.
    fn in_time<R: Request>(
        &self,
        answer: Option<Option<Bytes>>,
        patience: Duration,
    ) -> Result<Bytes, CallError> {
        match answer {
            Some(Some(answer)) => Ok(answer),
            Some(None) => Err(self.why_ended("the connection ended before the answer")),
            None => {
                // Answers come in order, so whatever is asked behind this one would be late too.
                self.task.abort();
                counters::unanswered();
                let waited = patience.as_millis();
                Err(self.lost(&format!("no answer to {:?} within {waited} ms", R::KEY)))
            }
        }
    }

    async fn ask_versions(&self) -> Result<HashMap<i16, (i16, i16)>, CallError> {
        let request = ApiVersionsRequest {
            client_software_name: "highwater".to_owned(),
            client_software_version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let answer = match self.try_versions(&request, API_VERSIONS).await? {
            Some(answer) => answer,
            None => self.try_versions(&request, 0).await?.unwrap_or_default(),
        };
        if !answer.error_code.is_ok() || answer.api_keys.is_empty() {
            let what = format!("ApiVersions: {} answers {}", self.address, answer.error_code);
            return Err(CallError::Unsupported(what));
        }
        let versions = answer.api_keys.iter();
        Ok(versions.map(|api| (api.api_key, (api.min_version, api.max_version))).collect())
    }

    /// `None` when the broker does not speak the version. Such an answer is in version 0 (KIP-511),
    /// but not everywhere, and says nothing that is needed.
    async fn try_versions(
        &self,
        request: &ApiVersionsRequest,
        version: i16,
    ) -> Result<Option<ApiVersionsResponse>, CallError> {
        let mut answer = self.exchange(request, version, self.request_timeout, Line::Alone).await?;
        let malformed = |error| self.malformed::<ApiVersionsRequest>(&error);
        ResponseHeader::decode(&mut answer, ApiVersionsRequest::KEY, version).map_err(malformed)?;
        if answer.starts_with(&ErrorCode::UNSUPPORTED_VERSION.0.to_be_bytes()) {
            return Ok(None);
        }
        ApiVersionsResponse::decode_body(answer, version).map(Some).map_err(malformed)
    }

    /// Why the broker does not let us in.
    pub(crate) fn denied(&self, why: &str) -> CallError {
        CallError::Denied(format!("{}: {why}", self.address))
    }

    /// Why it ended, as far as that is known.
    fn why_ended(&self, otherwise: &str) -> CallError {
        self.ended.get().cloned().unwrap_or_else(|| self.lost(otherwise))
    }

    fn lost(&self, detail: &str) -> CallError {
        CallError::Lost(format!("{}: {detail}", self.address))
    }

    /// What follows an answer that cannot be read cannot be trusted: the connection ends.
    fn malformed<R: Request>(&self, error: &highwater_protocol::DecodeError) -> CallError {
        self.task.abort();
        CallError::Malformed {
            address: Arc::clone(&self.address),
            what: format!("{:?}", R::KEY),
            detail: error.to_string(),
        }
    }
}

async fn dial(address: &str) -> std::io::Result<TcpStream> {
    let io = TcpStream::connect(address).await?;
    io.set_nodelay(true)?;
    Ok(io)
}

/// Moves requests and answers until either side ends; then all that waits is told by its dropped
/// channel, which happens once it is known why.
async fn run(
    io: impl AsyncRead + AsyncWrite + Send,
    mut queue: mpsc::Receiver<Outgoing>,
    max_frame: usize,
    address: Arc<str>,
    why: Arc<OnceLock<CallError>>,
) {
    let _open = OpenConnection::count();
    let (read, write) = tokio::io::split(io);
    let (asked, mut waiting) = mpsc::channel(IN_FLIGHT);
    let ended = tokio::select! {
        ended = write_requests(write, &mut queue, &asked) => ended,
        ended = read_answers(read, &mut waiting, max_frame) => ended,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
        if let denied @ CallError::Denied(_) = tls::failure(&address, &error) {
            // It ends once.
            let _ = why.set(denied);
        }
    }
}

async fn write_requests(
    mut write: impl AsyncWrite + Unpin,
    queue: &mut mpsc::Receiver<Outgoing>,
    waiting: &mpsc::Sender<Asked>,
) -> std::io::Result<()> {
    while let Some(Outgoing { frame, asked }) = queue.recv().await {
        if waiting.send(asked).await.is_err() {
            break;
        }
        write.write_all(&frame).await?;
        write.flush().await?;
    }
    Ok(())
}

async fn read_answers(
    read: impl AsyncRead + Unpin,
    waiting: &mut mpsc::Receiver<Asked>,
    max_frame: usize,
) -> std::io::Result<()> {
    let mut read = BufReader::new(read);
    loop {
        let answer = read_frame(&mut read, max_frame).await?;
        let asked = waiting.try_recv().map_err(|_| broken("an answer that nobody asked for"))?;
        if answer.clone().try_get_i32().ok() != Some(asked.correlation_id) {
            return Err(broken("an answer to another request than the oldest"));
        }
        // A caller that gave up does not read its answer.
        let _ = asked.answer.send(answer);
    }
}

/// Reads one frame. Memory grows with what arrives, not with what the length claims.
async fn read_frame(
    read: &mut (impl AsyncRead + Unpin),
    max_frame: usize,
) -> std::io::Result<Bytes> {
    let mut prefix = [0; frame::PREFIX];
    read.read_exact(&mut prefix).await?;
    let length = frame::length(prefix, max_frame).map_err(std::io::Error::other)?;
    let mut frame = BytesMut::with_capacity(length.min(BELIEVED));
    let mut body = read.take(length as u64);
    while frame.len() < length {
        if frame.capacity() == frame.len() {
            frame.reserve((length - frame.len()).min(frame.len()));
        }
        if body.read_buf(&mut frame).await? == 0 {
            return Err(broken("the connection ended inside an answer"));
        }
    }
    Ok(frame.freeze())
}

fn broken(what: &str) -> std::io::Error {
    std::io::Error::new(std::io::ErrorKind::InvalidData, what.to_owned())
}
