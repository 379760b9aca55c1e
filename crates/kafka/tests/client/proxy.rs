//! A place between client and broker where connections are cut and answers held up.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Line {
    Open,
    /// Requests pass, answers wait.
    Stalled,
    /// No connection stands.
    Closed,
}

#[derive(Clone, Copy, Debug)]
struct State {
    line: Line,
    broker: Option<SocketAddr>,
    /// How often all connections were cut.
    cuts: usize,
    /// Bytes that may still pass, either way, before all connections are cut.
    allowance: Option<usize>,
}

impl State {
    /// How many of `count` bytes may pass; with the last of the allowance all connections are cut.
    fn spend(&mut self, count: usize) -> usize {
        let Some(left) = self.allowance else { return count };
        if count < left {
            self.allowance = Some(left - count);
            return count;
        }
        self.allowance = None;
        self.cuts += 1;
        left
    }
}

pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    state: Arc<watch::Sender<State>>,
    listening: JoinHandle<()>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Proxy {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(watch::Sender::new(State {
            line: Line::Open,
            broker: None,
            cuts: 0,
            allowance: None,
        }));
        let shared = Arc::clone(&state);
        let listening = tokio::spawn(async move {
            let mut lines = JoinSet::new();
            loop {
                let (client, _) = listener.accept().await.unwrap();
                lines.spawn(join(client, Arc::clone(&shared)));
            }
        });
        Self { address, state, listening }
    }

    pub(crate) fn set(&self, line: Line) {
        self.state.send_modify(|state| state.line = line);
        if line == Line::Closed {
            self.cut();
        }
    }

    /// Ends all connections; new ones may be made at once.
    pub(crate) fn cut(&self) {
        self.state.send_modify(|state| state.cuts += 1);
    }

    /// Ends all connections once so many more bytes have passed, either way.
    pub(crate) fn cut_after(&self, bytes: usize) {
        self.state.send_modify(|state| state.allowance = Some(bytes));
    }

    pub(crate) fn lead_to(&self, broker: SocketAddr) {
        self.state.send_modify(|state| state.broker = Some(broker));
    }
}

async fn join(client: TcpStream, shared: Arc<watch::Sender<State>>) {
    let mut state = shared.subscribe();
    let State { line, broker: Some(broker), cuts, .. } = *state.borrow_and_update() else { return };
    if line == Line::Closed {
        return;
    }
    let Ok(broker) = TcpStream::connect(broker).await else { return };
    let (from_client, to_client) = client.into_split();
    let (from_broker, to_broker) = broker.into_split();
    let answers = state.clone();
    tokio::select! {
        _ = state.wait_for(|state| state.cuts != cuts) => {}
        () = pass(from_client, to_broker, None, &shared) => {}
        () = pass(from_broker, to_client, Some(answers), &shared) => {}
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mut gate: Option<watch::Receiver<State>>,
    shared: &watch::Sender<State>,
) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        if let Some(gate) = &mut gate {
            let _ = gate.wait_for(|state| state.line != Line::Stalled).await;
        }
        let mut passed = read;
        shared.send_if_modified(|state| {
            let cuts = state.cuts;
            passed = state.spend(read);
            state.cuts != cuts
        });
        if to.write_all(&buffer[..passed]).await.is_err() || passed < read {
            return;
        }
    }
}
