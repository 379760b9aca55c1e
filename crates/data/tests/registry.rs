//! The AvroConverter against a registry that is played here: what it asks, what it remembers, and what
//! it makes of refusals, silence and TLS.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use highwater_data::{Converter, DataError, Role, Schema, SchemaAndValue, Struct, Type, Value};
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

/// Answers in order, the last one for ever: status and body, or silence.
#[derive(Clone)]
enum Answer {
    Say(u16, &'static str),
    Silence,
}

/// A registry and the requests that came: the first line, the login, and the body.
struct Played {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Played {
    async fn start(answers: Vec<Answer>, tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        tokio::spawn(async move {
            for number in 0.. {
                let (tcp, _) = listener.accept().await.unwrap();
                let answer = answers[number.min(answers.len() - 1)].clone();
                let log = Arc::clone(&log);
                match tls.clone() {
                    None => drop(tokio::spawn(serve(tcp, answer, log))),
                    Some(tls) => drop(tokio::spawn(async move {
                        if let Ok(stream) = tls.accept(tcp).await {
                            serve(stream, answer, log).await;
                        }
                    })),
                }
            }
        });
        Self { port, asked }
    }

    fn options(&self, more: &[(&str, &str)]) -> BTreeMap<String, String> {
        let url = format!("http://127.0.0.1:{}", self.port);
        let mut options =
            [("schema.registry.url", url.as_str()), ("retries.wait.ms", "1")].to_vec();
        options.extend(more);
        options.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
    }

