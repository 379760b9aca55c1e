//! How long a member of a group may count on what it holds.
//!
//! The group gives it to others once it has not heard of the member for the session time-out. A
//! lease is shorter, counts from the moment of the last question that was answered, and never comes
//! back: what a process began before it was held up is not finished behind the back of the new owner.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

/// See the module's text. Clones are the same lease.
#[derive(Clone, Debug)]
pub struct Lease {
    span: Duration,
    /// `None` once it has ended.
    until: Arc<Mutex<Option<Instant>>>,
}

impl Lease {
    /// A lease of `span` from `asked` on.
    pub(crate) fn from(asked: Instant, span: Duration) -> Self {
        Self { span, until: Arc::new(Mutex::new(Some(asked + span))) }
    }

    /// Whether it holds now. Once it does not, it never will again.
    pub fn holds(&self) -> bool {
        let mut until = self.until.lock();
        if until.is_some_and(|until| Instant::now() >= until) {
            *until = None;
        }
        until.is_some()
    }

    /// Lengthens it after an answer to what was asked at `asked`; whether it holds.
    pub(crate) fn renew(&self, asked: Instant) -> bool {
        if !self.holds() {
            return false;
        }
        let mut until = self.until.lock();
        *until = until.map(|until| until.max(asked + self.span));
        until.is_some()
    }

    /// What is left of it.
    pub(crate) fn left(&self) -> Duration {
        let until = *self.until.lock();
        until.map_or(Duration::ZERO, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Ends it.
    pub fn end(&self) {
        *self.until.lock() = None;
    }
}

/// A stream that takes nothing more once its lease has ended. It is asked at each write to the
/// socket, so that also what waited in a queue stays unsent.
#[derive(Debug)]
pub(crate) struct Leased<S> {
    io: S,
    lease: Option<Lease>,
}

impl<S> Leased<S> {
    pub(crate) const fn over(io: S, lease: Option<Lease>) -> Self {
        Self { io, lease }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Leased<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Leased<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.lease.as_ref().is_some_and(|lease| !lease.holds()) {
            return Poll::Ready(Err(io::Error::other("its lease has ended")));
        }
        Pin::new(&mut self.io).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::time::advance;

    use super::*;

    const SPAN: Duration = Duration::from_secs(6);

    #[tokio::test(start_paused = true)]
    async fn it_counts_from_the_question_and_never_comes_back() {
        let asked = Instant::now();
        advance(Duration::from_secs(2)).await;
        let lease = Lease::from(asked, SPAN);
        assert_eq!(lease.left(), Duration::from_secs(4));
        assert!(lease.renew(Instant::now()), "an answer lengthens it");
        assert!(lease.renew(asked), "an older one does not shorten it");
        assert_eq!(lease.left(), SPAN);
        advance(SPAN).await;
        assert!(!lease.renew(Instant::now()), "it is too late");
        assert!(!lease.holds() && lease.left().is_zero());
    }

    #[tokio::test(start_paused = true)]
    async fn nothing_is_written_once_it_has_ended() {
        let lease = Lease::from(Instant::now(), SPAN);
        let (io, _other) = tokio::io::duplex(64);
        let mut io = Leased::over(io, Some(lease.clone()));
        io.write_all(b"before").await.unwrap();
        lease.end();
        assert!(io.write_all(b"behind").await.is_err());
    }
}
