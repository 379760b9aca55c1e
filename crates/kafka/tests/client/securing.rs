//! TLS and logins, at Apache Kafka and at a scripted broker.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use highwater_kafka::{
    Admin, Bootstrap, KafkaError, Mechanism, NewTopic, Password, Pem, PemPlace, Reader,
    ReaderSettings, Sasl, Security, Tls, WriterSettings, at_least_once,
};
use highwater_protocol::{ApiKey, ErrorCode, SaslAuthenticateResponse, SaslHandshakeResponse};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::time::timeout;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::{TlsAcceptor, rustls};

use crate::apache::Apache;
use crate::contract::{SOON, record};
use crate::fake::{Asked, Fake, Reply};

fn reader(bootstrap: Bootstrap) -> Reader {
    let settings = ReaderSettings { retry_for: Duration::from_secs(5), ..Default::default() };
    Reader::with_settings(bootstrap, settings)
}

fn sasl(mechanism: Mechanism, password: &str) -> Sasl {
    Sasl { mechanism, username: "app".to_owned(), password: Password::from(password) }
}

/// Writes a record to `trail` and reads all there is.
async fn there_and_back(bootstrap: &Bootstrap) -> usize {
    let mut writer = at_least_once(&WriterSettings::new(bootstrap.clone())).unwrap();
    writer.send(record("trail", 1)).await.unwrap();
    timeout(SOON, writer.commit()).await.unwrap().unwrap();
    let mut count = 0;
    let read = reader(bootstrap.clone());
    read.read_all("trail", 0, &mut |_| count += 1).await.unwrap();
    count
}

