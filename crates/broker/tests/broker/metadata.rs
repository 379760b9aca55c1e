//! Metadata and DescribeCluster.

use highwater_broker::{AutoCreate, Endpoint};
use highwater_protocol::{
    DescribeClusterRequest, ErrorCode, MetadataRequest, MetadataRequestTopic, MetadataResponse,
};
use tokio::io::AsyncWriteExt;
use uuid::Uuid;

use crate::server::Server;

fn named(names: &[&str]) -> MetadataRequest {
    let topic =
        |name: &&str| MetadataRequestTopic { name: Some((*name).to_owned()), ..Default::default() };
    MetadataRequest { topics: Some(names.iter().map(topic).collect()), ..Default::default() }
}

fn all() -> MetadataRequest {
    MetadataRequest { topics: None, ..Default::default() }
}

#[tokio::test]
async fn every_version_describes_a_topic() {
    let server = Server::start().await;
    server.topic_with("orders", 3, &[]);
    let mut client = server.client().await;
    for version in 0..=12 {
        let answer = client.call(version, &named(&["orders"])).await;
        let topic = &answer.topics[0];
        assert!(topic.error_code.is_ok());
        assert_eq!(topic.name.as_deref(), Some("orders"));
        assert_eq!(topic.partitions.len(), 3);
        assert!(topic.partitions.iter().all(|partition| partition.leader_id == 0));
        assert_eq!(answer.brokers[0].host, "127.0.0.1");
        assert_eq!(answer.brokers[0].port, i32::from(server.broker.local_addr().port()));
        assert_eq!(topic.topic_id.is_nil(), version < 10);
    }
}

#[tokio::test]
async fn all_topics() {
    let server = Server::start().await;
    server.topic("a");
    server.topic("b");
    let mut client = server.client().await;
    // Version 0 has no null: there, an empty list asks for all.
    for (version, request) in [(0, named(&[])), (1, all()), (12, all())] {
        let answer = client.call(version, &request).await;
        let mut names: Vec<_> = answer.topics.iter().flat_map(|topic| topic.name.clone()).collect();
        names.sort();
        assert_eq!(names, ["a", "b"], "version {version}");
    }
    assert!(client.call(1, &named(&[])).await.topics.is_empty());
}

/// What librdkafka 2.16 sends when it asks for all topics: three bytes too many.
#[tokio::test]
async fn bytes_behind_a_request_are_let_pass() {
    let server = Server::start().await;
    server.topic("a");
    let mut client = server.client().await;
    let request = b"\0\0\0\x19\0\x03\0\x0c\0\0\0\x03\0\x07rdkafka\0\0\0\0\0\x01\0\0";
    client.stream.write_all(request).await.unwrap();
    let answer: MetadataResponse = client.receive(12, 3).await;
    assert_eq!(answer.topics[0].name.as_deref(), Some("a"));
}

#[tokio::test]
async fn topic_ids_are_stable_and_lead_to_their_topic() {
    let server = Server::start().await;
    server.topic("a");
    let mut client = server.client().await;
    let id = client.call(12, &named(&["a"])).await.topics[0].topic_id;
    drop(client);
    let server = server.restart(|_| {}).await;
    let mut client = server.client().await;
    let by_id = |topic_id| MetadataRequest {
        topics: Some(vec![MetadataRequestTopic { topic_id, name: None }]),
        ..Default::default()
    };
    let answer = client.call(12, &by_id(id)).await;
    assert_eq!(answer.topics[0].name.as_deref(), Some("a"));
    let stranger = client.call(12, &by_id(Uuid::from_u128(7))).await;
    assert_eq!(stranger.topics[0].error_code, ErrorCode::UNKNOWN_TOPIC_ID);
    server.log.delete_topic("a").unwrap();
    server.topic("a");
    let answer = client.call(12, &by_id(id)).await;
    assert_eq!(answer.topics[0].error_code, ErrorCode::UNKNOWN_TOPIC_ID, "a new topic, a new id");
}

#[tokio::test]
async fn topics_are_made_only_when_both_sides_want_it() {
    for (auto_create, allowed, made) in [
        (AutoCreate::Never, true, false),
        (AutoCreate::WhenAsked, false, false),
        (AutoCreate::WhenAsked, true, true),
    ] {
        let server = Server::start_with(|config| config.auto_create = auto_create).await;
        let mut client = server.client().await;
        let request = MetadataRequest { allow_auto_topic_creation: allowed, ..named(&["new"]) };
        let topic = client.call(12, &request).await.topics.remove(0);
        let expected = if made { ErrorCode::NONE } else { ErrorCode::UNKNOWN_TOPIC_OR_PARTITION };
        assert_eq!(topic.error_code, expected);
        assert_eq!(server.log.topic("new").is_some(), made, "{auto_create:?} {allowed}");
    }
}

#[tokio::test]
async fn names_that_no_topic_can_have() {
    let server = Server::start_with(|config| config.auto_create = AutoCreate::WhenAsked).await;
    let mut client = server.client().await;
    let long = "x".repeat(250);
    for name in ["", ".", "..", "a/b", "ä", &long] {
        let topic = client.call(9, &named(&[name])).await.topics.remove(0);
        assert_eq!(topic.error_code, ErrorCode::INVALID_TOPIC_EXCEPTION, "{name:?}");
    }
}

#[tokio::test]
async fn clients_are_sent_to_the_advertised_address() {
    let advertised = Endpoint { host: "kafka.example".to_owned(), port: 19092 };
    let server = Server::start_with(|config| config.advertise = Some(advertised)).await;
    let mut client = server.client().await;
    let broker = client.call(12, &all()).await.brokers.remove(0);
    assert_eq!((broker.host.as_str(), broker.port), ("kafka.example", 19092));
}

#[tokio::test]
async fn the_cluster_is_one_broker() {
    let server = Server::start_with(|config| config.node_id = 5).await;
    let mut client = server.client().await;
    for version in 0..=1 {
        let request = DescribeClusterRequest {
            include_cluster_authorized_operations: true,
            ..Default::default()
        };
        let cluster = client.call(version, &request).await;
        assert_eq!(cluster.cluster_id, server.log.cluster_id());
        assert_eq!((cluster.controller_id, cluster.brokers[0].broker_id), (5, 5));
        assert!(cluster.cluster_authorized_operations > 0);
    }
    let controllers = DescribeClusterRequest { endpoint_type: 2, ..Default::default() };
    let refused = client.call(1, &controllers).await;
    assert_eq!(refused.error_code, ErrorCode::MISMATCHED_ENDPOINT_TYPE);
}
