//! A connection whose peer must take what it asked for.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// A TCP stream on which writing fails once it has not moved for a while. hyper bounds the time of
/// a request's head, and nothing that comes after.
pub(crate) struct StallGuard {
    stream: TcpStream,
    patience: Duration,
    released: Release,
    waiting: Option<Pin<Box<Sleep>>>,
}

/// Ends the guard: a WebSocket has a time-out of its own.
#[derive(Clone, Default)]
pub(crate) struct Release(Arc<AtomicBool>);

impl Release {
    pub(crate) fn now(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl StallGuard {
    /// `patience`: how long the peer may take no byte.
    pub(crate) fn new(stream: TcpStream, patience: Duration, released: Release) -> Self {
        Self { stream, patience, released, waiting: None }
    }

    fn watch<T>(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut TcpStream>, &mut Context<'_>) -> Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        let written = write(Pin::new(&mut self.stream), cx);
        if written.is_ready() || self.released.0.load(Ordering::Relaxed) {
            self.waiting = None;
            return written;
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(waiting.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for StallGuard {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for StallGuard {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.watch(cx, |stream, cx| stream.poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.watch(cx, |stream, cx| stream.poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;
    use tokio::net::TcpListener;
    use tokio::time::timeout;

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(100);

    /// A guarded stream, and its peer, which reads nothing.
    async fn connected(release: Release) -> (StallGuard, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let peer = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, _) = listener.accept().await.unwrap();
        (StallGuard::new(stream, PATIENCE, release), peer)
    }

    #[tokio::test]
    async fn an_answer_that_nobody_takes_ends() {
        let (mut guarded, _peer) = connected(Release::default()).await;
        let error = guarded.write_all(&vec![0; 64 << 20]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_websocket_may_wait() {
        let release = Release::default();
        release.now();
        let (mut guarded, _peer) = connected(release).await;
        let bytes = vec![0; 64 << 20];
        assert!(timeout(4 * PATIENCE, guarded.write_all(&bytes)).await.is_err(), "it is waiting");
    }
}
