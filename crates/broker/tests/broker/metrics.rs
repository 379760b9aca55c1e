//! What is counted.

use highwater_protocol::MetadataRequest;
use metrics_exporter_prometheus::PrometheusBuilder;

use crate::client::fetch;
use crate::server::Server;

/// The recorder is this thread's alone, and so is the runtime with the broker in it.
#[tokio::test]
async fn requests_errors_bytes_and_connections_are_counted() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let handle = recorder.handle();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let server = Server::start().await;
    server.topic("t");
    let mut client = server.client().await;
    client.call(9, &MetadataRequest::default()).await;
    client.call(9, &MetadataRequest::default()).await;
    client.fetch(11, &fetch("t", 7)).await;
    let text = handle.render();
    for line in [
        r#"highwater_kafka_requests_total{api="Metadata"} 2"#,
        r#"highwater_kafka_requests_total{api="Fetch"} 1"#,
        r#"highwater_kafka_errors_total{api="Fetch",error="OFFSET_OUT_OF_RANGE"} 1"#,
        "highwater_kafka_connections 1",
        "# HELP highwater_kafka_received_bytes_total",
        "# HELP highwater_kafka_sent_bytes_total",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    drop(client);
    server.broker.shutdown().await;
    assert!(handle.render().contains("highwater_kafka_connections 0"));
}
