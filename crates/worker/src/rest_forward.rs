//! Requests that another worker has to do: changes are the leader's, and a task is started anew by who
//! runs it. They are brought there, and the answer is brought back.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts as _, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::uri::Scheme;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use highwater_kafka::Tls;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::rustls;

use crate::assignment::Work;
use crate::herder::Herder;
use crate::rest_connectors::segment;
use crate::rest_error::Refusal;

/// How long another worker may take to be connected to.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What a server answers without a login, and how long it may take for it.
const PROBE: &str = "/highwater/v1/health/live";
const PROBE_TIMEOUT: Duration = Duration::from_secs(8);

/// No body that goes there or comes back is longer.
const LONGEST_BODY: usize = 16 << 20;

/// What says how often a request may be brought on, as between Kafka Connect's workers.
const FORWARD: &str = "forward";

/// What is passed on of the request: who asks, and what is brought.
const ASKED: [HeaderName; 3] = [header::AUTHORIZATION, header::CONTENT_TYPE, header::ACCEPT];

/// What is passed back.
const ANSWERED: [HeaderName; 4] =
    [header::CONTENT_TYPE, header::LOCATION, header::ALLOW, header::WWW_AUTHENTICATE];

/// Header in which a worker says for which user it brings a request, as one segment of a path. Whoever
/// serves the API must take it from workers alone.
pub const ON_BEHALF_OF: HeaderName = HeaderName::from_static("highwater-on-behalf-of");

/// Who a request comes from where no header of it says so, but its connection: whoever serves the API
/// puts it among the request's extensions.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller(pub String);

/// Who has to do a request.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Doer {
    Here,
    /// The worker at this URL.
    There(String),
    /// Nobody at present.
    Nobody,
}

/// Has a request done by the worker that has to.
pub(crate) async fn forwarded(
    State(herder): State<Arc<Herder>>,
    request: Request,
    next: Next,
) -> Response {
    let (mut parts, body) = request.into_parts();
    let url = match doer(&herder, &mut parts).await {
        Doer::Here => return next.run(Request::from_parts(parts, body)).await,
        Doer::There(url) => url,
        Doer::Nobody => return Refusal::rebalancing().into_response(),
    };
    let tls = herder.config.sharing.as_ref().map(|sharing| sharing.tls.clone());
    let answer = bring(&url, &tls.unwrap_or_default(), parts, body).await;
    if answer.as_ref().is_ok_and(|answer| answer.status().is_success()) {
        // What is asked here next shows what was done there.
        for read in [herder.read_configs().await, herder.read_statuses().await] {
            if let Err(error) = read {
                tracing::debug!(%error, "what another worker has done is not known yet");
            }
        }
    }
    answer.unwrap_or_else(IntoResponse::into_response)
}

async fn doer(herder: &Herder, parts: &mut Parts) -> Doer {
    if parts.method.is_safe() || parts.uri.path().ends_with("/topics/reset") {
        return Doer::Here;
    }
    let params = RawPathParams::from_request_parts(parts, &()).await.ok();
    let param = |wanted| {
        let mut params = params.as_ref()?.iter();
        params.find(|(name, _)| *name == wanted).map(|(_, value)| value.to_owned())
    };
    let connector = param("connector");
    if connector.is_none() && parts.uri.path() != "/connectors" {
        return Doer::Here;
    }
    let task = param("task").and_then(|id| id.parse().ok()).zip(connector);
    let standing = herder.standing().clone();
    if let Some((id, name)) = task {
        let work = Work::Task(name, id);
        if standing.has(&work) {
            return Doer::Here;
        }
        if standing.leads() {
            let owner = herder.round.borrow().owner(&work).cloned();
            return owner.map_or(Doer::Here, |owner| Doer::There(owner.url));
        }
    }
    match standing.leader() {
        _ if standing.leads() => Doer::Here,
        Some(leader) => Doer::There(leader.url.clone()),
        None => Doer::Nobody,
    }
}

