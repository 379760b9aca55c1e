//! What is counted of connections to a cluster.

use std::time::Duration;

use highwater_kafka::{OffsetSpec, Reader, ReaderSettings};
use highwater_protocol::ApiKey;
use metrics_exporter_prometheus::PrometheusBuilder;

use crate::fake::{Fake, Reply};
use crate::server::Server;

const SETTINGS: ReaderSettings = ReaderSettings {
    connect_timeout: Duration::from_millis(500),
    request_timeout: Duration::from_millis(100),
    retry_for: Duration::from_millis(500),
};

/// The recorder is this thread's alone, and so is the runtime with the client in it.
#[tokio::test]
async fn connections_and_silence_are_counted() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let _guard = metrics::set_default_local_recorder(&recorder);
    highwater_kafka::describe_metrics();
    let says = |line: &str| {
        let text = handle.render();
        assert!(text.lines().any(|said| said == line), "{line} is missing in\n{text}");
    };

    let server = Server::with_trail().await;
    let reader = Reader::with_settings(server.bootstrap().as_str(), SETTINGS);
    reader.list_offset("trail", 0, OffsetSpec::Latest).await.unwrap();
    let open = |text: &str| -> u64 {
        let found =
            text.lines().find_map(|it| it.strip_prefix("highwater_kafka_client_connections "));
        found.unwrap().parse().unwrap()
    };
    assert!(open(&handle.render()) >= 1);
    assert!(handle.render().contains(r#"highwater_kafka_client_connects_total{outcome="done"}"#));
    drop((reader, server));
    while open(&handle.render()) > 0 {
        tokio::task::yield_now().await;
    }

    let silent = Fake::start(|asked| match asked.header.api_key {
        ApiKey::ListOffsets => Reply::Silence,
        _ => asked.basics(),
    })
    .await;
    let reader = Reader::with_settings(silent.bootstrap().as_str(), SETTINGS);
    reader.list_offset("trail", 0, OffsetSpec::Latest).await.unwrap_err();
    assert!(!handle.render().contains("highwater_kafka_client_unanswered_total 0"));
    assert!(handle.render().contains("\nhighwater_kafka_client_unanswered_total "));

    let away = silent.bootstrap();
    drop(silent);
    while tokio::net::TcpStream::connect(&away).await.is_ok() {}
    let reader = Reader::with_settings(away.as_str(), SETTINGS);
    reader.list_offset("trail", 0, OffsetSpec::Latest).await.unwrap_err();
    assert!(handle.render().contains(r#"highwater_kafka_client_connects_total{outcome="lost"}"#));
    says("# TYPE highwater_kafka_client_connections gauge");
}
