//! TLS as libpq means it: what is promised in each mode, and what is checked of the server.
//!
//! `prefer` and `require` encrypt and check nothing of the server, unless a root certificate is
//! named: `require` then means `verify-ca`, as in libpq. Files are read at each connection, so
//! that a renewed certificate is used without a restart.

use std::path::Path;
use std::sync::Arc;

use highwater_connector::{ConnectorError, ErrorKind};
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use crate::error::code;

/// Bound of a certificate or key file; the bundle of all public authorities has 200 KiB.
const FILE_LIMIT: u64 = 4 * 1024 * 1024;

/// What is promised of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum SslMode {
    /// No TLS.
    #[default]
    Disable,
    /// TLS where the server speaks it.
    Prefer,
    /// TLS, whoever the server is.
    Require,
    /// TLS with a server whose certificate the root certificates vouch for.
    VerifyCa,
    /// The same, and the certificate names the host that was asked for.
    VerifyFull,
}

impl SslMode {
    /// The names that `database.sslmode` takes, weakest first.
    pub(crate) const NAMES: [&'static str; 5] =
        ["disable", "prefer", "require", "verify-ca", "verify-full"];

    pub(crate) fn of(name: &str) -> Self {
        match name {
            "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => Self::Disable,
        }
    }

    /// Whether a connection without TLS is out of the question.
    pub(crate) const fn insists(self) -> bool {
        !matches!(self, Self::Disable | Self::Prefer)
    }
}

/// The mode and the files that it names; empty where none is named.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Tls {
    /// See [`SslMode`].
    pub(crate) mode: SslMode,
    /// Root certificates, PEM.
    pub(crate) root: String,
    /// Our certificate with those between it and its root, PEM.
    pub(crate) certificate: String,
    /// The key of our certificate, PEM or PKCS#8 DER.
    pub(crate) key: String,
}

impl Tls {
    /// Says what does not fit together.
    pub(crate) fn problem(&self) -> Option<String> {
        let verifies = matches!(self.mode, SslMode::VerifyCa | SslMode::VerifyFull);
        if verifies && self.root.is_empty() {
            return Some(
                "database.sslmode verifies the server and database.sslrootcert names no file with \
                 the certificates to trust; for public authorities it is often \
                 /etc/ssl/certs/ca-certificates.crt"
                    .to_owned(),
            );
        }
        (self.certificate.is_empty() != self.key.is_empty())
            .then(|| "database.sslcert and database.sslkey are only used together".to_owned())
    }

    /// What a handshake is made with; reads the files.
    ///
    /// # Errors
    /// When a file cannot be read or holds something else.
    pub(crate) async fn config(&self) -> Result<ClientConfig, ConnectorError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| unusable(format!("TLS cannot be used: {error}")))?
            .dangerous()
            .with_custom_certificate_verifier(self.verifier(provider).await?);
        let mut config = if self.certificate.is_empty() {
            builder.with_no_client_auth()
        } else {
            let (chain, key) = self.identity().await?;
            builder.with_client_auth_cert(chain, key).map_err(|error| {
                unusable(format!(
                    "database.sslcert {} and database.sslkey {} do not fit together: {error}",
                    self.certificate, self.key
                ))
            })?
        };
        // As libpq does, so that no server of another protocol takes the connection for its own.
        config.alpn_protocols = vec![b"postgresql".to_vec()];
        Ok(config)
    }

    async fn verifier(
        &self,
        provider: Arc<CryptoProvider>,
    ) -> Result<Arc<Verifier>, ConnectorError> {
        let depth = match self.mode {
            SslMode::VerifyFull => Depth::HostName,
            SslMode::VerifyCa => Depth::Chain,
            SslMode::Require if !self.root.is_empty() => Depth::Chain,
            _ => return Ok(Arc::new(Verifier { provider, trusted: None, depth: Depth::Chain })),
        };
        let mut roots = RootCertStore::empty();
        for certificate in certificates("database.sslrootcert", &self.root).await? {
            roots.add(certificate).map_err(|error| {
                unusable(format!("database.sslrootcert {} cannot be used: {error}", self.root))
            })?;
        }
        let trusted =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider))
                .build()
                .map_err(|error| {
                    unusable(format!("database.sslrootcert {} cannot be used: {error}", self.root))
                })?;
        Ok(Arc::new(Verifier { provider, trusted: Some(trusted), depth }))
    }

    async fn identity(
        &self,
    ) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), ConnectorError> {
        let chain = certificates("database.sslcert", &self.certificate).await?;
        let bytes = read("database.sslkey", &self.key).await?;
        // pgjdbc, and so Debezium, takes keys as PKCS#8 DER; libpq takes PEM.
        let key = PrivateKeyDer::from_pem_slice(&bytes)
            .ok()
            .or_else(|| PrivateKeyDer::try_from(bytes).ok())
            .ok_or_else(|| {
                unusable(format!(
                    "database.sslkey {} holds no private key in PEM or PKCS#8 DER without a \
                     passphrase",
                    self.key
                ))
            })?;
        Ok((chain, key))
    }
}

