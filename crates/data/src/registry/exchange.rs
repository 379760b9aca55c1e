//! One request to a server of the registry, over a connection of its own.

use std::fs;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value as Json;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::Patience;
use super::server::Server;

/// What the registry's API speaks.
const MEDIA_TYPE: &str = "application/vnd.schemaregistry.v1+json";
/// No answer is longer.
const LONGEST_ANSWER: usize = 16 << 20;
/// No file of certificates is longer.
const LONGEST_FILE: u64 = 4 << 20;

/// Whom to trust, where an address asks for it.
#[derive(Clone)]
pub(super) struct Tls(Option<TlsConnector>);

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.0.is_some() { "Tls" } else { "no TLS" })
    }
}

impl Tls {
    pub(super) const fn none() -> Self {
        Self(None)
    }

    /// Trusts the authorities in a file, or those of the system.
    pub(super) fn new(file: Option<&str>) -> Result<Self, String> {
        let certificates = match file {
            Some(file) => read(file).map_err(|error| format!("cannot be used: {file}: {error}"))?,
            None => rustls_native_certs::load_native_certs().certs,
        };
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(certificates);
        if roots.is_empty() {
            return Err("must be given: there is no authority to trust".to_owned());
        }
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self(Some(TlsConnector::from(Arc::new(config)))))
    }
}

fn read(file: &str) -> std::io::Result<Vec<CertificateDer<'static>>> {
    let mut pem = Vec::new();
    fs::File::open(file)?.take(LONGEST_FILE).read_to_end(&mut pem)?;
    CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|error| std::io::Error::other(format!("no certificates in PEM: {error}")))
}

/// Where a request goes, and how long it may take.
pub(super) struct Exchange<'a> {
    pub(super) server: &'a Server,
    pub(super) patience: &'a Patience,
    pub(super) tls: &'a Tls,
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Ends with the request, whatever becomes of it.
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Exchange<'_> {
    /// The status and the body of the answer; an error says why there is none.
    pub(super) async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Json>,
    ) -> Result<(StatusCode, Bytes), String> {
        let stream = within(self.patience.connect, "connecting", self.connect()).await?;
        let answer = self.over(stream, self.request(method, path, body)?);
        within(self.patience.answer, "the answer", answer).await
    }

    async fn connect(&self) -> Result<Box<dyn Stream>, String> {
        let host = self.server.bare_host();
        let tcp = TcpStream::connect((host, self.server.port))
            .await
            .map_err(|error| error.to_string())?;
        let _ = tcp.set_nodelay(true);
        match &self.tls.0 {
            Some(tls) if self.server.is_secure() => {
                let name =
                    ServerName::try_from(host.to_owned()).map_err(|error| error.to_string())?;
                let stream =
                    tls.connect(name, tcp).await.map_err(|error| format!("TLS: {error}"))?;
                Ok(Box::new(stream))
            }
            _ => Ok(Box::new(tcp)),
        }
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: Option<&Json>,
    ) -> Result<Request<Full<Bytes>>, String> {
        let Server { host, port, base, login, .. } = self.server;
        let mut request = Request::builder()
            .method(method)
            .uri(format!("{base}{path}"))
            .header(HOST, format!("{host}:{port}"))
            .header(ACCEPT, MEDIA_TYPE)
            .header(CONNECTION, "close");
        if let Some(login) = login {
            request = request.header(AUTHORIZATION, login.header());
        }
        if body.is_some() {
            request = request.header(CONTENT_TYPE, MEDIA_TYPE);
        }
        let body = body.map(Json::to_string).unwrap_or_default();
        request.body(Full::new(body.into())).map_err(|error| error.to_string())
    }

    async fn over(
        &self,
        stream: Box<dyn Stream>,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), String> {
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| error.to_string())?;
        let _driver = Driver(tokio::spawn(async move {
            // What goes wrong is said by the answer.
            let _ = connection.await;
        }));
        let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), LONGEST_ANSWER).collect().await;
        let body = body.map_err(|error| format!("the answer is cut or too long: {error}"))?;
        Ok((status, body.to_bytes()))
    }
}

async fn within<T>(
    time: Duration,
    what: &str,
    work: impl Future<Output = Result<T, String>>,
) -> Result<T, String> {
    match timeout(time, work).await {
        Ok(done) => done,
        Err(_) => Err(format!("{what} took longer than {} ms", time.as_millis())),
    }
}