    fn converter(&self, more: &[(&str, &str)]) -> Converter {
        Converter::new("AvroConverter", &self.options(more), Role::Value).unwrap()
    }
}

async fn serve(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    answer: Answer,
    log: Arc<Mutex<Vec<String>>>,
) {
    let mut request = Vec::new();
    while !whole(&request) {
        let mut part = [0; 4096];
        match stream.read(&mut part).await {
            Ok(count) if count > 0 => request.extend_from_slice(&part[..count]),
            _ => return,
        }
    }
    log.lock().push(String::from_utf8(request).unwrap());
    match answer {
        Answer::Silence => std::future::pending().await,
        Answer::Say(status, body) => {
            let length = body.len();
            let text = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\n\r\n{body}");
            let _ = stream.write_all(text.as_bytes()).await;
            let _ = stream.shutdown().await;
        }
    }
}

fn whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}

fn row() -> SchemaAndValue {
    let schema =
        Schema::of_fields([("id", Schema::from(Type::Int32))]).named(Some("shop.Row".into()));
    let mut row = Struct::new(&schema).unwrap();
    row.put("id", Value::Int32(7)).unwrap();
    SchemaAndValue::of(schema, row.into())
}

#[tokio::test]
async fn a_schema_is_registered_once_and_its_id_stands_before_each_value() {
    let registry = Played::start(vec![Answer::Say(200, r#"{"id":258}"#)], None).await;
    let converter = registry.converter(&[
        ("basic.auth.credentials.source", "USER_INFO"),
        ("basic.auth.user.info", "ann:secret"),
    ]);
    let SchemaAndValue { schema, value } = row();
    for _ in 0..3 {
        let bytes = converter.write("shop.rows", schema.as_ref(), &value).await.unwrap();
        assert_eq!(bytes, Some(Bytes::from_static(b"\0\0\0\x01\x02\x0e")));
    }
    assert_eq!(converter.write("shop.rows", None, &Value::Null).await, Ok(None));
    let asked = registry.asked.lock().clone();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(
        asked[0].starts_with("POST /subjects/shop.rows-value/versions HTTP/1.1"),
        "{}",
        asked[0]
    );
    assert!(
        asked[0].to_lowercase().contains("\r\nauthorization: basic yw5uonnly3jlda=="),
        "{}",
        asked[0]
    );
    assert!(
        asked[0].contains(r#"{"schema":"{\"type\":\"record\",\"name\":\"Row\""#),
        "{}",
        asked[0]
    );
}

#[tokio::test]
async fn a_schema_that_must_be_there_is_looked_up_under_the_key_of_its_topic() {
    let registry = Played::start(vec![Answer::Say(200, r#"{"id":1,"version":2}"#)], None).await;
    let options = registry.options(&[("auto.register.schemas", "false")]);
    let converter = Converter::new("Avro", &options, Role::Key).unwrap();
    let SchemaAndValue { schema, value } = row();
    converter.write("a", schema.as_ref(), &value).await.unwrap();
    assert!(registry.asked.lock()[0].starts_with("POST /subjects/a-key HTTP/1.1"));
}

#[tokio::test]
async fn the_schema_of_an_id_is_asked_for_once() {
    let answer = r#"{"schema":"{\"type\":\"record\",\"name\":\"Row\",\"namespace\":\"shop\",\"fields\":[{\"name\":\"id\",\"type\":\"int\"}]}"}"#;
    let registry = Played::start(vec![Answer::Say(200, answer)], None).await;
    let converter = registry.converter(&[]);
    for _ in 0..3 {
        let read = converter.read(Some(&Bytes::from_static(b"\0\0\0\x01\x02\x0e"))).await;
        assert_eq!(read.unwrap(), row());
    }
    assert_eq!(registry.asked.lock().len(), 1);
    assert!(registry.asked.lock()[0].starts_with("GET /schemas/ids/258 HTTP/1.1"));
    for strange in [&b""[..], b"\0\0\0\x01", b"\x01\0\0\x01\x02\x0e", b"\0\0\0\x01\x02"] {
        let read = converter.read(Some(&Bytes::from_static(strange))).await;
        assert!(matches!(read, Err(DataError::Unfit(_))), "{strange:?}: {read:?}");
    }
    assert_eq!(converter.read(None).await.unwrap(), SchemaAndValue::default());
}

#[tokio::test]
async fn a_refusal_is_told_in_the_registrys_words_and_not_repeated() {
    let body = r#"{"error_code":409,"message":"incompatible with\nan earlier schema"}"#;
    let registry = Played::start(vec![Answer::Say(409, body)], None).await;
    let SchemaAndValue { schema, value } = row();
    let refused = registry.converter(&[]).write("a", schema.as_ref(), &value).await.unwrap_err();
    assert_eq!(refused.code(), "SCHEMA_REGISTRY_REFUSED");
    assert!(
        refused.to_string().contains("409 (code 409): incompatible with an earlier schema"),
        "{refused}"
    );
    assert_eq!(registry.asked.lock().len(), 1);
}

#[tokio::test]
async fn a_registry_that_cannot_answer_now_is_asked_again() {
    let busy = Answer::Say(503, "busy");
    let registry =
        Played::start(vec![busy.clone(), busy.clone(), Answer::Say(200, r#"{"id":1}"#)], None)
            .await;
    let SchemaAndValue { schema, value } = row();
    assert!(registry.converter(&[]).write("a", schema.as_ref(), &value).await.is_ok());
    assert_eq!(registry.asked.lock().len(), 3);
    let registry = Played::start(vec![busy], None).await;
    let failed =
        registry.converter(&[("max.retries", "2")]).write("a", schema.as_ref(), &value).await;
    assert_eq!(failed.unwrap_err().code(), "SCHEMA_REGISTRY_UNREACHABLE");
    assert_eq!(registry.asked.lock().len(), 3);
}

#[tokio::test]
async fn silence_ends_and_nobody_there_is_told() {
    let registry = Played::start(vec![Answer::Silence], None).await;
    let converter = registry.converter(&[("http.read.timeout.ms", "50"), ("max.retries", "1")]);
    let began = Instant::now();
    let failed = converter.read(Some(&Bytes::from_static(b"\0\0\0\0\x01"))).await.unwrap_err();
    assert!(failed.to_string().contains("longer than 50 ms"), "{failed}");
    assert!(began.elapsed() < Duration::from_secs(20));
    let port = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let url = format!("http://ann:secret@127.0.0.1:{port}");
    let options =
        [("schema.registry.url".to_owned(), url), ("max.retries".to_owned(), "0".to_owned())];
    let converter = Converter::new("Avro", &options.into(), Role::Value).unwrap();
    let failed = converter.read(Some(&Bytes::from_static(b"\0\0\0\0\x01"))).await.unwrap_err();
    assert_eq!(failed.code(), "SCHEMA_REGISTRY_UNREACHABLE");
    assert!(!failed.to_string().contains("secret"), "{failed}");
}

#[tokio::test]
async fn the_second_address_is_asked_when_the_first_is_gone() {
    let registry = Played::start(vec![Answer::Say(200, r#"{"id":1}"#)], None).await;
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let urls = format!("http://127.0.0.1:{gone}, http://127.0.0.1:{}/", registry.port);
    let converter = registry.converter(&[("schema.registry.url", &urls), ("max.retries", "0")]);
    let SchemaAndValue { schema, value } = row();
    assert!(converter.write("a", schema.as_ref(), &value).await.is_ok());
}

#[tokio::test]
async fn a_registry_over_tls_must_have_a_certificate_of_a_trusted_authority() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let registry = Played::start(vec![Answer::Say(200, r#"{"id":1}"#)], Some(acceptor)).await;
    let folder = tempfile::tempdir().unwrap();
    let SchemaAndValue { schema, value } = row();
    let other = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    for (pem, trusted) in [(made.cert.pem(), true), (other.cert.pem(), false)] {
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, pem).unwrap();
        let url = format!("https://localhost:{}", registry.port);
        let converter = registry.converter(&[
            ("schema.registry.url", &url),
            ("schema.registry.ssl.truststore.location", file.to_str().unwrap()),
            ("max.retries", "0"),
        ]);
        let written = converter.write("a", schema.as_ref(), &value).await;
        assert_eq!(written.is_ok(), trusted, "{written:?}");
    }
}

#[test]
fn options_that_would_change_what_is_written_are_refused() {
    for (key, value) in [
        ("schema.registry.url", ""),
        ("schema.registry.url", "registry:8081"),
        ("use.latest.version", "true"),
        (
            "value.subject.name.strategy",
            "io.confluent.kafka.serializers.subject.RecordNameStrategy",
        ),
        ("basic.auth.credentials.source", "USER_INFO"),
        ("max.retries", "-1"),
    ] {
        let mut options: BTreeMap<_, _> =
            [("schema.registry.url".to_owned(), "http://a:1".to_owned())].into();
        options.insert(key.to_owned(), value.to_owned());
        assert!(Converter::new("Avro", &options, Role::Value).is_err(), "{key}={value}");
    }
    assert!(Converter::new("Avro", &BTreeMap::new(), Role::Value).is_err());
    assert!(Converter::new("Avro", &BTreeMap::new(), Role::Header).is_err());
    assert!(Converter::new("SimpleHeaderConverter", &BTreeMap::new(), Role::Value).is_err());
    assert!(Converter::new("SimpleHeaderConverter", &BTreeMap::new(), Role::Header).is_ok());
}
