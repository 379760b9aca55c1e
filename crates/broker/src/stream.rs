//! The two halves of a connection, with TLS and without.

use std::io;
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use highwater_access::Certificate;
use highwater_coordinator::blocking;
use highwater_log::Slice;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio_rustls::server::TlsStream;

/// What comes from a peer.
pub(crate) enum Source {
    Plain(OwnedReadHalf),
    Tls(ReadHalf<TlsStream<TcpStream>>),
}

/// What goes to a peer.
pub(crate) enum Sink {
    /// Shared with the thread that sends a slice, and with nobody in between.
    Plain(Arc<OwnedWriteHalf>),
    Tls(WriteHalf<TlsStream<TcpStream>>),
}

/// A connection that is ready to speak over.
pub(crate) struct Channel {
    pub(crate) source: Source,
    pub(crate) sink: Sink,
    pub(crate) is_tls: bool,
    /// The peer's, which TLS has checked.
    pub(crate) certificate: Option<Certificate>,
}

impl Channel {
    pub(crate) fn plain(stream: TcpStream) -> Self {
        let (source, sink) = stream.into_split();
        let (source, sink) = (Source::Plain(source), Sink::Plain(Arc::new(sink)));
        Self { source, sink, is_tls: false, certificate: None }
    }

    pub(crate) fn tls(stream: TlsStream<TcpStream>) -> Self {
        let chain = stream.get_ref().1.peer_certificates();
        let certificate = chain.and_then(|chain| Certificate::read(chain.first()?));
        let (source, sink) = split(stream);
        Self { source: Source::Tls(source), sink: Sink::Tls(sink), is_tls: true, certificate }
    }
}

/// Sends what the connection takes now, once it takes something, and gives back what is left.
///
/// # Errors
/// Of the file and of the connection.
pub(crate) async fn send(sink: &Arc<OwnedWriteHalf>, mut slice: Slice) -> io::Result<Slice> {
    sink.writable().await?;
    let sink = Arc::clone(sink);
    // What is not in the page cache is waited for.
    blocking(move || {
        let stream: &TcpStream = sink.as_ref().as_ref();
        while !slice.is_empty() {
            match stream.try_io(Interest::WRITABLE, || slice.send(stream.as_fd())) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(slice)
    })
    .await
}

/// The half, while no slice is being sent.
fn alone(sink: &mut Arc<OwnedWriteHalf>) -> io::Result<Pin<&mut OwnedWriteHalf>> {
    let busy = || io::Error::other("a slice is still being sent");
    Arc::get_mut(sink).map(Pin::new).ok_or_else(busy)
}

impl AsyncRead for Source {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(source) => Pin::new(source).poll_read(cx, buf),
            Self::Tls(source) => Pin::new(source).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Sink {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(sink) => alone(sink)?.poll_write(cx, bytes),
            Self::Tls(sink) => Pin::new(sink).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(sink) => alone(sink)?.poll_flush(cx),
            Self::Tls(sink) => Pin::new(sink).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(sink) => alone(sink)?.poll_shutdown(cx),
            Self::Tls(sink) => Pin::new(sink).poll_shutdown(cx),
        }
    }
}
