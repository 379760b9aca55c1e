//! Frames: a length of four bytes, then a request.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use crate::budget::{Budget, Share};
use crate::pace::{Pace, TooSlow};

/// Length of the field that holds a frame's length.
const LENGTH: usize = 4;
/// API key, API version and correlation id: what every request has.
const SHORTEST: usize = 8;
/// What the first read of a request takes. A connection that waits for one holds no more.
const FIRST: usize = 512;
/// What a buffer may grow by at once, whatever little it holds; else by as much as it holds.
const CHUNK: usize = 16 << 10;

/// A request as it came, with its part of the memory that all connections share.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) bytes: Bytes,
    /// Held until the request was begun.
    pub(crate) share: Share,
}

/// Why no further frame can be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("a frame says that it is {0} bytes long")]
    Length(i32),
    #[error(
        "a request of API {key} version {version} says that it is {length} bytes long, {limit} are allowed"
    )]
    TooLong { key: i16, version: i16, length: usize, limit: usize },
    #[error("a request does not come: {0}")]
    Slow(#[from] TooSlow),
    #[error("no request came for {0:?}")]
    Idle(Duration),
    #[error("no memory became free for {0:?}")]
    NoMemory(Duration),
    #[error("the peer ended in the middle of a request")]
    Cut,
    #[error("reading failed: {0}")]
    Io(#[from] std::io::Error),
}

/// How long frames may be and how long they may take.
pub(crate) struct FramePolicy {
    /// Bytes that a frame with this API key and version may have.
    pub(crate) limit: Box<dyn Fn(i16, i16) -> usize + Send + Sync>,
    pub(crate) idle: Duration,
    pub(crate) pace: Pace,
}

/// Reads frames. Its buffer grows with the bytes that came, not with the length that was promised.
pub(crate) struct FrameReader<R> {
    source: R,
    buffer: BytesMut,
    budget: Budget,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(crate) fn new(source: R, budget: Budget) -> Self {
        Self { source, buffer: BytesMut::new(), budget }
    }

    /// The next frame, or nothing when the peer has ended between two frames.
    pub(crate) async fn next(&mut self, policy: &FramePolicy) -> Result<Option<Frame>, FrameError> {
        if !self.begin(policy).await? {
            return Ok(None);
        }
        let mut share = Share::default();
        let mut pace = policy.pace.begin();
        self.fill(LENGTH, &mut share, pace).await?;
        let length = promised_length(&self.buffer)?;
        self.fill(LENGTH + SHORTEST, &mut share, pace).await?;
        check_length(length, &self.buffer, policy)?;
        pace.allow(length);
        self.fill(LENGTH + length, &mut share, pace).await?;
        let mut bytes = self.buffer.split_to(LENGTH + length).freeze();
        Ok(Some(Frame { bytes: bytes.split_off(LENGTH), share }))
    }

    /// The next frame without a header, of at most `limit` bytes.
    pub(crate) async fn next_raw(
        &mut self,
        policy: &FramePolicy,
        limit: usize,
    ) -> Result<Option<Frame>, FrameError> {
        if !self.begin(policy).await? {
            return Ok(None);
        }
        let mut share = Share::default();
        let pace = policy.pace.begin();
        self.fill(LENGTH, &mut share, pace).await?;
        let promised = self.buffer.first_chunk().map_or(0, |length| i32::from_be_bytes(*length));
        let length = usize::try_from(promised)
            .ok()
            .filter(|length| *length <= limit)
            .ok_or(FrameError::Length(promised))?;
        self.fill(LENGTH + length, &mut share, pace).await?;
        let mut bytes = self.buffer.split_to(LENGTH + length).freeze();
        Ok(Some(Frame { bytes: bytes.split_off(LENGTH), share }))
    }

    /// Waits for a frame's first byte.
    async fn begin(&mut self, policy: &FramePolicy) -> Result<bool, FrameError> {
        if !self.buffer.is_empty() {
            return Ok(true);
        }
        // What is left of the last request's buffer would hold all of it.
        self.buffer = BytesMut::new();
        let mut first = [0; FIRST];
        let read = timeout(policy.idle, self.source.read(&mut first)).await;
        let read = ended(read.map_err(|_| FrameError::Idle(policy.idle))?)?;
        self.buffer.extend_from_slice(first.get(..read).unwrap_or_default());
        Ok(read > 0)
    }

    /// Reads until the buffer holds `target` bytes.
    async fn fill(
        &mut self,
        target: usize,
        share: &mut Share,
        pace: Pace,
    ) -> Result<(), FrameError> {
        while self.buffer.len() < target {
            let room = (target - self.buffer.len()).min(growth(self.buffer.len()));
            timeout(pace.stall, self.budget.cover(share, self.buffer.len() + room))
                .await
                .map_err(|_| FrameError::NoMemory(pace.stall))?;
            if pace.keep(self.read_some(room)).await?? == 0 {
                return Err(FrameError::Cut);
            }
        }
        Ok(())
    }

    async fn read_some(&mut self, room: usize) -> std::io::Result<usize> {
        self.buffer.reserve(room);
        ended(self.source.read_buf(&mut self.buffer).await)
    }

    /// Waits until the peer has ended, reading ahead a little; an error counts as the end.
    pub(crate) async fn gone(&mut self) {
        while self.buffer.len() < CHUNK {
            match self.read_some(CHUNK).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
        std::future::pending().await
    }
}

/// Java's clients end a connection without TLS's word for it, which rustls calls an error. Frames say
/// how long they are, so the end is one like any other.
fn ended(read: std::io::Result<usize>) -> std::io::Result<usize> {
    match read {
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(0),
        read => read,
    }
}

/// How much room to make behind the bytes that came: it costs a stranger an eighth of it at least.
/// Doubling, later, keeps the copying linear.
fn growth(came: usize) -> usize {
    came.max(came.saturating_mul(8).clamp(FIRST, CHUNK))
}

/// The length that the frame at the start of `buffer` says it has.
fn promised_length(buffer: &[u8]) -> Result<usize, FrameError> {
    let promised = buffer.first_chunk().map_or(0, |length| i32::from_be_bytes(*length));
    usize::try_from(promised)
        .ok()
        .filter(|length| *length >= SHORTEST)
        .ok_or(FrameError::Length(promised))
}

/// Whether a request of this kind may be that long.
fn check_length(length: usize, buffer: &[u8], policy: &FramePolicy) -> Result<(), FrameError> {
    let [_, _, _, _, k0, k1, v0, v1, ..] = *buffer else { return Err(FrameError::Cut) };
    let (key, version) = (i16::from_be_bytes([k0, k1]), i16::from_be_bytes([v0, v1]));
    let limit = (policy.limit)(key, version);
    if length > limit {
        return Err(FrameError::TooLong { key, version, length, limit });
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use tokio::io::{AsyncWriteExt, DuplexStream, ReadBuf, duplex};

    use super::*;

    fn policy() -> FramePolicy {
        FramePolicy {
            limit: Box::new(|_, _| 1 << 30),
            idle: Duration::from_millis(50),
            pace: Pace::new(Duration::from_millis(50), 1 << 20),
        }
    }

    fn reader(budget: usize) -> (DuplexStream, FrameReader<DuplexStream>) {
        let (near, far) = duplex(1 << 20);
        (near, FrameReader::new(far, Budget::new(budget)))
    }

    fn framed(body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len()).unwrap();
        [&length.to_be_bytes(), body].concat()
    }

    /// What rustls reads from a peer that has said no word before it ended.
    struct Wordless(&'static [u8]);

    impl AsyncRead for Wordless {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            into: &mut ReadBuf<'_>,
        ) -> Poll<std::io::Result<()>> {
            let bytes = std::mem::take(&mut self.0);
            if bytes.is_empty() {
                return Poll::Ready(Err(std::io::ErrorKind::UnexpectedEof.into()));
            }
            into.put_slice(bytes);
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_peer_that_ends_tls_without_a_word_has_ended() {
        let mut between = FrameReader::new(Wordless(&[]), Budget::new(1 << 20));
        assert!(between.next(&policy()).await.unwrap().is_none());
        let mut within = FrameReader::new(Wordless(&[0, 0]), Budget::new(1 << 20));
        assert!(matches!(within.next(&policy()).await, Err(FrameError::Cut)));
    }

    #[tokio::test]
    async fn frames_come_out_however_their_bytes_come_in() {
        let bodies = [vec![1; 8], vec![2; 70_000], vec![3; 9]];
        let sent: Vec<u8> = bodies.iter().flat_map(|body| framed(body)).collect();
        for size in [1, 7, 4096, sent.len()] {
            let (mut near, mut frames) = reader(1 << 30);
            let chunks = sent.clone();
            let sending = tokio::spawn(async move {
                for chunk in chunks.chunks(size) {
                    near.write_all(chunk).await.unwrap();
                }
            });
            for body in &bodies {
                let frame = frames.next(&policy()).await.unwrap().unwrap();
                assert_eq!(frame.bytes, body, "in pieces of {size}");
            }
            assert!(frames.next(&policy()).await.unwrap().is_none());
            sending.await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_frame_without_a_header_may_be_short_and_not_long() {
        let (mut near, mut frames) = reader(1 << 30);
        for body in [&b""[..], b"abc"] {
            near.write_all(&framed(body)).await.unwrap();
            let frame = frames.next_raw(&policy(), 3).await.unwrap().unwrap();
            assert_eq!(frame.bytes, body);
        }
        for length in [4_i32, -1] {
            let (mut near, mut frames) = reader(1 << 30);
            near.write_all(&length.to_be_bytes()).await.unwrap();
            let error = frames.next_raw(&policy(), 3).await.unwrap_err();
            assert!(matches!(error, FrameError::Length(_)), "{error}");
        }
    }

    #[tokio::test]
    async fn a_length_that_lies_takes_no_memory() {
        let (mut near, mut frames) = reader(1 << 30);
        near.write_all(&(1_i32 << 29).to_be_bytes()).await.unwrap();
        near.write_all(&[0; 100]).await.unwrap();
        let error = frames.next(&policy()).await.unwrap_err();
        assert!(matches!(error, FrameError::Slow(TooSlow::Stalled(_))), "{error}");
        assert!(frames.buffer.capacity() <= 2 * FIRST, "{}", frames.buffer.capacity());
    }

    #[tokio::test]
    async fn who_waits_for_a_request_holds_nothing() {
        let (mut near, mut frames) = reader(1 << 30);
        near.write_all(&framed(&vec![0; 500_000])).await.unwrap();
        drop(frames.next(&policy()).await.unwrap());
        assert!(frames.next(&policy()).await.is_err());
        assert_eq!(frames.buffer.capacity(), 0);
    }

    /// A byte now and then is no request.
    #[tokio::test]
    async fn a_request_that_drips_is_given_up() {
        let (mut near, mut frames) = reader(1 << 30);
        let time = Duration::from_millis(200);
        let policy = FramePolicy { pace: Pace::new(time, 1_000), ..policy() };
        near.write_all(&900_i32.to_be_bytes()).await.unwrap();
        let dripping = tokio::spawn(async move {
            while near.write_all(&[0]).await.is_ok() {
                tokio::time::sleep(time / 20).await;
            }
        });
        let error = frames.next(&policy).await.unwrap_err();
        assert!(matches!(error, FrameError::Slow(TooSlow::Dripping { .. })), "{error}");
        drop(frames);
        dripping.await.unwrap();
    }

    #[tokio::test]
    async fn a_frame_waits_for_memory_for_a_while() {
        let (mut near, mut frames) = reader(128 << 10);
        near.write_all(&framed(&vec![0; 500_000])).await.unwrap();
        let error = frames.next(&policy()).await.unwrap_err();
        assert!(matches!(error, FrameError::NoMemory(_)), "{error}");
    }

    #[tokio::test]
    async fn the_end_within_a_frame_is_told_from_the_end_between_frames() {
        let (mut near, mut frames) = reader(1 << 30);
        near.write_all(&framed(&[0; 8])).await.unwrap();
        near.write_all(&[0, 0]).await.unwrap();
        drop(near);
        assert!(frames.next(&policy()).await.unwrap().is_some());
        assert!(matches!(frames.next(&policy()).await.unwrap_err(), FrameError::Cut));
    }
}
