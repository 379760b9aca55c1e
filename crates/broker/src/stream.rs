//! The two halves of a connection, with TLS and without.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use highwater_access::Certificate;
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedReadHalf;
use tokio_rustls::server::TlsStream;

use crate::outlet::Outlet;

/// What comes from a peer.
pub(crate) enum Source {
    Plain(OwnedReadHalf),
    Tls(ReadHalf<TlsStream<TcpStream>>),
}

/// What goes to a peer.
pub(crate) enum Sink {
    Plain(Outlet),
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
        let (source, sink) = (Source::Plain(source), Sink::Plain(Outlet::new(sink)));
        Self { source, sink, is_tls: false, certificate: None }
    }

    pub(crate) fn tls(stream: TlsStream<TcpStream>) -> Self {
        let chain = stream.get_ref().1.peer_certificates();
        let certificate = chain.and_then(|chain| Certificate::read(chain.first()?));
        let (source, sink) = split(stream);
        Self { source: Source::Tls(source), sink: Sink::Tls(sink), is_tls: true, certificate }
    }
}

impl Sink {
    /// What files can be sent through.
    pub(crate) fn outlet(&self) -> Option<Outlet> {
        match self {
            Self::Plain(outlet) => Some(outlet.clone()),
            Self::Tls(_) => None,
        }
    }

    /// Ends what goes out.
    ///
    /// # Errors
    /// Of the connection.
    pub(crate) async fn shutdown(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(outlet) => outlet.shutdown(),
            Self::Tls(stream) => stream.shutdown().await,
        }
    }
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
