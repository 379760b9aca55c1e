//! TLS of a listener: a certificate with its key, which may be replaced while it runs.
//!
//! The files are looked at again and again ([`Tls::refresh`]). What has changed is taken once it has
//! stood still for one look, so that a certificate and its key are not read between the writing of
//! one and the other. Files that do not fit leave what there was, and say so.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use highwater_access::Certificate;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

/// The largest file that is read.
const LARGEST: u64 = 4 << 20;

/// The files of a listener's TLS, all PEM.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TlsFiles {
    /// The certificate, with those between it and its root.
    pub cert: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Whose client certificates are taken, if any.
    pub clients: ClientCertificates,
}

/// Whether clients show a certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ClientCertificates {
    /// None is asked for.
    Ignored,
    /// Who has one is who it says; others log in.
    Optional(PathBuf),
    /// Nobody comes in without one.
    Required(PathBuf),
}

/// Why files cannot be used for TLS.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("{}: {reason}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// They do not fit.
    #[error("certificate {} and key {}: {reason}", cert.display(), key.display())]
    Pair {
        /// The certificate.
        cert: PathBuf,
        /// The key.
        key: PathBuf,
        /// Why.
        reason: String,
    },
}

impl TlsError {
    /// A code that stays the same from release to release.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::File { .. } => "TLS_FILE",
            Self::Pair { .. } => "TLS_PAIR_INVALID",
        }
    }
}

/// TLS of a listener.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    config: Arc<ServerConfig>,
    ends: i64,
    seen: Stamp,
    /// A change that has not stood still yet.
    changing: Option<Stamp>,
    fault: Option<TlsError>,
}

/// What tells one state of the files from another: for each inode, length, and the time of the last
/// change, of its mode and owner, too.
type Stamp = Vec<Option<(u64, u64, i64, i64)>>;

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// When they cannot be used.
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let seen = files.stamp();
        let (config, ends) = files.read()?;
        let state = State { config, ends, seen, changing: None, fault: None };
        Ok(Self { files, state: Mutex::new(state) })
    }

    /// Looks at the files, and reads them if they have changed. Says whether new ones are in use.
    ///
    /// # Errors
    /// When what is new cannot be used; once for each change. What there was stays in use, and a file
    /// that could not be read is tried again.
    pub fn refresh(&self) -> Result<bool, TlsError> {
        let now = self.files.stamp();
        let mut state = self.state();
        let unchanged = state.seen == now;
        if unchanged {
            state.changing = None;
            // What the system did not let us read, it may let us read the next time.
            if !matches!(state.fault, Some(TlsError::File { .. })) {
                return Ok(false);
            }
        } else if state.changing.as_ref() != Some(&now) {
            state.changing = Some(now);
            return Ok(false);
        }
        state.seen = now;
        state.changing = None;
        match self.files.read() {
            Ok((config, ends)) => {
                (state.config, state.ends, state.fault) = (config, ends, None);
                Ok(true)
            }
            Err(error) => {
                let told = unchanged && state.fault.as_ref() == Some(&error);
                state.fault = Some(error.clone());
                if told { Ok(false) } else { Err(error) }
            }
        }
    }

    /// Seconds since 1970 at which the certificate in use ends.
    pub fn ends(&self) -> i64 {
        self.state().ends
    }

    /// Why the files as they are now are not in use.
    pub fn fault(&self) -> Option<TlsError> {
        self.state().fault.clone()
    }

    /// The files.
    pub const fn files(&self) -> &TlsFiles {
        &self.files
    }

    /// What secures a connection that was accepted, with the files as they are now.
    pub fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.state().config))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TlsFiles {
    fn client_ca(&self) -> Option<&Path> {
        match &self.clients {
            ClientCertificates::Ignored => None,
            ClientCertificates::Optional(ca) | ClientCertificates::Required(ca) => Some(ca),
        }
    }

    fn stamp(&self) -> Stamp {
        let stamp = |path: &Path| {
            let file = std::fs::metadata(path).ok()?;
            Some((file.ino(), file.len(), file.ctime(), file.ctime_nsec()))
        };
        [Some(self.cert.as_path()), Some(&self.key), self.client_ca()]
            .into_iter()
            .flatten()
            .map(stamp)
            .collect()
    }

    /// What they come to, and when the certificate ends.
    fn read(&self) -> Result<(Arc<ServerConfig>, i64), TlsError> {
        let pair = |reason: String| TlsError::Pair {
            cert: self.cert.clone(),
            key: self.key.clone(),
            reason,
        };
        let chain = certificates(&self.cert)?;
        let ends = chain.first().and_then(|der| Certificate::read(der));
        let ends = ends.ok_or_else(|| pair("the certificate cannot be read".to_owned()))?.ends;
        let key = PrivateKeyDer::from_pem_slice(&bytes(&self.key)?)
            // Not the error's own text, lest it quote the key.
            .map_err(|_| failed(&self.key, "holds no private key in PEM"))?;
        let builder = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| pair(error.to_string()))?;
        let builder = match self.verifier()? {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let config =
            builder.with_single_cert(chain, key).map_err(|error| pair(error.to_string()))?;
        Ok((Arc::new(config), ends))
    }

    fn verifier(&self) -> Result<Option<Arc<dyn ClientCertVerifier>>, TlsError> {
        let Some(path) = self.client_ca() else { return Ok(None) };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(path)? {
            roots.add(certificate).map_err(|error| failed(path, error.to_string()))?;
        }
        let provider = Arc::new(ring::default_provider());
        let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let builder = match self.clients {
            ClientCertificates::Required(_) => builder,
            _ => builder.allow_unauthenticated(),
        };
        builder.build().map(Some).map_err(|error| failed(path, error.to_string()))
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes(path)?).collect();
    let found = found.map_err(|error| failed(path, error.to_string()))?;
    if found.is_empty() {
        return Err(failed(path, "holds no certificate in PEM"));
    }
    Ok(found)
}

fn bytes(path: &Path) -> Result<Vec<u8>, TlsError> {
    let unreadable = |error: std::io::Error| failed(path, error.to_string());
    // Before it is opened: a pipe would keep us waiting.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(failed(path, "is no file"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    // What is cut off could be read as fewer authorities.
    if bytes.len() as u64 > LARGEST {
        return Err(failed(path, "is larger than 4 MiB"));
    }
    Ok(bytes)
}

fn failed(path: &Path, reason: impl Into<String>) -> TlsError {
    TlsError::File { path: path.to_owned(), reason: reason.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_did_not_let_read_is_tried_again() {
        let dir = tempfile::tempdir().unwrap();
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let [cert, key] = ["cert.pem", "key.pem"].map(|name| dir.path().join(name));
        std::fs::write(&cert, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let tls = Tls::load(TlsFiles { cert, key, clients: ClientCertificates::Ignored }).unwrap();
        assert_eq!(tls.refresh(), Ok(false));
        // As after a read for which no descriptor was free.
        tls.state().fault = Some(failed(Path::new("key.pem"), "Too many open files"));
        assert_eq!(tls.refresh(), Ok(true));
        assert_eq!((tls.fault(), tls.refresh()), (None, Ok(false)));
    }
}
