//! Requests that another worker has to do: changes are the leader's, and a task is started anew by who
//! runs it. They are brought there, and the answer is brought back.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts as _, RawPathParams, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, Method, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::assignment::Work;
use crate::herder::Herder;
use crate::rest_error::Refusal;
use crate::rest_tls;

/// How long another worker may take to be connected to.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// No body that goes there or comes back is longer.
const LONGEST_BODY: usize = 16 << 20;

/// What says how often a request may be brought on, as between Kafka Connect's workers.
const FORWARD: &str = "forward";

/// What is passed on of the request: who asks, and what is brought.
const ASKED: [HeaderName; 3] = [header::AUTHORIZATION, header::CONTENT_TYPE, header::ACCEPT];

/// What is passed back.
const ANSWERED: [HeaderName; 4] =
    [header::CONTENT_TYPE, header::LOCATION, header::ALLOW, header::WWW_AUTHENTICATE];

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
    let answer = bring(&url, parts, body).await;
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

async fn bring(url: &str, parts: Parts, body: Body) -> Result<Response, Refusal> {
    let query = next_query(&parts.uri).ok_or_else(Refusal::rebalancing)?;
    let body = Limited::new(body, LONGEST_BODY).collect().await;
    let body = body.map_err(|error| {
        Refusal::BadRequest(format!("the body of the request cannot be read: {error}"))
    })?;
    let path = format!("{}?{query}", parts.uri.path());
    let stream = connect(url).await.map_err(|why| Refusal::unreached(url, &why))?;
    let asked = Asked { method: parts.method, path, headers: parts.headers };
    exchange(url, stream, asked, body.to_bytes()).await.map_err(|why| {
        Refusal::Broken(format!("IO Error trying to forward REST request: {url}: {why}"))
    })
}

struct Asked {
    method: Method,
    path: String,
    headers: HeaderMap,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

async fn connect(url: &str) -> Result<Box<dyn Stream>, String> {
    let uri: Uri = url.parse().map_err(|_| "it is no URL".to_owned())?;
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    let is_tls = uri.scheme_str() == Some("https");
    let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
    let connecting = async {
        let tcp = TcpStream::connect((host, port)).await.map_err(|error| error.to_string())?;
        let _ = tcp.set_nodelay(true);
        if is_tls {
            return rest_tls::connect(host, tcp).await.map(|tls| Box::new(tls) as Box<dyn Stream>);
        }
        Ok(Box::new(tcp) as Box<dyn Stream>)
    };
    match timeout(CONNECT_TIMEOUT, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(format!("no connection within {} ms", CONNECT_TIMEOUT.as_millis())),
    }
}

/// The request as a whole has its own bound.
async fn exchange(
    url: &str,
    stream: Box<dyn Stream>,
    asked: Asked,
    body: Bytes,
) -> Result<Response, String> {
    let said = |error: hyper::Error| error.to_string();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(said)?;
    let driver = tokio::spawn(connection);
    let authority = url.split("://").last().unwrap_or_default().trim_end_matches('/');
    let mut request = Request::builder()
        .method(asked.method)
        .uri(asked.path)
        .header(header::HOST, authority)
        .header(header::CONNECTION, "close")
        .body(Full::new(body))
        .map_err(|error| error.to_string())?;
    copy(&asked.headers, request.headers_mut(), &ASKED);
    let answer = sender.send_request(request).await.map_err(said)?;
    let (parts, body) = answer.into_parts();
    let body = Limited::new(body, LONGEST_BODY).collect().await;
    driver.abort();
    let body = body.map_err(|error| format!("the answer is cut or too long: {error}"))?;
    let mut response = Response::new(Body::from(body.to_bytes()));
    *response.status_mut() = parts.status;
    copy(&parts.headers, response.headers_mut(), &ANSWERED);
    Ok(response)
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
