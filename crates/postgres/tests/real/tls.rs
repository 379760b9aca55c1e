//! TLS: what each mode promises, and what is said when the promise cannot be kept.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use highwater_connector::{ErrorKind, Retry};
use highwater_postgres::code;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, date_time_ymd,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::rig::Rig;
use crate::server::{Server, server};

/// An authority that signs what a test needs.
struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, PEM.
struct Signed {
    certificate: String,
    key: String,
}

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn sign(&self, names: &[&str], change: impl FnOnce(&mut CertificateParams)) -> Signed {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap().pem();
        Signed { certificate, key: key.serialize_pem() }
    }

    fn pem(&self) -> String {
        self.0.pem()
    }
}

/// A folder of files for the connector's settings.
struct Files(TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path: PathBuf = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }
}

/// Switches TLS on, or to another certificate.
async fn serve(server: &Server, signed: &Signed) {
    server.put("server.crt", &signed.certificate);
    server.put("server.key", &signed.key);
    let admin = server.client("postgres").await;
    admin.batch_execute("alter system set ssl = on").await.unwrap();
    server.command("reload");
}

fn ways(rig: &mut Rig, mode: &str, root: &str, host: &str) {
    rig.set("database.sslmode", mode).set("database.sslrootcert", root);
    rig.set("database.hostname", host);
}

/// Whether TLS protects the connections of the running task.
async fn encrypted(rig: &Rig) -> Option<String> {
    rig.ask(
        "select string_agg(distinct s.ssl::text, ',') from pg_stat_ssl s
         join pg_stat_activity a using (pid)
         where a.application_name = 'highwater' and a.datname = current_database()",
    )
    .await
}

/// Stops the task, and waits until the server has taken note of each connection's end.
async fn stopped(rig: &mut Rig) {
    rig.task.take().unwrap().stop().await;
    let gone = async {
        while encrypted(rig).await.is_some() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), gone).await.expect("connections end");
}

#[tokio::test]
async fn each_mode_keeps_its_promise() {
    let (server, files) = (Server::start(), Files::new());
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let (root, wrong) = (files.put("ours.pem", ours.pem()), files.put("theirs.pem", theirs.pem()));
    let mut rig = Rig::on(&server, "create table t(id int primary key)").await;
    rig.set("snapshot.mode", "no_data");

    // Without TLS at the server, prefer goes on and everything else is refused by name.
    for mode in ["require", "verify-ca", "verify-full"] {
        ways(&mut rig, mode, &root, "localhost");
        let error = rig.refused().await;
        assert_eq!((error.code, error.retry), (code::TLS_UNAVAILABLE, Retry::Never), "{mode}");
    }
    ways(&mut rig, "prefer", "", "localhost");
    rig.started().await;
    assert_eq!(encrypted(&rig).await.as_deref(), Some("false"));
    stopped(&mut rig).await;

    // What is said of a certificate, by mode: an authority that is not ours, another host, expiry.
    let good = ours.sign(&["localhost"], |_| {});
    let elsewhere = ours.sign(&["db.example.com"], |_| {});
    let expired = ours.sign(&["localhost"], |params| {
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2021, 1, 1);
    });
    let refused = Some(code::TLS_CERTIFICATE);
    for (name, certificate, root, expected) in [
        ("good", &good, &root, [None, None, None, None]),
        ("another host", &elsewhere, &root, [None, None, None, refused]),
        ("expired", &expired, &root, [None, refused, refused, refused]),
        ("another authority", &good, &wrong, [None, refused, refused, refused]),
    ] {
        serve(&server, certificate).await;
        let modes =
            [("require", ""), ("require", root), ("verify-ca", root), ("verify-full", root)];
        for ((mode, root), expected) in modes.into_iter().zip(expected) {
            ways(&mut rig, mode, root, "localhost");
            let ended = rig.start().await.err();
            let told = ended.as_ref().map(|error| error.code);
            assert_eq!(told, expected, "{name}, {mode}, {root}: {ended:?}");
            match ended {
                Some(error) => assert_eq!(error.retry, Retry::Never, "{error}"),
                None => {
                    assert_eq!(encrypted(&rig).await.as_deref(), Some("true"), "{name}, {mode}");
                    stopped(&mut rig).await;
                }
            }
        }
    }

    // prefer encrypts where it can, disable never does.
    serve(&server, &elsewhere).await;
    for (mode, expected) in [("prefer", "true"), ("disable", "false")] {
        ways(&mut rig, mode, "", "127.0.0.1");
        rig.started().await;
        assert_eq!(encrypted(&rig).await.as_deref(), Some(expected), "{mode}");
        rig.settle().await;
        stopped(&mut rig).await;
    }
}

#[tokio::test]
async fn the_words_say_what_is_wrong_with_a_certificate() {
    let (server, files) = (Server::start(), Files::new());
    let ours = Authority::new("ours");
    let mut rig = Rig::on(&server, "create table t(id int primary key)").await;
    ways(&mut rig, "verify-full", &files.put("root.pem", ours.pem()), "127.0.0.1");

    serve(&server, &ours.sign(&["db.example.com"], |_| {})).await;
    let error = rig.refused().await;
    assert!(error.what.contains("127.0.0.1") && error.what.contains("db.example.com"), "{error}");
    assert!(error.remedy.contains("subject alternative name"), "{error}");
    assert!(error.kept.contains("no password was sent"), "{error}");

    rig.set("database.sslrootcert", &files.put("other.pem", Authority::new("other").pem()));
    let error = rig.refused().await;
    assert!(error.what.contains("signed by nobody in database.sslrootcert"), "{error}");
}

