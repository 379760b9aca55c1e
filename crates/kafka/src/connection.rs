//! One connection to one broker: requests go out as they come, answers come back in that order.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use highwater_protocol::{
    ApiVersionsRequest, ApiVersionsResponse, ErrorCode, Message, Reader, Request, ResponseHeader,
    frame,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// Requests that may wait for their answers on one connection.
const IN_FLIGHT: usize = 64;

/// Memory set aside for an answer before its bytes have arrived.
const BELIEVED: usize = 1 << 20;

/// Before the broker's versions are known. Version 3 names the client (KIP-511).
const API_VERSIONS: i16 = 3;

/// Bounds of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) connect: Duration,
    pub(crate) request: Duration,
    pub(crate) max_frame: usize,
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
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Connection {
    /// Connects and asks for the broker's versions.
    pub(crate) async fn open(address: &str, limits: &Limits) -> Result<Self, CallError> {
        let lost = |detail: String| CallError::Lost(format!("{address}: {detail}"));
        let opened = timeout(limits.connect, async {
            let io = dial(address).await.map_err(|error| lost(error.to_string()))?;
            let mut connection = Self::over(io, address, limits);
            connection.versions = connection.ask_versions().await?;
            Ok(connection)
        });
        let too_slow = |_| lost(format!("no connection within {} ms", limits.connect.as_millis()));
        opened.await.map_err(too_slow)?
    }

    /// Speaks over a stream that is connected (and, later, encrypted).
    fn over(
        io: impl AsyncRead + AsyncWrite + Send + 'static,
        address: &str,
        limits: &Limits,
    ) -> Self {
        let (outgoing, queue) = mpsc::channel(IN_FLIGHT);
        let task = tokio::spawn(run(io, queue, limits.max_frame)).abort_handle();
        Self {
            address: Arc::from(address),
            outgoing,
            next_id: AtomicI32::new(0),
            task,
            versions: HashMap::new(),
            request_timeout: limits.request,
        }
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
        let version = self.version::<R>()?;
        let answer = self.exchange(request, version, patience).await?;
        self.read::<R>(answer, version)
    }

    /// Queues a request at once, so that requests go out in the order of these calls; what comes
    /// back waits for the answer. `None` while too many requests wait.
    pub(crate) fn begin<R: Request>(
        self: &Arc<Self>,
        request: &R,
    ) -> Result<Option<impl Future<Output = Result<R::Response, CallError>> + use<R>>, CallError>
    {
        let version = self.version::<R>()?;
        let place = match self.outgoing.try_reserve() {
            Ok(place) => place,
            Err(mpsc::error::TrySendError::Full(())) => return Ok(None),
            Err(mpsc::error::TrySendError::Closed(())) => return Err(self.lost("it ended")),
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
    ) -> Result<Bytes, CallError> {
        let (outgoing, answered) = self.question(request, version);
        let exchange = async {
            self.outgoing.send(outgoing).await.ok()?;
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
            Some(None) => Err(self.lost("the connection ended before the answer")),
            None => {
                // Answers come in order, so whatever is asked behind this one would be late too.
                self.task.abort();
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
        let mut answer = self.exchange(request, version, self.request_timeout).await?;
        let malformed = |error| self.malformed::<ApiVersionsRequest>(&error);
        ResponseHeader::decode(&mut answer, ApiVersionsRequest::KEY, version).map_err(malformed)?;
        if answer.starts_with(&ErrorCode::UNSUPPORTED_VERSION.0.to_be_bytes()) {
            return Ok(None);
        }
        ApiVersionsResponse::decode_body(answer, version).map(Some).map_err(malformed)
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

/// Connects in the clear. TLS wraps the stream here, before the first request; SASL follows the
/// exchange of versions.
async fn dial(address: &str) -> std::io::Result<TcpStream> {
    let io = TcpStream::connect(address).await?;
    io.set_nodelay(true)?;
    Ok(io)
}

/// Moves requests and answers until either side ends; then all that waits is told by its dropped
/// channel.
async fn run(
    io: impl AsyncRead + AsyncWrite + Send,
    queue: mpsc::Receiver<Outgoing>,
    max_frame: usize,
) {
    let (read, write) = tokio::io::split(io);
    let (asked, waiting) = mpsc::channel(IN_FLIGHT);
    let ended = tokio::select! {
        ended = write_requests(write, queue, asked) => ended,
        ended = read_answers(read, waiting, max_frame) => ended,
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended");
    }
}

async fn write_requests(
    mut write: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Outgoing>,
    waiting: mpsc::Sender<Asked>,
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
    mut waiting: mpsc::Receiver<Asked>,
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
