//! An authority, and certificates that it vouches for.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use highwater_broker::{ClientCertificates, Tls, TlsFiles};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::server::Server;

/// A certificate with its key, PEM.
pub(crate) struct Pair {
    pub(crate) cert: String,
    pub(crate) key: String,
}

/// An authority.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = named(&[(DnType::CommonName, name)]);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// Of a server on this machine.
    pub(crate) fn server(&self) -> Pair {
        let mut params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, "server");
        self.sign(params)
    }

    /// Of a client, from the organisation `test`.
    pub(crate) fn client(&self, name: &str) -> Pair {
        self.sign(named(&[(DnType::OrganizationName, "test"), (DnType::CommonName, name)]))
    }

    /// Of a client whose time is over.
    pub(crate) fn expired(&self, name: &str) -> Pair {
        let mut params = named(&[(DnType::CommonName, name)]);
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
        self.sign(params)
    }

    fn sign(&self, params: CertificateParams) -> Pair {
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.0).unwrap().pem();
        Pair { cert, key: key.serialize_pem() }
    }
}

fn named(parts: &[(DnType, &str)]) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    for (kind, value) in parts {
        params.distinguished_name.push(kind.clone(), *value);
    }
    params
}

/// Files of a listener's TLS in a folder of their own.
pub(crate) struct Folder {
    dir: tempfile::TempDir,
}

impl Folder {
    pub(crate) fn new(authority: &Authority) -> Self {
        let folder = Self { dir: tempfile::tempdir().unwrap() };
        folder.write("ca.pem", &authority.pem());
        folder.put(&authority.server());
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Puts a file in place whole, with a time of its own.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let fresh = self.path("fresh");
        std::fs::write(&fresh, text).unwrap();
        std::fs::File::open(&fresh).unwrap().set_modified(SystemTime::now()).unwrap();
        std::fs::rename(fresh, self.path(name)).unwrap();
    }

    pub(crate) fn put(&self, pair: &Pair) {
        self.write("cert.pem", &pair.cert);
        self.write("key.pem", &pair.key);
    }

    pub(crate) fn tls(&self, clients: fn(PathBuf) -> ClientCertificates) -> Arc<Tls> {
        let files = TlsFiles {
            cert: self.path("cert.pem"),
            key: self.path("key.pem"),
            clients: clients(self.path("ca.pem")),
        };
        Arc::new(Tls::load(files).unwrap())
    }

    pub(crate) fn ca(&self) -> PathBuf {
        self.path("ca.pem")
    }
}

/// A client that trusts the authority of `ca`, with a certificate or without.
pub(crate) fn connector(ca: &Path, pair: Option<&Pair>, only_12: bool) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).unwrap()).unwrap();
    let versions = if only_12 { vec![&TLS12] } else { vec![&TLS12, &TLS13] };
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&versions)
        .unwrap()
        .with_root_certificates(roots);
    let config = match pair {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let cert = CertificateDer::from_pem_slice(pair.cert.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![cert], key).unwrap()
        }
    };
    TlsConnector::from(Arc::new(config))
}

/// Connects and shakes hands.
pub(crate) async fn secured(
    server: &Server,
    connector: &TlsConnector,
) -> std::io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(server.broker.local_addr()).await?;
    connector.connect(ServerName::try_from("127.0.0.1").unwrap(), stream).await
}