/// What a file says is never part of an error: it may be any file of the machine.
async fn read(setting: &str, path: &str) -> Result<Vec<u8>, ConnectorError> {
    let why = match tokio::fs::metadata(Path::new(path)).await {
        Err(error) => error.to_string(),
        Ok(metadata) if !metadata.is_file() => "it is no file".to_owned(),
        Ok(metadata) if metadata.len() > FILE_LIMIT => {
            format!("it has {} bytes, more than {FILE_LIMIT}", metadata.len())
        }
        Ok(_) => match tokio::fs::read(path).await {
            Ok(bytes) => return Ok(bytes),
            Err(error) => error.to_string(),
        },
    };
    Err(unusable(format!("{setting} {path} cannot be read: {why}")))
}

async fn certificates(
    setting: &str,
    path: &str,
) -> Result<Vec<CertificateDer<'static>>, ConnectorError> {
    let bytes = read(setting, path).await?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(unusable(format!("{setting} {path} holds no certificates in PEM"))),
    }
}

fn unusable(what: String) -> ConnectorError {
    ConnectorError::stop(
        code::TLS_FILES,
        ErrorKind::Configuration,
        what,
        "name files that the server process can read: certificates in PEM, the key in PEM or \
         PKCS#8 DER",
    )
    .keeping("everything: no connection was made")
}

/// How much of a certificate is checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Depth {
    /// Who signed it, and its time.
    Chain,
    /// Also whether it names the host.
    HostName,
}

/// Checks the server's certificate as far as the mode asks.
#[derive(Debug)]
struct Verifier {
    provider: Arc<CryptoProvider>,
    /// None where any certificate will do.
    trusted: Option<Arc<WebPkiServerVerifier>>,
    depth: Depth,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(trusted) = &self.trusted else { return Ok(ServerCertVerified::assertion()) };
        let verified =
            trusted.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The name is looked at last, so everything else was right.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if self.depth == Depth::Chain => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// The error that a failed handshake, or an alert of the server behind it, amounts to.
pub(crate) fn tls_error(host: &str, error: &Error) -> ConnectorError {
    use tokio_rustls::rustls::AlertDescription as Alert;
    match error {
        Error::InvalidCertificate(why) => certificate(host, why),
        Error::AlertReceived(
            alert @ (Alert::CertificateRequired
            | Alert::BadCertificate
            | Alert::UnknownCA
            | Alert::UnsupportedCertificate
            | Alert::CertificateExpired
            | Alert::CertificateRevoked
            | Alert::CertificateUnknown
            | Alert::AccessDenied
            | Alert::DecryptError),
        ) => refused(
            code::TLS_CLIENT,
            format!("server {host} does not take our certificate: alert {alert:?}"),
            "name in database.sslcert a certificate, and in database.sslkey its key, that an \
             authority of the server's ssl_ca_file signed",
        ),
        other => refused(
            code::TLS_HANDSHAKE,
            format!("no TLS connection could be agreed on with {host}: {other}"),
            "look at the server's log and at its settings ssl_min_protocol_version and ssl_ciphers; \
             TLS 1.2 and 1.3 are spoken here",
        ),
    }
}

fn certificate(host: &str, why: &CertificateError) -> ConnectorError {
    let (what, remedy) = match why {
        CertificateError::UnknownIssuer => (
            "is signed by nobody in database.sslrootcert".to_owned(),
            "put the certificate of the authority that signed the server's into the file of \
             database.sslrootcert",
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => (
            format!("is not for host {host}: {why}"),
            "set database.hostname to a name of the certificate, give the server a certificate \
             with that subject alternative name, or set database.sslmode=verify-ca",
        ),
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => (
            format!("has expired: {why}"),
            "renew the server's certificate, then SELECT pg_reload_conf()",
        ),
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => (
            format!("is not valid yet: {why}"),
            "set the clocks right, or give the server a certificate that is valid now",
        ),
        other => (
            format!("cannot be accepted: {other}"),
            "give the server a certificate of version 3 that an authority signed: with a subject \
             alternative name, and no authority itself",
        ),
    };
    refused(code::TLS_CERTIFICATE, format!("the certificate of server {host} {what}"), remedy)
}

fn refused(code: &'static str, what: String, remedy: &str) -> ConnectorError {
    ConnectorError::stop(code, ErrorKind::Source, what, remedy)
        .keeping("the stored position and everything already in the log; no password was sent")
}
