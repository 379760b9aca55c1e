//! Accepts connections, at most as many as may be open.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::connection::{self, ConnectionError, stopped};
use crate::counters::{self, OpenConnection};
use crate::node::Node;
use crate::places::{Loss, Place, Places};

/// How long to wait after the system refused to accept, which it does when files run out.
const PAUSE: Duration = Duration::from_millis(50);

/// How often the log says so.
const REPORT_EVERY: Duration = Duration::from_secs(10);

/// Accepts until the broker stops, then waits for the connections to end.
pub(crate) async fn run(node: Arc<Node>, listener: TcpListener) {
    let mut connections = JoinSet::new();
    let mut stopping = node.stopping.clone();
    let mut door = Door { places: Places::new(node.config.limits.connections), reported: None };
    loop {
        tokio::select! {
            biased;
            () = stopped(&mut stopping) => break,
            Some(ended) = connections.join_next() => report_panic(ended),
            accepted = listener.accept() => door.admit(&node, &mut connections, accepted).await,
        }
    }
    drop(listener);
    while let Some(ended) = connections.join_next().await {
        report_panic(ended);
    }
}

/// Lets connections in.
struct Door {
    places: Arc<Places>,
    /// When the log last said that somebody could not be let in.
    reported: Option<Instant>,
}

impl Door {
    async fn admit(
        &mut self,
        node: &Arc<Node>,
        connections: &mut JoinSet<()>,
        accepted: std::io::Result<(TcpStream, SocketAddr)>,
    ) {
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => return self.failed(&error).await,
        };
        if let Some(place) = self.places.take() {
            connections.spawn(serve(Arc::clone(node), stream, peer, place));
        } else {
            counters::turned_away();
            let limit = self.places.limit();
            self.report(|| tracing::warn!(%peer, limit, "turned away: too many clients"));
        }
    }

    /// The system gave no connection. Mostly the process has no file left: the oldest newcomer
    /// gives up its own.
    async fn failed(&mut self, error: &std::io::Error) {
        if error.kind() == std::io::ErrorKind::ConnectionAborted {
            return;
        }
        let replaced = self.places.make_room();
        self.report(|| tracing::warn!(%error, replaced, "no connection could be accepted"));
        tokio::time::sleep(PAUSE).await;
    }

    /// Lets the log say something, not more often than is useful.
    fn report(&mut self, say: impl FnOnce()) {
        if self.reported.is_none_or(|last| last.elapsed() >= REPORT_EVERY) {
            self.reported = Some(Instant::now());
            say();
        }
    }
}

async fn serve(node: Arc<Node>, stream: TcpStream, peer: SocketAddr, place: (Place, Loss)) {
    let _open = OpenConnection::count();
    match connection::serve(node, stream, place).await {
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
