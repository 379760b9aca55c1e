//! Starting and stopping.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use highwater_broker::{BrokerConfig, BrokerError, Endpoint, Reach};
use highwater_protocol::{FetchRequest, FetchResponse, MetadataRequest};

use crate::client::{SOON, fetch};
use crate::server::Server;

#[tokio::test]
async fn a_taken_port_is_named() {
    let server = Server::start().await;
    let address = server.broker.local_addr();
    let error = server.another(BrokerConfig::new(address)).await.unwrap_err();
    assert!(matches!(error, BrokerError::AddressTaken { .. }));
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

/// Rules A2 and L9.
#[tokio::test]
async fn beyond_loopback_only_in_so_many_words() {
    let server = Server::start().await;
    let wildcard = SocketAddr::from(([0, 0, 0, 0], 0));
    let mut config = BrokerConfig::new(wildcard);
    let error = server.another(config.clone()).await.unwrap_err();
    assert!(matches!(error, BrokerError::Unguarded { .. }));
    config.reach = Reach::Anywhere;
    let error = server.another(config.clone()).await.unwrap_err();
    assert!(matches!(error, BrokerError::AdvertiseMissing { .. }));
    config.advertise = Some(Endpoint { host: "here".to_owned(), port: 9092 });
    server.another(config).await.unwrap().shutdown().await;
}

#[tokio::test]
async fn a_shutdown_ends_polls_and_idle_connections_at_once() {
    let server = Server::start().await;
    server.topic("t");
    let (mut idle, mut polling) = (server.client().await, server.client().await);
    idle.call(9, &MetadataRequest::default()).await;
    let request = FetchRequest { max_wait_ms: 60_000, ..fetch("t", 0) };
    let poll = polling.send(11, &request).await;
    polling.begun(&server).await;
    let address = server.broker.local_addr();
    let began = Instant::now();
    server.broker.shutdown().await;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    let response: FetchResponse = polling.receive(11, poll).await;
    assert!(response.error_code.is_ok(), "what there is");
    assert_eq!(polling.frame().await, None);
    assert_eq!(idle.frame().await, None);
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "nobody listens");
}

#[tokio::test]
async fn a_shutdown_is_bounded() {
    let server = Server::start_with(|config| {
        config.limits.shutdown = Duration::from_millis(100);
        config.limits.stall = SOON * 6;
    })
    .await;
    server.topic_with("t", 1, &[("max.message.bytes", "40000000")]);
    let mut client = server.client().await;
    client.produce(9, "t", crate::client::large(30_000_000)).await;
    // An answer larger than the sockets' buffers, which nobody reads.
    client.send(11, &fetch("t", 0)).await;
    client.begun(&server).await;
    let began = Instant::now();
    server.broker.shutdown().await;
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}
