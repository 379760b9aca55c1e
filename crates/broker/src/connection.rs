//! One connection: requests are begun in order, answered in order, and a bounded number at once.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;

use crate::counters;
use crate::dispatch::{self, Refused};
use crate::frame::{FrameError, FramePolicy, FrameReader};
use crate::node::Node;
use crate::reply::{Answer, Reply};

/// Why a connection ends before its peer ended it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("no memory became free for an answer for {0:?}")]
    NoMemory(Duration),
    #[error("the peer took no byte of a response for {0:?}")]
    Stalled(Duration),
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
pub(crate) async fn serve(node: Arc<Node>, stream: TcpStream) -> Result<(), ConnectionError> {
    stream.set_nodelay(true)?;
    let limits = &node.config.limits;
    let (reader, writer) = stream.into_split();
    let (begun, due) = mpsc::channel(limits.in_flight.max(1));
    let mut writing = std::pin::pin!(write_answers(due, writer, limits.stall));
    let frames = FrameReader::new(reader, node.memory.clone());
    tokio::select! {
        ended = read_requests(&node, frames, begun) => match ended? {
            Ended::PeerGone => Ok(()),
            Ended::Stopping => writing.await,
        },
        written = &mut writing => written,
    }
}

async fn read_requests(
    node: &Arc<Node>,
    mut frames: FrameReader<OwnedReadHalf>,
    begun: mpsc::Sender<Reply>,
) -> Result<Ended, ConnectionError> {
    let policy = policy(node);
    let mut stopping = node.stopping.clone();
    loop {
        let frame = tokio::select! {
            biased;
            () = stopped(&mut stopping) => return Ok(Ended::Stopping),
            frame = frames.next(&policy) => frame?,
        };
        let Some(frame) = frame else { return Ok(Ended::PeerGone) };
        counters::received(frame.bytes.len());
        let place = tokio::select! {
            place = begun.reserve() => place,
            () = frames.gone() => return Ok(Ended::PeerGone),
        };
        let Ok(place) = place else { return Ok(Ended::PeerGone) };
        let mut reply = dispatch::begin(node, frame.bytes).await?;
        drop(frame.share);
        cover(node, &mut reply).await?;
        place.send(reply);
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
        stall: limits.stall,
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
    stall: Duration,
) -> Result<(), ConnectionError> {
    while let Some(reply) = due.recv().await {
        let answer = match reply {
            Reply::Ready(answer) => answer,
            Reply::Later(answer) => answer.await,
            Reply::Silent => continue,
        };
        write(answer, &mut writer, stall).await?;
    }
    Ok(())
}

async fn write(
    answer: Answer,
    writer: &mut (impl AsyncWrite + Unpin),
    stall: Duration,
) -> Result<(), ConnectionError> {
    let Answer { mut bytes, share } = answer;
    counters::sent(bytes.len());
    while !bytes.is_empty() {
        let written = timeout(stall, writer.write_buf(&mut bytes)).await;
        if written.map_err(|_| ConnectionError::Stalled(stall))?? == 0 {
            return Err(std::io::Error::from(std::io::ErrorKind::WriteZero).into());
        }
    }
    drop(share);
    Ok(())
}
