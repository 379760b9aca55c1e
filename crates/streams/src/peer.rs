//! The client's end of a connection: sending under TCP's backpressure, pings, signs of life, the
//! closing handshake.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use bytes::Bytes;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use parking_lot::Mutex;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use crate::closing::{CloseCode, Ending};
use crate::pump::Outlet;

/// When a connection counts as dead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Liveness {
    /// How often the client is pinged.
    pub(crate) ping_every: Duration,
    /// How long it may neither answer nor take anything.
    pub(crate) silence: Duration,
}

/// Where messages go. Shared by what sends and what pings.
pub(crate) struct Peer {
    sink: tokio::sync::Mutex<SplitSink<WebSocket, Message>>,
    alive: Mutex<Instant>,
}

/// Where frames come from.
pub(crate) struct Inbox {
    frames: SplitStream<WebSocket>,
}

pub(crate) fn split(socket: WebSocket) -> (Peer, Inbox) {
    let (sink, frames) = socket.split();
    let peer = Peer { sink: tokio::sync::Mutex::new(sink), alive: Mutex::new(Instant::now()) };
    (peer, Inbox { frames })
}

impl Outlet for Peer {
    /// Sends a text message and waits until the network took it. That a client takes data is a
    /// sign of life, for it may be too busy reading to answer a ping that stands behind the data.
    async fn send(&self, text: Bytes) -> Result<(), Ending> {
        // The text is JSON that this crate wrote out of valid UTF-8.
        let text = Utf8Bytes::try_from(text).map_err(|_| Ending::Left)?;
        let sent = self.sink.lock().await.send(Message::Text(text)).await;
        self.lives();
        sent.map_err(|_| Ending::Left)
    }
}

impl Peer {
    fn lives(&self) {
        *self.alive.lock() = Instant::now();
    }

    fn silent_for(&self) -> Duration {
        self.alive.lock().elapsed()
    }

    /// Pings, unless a message is being sent: then the client has enough to answer to.
    async fn ping(&self) {
        const BRIEFLY: Duration = Duration::from_millis(200);
        if let Ok(mut sink) = self.sink.try_lock() {
            // Whether the client lives shows in what comes back.
            let _ = timeout(BRIEFLY, sink.send(Message::Ping(Bytes::new()))).await;
        }
    }

    async fn close(&self, code: CloseCode, reason: &str) -> Result<(), axum::Error> {
        let frame = CloseFrame { code: code as u16, reason: reason.into() };
        self.sink.lock().await.send(Message::Close(Some(frame))).await
    }
}

impl Inbox {
    /// Listens until the connection has to end.
    pub(crate) async fn listen(&mut self, peer: &Peer, liveness: Liveness) -> Ending {
        let mut ticks = interval(liveness.ping_every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                frame = self.frames.next() => {
                    peer.lives();
                    if let Some(ending) = judge(frame) {
                        return ending;
                    }
                }
                _ = ticks.tick() => {
                    if peer.silent_for() > liveness.silence {
                        return silent(liveness);
                    }
                    peer.ping().await;
                }
            }
        }
    }

    /// Sends the last message and the close frame, and waits for the client's own; all within
    /// `time` each, for the client may be gone.
    pub(crate) async fn finish(
        mut self,
        peer: &Peer,
        last: Option<Bytes>,
        code: CloseCode,
        reason: &str,
        time: Duration,
    ) {
        let closing = async {
            if let Some(last) = last {
                peer.send(last).await.ok()?;
            }
            peer.close(code, reason).await.ok()
        };
        if let Ok(Some(())) = timeout(time, closing).await {
            // Unread frames at the end of a TCP connection would reset it, and with it take away
            // what the client has not read yet.
            let drained = async { while let Some(Ok(_)) = self.frames.next().await {} };
            let _ = timeout(time, drained).await;
        }
    }
}

/// What a frame from the client means for the connection: nothing is sent by it but control
/// frames.
fn judge(frame: Option<Result<Message, axum::Error>>) -> Option<Ending> {
    match frame {
        Some(Ok(Message::Ping(_) | Message::Pong(_))) => None,
        Some(Ok(Message::Text(_) | Message::Binary(_))) => Some(Ending::closed(
            CloseCode::ProtocolError,
            "message_unexpected",
            "the client sent a message; a stream takes none",
            "send nothing after the upgrade",
        )),
        Some(Err(error)) if is_too_large(&error) => Some(Ending::closed(
            CloseCode::TooLarge,
            "message_too_large",
            "the client sent a large message; a stream takes none",
            "send nothing after the upgrade",
        )),
        Some(Ok(Message::Close(_)) | Err(_)) | None => Some(Ending::Left),
    }
}

/// The library hides its error behind a box; its text is all that tells this one.
fn is_too_large(error: &axum::Error) -> bool {
    error.to_string().contains("too long") || error.to_string().contains("too large")
}

fn silent(liveness: Liveness) -> Ending {
    Ending::closed(
        CloseCode::Liveness,
        "client_silent",
        format!("the client neither answered nor took anything for {:?}", liveness.silence),
        "reconnect with the last pos; read on while processing, or raise tcpKeepAliveTimeout",
    )
}
