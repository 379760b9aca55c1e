//! TLS: with which certificates one gets in, and how they are replaced.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use highwater_access::SubjectRules;
use highwater_broker::{ClientCertificates, Tls, TlsFiles};
use highwater_protocol::{ErrorCode, MetadataRequest};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::certificates::{Authority, Folder, Pair, connector, secured};
use crate::client::{Client, SOON, fetch, large, plain};
use crate::server::Server;
use crate::users::TestUsers;

fn ignored(_: std::path::PathBuf) -> ClientCertificates {
    ClientCertificates::Ignored
}

async fn with_tls(folder: &Folder) -> Server {
    Server::start_with(|config| config.tls = Some(folder.tls(ignored))).await
}

async fn client(server: &Server, connector: &TlsConnector) -> Client<TlsStream<TcpStream>> {
    Client::over(secured(server, connector).await.unwrap())
}

/// Whether a request is answered over a connection that may be refused.
async fn is_answered(server: &Server, connector: &TlsConnector) -> bool {
    let Ok(stream) = secured(server, connector).await else { return false };
    let mut client = Client::over(stream);
    // With TLS 1.3 a client hears of the refusal of its certificate after the handshake.
    client.try_send(9, &MetadataRequest::default()).await;
    client.frame().await.is_some()
}

#[tokio::test]
async fn records_go_in_and_out() {
    let folder = Folder::new(&Authority::new("ca"));
    let server = with_tls(&folder).await;
    server.topic_with("t", 1, &[("max.message.bytes", "6000000")]);
    for only_12 in [false, true] {
        let mut client = client(&server, &connector(&folder.ca(), None, only_12)).await;
        assert!(client.produce(9, "t", plain(&[1, 2, 3])).await.error_code.is_ok());
        assert!(client.produce(9, "t", large(5_000_000)).await.error_code.is_ok());
        let mut request = fetch("t", 3);
        request.topics[0].partitions[0].partition_max_bytes = 8 << 20;
        let answer = client.fetch(11, &request).await;
        assert!(answer.records.unwrap().into_bytes().len() > 5_000_000, "TLS 1.2 alone: {only_12}");
    }
}

#[tokio::test]
async fn who_trusts_another_authority_does_not_stay() {
    let (folder, other) = (Folder::new(&Authority::new("ca")), Folder::new(&Authority::new("x")));
    let server = with_tls(&folder).await;
    assert!(secured(&server, &connector(&other.ca(), None, false)).await.is_err());
    assert!(is_answered(&server, &connector(&folder.ca(), None, false)).await);
}

#[tokio::test]
async fn without_tls_on_a_port_with_it_and_the_other_way_round_the_connection_ends() {
    let folder = Folder::new(&Authority::new("ca"));
    let server = with_tls(&folder).await;
    let mut plaintext = server.client().await;
    plaintext.try_send(9, &MetadataRequest::default()).await;
    let mut rest = Vec::new();
    // An alert of TLS, or nothing.
    let _ = timeout(SOON, plaintext.stream.read_to_end(&mut rest)).await.expect("it ends soon");
    assert!(rest.len() < 64, "{rest:?}");

    let plain_server = Server::start().await;
    assert!(secured(&plain_server, &connector(&folder.ca(), None, false)).await.is_err());
}

#[tokio::test]
async fn a_handshake_that_does_not_come_is_given_up() {
    let folder = Folder::new(&Authority::new("ca"));
    let server = Server::start_with(|config| {
        config.tls = Some(folder.tls(ignored));
        config.limits.login = Duration::from_millis(300);
        config.limits.connections = 16;
    })
    .await;
    let mut strangers = Vec::new();
    for number in 0..200_usize {
        let mut stranger = TcpStream::connect(server.broker.local_addr()).await.unwrap();
        // A ClientHello that promises more than comes, or noise.
        let hello = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
        let sent = if number % 3 == 0 { &[0xa5; 11] } else { &hello };
        let _ = stranger.write_all(&sent[..number % 12]).await;
        strangers.push(stranger);
    }
    let began = Instant::now();
    assert!(is_answered(&server, &connector(&folder.ca(), None, false)).await);
    for stranger in &mut strangers {
        let mut rest = Vec::new();
        let _ = timeout(SOON, stranger.read_to_end(&mut rest)).await.expect("it ends soon");
    }
    assert!(began.elapsed() < SOON);
}

