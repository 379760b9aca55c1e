//! Accepts connections, at most as many as may be open.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::connection::{self, ConnectionError, stopped};
use crate::counters::{self, OpenConnection};
use crate::node::Node;
use crate::places::{Door, Loss, Place};

/// Accepts until the broker stops, then waits for the connections to end.
pub(crate) async fn run(node: Arc<Node>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    let mut stopping = node.stopping.clone();
    let limits = &node.config.limits;
    let (places, per_address) = (limits.connections, limits.connections_per_address);
    let mut door =
        Door::with_places_per_address("Kafka", places, per_address, counters::turned_away);
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stopping) => break,
            Some(ended) = connections.join_next() => report_panic(ended),
            accepted = listener.accept() => {
                if let Some((stream, peer, place)) = door.admit(accepted).await {
                    connections.spawn(serve(Arc::clone(&node), stream, peer, place));
                }
            }
        }
    }
    drop(listener);
    while let Some(ended) = connections.join_next().await {
        report_panic(ended);
    }
}

async fn serve(node: Arc<Node>, stream: TcpStream, peer: SocketAddr, place: (Place, Loss)) {
    let _open = OpenConnection::count();
    match connection::serve(node, stream, peer, place).await {
        Ok(()) => {}
        Err(ConnectionError::Replaced) => {
            counters::replaced();
            // As many lines as somebody likes to open connections would hide all others.
            tracing::debug!(%peer, error = %ConnectionError::Replaced, "connection closed");
        }
        Err(error) => {
            counters::closed_for_cause();
            tracing::info!(%peer, %error, "connection closed");
        }
    }
}

fn report_panic(ended: Result<(), tokio::task::JoinError>) {
    if let Err(error) = ended {
        tracing::error!(%error, "a connection ended in a fault of the broker");
    }
}
