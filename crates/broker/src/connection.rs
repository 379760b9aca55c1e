//! One connection: requests are begun in order, answered in order, and a bounded number at once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use highwater_access::Principal;
use highwater_coordinator::blocking;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{sleep, timeout};

use crate::counters;
use crate::dispatch::{self, Refused};
use crate::frame::{Frame, FrameError, FramePolicy, FrameReader};
use crate::gate::Gate;
use crate::node::Node;
use crate::outlet::Outlet;
use crate::pace::{Pace, TooSlow};
use crate::places::{Loss, Place};
use crate::reply::{Answer, Part, Reply};
use crate::sasl::{Entrance, LoginError, Taken};
use crate::session::{Origin, Session};
use crate::stream::{Channel, Sink, Source};

/// Bytes of a slice that are read at once, to be sent under TLS.
const PIECE: u64 = 64 << 10;

/// How long the end of a connection may take to go out.
const PARTING: Duration = Duration::from_secs(1);

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
    #[error("TLS failed: {0}")]
    Tls(std::io::Error),
    #[error("TLS and login took longer than {0:?}")]
    LoginTooSlow(Duration),
    #[error(transparent)]
    Login(#[from] LoginError),
    #[error("no rule makes a user of the certificate of {0:?}")]
    Subject(String),
    #[error("writing failed: {0}")]
    Write(#[from] std::io::Error),
}

/// How the reading side came to its end without an error.
enum Ended {
    /// Nobody waits for the answers that are still due.
    PeerGone,
    /// The answers that are under way are still given.
    Stopping,
    /// The same, for another reason.
    LoginFailed(LoginError),
}

/// Serves a connection until its peer, an error or the shutdown ends it.
pub(crate) async fn serve(
    node: Arc<Node>,
    stream: TcpStream,
    peer: SocketAddr,
    (place, loss): (Place, Loss),
) -> Result<(), ConnectionError> {
    stream.set_nodelay(true)?;
    let entered = tokio::select! {
        entered = Box::pin(enter(node, stream, peer)) => entered?,
        () = loss.came() => return Err(ConnectionError::Replaced),
    };
    let Some(entered) = entered else { return Ok(()) };
    place.keep();
    // Most of a connection's memory; who only connects does not get it.
    Box::pin(answer_requests(entered)).await
}

/// A connection whose session is known, with its first request.
struct Entered {
    entrance: Entrance,
    gate: Gate,
    first: Frame,
    frames: FrameReader<Source>,
    policy: FramePolicy,
    sink: Sink,
}

/// What a stranger goes through: TLS, a login, a whole request. Nothing when it goes away.
async fn enter(
    node: Arc<Node>,
    stream: TcpStream,
    peer: SocketAddr,
) -> Result<Option<Entered>, ConnectionError> {
    let within = node.config.limits.login;
    let identified = timeout(within, identify(&node, stream, peer)).await;
    let Some((mut frames, sink, gate, is_tls)) =
        identified.map_err(|_| ConnectionError::LoginTooSlow(within))??
    else {
        return Ok(None);
    };
    let policy = policy(&node);
    let Some(first) = next(&node, &mut frames, &policy).await? else { return Ok(None) };
    let entrance = Entrance::new(gate.clone(), is_tls);
    Ok(Some(Entered { entrance, gate, first, frames, policy, sink }))
}

type Identified = (FrameReader<Source>, Sink, Gate, bool);

/// Finds out who it is.
async fn identify(
    node: &Arc<Node>,
    stream: TcpStream,
    peer: SocketAddr,
) -> Result<Option<Identified>, ConnectionError> {
    let channel = match &node.config.tls {
        None => Channel::plain(stream),
        Some(tls) => {
            let secured = tls.acceptor().accept(stream).await;
            Channel::tls(secured.map_err(ConnectionError::Tls)?)
        }
    };
    let Channel { source, mut sink, is_tls, certificate } = channel;
    let mut frames = FrameReader::new(source, node.memory.clone());
    let gate = |session| Gate { session: Arc::new(session), node: Arc::clone(node) };
    let session = match (node.config.access.everybody(), certificate) {
        (Some(everybody), _) => Some(Session::new(everybody, peer, Origin::Unlocked)),
        (None, Some(certificate)) => Some(certified(node, &certificate.subject, peer)?),
        (None, None) => {
            let stranger = gate(Session::new(Principal::Anonymous, peer, Origin::Unlocked));
            let login = log_in(Entrance::new(stranger, is_tls), node, &mut frames, &mut sink);
            Box::pin(login).await?
        }
    };
    Ok(session.map(|session| (frames, sink, gate(session), is_tls)))
}

/// Who has a certificate with this subject.
fn certified(node: &Node, subject: &str, peer: SocketAddr) -> Result<Session, ConnectionError> {
    let user = node.config.subjects.user(subject);
    let user = user.ok_or_else(|| ConnectionError::Subject(subject.to_owned()))?;
    Ok(Session::new(Principal::user(&user), peer, Origin::Certificate))
}

/// Lets a stranger log in; nothing else is answered, one message comes after the other, and each is
/// small. Nothing when the peer goes away.
async fn log_in(
    mut entrance: Entrance,
    node: &Arc<Node>,
    frames: &mut FrameReader<Source>,
    sink: &mut Sink,
) -> Result<Option<Session>, ConnectionError> {
    let longest = node.config.limits.unknown_frame_bytes;
    let policy = FramePolicy { limit: Box::new(move |_, _| longest), ..policy(node) };
    let mut stopping = node.stopping.clone();
    loop {
        let next = async {
            match entrance.takes_raw() {
                true => frames.next_raw(&policy, longest).await,
                false => frames.next(&policy).await,
            }
        };
        let frame = tokio::select! {
            biased;
            () = stopped(&mut stopping) => None,
            frame = next => frame?,
        };
        let Some(frame) = frame else { return Ok(None) };
        counters::received(frame.bytes.len());
        match entrance.take(frame.bytes).await? {
            Taken::Answered(answer) => write(answer, sink, policy.pace.begin()).await?,
            Taken::LoggedIn(answer, session) => {
                write(answer, sink, policy.pace.begin()).await?;
                return Ok(Some(session));
            }
            Taken::Failed(answer, error) => {
                sleep(node.config.sasl.failure_delay).await;
                if let Some(answer) = answer {
                    write(answer, sink, policy.pace.begin()).await?;
                    part(sink).await;
                }
                return Err(error.into());
            }
        }
    }
}

/// Ends what goes out, so that the peer reads it to its end.
async fn part(sink: &mut Sink) {
    let _ = timeout(PARTING, sink.shutdown()).await;
}

/// The next frame; none when the peer or the broker ends.
async fn next(
    node: &Node,
    frames: &mut FrameReader<Source>,
    policy: &FramePolicy,
) -> Result<Option<Frame>, ConnectionError> {
    let mut stopping = node.stopping.clone();
    tokio::select! {
        biased;
        () = stopped(&mut stopping) => Ok(None),
        frame = frames.next(policy) => Ok(frame?),
    }
}

async fn answer_requests(entered: Entered) -> Result<(), ConnectionError> {
    let Entered { entrance, gate, first, frames, policy, sink } = entered;
    let (begun, due) = mpsc::channel(gate.node.config.limits.in_flight.max(1));
    let mut writing = std::pin::pin!(write_answers(due, sink, policy.pace));
    let requests = Requests { entrance, gate, frames, policy, begun };
    tokio::select! {
        ended = requests.read(first) => match ended? {
            Ended::PeerGone => Ok(()),
            Ended::Stopping => writing.await,
            Ended::LoginFailed(error) => {
                writing.await?;
                Err(error.into())
            }
        },
        written = &mut writing => written,
    }
}

/// The reading side of a connection.
struct Requests {
    entrance: Entrance,
    gate: Gate,
    frames: FrameReader<Source>,
    policy: FramePolicy,
    begun: mpsc::Sender<Reply>,
}

impl Requests {
    async fn read(mut self, first: Frame) -> Result<Ended, ConnectionError> {
        let node = Arc::clone(&self.gate.node);
        let mut frame = first;
        loop {
            counters::received(frame.bytes.len());
            let begun = self.begun.clone();
            let place = tokio::select! {
                place = begun.reserve() => place,
                () = self.frames.gone() => return Ok(Ended::PeerGone),
            };
            let Ok(place) = place else { return Ok(Ended::PeerGone) };
            let (mut reply, failed) = self.begin(frame.bytes).await?;
            drop(frame.share);
            cover(&node, &mut reply).await?;
            place.send(reply);
            if let Some(error) = failed {
                return Ok(Ended::LoginFailed(error));
            }
            frame = match next(&node, &mut self.frames, &self.policy).await? {
                Some(frame) => frame,
                None if *node.stopping.borrow() => return Ok(Ended::Stopping),
                None => return Ok(Ended::PeerGone),
            };
        }
    }

    /// Begins a request, or a step of a login again.
    async fn begin(
        &mut self,
        frame: Bytes,
    ) -> Result<(Reply, Option<LoginError>), ConnectionError> {
        if !self.entrance.takes_again(&self.gate.session, &frame) {
            if self.gate.session.is_over() {
                return Err(Refused::LoginOver.into());
            }
            if self.gate.is_gone() {
                return Err(Refused::Removed.into());
            }
            return Ok((dispatch::begin(&self.gate, frame).await?, None));
        }
        match self.entrance.take(frame).await? {
            Taken::Answered(answer) => Ok((Reply::Ready(answer), None)),
            Taken::LoggedIn(answer, session) => {
                self.gate.session = Arc::new(session);
                Ok((Reply::Ready(answer), None))
            }
            Taken::Failed(answer, error) => {
                let delay = self.gate.node.config.sasl.failure_delay;
                let late = |answer| async move {
                    sleep(delay).await;
                    answer
                };
                let reply = answer.map_or(Reply::Silent, |it| Reply::Later(Box::pin(late(it))));
                Ok((reply, Some(error)))
            }
        }
    }
}

/// Answers that wait to be written take memory, too; a peer that does not read them runs out of it.
async fn cover(node: &Node, reply: &mut Reply) -> Result<(), ConnectionError> {
    let Reply::Ready(answer) = reply else { return Ok(()) };
    let (stall, held) = (node.config.limits.stall, answer.held());
    timeout(stall, node.memory.cover(&mut answer.share, held))
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
    mut sink: Sink,
    pace: Pace,
) -> Result<(), ConnectionError> {
    while let Some(reply) = due.recv().await {
        let answer = match reply {
            Reply::Ready(answer) => answer,
            Reply::Later(answer) => answer.await,
            Reply::Fetch(fetching) => Box::pin(fetching.answer(sink.outlet())).await?,
            Reply::Silent => continue,
        };
        write(answer, &mut sink, pace.begin()).await?;
    }
    part(&mut sink).await;
    Ok(())
}

async fn write(answer: Answer, sink: &mut Sink, mut pace: Pace) -> Result<(), ConnectionError> {
    pace.allow(answer.len());
    match sink {
        Sink::Plain(outlet) => write_plain(answer, outlet, pace).await,
        // Apart: who only connects or logs in has no room for it.
        Sink::Tls(stream) => Box::pin(write_encrypted(answer, stream, pace)).await,
    }
}

/// Sends an answer as the connection takes it, each time as much as it takes.
async fn write_plain(
    mut answer: Answer,
    outlet: &Outlet,
    pace: Pace,
) -> Result<(), ConnectionError> {
    loop {
        if answer.has_slices() {
            answer = Box::pin(send_slices(answer, outlet)).await?;
        } else {
            outlet.send(&mut answer)?;
        }
        if answer.is_sent() {
            return Ok(());
        }
        pace.keep(outlet.writable()).await??;
    }
}

/// On a thread that may wait for the disk: once for all that the connection takes now, however many slices.
async fn send_slices(mut answer: Answer, outlet: &Outlet) -> std::io::Result<Answer> {
    let outlet = outlet.clone();
    blocking(move || outlet.send(&mut answer).map(|()| answer)).await
}

/// What is to be encrypted has to be read.
async fn write_encrypted<S: AsyncWrite + Unpin>(
    answer: Answer,
    stream: &mut S,
    pace: Pace,
) -> Result<(), ConnectionError> {
    let Answer { parts, share } = answer;
    for part in parts {
        match part {
            Part::Bytes(bytes) => write_bytes(bytes, stream, pace).await?,
            Part::Slice(mut slice) => {
                while !slice.is_empty() {
                    let taken = move || slice.take(PIECE).map(|piece| (piece, slice));
                    let (piece, rest) = blocking(taken).await.map_err(std::io::Error::other)?;
                    write_bytes(piece, stream, pace).await?;
                    slice = rest;
                }
            }
        }
    }
    // A part may wait for its record to be full.
    pace.keep(stream.flush()).await??;
    drop(share);
    Ok(())
}

async fn write_bytes<S: AsyncWrite + Unpin>(
    mut bytes: Bytes,
    stream: &mut S,
    pace: Pace,
) -> Result<(), ConnectionError> {
    counters::sent(bytes.len());
    while !bytes.is_empty() {
        if pace.keep(stream.write_buf(&mut bytes)).await?? == 0 {
            return Err(std::io::Error::from(std::io::ErrorKind::WriteZero).into());
        }
    }
    Ok(())
}