/// The query of a request that is brought on; none where it was brought on often enough.
fn next_query(uri: &Uri) -> Option<String> {
    let pairs = uri.query().unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
    let (hops, others): (Vec<&str>, Vec<&str>) =
        pairs.partition(|pair| pair.split('=').next() == Some(FORWARD));
    let next = match hops.first().and_then(|pair| pair.split_once('=')) {
        None => "true",
        Some((_, "true")) => "false",
        Some(_) => return None,
    };
    let own = format!("{FORWARD}={next}");
    Some(others.into_iter().chain([own.as_str()]).collect::<Vec<_>>().join("&"))
}

/// Where a worker is, and how it is called.
struct There<'a> {
    url: &'a str,
    uri: Uri,
    tls: Option<&'a Tls>,
}

impl<'a> There<'a> {
    fn new(url: &'a str, tls: &'a Tls) -> Result<Self, Refusal> {
        let uri: Uri = url.parse().map_err(|_| Refusal::unreached(url, "it is no URL"))?;
        let is_secure = uri.scheme() == Some(&Scheme::HTTPS);
        Ok(Self { url, uri, tls: is_secure.then_some(tls) })
    }

    /// Whether it knows this worker by its certificate.
    fn knows_us(&self) -> bool {
        self.tls.is_some_and(|tls| tls.identity.is_some())
    }

    fn untrusted(&self, why: String) -> Refusal {
        Refusal::Untrusted { url: self.url.to_owned(), why }
    }
}

/// For whom this worker asks, where the request's headers do not say so. What nobody asks is nobody's,
/// and not this worker's.
fn on_behalf(there: &There<'_>, parts: &Parts) -> Result<Option<HeaderValue>, Refusal> {
    if parts.headers.contains_key(header::AUTHORIZATION) {
        return Ok(None);
    }
    let caller = parts.extensions.get::<Caller>().map(|Caller(name)| name.as_str());
    if there.knows_us() {
        let name = HeaderValue::try_from(segment(caller.unwrap_or_default()));
        return name.map(Some).map_err(|error| Refusal::Broken(error.to_string()));
    }
    match caller {
        None => Ok(None),
        Some(name) => {
            let (url, caller) = (there.url.to_owned(), name.to_owned());
            Err(Refusal::CallerUnknownThere { url, caller })
        }
    }
}

async fn bring(url: &str, tls: &Tls, parts: Parts, body: Body) -> Result<Response, Refusal> {
    let query = next_query(&parts.uri).ok_or_else(Refusal::rebalancing)?;
    let there = There::new(url, tls)?;
    let behalf = on_behalf(&there, &parts)?;
    let body = Limited::new(body, LONGEST_BODY).collect().await;
    let body = body.map_err(|error| {
        Refusal::BadRequest(format!("the body of the request cannot be read: {error}"))
    })?;
    let path = format!("{}?{query}", parts.uri.path());
    let stream = connect(&there).await?;
    let asked = Asked { method: parts.method, path, headers: parts.headers, behalf };
    exchange(&there, stream, asked, body.to_bytes()).await
}

/// Tries whether another worker is reached and answers, whatever that is.
///
/// # Errors
/// Why it is not.
pub(crate) async fn reach(url: &str, tls: &Tls) -> Result<(), Refusal> {
    let there = There::new(url, tls)?;
    let headers = HeaderMap::new();
    let asked = Asked { method: Method::GET, path: PROBE.to_owned(), headers, behalf: None };
    let answer = async { exchange(&there, connect(&there).await?, asked, Bytes::new()).await };
    let silent = format!("no answer within {} ms", PROBE_TIMEOUT.as_millis());
    let answered = timeout(PROBE_TIMEOUT, answer).await;
    answered.unwrap_or_else(|_| Err(Refusal::unreached(url, &silent))).map(drop)
}

