//! Serves HTTP connections within bounds: their number, the size of a request's head, and the time
//! that its parts may take. Bodies have theirs in `http_body`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use highwater_access::Certificate;
use highwater_broker::{Door, Loss, Place, Tls};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use metrics::{counter, describe_counter, describe_gauge, gauge};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::http_access::PeerSubject;
use crate::http_stall::{Release, StallGuard};

/// How long a connection may take to bring a request's head, from the end of the answer before it.
const HEAD_PATIENCE: Duration = Duration::from_secs(30);
/// How long a peer may take no byte of an answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(30);
/// Request line and headers together; the longest `pos` of a stream is half of it.
const LARGEST_HEAD: usize = 32 << 10;

/// Accepts until `stopping`, then lets requests that are under way end.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<Arc<Tls>>,
    router: Router,
    connections: usize,
    stopping: watch::Receiver<bool>,
) {
    let mut door = Door::new("HTTP", connections, turned_away);
    let mut serving = JoinSet::new();
    let mut stop = stopping.clone();
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stop) => break,
            Some(_) = serving.join_next() => {}
            accepted = listener.accept() => if let Some((stream, peer, place)) = door.admit(accepted).await {
                let connection = (stream, peer, tls.clone());
                serving.spawn(serve_connection(connection, router.clone(), place, stopping.clone()));
            },
        }
    }
    drop(listener);
    while serving.join_next().await.is_some() {}
}

/// Tells the recorder what the numbers mean.
pub(crate) fn describe_metrics() {
    describe_gauge!(
        "highwater_http_connections",
        "HTTP connections that are open, WebSockets apart"
    );
    describe_counter!(
        "highwater_http_connections_refused_total",
        "HTTP connections turned away because as many clients were connected as may be"
    );
    describe_counter!(
        "highwater_http_tls_failures_total",
        "HTTP connections that ended in the handshake of TLS"
    );
    // There from the start, so that the first of them is an increase.
    counter!("highwater_http_connections_refused_total").absolute(0);
    counter!("highwater_http_tls_failures_total").absolute(0);
}

/// Waits for the shutdown.
async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // An error means that the server is gone, which is as good a reason to stop.
    let _ = stopping.wait_for(|stop| *stop).await;
}

fn turned_away() {
    counter!("highwater_http_connections_refused_total").increment(1);
}

/// A connection that is counted as open until dropped.
struct Open;

impl Open {
    fn count() -> Self {
        gauge!("highwater_http_connections").increment(1.0);
        Self
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        gauge!("highwater_http_connections").decrement(1.0);
    }
}

async fn serve_connection(
    (stream, peer, tls): (TcpStream, SocketAddr, Option<Arc<Tls>>),
    router: Router,
    (place, loss): (Place, Loss),
    stopping: watch::Receiver<bool>,
) {
    let _open = Open::count();
    let release = Release::default();
    let stream = StallGuard::new(stream, ANSWER_PATIENCE, release.clone());
    let mut stop = stopping.clone();
    let serving = async move {
        let Some(tls) = tls else {
            return speak(stream, (peer, None), router, place, release, stopping).await;
        };
        let secured = tokio::select! {
            secured = secured(stream, &tls) => secured,
            () = stopped(&mut stop) => return,
        };
        // What goes wrong with a handshake is its peer's affair.
        let Some((stream, subject)) = secured else {
            return counter!("highwater_http_tls_failures_total").increment(1);
        };
        speak(stream, (peer, subject), router, place, release, stopping).await;
    };
    tokio::select! {
        () = serving => {}
        () = loss.came() => {}
    }
}

/// The connection behind TLS, and whose certificate it came with. Who says nothing has no longer for it
/// than who brings no request.
async fn secured(
    stream: StallGuard,
    tls: &Tls,
) -> Option<(impl AsyncRead + AsyncWrite + Unpin + Send + use<>, Option<PeerSubject>)> {
    let secured = tokio::time::timeout(HEAD_PATIENCE, tls.acceptor().accept(stream)).await;
    let stream = secured.ok()?.ok()?;
    let chain = stream.get_ref().1.peer_certificates();
    let certificate = chain.and_then(|chain| Certificate::read(chain.first()?));
    let subject = certificate.map(|certificate| PeerSubject(certificate.subject.into()));
    Some((stream, subject))
}

/// Answers the requests of a connection.
async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    (peer, subject): (SocketAddr, Option<PeerSubject>),
    router: Router,
    place: Place,
    release: Release,
    mut stopping: watch::Receiver<bool>,
) {
    let io = TokioIo::new(stream);
    let inner = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        place.keep();
        // Handlers may ask who it is.
        request.extensions_mut().insert(ConnectInfo(peer));
        if let Some(subject) = &subject {
            request.extensions_mut().insert(subject.clone());
        }
        let (answer, release) = (inner.call(request), release.clone());
        async move {
            let answer = answer.await;
            if answer
                .as_ref()
                .is_ok_and(|answer| answer.status() == StatusCode::SWITCHING_PROTOCOLS)
            {
                release.now();
            }
            answer
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_PATIENCE)
        .max_header_size(LARGEST_HEAD)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(io, service)
        .with_upgrades();
    let mut connection = std::pin::pin!(connection);
    // What goes wrong with a connection is its peer's affair.
    let _ = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stopped(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
}
