//! Accepts connections, at most as many as may be open.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::connection::{self, stopped};
use crate::counters::{self, OpenConnection};
use crate::node::Node;

/// How long to wait after the system refused to accept, which it does when files run out.
const PAUSE: Duration = Duration::from_millis(50);

/// Accepts until the broker stops, then waits for the connections to end.
pub(crate) async fn run(node: Arc<Node>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    let mut stopping = node.stopping.clone();
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stopping) => break,
            Some(ended) = connections.join_next() => report_panic(ended),
            accepted = listener.accept() => admit(&node, &mut connections, accepted).await,
        }
    }
    drop(listener);
    while let Some(ended) = connections.join_next().await {
        report_panic(ended);
    }
}

async fn admit(
    node: &Arc<Node>,
    connections: &mut JoinSet<()>,
    accepted: std::io::Result<(TcpStream, SocketAddr)>,
) {
    match accepted {
        Ok((_, peer)) if connections.len() >= node.config.limits.connections => {
            counters::turned_away();
            tracing::warn!(%peer, limit = node.config.limits.connections, "turned away: too many connections");
        }
        Ok((stream, peer)) => {
            connections.spawn(serve(Arc::clone(node), stream, peer));
        }
        Err(error) => {
            tracing::warn!(%error, "no connection could be accepted");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn serve(node: Arc<Node>, stream: TcpStream, peer: SocketAddr) {
    let _open = OpenConnection::count();
    if let Err(error) = connection::serve(node, stream).await {
        counters::closed_for_cause();
        tracing::info!(%peer, %error, "connection closed");
    }
}

fn report_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection ended in a fault of the broker");
    }
}