struct Asked {
    method: Method,
    path: String,
    headers: HeaderMap,
    behalf: Option<HeaderValue>,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

async fn connect(there: &There<'_>) -> Result<Box<dyn Stream>, Refusal> {
    let host = there.uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let port = there.uri.port_u16().unwrap_or(if there.tls.is_some() { 443 } else { 80 });
    let connecting = async {
        let tcp = TcpStream::connect((host, port)).await;
        let tcp = tcp.map_err(|error| Refusal::unreached(there.url, &error.to_string()))?;
        let _ = tcp.set_nodelay(true);
        let Some(tls) = there.tls else { return Ok(Box::new(tcp) as Box<dyn Stream>) };
        let encrypted = highwater_kafka::encrypt(tls, host, tcp).await;
        encrypted.map(|tls| Box::new(tls) as Box<dyn Stream>).map_err(|why| there.untrusted(why))
    };
    let silent = format!("no connection within {} ms", CONNECT_TIMEOUT.as_millis());
    let connected = timeout(CONNECT_TIMEOUT, connecting).await;
    connected.unwrap_or_else(|_| Err(Refusal::unreached(there.url, &silent)))
}

/// The request as a whole has its own bound.
async fn exchange(
    there: &There<'_>,
    stream: Box<dyn Stream>,
    asked: Asked,
    body: Bytes,
) -> Result<Response, Refusal> {
    let broken = |error: hyper::Error| broken(there, &error);
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let driver = tokio::spawn(connection);
    let request = asked.request(there, body).map_err(|error| cut(there, &error.to_string()))?;
    let answer = sender.send_request(request).await.map_err(broken)?;
    let (parts, body) = answer.into_parts();
    let body = Limited::new(body, LONGEST_BODY).collect().await;
    driver.abort();
    let long = |error| cut(there, &format!("the answer is cut or too long: {error}"));
    let mut response = Response::new(Body::from(body.map_err(long)?.to_bytes()));
    *response.status_mut() = parts.status;
    copy(&parts.headers, response.headers_mut(), &ANSWERED);
    Ok(response)
}

impl Asked {
    fn request(self, there: &There<'_>, body: Bytes) -> axum::http::Result<Request<Full<Bytes>>> {
        let authority = there.url.split("://").last().unwrap_or_default().trim_end_matches('/');
        let mut request = Request::builder()
            .method(self.method)
            .uri(self.path)
            .header(header::HOST, authority)
            .header(header::CONNECTION, "close")
            .body(Full::new(body))?;
        copy(&self.headers, request.headers_mut(), &ASKED);
        request.headers_mut().extend(self.behalf.map(|name| (ON_BEHALF_OF, name)));
        Ok(request)
    }
}

/// What became of a request that was sent is not known.
fn cut(there: &There<'_>, why: &str) -> Refusal {
    let url = there.url;
    Refusal::Broken(format!("IO Error trying to forward REST request: {url}: {why}"))
}

/// A server that does not take our certificate says so after the handshake (TLS 1.3), in place of an
/// answer: nothing was asked of it then.
fn broken(there: &There<'_>, error: &hyper::Error) -> Refusal {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let io = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        if let Some(refused @ rustls::Error::AlertReceived(_)) =
            io.and_then(|inner| inner.downcast_ref())
        {
            return there.untrusted(format!("it does not take our certificate: {refused}"));
        }
        cause = error.source();
    }
    cut(there, &error.to_string())
}

fn copy(from: &HeaderMap, to: &mut HeaderMap, names: &[HeaderName]) {
    for name in names {
        to.extend(from.get(name).map(|value| (name.clone(), value.clone())));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_brought_on_twice_at_most() {
        let next = |path: &str| next_query(&path.parse().unwrap());
        assert_eq!(next("/connectors").unwrap(), "forward=true");
        assert_eq!(next("/c?a=1&forward=true&b=2").unwrap(), "a=1&b=2&forward=false");
        assert_eq!(next("/c?forward=false"), None);
        assert_eq!(next("/c?forward=odd"), None);
    }
}