/// A client certificate is a login, through the rules.
#[tokio::test]
async fn a_client_certificate_names_its_user() {
    let authority = Authority::new("ca");
    let folder = Folder::new(&authority);
    let users = TestUsers::new().with("ann", &["write topic t"]).with("bob", &[]);
    let server = users
        .server_with(|config| {
            config.tls = Some(folder.tls(ClientCertificates::Optional));
            config.subjects = SubjectRules::parse("RULE:CN=([a-z]+),O=test/$1/").unwrap();
        })
        .await;
    server.topic("t");
    for (name, code) in [("ann", ErrorCode::NONE), ("bob", ErrorCode::TOPIC_AUTHORIZATION_FAILED)] {
        let pair = authority.client(name);
        let mut client = client(&server, &connector(&folder.ca(), Some(&pair), false)).await;
        assert_eq!(client.produce(9, "t", plain(&[1])).await.error_code, code, "{name}");
        // And may still log in as somebody else.
        client.log_in("ann").await;
        assert!(client.produce(9, "t", plain(&[1])).await.error_code.is_ok());
    }
    // Who has none logs in; whose subject no rule takes does not get in.
    let mut without = client(&server, &connector(&folder.ca(), None, false)).await;
    without.log_in("ann").await;
    let pair = authority.client("4711");
    assert!(!is_answered(&server, &connector(&folder.ca(), Some(&pair), false)).await);
}

#[tokio::test]
async fn without_a_good_certificate_nobody_gets_in_where_one_is_required() {
    let authority = Authority::new("ca");
    let folder = Folder::new(&authority);
    let server = Server::start_with(|config| {
        config.tls = Some(folder.tls(ClientCertificates::Required));
    })
    .await;
    let answered = async |pair: Option<&Pair>, only_12| {
        is_answered(&server, &connector(&folder.ca(), pair, only_12)).await
    };
    for only_12 in [false, true] {
        assert!(answered(Some(&authority.client("ann")), only_12).await);
        assert!(!answered(None, only_12).await);
        assert!(!answered(Some(&authority.expired("ann")), only_12).await);
        assert!(!answered(Some(&Authority::new("x").client("ann")), only_12).await);
    }
}

