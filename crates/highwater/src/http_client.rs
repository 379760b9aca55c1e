//! One request over HTTP/1.1 to a server, in the clear or over TLS, as the command line sends them.

use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Method, Request, StatusCode, Uri, header};
use highwater_kafka::Tls;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long a server may take to be connected to.
const CONNECT: Duration = Duration::from_secs(5);
/// How long it may take to answer.
const ANSWER: Duration = Duration::from_secs(90);
/// The largest answer that is read.
const LARGEST: usize = 256 << 20;

/// A connection, whatever it runs over.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Why a request got no answer.
#[derive(Debug)]
pub(crate) enum Unanswered {
    /// Nobody could be connected to: nothing was asked.
    Unreachable(String),
    /// Somebody was connected to who cannot be trusted, or does not speak TLS: nothing was asked.
    Untrusted(String),
    /// The connection gave none.
    Silent(String),
}

/// A server: where it is, and who we are to it.
pub(crate) struct Server {
    /// As a URL has it.
    authority: Authority,
    /// What stands in front of every path.
    prefix: String,
    tls: Option<Tls>,
    authorization: Option<HeaderValue>,
}

impl Server {
    pub(crate) const fn new(
        authority: Authority,
        prefix: String,
        tls: Option<Tls>,
        authorization: Option<HeaderValue>,
    ) -> Self {
        Self { authority, prefix, tls, authorization }
    }

    fn address(&self) -> (&str, u16) {
        let port = self.authority.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        (self.authority.host().trim_matches(['[', ']']), port)
    }

    /// A connection to it.
    pub(crate) async fn connect(&self) -> Result<Box<dyn Stream>, Unanswered> {
        let (host, port) = self.address();
        let connecting = async {
            let tcp = TcpStream::connect((host, port)).await;
            let tcp = tcp.map_err(|error| Unanswered::Unreachable(error.to_string()))?;
            // Small requests, each of which waits for its answer.
            let _ = tcp.set_nodelay(true);
            Ok(match &self.tls {
                None => Box::new(tcp) as Box<dyn Stream>,
                Some(tls) => {
                    let encrypted = highwater_kafka::encrypt(tls, host, tcp).await;
                    Box::new(encrypted.map_err(Unanswered::Untrusted)?)
                }
            })
        };
        let connected = timeout(CONNECT, connecting).await;
        connected.unwrap_or_else(|_| {
            let silent = format!("no connection within {} s", CONNECT.as_secs());
            Err(Unanswered::Unreachable(silent))
        })
    }

    /// A request for a WebSocket, whose client reads the whole address.
    pub(crate) fn websocket(&self, path: &str) -> Option<Request<()>> {
        let scheme = if self.tls.is_some() { "wss" } else { "ws" };
        let uri = format!("{scheme}://{}{}{path}", self.authority, self.prefix).parse().ok()?;
        self.headed(Method::GET, uri, ())
    }

    fn request<T>(&self, method: Method, path: &str, body: T) -> Option<Request<T>> {
        self.headed(method, format!("{}{path}", self.prefix).parse().ok()?, body)
    }

    /// With what says where it goes, and who it comes from.
    fn headed<T>(&self, method: Method, uri: Uri, body: T) -> Option<Request<T>> {
        let mut request = Request::builder()
            .method(method)
            .uri(uri)
            .header(header::HOST, self.authority.as_str())
            .body(body)
            .ok()?;
        if let Some(authorization) = &self.authorization {
            request.headers_mut().insert(header::AUTHORIZATION, authorization.clone());
        }
        Some(request)
    }

    /// Sends a request, with JSON for a body if one is given; the answer's status and text.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        json: Option<String>,
    ) -> Result<(StatusCode, String), Unanswered> {
        let given = json.is_some();
        let body = json.map_or_else(Body::empty, Body::from);
        let unfit = || Unanswered::Unreachable(format!("{path} is no path"));
        let mut request = self.request(method, path, body).ok_or_else(unfit)?;
        if given {
            let json = HeaderValue::from_static("application/json");
            request.headers_mut().insert(header::CONTENT_TYPE, json);
        }
        let stream = self.connect().await?;
        let answered = timeout(ANSWER, exchange(stream, request)).await;
        let silent = || Err(format!("no answer within {} s", ANSWER.as_secs()));
        answered.unwrap_or_else(|_| silent()).map_err(Unanswered::Silent)
    }
}

async fn exchange(
    stream: Box<dyn Stream>,
    request: Request<Body>,
) -> Result<(StatusCode, String), String> {
    let lost = |error: hyper::Error| root_cause(&error);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(lost)?;
    let answered = async {
        let (head, body) = sender.send_request(request).await.map_err(lost)?.into_parts();
        let bytes = to_bytes(Body::new(body), LARGEST).await.map_err(|error| root_cause(&error))?;
        Ok((head.status, String::from_utf8_lossy(&bytes).into_owned()))
    };
    let mut answered = std::pin::pin!(answered);
    tokio::select! {
        answered = answered.as_mut() => answered,
        // It may end as soon as the answer is in, which is then there.
        ended = connection => match ended {
            Ok(()) => answered.await,
            Err(error) => Err(root_cause(&error)),
        },
    }
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
