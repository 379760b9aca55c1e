//! TLS to a broker: whom it trusts, who we are to it, and what its failures mean.

use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::client::WebPkiServerVerifier;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore,
    SignatureScheme,
};

use crate::connection::CallError;
use crate::security::{Pem, PemPlace, Tls};

/// A certificate with its chain, and its key.
pub(crate) type Identity = (Pem, Pem);

/// Bound of a file in PEM; the bundle of all public authorities has 200 KiB.
const FILE_LIMIT: u64 = 4 << 20;

/// How a store of Java, or an encrypted key, becomes what is read here.
pub(crate) const CONVERT: &str = "keytool -list -rfc -keystore FILE > FILE.pem for certificates, \
     openssl pkcs12 -in FILE -nodes -out FILE.pem for a key, and type PEM";

/// The commands that convert a store of Java.
pub(crate) fn conversion(is_trust: bool, kind: &str, file: &str) -> String {
    let stem = Path::new(file).with_extension("").display().to_string();
    if is_trust {
        return format!("keytool -list -rfc -keystore {file} > {stem}.pem");
    }
    let pkcs12 = if kind == "JKS" { format!("{stem}.p12") } else { file.to_owned() };
    let to_pem = format!("openssl pkcs12 -in {pkcs12} -nodes -out {stem}.pem");
    if kind == "JKS" {
        return format!(
            "keytool -importkeystore -srckeystore {file} -destkeystore {pkcs12} -deststoretype \
             PKCS12, then {to_pem}"
        );
    }
    to_pem
}

/// Tries the settings, as a connection would use them; else what is wrong.
pub(crate) fn check(tls: &Tls) -> Result<(), String> {
    client_config(tls).map(drop)
}

/// Encrypts a connection to `address`.
pub(crate) async fn wrap<S: AsyncRead + AsyncWrite + Unpin>(
    tls: &Tls,
    address: &str,
    tcp: S,
) -> Result<TlsStream<S>, CallError> {
    // The files were good when the settings were read: they are being renewed.
    let renewed = |why: String| CallError::Lost(format!("{address}: {why}"));
    let config = Arc::new(client_config(tls).map_err(renewed)?);
    let unusable = |why: String| CallError::Denied(format!("{address}: {why}"));
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let name = ServerName::try_from(host.trim_matches(['[', ']']).to_owned())
        .map_err(|_| unusable("it is neither a host name nor an address".to_owned()))?;
    let connected = TlsConnector::from(config).connect(name, tcp).await;
    connected.map_err(|error| failure(address, &error))
}

/// Encrypts a connection to `host` for another protocol than Kafka's.
///
/// # Errors
/// When the settings cannot be used, or the handshake fails.
pub async fn encrypt<S: AsyncRead + AsyncWrite + Unpin>(
    tls: &Tls,
    host: &str,
    tcp: S,
) -> Result<TlsStream<S>, String> {
    let config = Arc::new(client_config(tls)?);
    let name = ServerName::try_from(host.to_owned())
        .map_err(|_| format!("{host} is neither a host name nor an address"))?;
    let connected = TlsConnector::from(config).connect(name, tcp).await;
    connected.map_err(|error| format!("TLS with {host}: {error}"))
}

/// What the failure of a handshake, or of a read behind it, means.
pub(crate) fn failure(address: &str, error: &std::io::Error) -> CallError {
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<Error>());
    let lasting = match cause {
        Some(Error::InvalidCertificate(why)) => certificate(why),
        Some(Error::AlertReceived(alert)) if is_about_us(*alert) => format!(
            "it does not take our certificate (alert {alert:?}): ssl.keystore.* must hold one that \
             its authority signed"
        ),
        Some(Error::AlertReceived(
            AlertDescription::HandshakeFailure | AlertDescription::ProtocolVersion,
        )) => "no version and cipher of TLS is spoken by both; TLS 1.2 and 1.3 are spoken here"
            .to_owned(),
        Some(Error::InvalidMessage(_)) => {
            "it does not speak TLS on this port: security.protocol is SSL or SASL_SSL".to_owned()
        }
        _ => return CallError::Lost(format!("{address}: {error}")),
    };
    CallError::Denied(format!("{address}: {lasting}"))
}