#[tokio::test]
async fn a_client_certificate_logs_in_where_the_server_asks_for_one() {
    let (server, files) = (Server::start(), Files::new());
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let mut rig = Rig::on(&server, "create table t(id int primary key)").await;
    ways(&mut rig, "verify-full", &files.put("root.pem", ours.pem()), "127.0.0.1");
    rig.set("database.user", "open").set("database.password", "");
    server.put("clients.pem", &ours.pem());
    server.put(
        "pg_hba.conf",
        "hostssl all open 127.0.0.1/32 cert\nhost all all 127.0.0.1/32 scram-sha-256\n",
    );
    rig.sql("alter system set ssl_ca_file = 'clients.pem'").await;
    serve(&server, &ours.sign(&["127.0.0.1"], |_| {})).await;
    let client = |authority: &Authority, name: &str| {
        authority.sign(&[], |params| {
            params.distinguished_name.push(DnType::CommonName, name);
            params.extended_key_usages.push(ExtendedKeyUsagePurpose::ClientAuth);
        })
    };
    let with = |rig: &mut Rig, signed: &Signed, key: &str| {
        rig.set("database.sslcert", &files.put("client.pem", &signed.certificate));
        rig.set("database.sslkey", key);
    };

    assert_eq!(rig.refused().await.code, code::LOGIN, "without a certificate");

    let good = client(&ours, "open");
    let pem = files.put("key.pem", &good.key);
    // pgjdbc's form.
    let der = PrivateKeyDer::from_pem_slice(good.key.as_bytes()).unwrap();
    let der = files.put("key.pk8", der.secret_der());
    for key in [&pem, &der] {
        with(&mut rig, &good, key);
        rig.started().await;
        rig.settle().await;
        rig.task.take().unwrap().stop().await;
    }

    let stranger = client(&theirs, "open");
    with(&mut rig, &stranger, &files.put("stranger.pem", &stranger.key));
    let error = rig.refused().await;
    assert_eq!((error.code, error.retry), (code::TLS_CLIENT, Retry::Never), "{error}");

    let other = client(&ours, "somebody");
    with(&mut rig, &other, &files.put("other.pem", &other.key));
    assert_eq!(rig.refused().await.code, code::LOGIN, "a certificate of another user");

    // A key of another certificate.
    with(&mut rig, &good, &files.put("other.pem", &other.key));
    assert_eq!(rig.refused().await.code, code::TLS_FILES);
}

#[tokio::test]
async fn files_that_are_none_are_named_and_never_shown() {
    // The server speaks no TLS; a file is looked at only when it does.
    let tls = Server::start();
    serve(&tls, &Authority::new("ours").sign(&["127.0.0.1"], |_| {})).await;
    let mut rig = Rig::on(&tls, "create table t(id int primary key)").await;
    let files = Files::new();
    let secret = files.put("secret", "root:x:0:0:hush");
    for path in ["/nowhere/root.pem", "/dev/zero", "/proc", &secret] {
        ways(&mut rig, "verify-ca", path, "127.0.0.1");
        let error = rig.refused().await;
        assert_eq!((error.code, error.kind), (code::TLS_FILES, ErrorKind::Configuration));
        assert!(error.what.contains(path) && !error.to_string().contains("hush"), "{error}");
    }
    ways(&mut rig, "prefer", "", "127.0.0.1");
    rig.set("database.sslcert", &secret).set("database.sslkey", &secret);
    assert_eq!(rig.refused().await.code, code::TLS_FILES, "prefer is no reason to ignore a file");
}

#[tokio::test]
async fn a_login_is_not_handed_on_by_somebody_in_between() {
    let server = Server::start();
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    serve(&server, &ours.sign(&["127.0.0.1"], |_| {})).await;
    let mut rig = Rig::on(&server, "create table t(id int primary key)").await;
    let port = man_in_the_middle(&theirs, &ours, server.port).await;
    ways(&mut rig, "require", "", "127.0.0.1");
    rig.set("database.port", &port.to_string());
    let error = rig.refused().await;
    assert_eq!(error.code, code::LOGIN, "{error}");
    assert!(error.what.contains("channel binding"), "{error}");
}

#[tokio::test]
async fn tls_says_nothing_on_a_unix_socket() {
    let mut rig = Rig::new("create table t(id int primary key)").await;
    ways(&mut rig, "require", "", &server().dir);
    rig.started().await;
}

/// Ends TLS under a certificate of its own and begins it anew with the server.
async fn man_in_the_middle(own: &Authority, trusted: &Authority, server: u16) -> u16 {
    let provider = Arc::new(ring::default_provider());
    let signed = own.sign(&["127.0.0.1"], |_| {});
    let chain = vec![CertificateDer::from_pem_slice(signed.certificate.as_bytes()).unwrap()];
    let key = PrivateKeyDer::from_pem_slice(signed.key.as_bytes()).unwrap();
    let here = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.pem().as_bytes()).unwrap()).unwrap();
    let there = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (acceptor, connector) =
            (TlsAcceptor::from(Arc::new(here)), TlsConnector::from(Arc::new(there)));
        while let Ok((mut client, _)) = listener.accept().await {
            let mut upstream = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
            let mut request = [0; 8];
            client.read_exact(&mut request).await.unwrap();
            upstream.write_all(&request).await.unwrap();
            let answer = upstream.read_u8().await.unwrap();
            client.write_u8(answer).await.unwrap();
            let mut client = acceptor.accept(client).await.unwrap();
            let name = ServerName::try_from("127.0.0.1").unwrap();
            let mut upstream = connector.connect(name, upstream).await.unwrap();
            let _ = copy_bidirectional(&mut client, &mut upstream).await;
        }
    });
    port
}