/// What the server shows.
async fn shown(server: &Server, folder: &Folder) -> Vec<u8> {
    let stream = secured(server, &connector(&folder.ca(), None, false)).await.unwrap();
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_is_replaced_under_load_and_a_bad_one_is_not_taken() {
    let authority = Authority::new("ca");
    let folder = Folder::new(&authority);
    let tls = folder.tls(ignored);
    let server = Server::start_with(|config| config.tls = Some(Arc::clone(&tls))).await;
    let first = shown(&server, &folder).await;

    let (stop, served) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let address = server.broker.local_addr();
    let load: Vec<_> = (0..4)
        .map(|_| {
            let (stop, served) = (Arc::clone(&stop), Arc::clone(&served));
            let connector = connector(&folder.ca(), None, false);
            tokio::spawn(async move {
                while !stop.load(Ordering::Relaxed) {
                    let stream = TcpStream::connect(address).await.unwrap();
                    let name = "127.0.0.1".try_into().unwrap();
                    let mut client = Client::over(connector.connect(name, stream).await.unwrap());
                    let answer = client.call(9, &MetadataRequest::default()).await;
                    assert_eq!(answer.brokers.len(), 1);
                    served.fetch_add(1, Ordering::Relaxed);
                }
            })
        })
        .collect();

    folder.put(&authority.server());
    assert_eq!(tls.refresh(), Ok(false), "it has to stand still first");
    assert_eq!(tls.refresh(), Ok(true));
    let second = shown(&server, &folder).await;
    assert_ne!(first, second);

    // A certificate of another key, then nonsense, then nothing.
    let ends = tls.ends();
    folder.write("cert.pem", &authority.server().cert);
    assert_eq!(tls.refresh(), Ok(false));
    assert_eq!(tls.refresh().unwrap_err().code(), "TLS_PAIR_INVALID");
    assert_eq!(tls.refresh(), Ok(false), "told once");
    assert!(tls.fault().is_some());
    folder.write("key.pem", "nonsense");
    assert_eq!(tls.refresh(), Ok(false));
    assert_eq!(tls.refresh().unwrap_err().code(), "TLS_FILE");
    std::fs::remove_file(folder.path("key.pem")).unwrap();
    assert_eq!(tls.refresh(), Ok(false));
    assert_eq!(tls.refresh().unwrap_err().code(), "TLS_FILE");
    assert_eq!((shown(&server, &folder).await, tls.ends()), (second, ends));

    folder.put(&authority.server());
    assert_eq!(tls.refresh(), Ok(false));
    assert_eq!(tls.refresh(), Ok(true));
    assert_eq!(tls.fault(), None);

    let before = served.load(Ordering::Relaxed);
    let began = Instant::now();
    while served.load(Ordering::Relaxed) < before + 20 {
        assert!(began.elapsed() < SOON);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stop.store(true, Ordering::Relaxed);
    for task in load {
        task.await.unwrap();
    }
}

#[test]
fn files_that_cannot_be_used_are_refused_by_name() {
    let authority = Authority::new("ca");
    let folder = Folder::new(&authority);
    let load = || {
        Tls::load(TlsFiles {
            cert: folder.path("cert.pem"),
            key: folder.path("key.pem"),
            clients: ClientCertificates::Required(folder.path("ca.pem")),
        })
        .map(drop)
    };
    assert!(load().is_ok());
    folder.write("ca.pem", "nonsense");
    assert!(load().unwrap_err().to_string().contains("ca.pem: holds no certificate"));
    let padded = format!("{}{}", authority.pem(), " ".repeat(4 << 20));
    folder.write("ca.pem", &padded);
    assert!(load().unwrap_err().to_string().contains("ca.pem: is larger than 4 MiB"));
    std::fs::remove_file(folder.path("ca.pem")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(folder.path("ca.pem")).status();
    assert!(pipe.unwrap().success());
    assert!(load().unwrap_err().to_string().contains("ca.pem: is no file"));
    std::fs::remove_file(folder.path("ca.pem")).unwrap();
    folder.write("ca.pem", &authority.pem());
    folder.write("key.pem", &authority.server().key);
    assert!(load().unwrap_err().to_string().contains("key.pem"));
    let pair = authority.server();
    folder.write("key.pem", &format!("{}s3cret", pair.key.replace("PRIVATE", "PRIVAT")));
    let said = load().unwrap_err().to_string();
    assert!(said.contains("no private key") && !said.contains("s3cret"), "{said}");
}

/// Rule A2.
#[tokio::test]
async fn beyond_loopback_takes_tls_and_a_login() {
    let folder = Folder::new(&Authority::new("ca"));
    let users = TestUsers::new().with("ann", &[]);
    for (tls, login, good) in
        [(false, false, false), (true, false, false), (false, true, false), (true, true, true)]
    {
        let server = Server::start().await;
        let mut config = highwater_broker::BrokerConfig::new("0.0.0.0:0".parse().unwrap());
        config.advertise = Some(highwater_broker::Endpoint { host: "h".to_owned(), port: 1 });
        config.tls = tls.then(|| folder.tls(ignored));
        if login {
            config.access = users.access();
        }
        let started = server.another(config).await;
        assert_eq!(started.is_ok(), good, "TLS {tls}, login {login}");
        if let Err(error) = started {
            assert_eq!(error.code(), "KAFKA_LISTENER_UNGUARDED");
        }
    }
}