const fn is_about_us(alert: AlertDescription) -> bool {
    use AlertDescription as Alert;
    matches!(
        alert,
        Alert::CertificateRequired
            | Alert::BadCertificate
            | Alert::UnknownCA
            | Alert::UnsupportedCertificate
            | Alert::CertificateExpired
            | Alert::CertificateRevoked
            | Alert::CertificateUnknown
            | Alert::AccessDenied
            | Alert::DecryptError
    )
}

fn certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => "its certificate is signed by nobody whom we trust: \
             ssl.truststore.location must hold the authority that signed it"
            .to_owned(),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!(
                "its certificate is for another host ({why}): use a name of the certificate, or \
                 set ssl.endpoint.identification.algorithm to nothing"
            )
        }
        other => format!("its certificate cannot be accepted: {other}"),
    }
}

fn client_config(tls: &Tls) -> Result<ClientConfig, String> {
    let provider = Arc::new(ring::default_provider());
    let verifier = verifier(tls, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be used: {error}"))?
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let Some((chain, key)) = &tls.identity else { return Ok(builder.with_no_client_auth()) };
    let certificates = certificates(chain)?;
    let private = PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|_| {
        format!("{} holds no private key in PEM without a passphrase: {CONVERT}", key.setting)
    })?;
    builder.with_client_auth_cert(certificates, private).map_err(|error| {
        format!("{} and {} do not fit together: {error}", chain.setting, key.setting)
    })
}

fn verifier(tls: &Tls, provider: &Arc<CryptoProvider>) -> Result<Arc<Verifier>, String> {
    let mut roots = RootCertStore::empty();
    let trusted = match &tls.authorities {
        Some(pem) => {
            for certificate in certificates(pem)? {
                let unusable = |error| format!("{} cannot be used: {error}", pem.setting);
                roots.add(certificate).map_err(unusable)?;
            }
            pem.setting
        }
        None => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
            "the system's store of authorities (ssl.truststore.location names another)"
        }
    };
    let chain = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| format!("{trusted} cannot be used: {error}"))?;
    Ok(Arc::new(Verifier { chain, verify_host: tls.verify_host }))
}

fn certificates(pem: &Pem) -> Result<Vec<CertificateDer<'static>>, String> {
    let bytes = read(pem)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        _ => Err(format!("{} holds no certificates in PEM; {CONVERT}", place(pem))),
    }
}

/// What a file says is never part of an error: it may be any file of the machine.
fn read(pem: &Pem) -> Result<Vec<u8>, String> {
    let path = match &pem.place {
        PemPlace::Text(text) => return Ok(text.reveal().replace("\\n", "\n").into_bytes()),
        PemPlace::File(path) => path,
    };
    let unreadable = |why: String| format!("{} cannot be read: {why}", place(pem));
    let metadata = std::fs::metadata(path).map_err(|error| unreadable(error.to_string()))?;
    if !metadata.is_file() || metadata.len() > FILE_LIMIT {
        return Err(unreadable(format!("it is no file of at most {FILE_LIMIT} bytes")));
    }
    std::fs::read(path).map_err(|error| unreadable(error.to_string()))
}

fn place(pem: &Pem) -> String {
    match &pem.place {
        PemPlace::File(path) => format!("{} {}", pem.setting, path.display()),
        PemPlace::Text(_) => pem.setting.to_owned(),
    }
}

/// Checks who signed a broker's certificate, and whether it names the host.
#[derive(Debug)]
struct Verifier {
    chain: Arc<WebPkiServerVerifier>,
    verify_host: bool,
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
        let verified = self.chain.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        );
        match verified {
            // The name is looked at last, so everything else was right.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !self.verify_host => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
    }
}