async fn refusal(bootstrap: Bootstrap) -> String {
    let reader = reader(bootstrap);
    let error = reader.list_offset("trail", 0, highwater_kafka::OffsetSpec::Latest);
    match timeout(Duration::from_secs(4), error).await.expect("it is tried again").unwrap_err() {
        KafkaError::Authentication { detail } => detail,
        other => panic!("{other}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn apache_kafka_is_spoken_to_over_tls_and_by_every_mechanism() {
    let node = Apache::start(&["security=sasl_ssl", "connections.max.reauth.ms=2000"]).await;
    let bootstrap = node.bootstrap();
    let topic = NewTopic::of_one("trail");
    let admin = Admin::new(reader(bootstrap.clone()));
    assert!(admin.create_topic(&topic).await.unwrap());
    let tls = bootstrap.security.tls.clone();
    let as_user = |tls: &Option<Tls>, user: Option<Sasl>| {
        bootstrap.clone().with(Security { tls: tls.clone(), sasl: user })
    };
    for (count, mechanism) in
        (1..).zip([Mechanism::Plain, Mechanism::ScramSha256, Mechanism::ScramSha512])
    {
        let user = as_user(&tls, Some(sasl(mechanism, "app-secret")));
        assert_eq!(there_and_back(&user).await, count, "{mechanism:?}");
        let wrong = refusal(as_user(&tls, Some(sasl(mechanism, "s3cret")))).await;
        assert!(
            wrong.contains("user app is not let in by") && !wrong.contains("s3cret"),
            "{wrong}"
        );
    }
    let user = || Some(sasl(Mechanism::Plain, "app-secret"));
    let stranger = Some(Tls { verify_host: false, ..Tls::default() });
    let untrusted = refusal(as_user(&stranger, user())).await;
    assert!(untrusted.contains("signed by nobody"), "{untrusted}");
    // A login lasts two seconds; what is asked behind it goes through.
    let mut writer = at_least_once(&WriterSettings::new(bootstrap.clone())).unwrap();
    let mut watcher = reader(bootstrap.clone()).watch("trail", 0).await.unwrap();
    for value in 0..60 {
        writer.send(record("trail", value)).await.unwrap();
        timeout(SOON, writer.commit()).await.unwrap().unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    timeout(SOON, watcher.wait_for(|edges| edges.last_stable == 63)).await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn apache_kafka_is_shown_our_certificate() {
    let node = Apache::start(&["security=ssl", "client.auth=required"]).await;
    let bootstrap = node.bootstrap();
    let without = refusal(bootstrap.clone()).await;
    assert!(without.contains("does not take our certificate"), "{without}");
    let in_clear = reader(Bootstrap::new(node.address.to_string()));
    assert!(matches!(
        in_clear.list_offset("trail", 0, highwater_kafka::OffsetSpec::Latest).await,
        Err(KafkaError::Unreachable { .. })
    ));
    let settings = format!(
        "security.protocol=SSL\nssl.truststore.location={dir}/ca.pem\n\
         ssl.keystore.type=PEM\nssl.keystore.location={dir}/client.pem",
        dir = node.dir.display()
    );
    let with = Bootstrap::new(node.address.to_string()).with(Security::parse(&settings).unwrap());
    assert!(Admin::new(reader(with)).topics().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_without_tls_or_logins_says_so() {
    let node = Apache::start(&[]).await;
    let bootstrap = Bootstrap::new(node.address.to_string());
    let user = sasl(Mechanism::ScramSha256, "app-secret");
    let no_login = refusal(bootstrap.clone().with(Security::sasl(user))).await;
    assert!(no_login.contains("does not ask for a login"), "{no_login}");
}

/// A port that ends each connection behind the handshake, with a certificate for another host, and
/// the authority that signed it.
async fn another_host() -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let signed = authority.self_signed(&key).unwrap();
    let issuer = Issuer::new(authority, key);
    let key = KeyPair::generate().unwrap();
    let names = CertificateParams::new(vec!["other.example".to_owned()]).unwrap();
    let certificate = names.signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            drop(acceptor.accept(tcp).await);
        }
    });
    (address, signed.pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_for_another_host_is_refused_unless_the_host_shall_not_count() {
    let (address, authority) = another_host().await;
    let place = PemPlace::Text(Password::from(authority));
    let authority = Pem { setting: "ssl.truststore.certificates", place };
    let over = |verify_host| {
        let tls = Tls { authorities: Some(authority.clone()), verify_host, ..Tls::default() };
        Bootstrap::new(address.clone()).with(Security { tls: Some(tls), sasl: None })
    };
    let why = refusal(over(true)).await;
    assert!(why.contains("for another host") && why.contains("other.example"), "{why}");
    let settings = ReaderSettings { retry_for: Duration::from_secs(1), ..Default::default() };
    let ended = Reader::with_settings(over(false), settings)
        .list_offset("trail", 0, highwater_kafka::OffsetSpec::Latest)
        .await
        .unwrap_err();
    assert!(matches!(ended, KafkaError::Unreachable { .. }), "{ended}");
}

/// As a file that is being renewed: the connectors behind it go on once it is whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_half_written_is_tried_again() {
    let (address, text) = another_host().await;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("ca.pem");
    let place = PemPlace::File(file.clone());
    let authorities = Some(Pem { setting: "ssl.truststore.location", place });
    let tls = Tls { authorities, ..Tls::default() };
    let bootstrap = Bootstrap::new(address).with(Security { tls: Some(tls), sasl: None });
    let settings = ReaderSettings { retry_for: Duration::from_millis(300), ..Default::default() };
    for half in ["", &text[..text.len() / 2]] {
        std::fs::write(&file, half).unwrap();
        let error = Reader::with_settings(bootstrap.clone(), settings)
            .list_offset("trail", 0, highwater_kafka::OffsetSpec::Latest)
            .await
            .unwrap_err();
        assert!(matches!(error, KafkaError::Unreachable { .. }), "{error}");
        assert!(error.to_string().contains("holds no certificates"), "{error}");
    }
    std::fs::write(&file, text).unwrap();
    let why = refusal(bootstrap).await;
    assert!(why.contains("for another host"), "{why}");
}

fn logged_in(lifetime_ms: i64) -> SaslAuthenticateResponse {
    SaslAuthenticateResponse { session_lifetime_ms: lifetime_ms, ..Default::default() }
}

/// KIP-368: on the same connection, before it runs out, and with nothing else in between.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_renewed_on_its_connection() {
    let renewed = Arc::new(AtomicUsize::new(0));
    let (counted, logging_in) = (Arc::clone(&renewed), [const { AtomicBool::new(false) }; 2]);
    let fake = Fake::start(move |asked: &Asked| match asked.header.api_key {
        _ if asked.connection >= logging_in.len() => Reply::Close,
        ApiKey::SaslHandshake => {
            logging_in[asked.connection].store(true, Ordering::SeqCst);
            asked.answer(&SaslHandshakeResponse::default())
        }
        ApiKey::SaslAuthenticate => {
            logging_in[asked.connection].store(false, Ordering::SeqCst);
            counted.fetch_add(1, Ordering::SeqCst);
            asked.answer(&logged_in(100))
        }
        _ if logging_in[asked.connection].load(Ordering::SeqCst) => Reply::Close,
        _ => asked.basics(),
    })
    .await;
    let plain = Security::sasl(sasl(Mechanism::Plain, "x"));
    let admin = Admin::new(reader(Bootstrap::new(fake.bootstrap()).with(plain)));
    let asking = (0..4).map(|_| {
        let admin = admin.clone();
        tokio::spawn(async move {
            for _ in 0..50 {
                admin.topics().await.unwrap();
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
    });
    for asking in Vec::from_iter(asking) {
        asking.await.unwrap();
    }
    let renewed = renewed.load(Ordering::SeqCst);
    assert!(renewed >= 6, "{renewed} logins on {} connections", fake.connections());
    assert_eq!(fake.connections(), 2, "the width of the pool");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_does_not_know_the_password_is_not_believed() {
    let fake = Fake::start(|asked: &Asked| match asked.header.api_key {
        ApiKey::SaslHandshake => asked.answer(&SaslHandshakeResponse::default()),
        ApiKey::SaslAuthenticate => {
            let said = asked.request::<highwater_protocol::SaslAuthenticateRequest>().auth_bytes;
            let said = String::from_utf8(said.0.to_vec()).unwrap();
            let told = match said.split_once(",r=") {
                Some((start, nonce)) if start.starts_with("n,,") => {
                    format!("r={nonce}more,s=c2FsdA==,i=4096")
                }
                _ => "v=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=".to_owned(),
            };
            let auth_bytes = highwater_protocol::Secret(Bytes::from(told));
            asked.answer(&SaslAuthenticateResponse { auth_bytes, ..Default::default() })
        }
        ApiKey::ApiVersions => asked.basics(),
        other => panic!("{other:?} is asked of an impostor"),
    });
    let fake = fake.await;
    let scram = Security::sasl(sasl(Mechanism::ScramSha256, "pencil"));
    let why = refusal(Bootstrap::new(fake.bootstrap()).with(scram)).await;
    assert!(why.contains("does not prove"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mechanism_that_is_not_taken_is_named_with_those_that_are() {
    let fake = Fake::start(|asked: &Asked| match asked.header.api_key {
        ApiKey::SaslHandshake => asked.answer(&SaslHandshakeResponse {
            error_code: ErrorCode::UNSUPPORTED_SASL_MECHANISM,
            mechanisms: vec!["GSSAPI".to_owned(), "SCRAM-SHA-512".to_owned()],
        }),
        _ => asked.basics(),
    });
    let fake = fake.await;
    let scram = Security::sasl(sasl(Mechanism::ScramSha256, "pencil"));
    let why = refusal(Bootstrap::new(fake.bootstrap()).with(scram)).await;
    assert!(why.contains("takes sasl.mechanism GSSAPI, SCRAM-SHA-512"), "{why}");
}
