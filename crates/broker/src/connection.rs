//! One connection: requests are begun in order, answered in order, and a bounded number at once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use highwater_access::Principal;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::counters;
use crate::dispatch::{self, Refused};
use crate::frame::{Frame, FrameError, FramePolicy, FrameReader};
use crate::gate::Gate;
use crate::node::Node;
use crate::pace::{Pace, TooSlow};
use crate::places::{Loss, Place};
use crate::reply::{Answer, Reply};
use crate::session::Session;

/// Why a connection ends before its peer ended it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("no memory became free for an answer for {0:?}")]
    NoMemory(Duration),
    #[error("a response is not taken: {0}")]
    Slow(#[from] TooSlow),
    #[error("its place went to another one before it brought a whole request")]
    Replaced,
    #[error("writing failed: {0}")]
    Write(#[from] std::io::Error),
}

/// How the reading side came to its end without an error.
enum Ended {
    /// Nobody waits for the answers that are still due.
    PeerGone,
    /// The answers that are under way are still given.
    Stopping,
}

/// Serves a connection until its peer, an error or the shutdown ends it.
pub(crate) async fn serve(
    node: Arc<Node>,
    stream: TcpStream,
    peer: SocketAddr,
    (place, loss): (Place, Loss),
) -> Result<(), ConnectionError> {
    stream.set_nodelay(true)?;
    let (reader, writer) = stream.into_split();
    let mut frames = FrameReader::new(reader, node.memory.clone());
    let policy = policy(&node);
    let first = tokio::select! {
        first = next(&node, &mut frames, &policy) => first?,
        () = loss.came() => return Err(ConnectionError::Replaced),
    };
    let Some(first) = first else { return Ok(()) };
    place.keep();
    // Most of a connection's memory; who only connects does not get it.
    let principal = node.config.access.everybody().unwrap_or(Principal::Anonymous);
    let gate = Gate { session: Arc::new(Session::new(principal, peer)), node };
    Box::pin(answer_requests(&gate, first, frames, policy, writer)).await
}

/// The next frame; none when the peer or the broker ends.
async fn next(
    node: &Node,
    frames: &mut FrameReader<OwnedReadHalf>,
    policy: &FramePolicy,
) -> Result<Option<Frame>, ConnectionError> {
    let mut stopping = node.stopping.clone();
    tokio::select! {
        biased;
        () = stopped(&mut stopping) => Ok(None),
        frame = frames.next(policy) => Ok(frame?),
    }
}

async fn answer_requests(
    gate: &Gate,
    first: Frame,
    frames: FrameReader<OwnedReadHalf>,
    policy: FramePolicy,
    writer: OwnedWriteHalf,
) -> Result<(), ConnectionError> {
    let (begun, due) = mpsc::channel(gate.node.config.limits.in_flight.max(1));
    let mut writing = std::pin::pin!(write_answers(due, writer, policy.pace));
    tokio::select! {
        ended = read_requests(gate, first, frames, &policy, begun) => match ended? {
            Ended::PeerGone => Ok(()),
            Ended::Stopping => writing.await,
        },
        written = &mut writing => written,
    }
}

async fn read_requests(
    gate: &Gate,
    first: Frame,
    mut frames: FrameReader<OwnedReadHalf>,
    policy: &FramePolicy,
    begun: mpsc::Sender<Reply>,
) -> Result<Ended, ConnectionError> {
    let node = &gate.node;
    let mut frame = first;
    loop {
        counters::received(frame.bytes.len());
        let place = tokio::select! {
            place = begun.reserve() => place,
            () = frames.gone() => return Ok(Ended::PeerGone),
        };
        let Ok(place) = place else { return Ok(Ended::PeerGone) };
        let mut reply = dispatch::begin(gate, frame.bytes).await?;
        drop(frame.share);
        cover(node, &mut reply).await?;
        place.send(reply);
        frame = match next(node, &mut frames, policy).await? {
            Some(frame) => frame,
            None if *node.stopping.borrow() => return Ok(Ended::Stopping),
            None => return Ok(Ended::PeerGone),
        };
    }
}

/// Answers that wait to be written take memory, too; a peer that does not read them runs out of it.
async fn cover(node: &Node, reply: &mut Reply) -> Result<(), ConnectionError> {
    let Reply::Ready(answer) = reply else { return Ok(()) };
    let stall = node.config.limits.stall;
    timeout(stall, node.memory.cover(&mut answer.share, answer.bytes.len()))
        .await
        .map_err(|_| ConnectionError::NoMemory(stall))
}

fn policy(node: &Arc<Node>) -> FramePolicy {
    let limits = node.config.limits.clone();
    FramePolicy {
        idle: limits.idle,
        pace: Pace::new(limits.stall, limits.bytes_per_second),
        limit: Box::new(move |key, version| dispatch::frame_limit(key, version, &limits)),
    }
}

/// Waits for the shutdown.
pub(crate) async fn stopped(stopping: &mut watch::Receiver<bool>) {
    // A dropped sender is a dropped broker.
    let _ = stopping.wait_for(|stop| *stop).await;
}

async fn write_answers(
    mut due: mpsc::Receiver<Reply>,
    mut writer: impl AsyncWrite + Unpin,
    pace: Pace,
) -> Result<(), ConnectionError> {
    while let Some(reply) = due.recv().await {
        let answer = match reply {
            Reply::Ready(answer) => answer,
            Reply::Later(answer) => answer.await,
            Reply::Silent => continue,
        };
        write(answer, &mut writer, pace.begin()).await?;
    }
    Ok(())
}

async fn write(
    answer: Answer,
    writer: &mut (impl AsyncWrite + Unpin),
    mut pace: Pace,
) -> Result<(), ConnectionError> {
    let Answer { mut bytes, share } = answer;
    counters::sent(bytes.len());
    pace.allow(bytes.len());
    while !bytes.is_empty() {
        if pace.keep(writer.write_buf(&mut bytes)).await?? == 0 {
            return Err(std::io::Error::from(std::io::ErrorKind::WriteZero).into());
        }
    }
    drop(share);
    Ok(())
}
