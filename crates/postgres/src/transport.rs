//! The byte stream below both connections: TCP or a Unix socket, and TLS over it.
//!
//! TLS is asked for with PostgreSQL's `SSLRequest`, here and not by `tokio-postgres`, so that the
//! replication connection and the queries promise the same.

use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BytesMut;
use highwater_connector::{ConnectorError, ErrorKind};
use postgres_protocol::message::frontend;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::channel_binding::server_end_point;
use crate::error::{code, connection};
use crate::settings::Login;
use crate::tls::{SslMode, tls_error};

/// A connection on which nothing came for so long is probed, so that a server that went away without
/// a word is told from one that has nothing to say. What is sent and not acknowledged for as long as
/// the probes take breaks it too.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(30);
/// Between two probes.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);
/// Probes without an answer that break it.
const KEEPALIVE_PROBES: u32 = 3;

/// A byte stream to a server.
trait Stream: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Stream for T {}

/// See the module.
pub(crate) struct Transport {
    stream: Box<dyn Stream>,
    encrypted: bool,
    /// What SCRAM binds a login to (RFC 5929, `tls-server-end-point`).
    binding: Option<Vec<u8>>,
}

impl Transport {
    /// Connects, with TLS as far as the login asks for it.
    ///
    /// # Errors
    /// When the server cannot be reached, or not in the way that was asked for.
    pub(crate) async fn open(login: &Login) -> Result<Self, ConnectorError> {
        let unreachable = |error| connection(format!("{login:?} cannot be reached: {error}"));
        if login.host.starts_with('/') {
            // TLS says nothing on a Unix socket, as in libpq: nobody stands in between.
            let path = format!("{}/.s.PGSQL.{}", login.host, login.port);
            return Ok(Self::plain(UnixStream::connect(path).await.map_err(unreachable)?));
        }
        let tcp = tcp(login).await.map_err(unreachable)?;
        if login.tls.mode == SslMode::Disable {
            return Ok(Self::plain(tcp));
        }
        match Self::encrypt(login, tcp).await {
            // As in libpq: what is only preferred is done without. Files that were named are not.
            Err(error)
                if login.tls.mode == SslMode::Prefer && error.kind != ErrorKind::Configuration =>
            {
                // Its text names host and user, which may stand in the configuration by reference.
                tracing::warn!(code = error.code, "TLS cannot be had: connecting without it");
                Ok(Self::plain(self::tcp(login).await.map_err(unreachable)?))
            }
            other => other,
        }
    }

    fn plain(stream: impl Stream + 'static) -> Self {
        Self { stream: Box::new(stream), encrypted: false, binding: None }
    }

    async fn encrypt(login: &Login, mut tcp: TcpStream) -> Result<Self, ConnectorError> {
        let broke = |error| connection(format!("{login:?}: asking for TLS: {error}"));
        if !offered(&mut tcp).await.map_err(broke)? {
            return if login.tls.mode.insists() {
                Err(unavailable(login))
            } else {
                Ok(Self::plain(tcp))
            };
        }
        let config = login.tls.config().await?;
        let name = ServerName::try_from(login.host.clone())
            .map_err(|_| connection(format!("{} is no host name", login.host)))?;
        let stream = TlsConnector::from(Arc::new(config))
            .connect(name, tcp)
            .await
            .map_err(|error| handshake(login, &error))?;
        let certificates = stream.get_ref().1.peer_certificates();
        let binding = certificates.and_then(<[_]>::first).and_then(|first| server_end_point(first));
        Ok(Self { stream: Box::new(stream), encrypted: true, binding })
    }

    /// Whether TLS protects it.
    pub(crate) const fn is_encrypted(&self) -> bool {
        self.encrypted
    }

    /// See [`Transport::binding`].
    pub(crate) fn channel_binding(&self) -> Option<Vec<u8>> {
        self.binding.clone()
    }
}

async fn tcp(login: &Login) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((login.host.as_str(), login.port)).await?;
    stream.set_nodelay(true)?;
    let socket = SockRef::from(&stream);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_PROBES);
    socket.set_tcp_keepalive(&keepalive)?;
    #[cfg(target_os = "linux")]
    socket.set_tcp_user_timeout(Some(KEEPALIVE_IDLE + KEEPALIVE_INTERVAL * KEEPALIVE_PROBES))?;
    Ok(stream)
}

/// Whether the server speaks TLS. Exactly one byte is read: what came unencrypted behind it would
/// else be taken for something that was said under TLS (CVE-2021-23222).
async fn offered(tcp: &mut TcpStream) -> io::Result<bool> {
    let mut request = BytesMut::new();
    frontend::ssl_request(&mut request);
    tcp.write_all(&request).await?;
    match tcp.read_u8().await? {
        b'S' => Ok(true),
        b'N' => Ok(false),
        other => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("the peer answers {other:#04x}, which no PostgreSQL does"),
        )),
    }
}

fn handshake(login: &Login, error: &io::Error) -> ConnectorError {
    tls_cause(error).map_or_else(
        || connection(format!("{login:?}: the TLS handshake broke off: {error}")),
        |cause| tls_error(&login.host, cause),
    )
}

/// What TLS says behind an I/O error.
pub(crate) fn tls_cause(error: &io::Error) -> Option<&rustls::Error> {
    error.get_ref()?.downcast_ref()
}

fn unavailable(login: &Login) -> ConnectorError {
    ConnectorError::stop(
        code::TLS_UNAVAILABLE,
        ErrorKind::Source,
        format!(
            "server {}:{} does not speak TLS and database.sslmode insists on it",
            login.host, login.port
        ),
        "ALTER SYSTEM SET ssl = on with ssl_cert_file and ssl_key_file, then SELECT \
         pg_reload_conf(); or set database.sslmode=prefer, which may send everything in the clear",
    )
    .keeping("the stored position and everything already in the log; no password was sent")
}

impl AsyncRead for Transport {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Transport {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

impl TlsStream for Transport {
    fn channel_binding(&self) -> ChannelBinding {
        self.binding.clone().map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
    }
}

/// Tells `tokio-postgres` that the stream it is given speaks TLS already.
pub(crate) struct Established;

impl TlsConnect<Transport> for Established {
    type Stream = Transport;
    type Error = io::Error;
    type Future = Ready<io::Result<Transport>>;

    fn connect(self, stream: Transport) -> Self::Future {
        ready(Ok(stream))
    }
}
