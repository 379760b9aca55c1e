//! CreateTopics, DeleteTopics and DeleteRecords.

use highwater_protocol::{
    CreatableReplicaAssignment, CreatableTopic, CreatableTopicConfig, CreatableTopicResult,
    CreatePartitionsRequest, CreatePartitionsTopic, CreateTopicsRequest, DeleteRecordsPartition,
    DeleteRecordsRequest, DeleteRecordsTopic, DeleteTopicState, DeleteTopicsRequest, ErrorCode,
};

use crate::client::{Client, fetch, plain, records};
use crate::server::Server;

fn topic(name: &str) -> CreatableTopic {
    CreatableTopic {
        name: name.to_owned(),
        num_partitions: -1,
        replication_factor: -1,
        ..Default::default()
    }
}

fn set(name: &str, value: &str) -> CreatableTopicConfig {
    CreatableTopicConfig { name: name.to_owned(), value: Some(value.to_owned()) }
}

async fn create(client: &mut Client, version: i16, topic: CreatableTopic) -> CreatableTopicResult {
    let request = CreateTopicsRequest { topics: vec![topic], ..Default::default() };
    client.call(version, &request).await.topics.remove(0)
}

#[tokio::test]
async fn every_version_makes_and_deletes_a_topic() {
    let server = Server::start().await;
    let mut client = server.client().await;
    for version in 2..=7 {
        let asked = CreatableTopic {
            num_partitions: 2,
            replication_factor: 1,
            configs: vec![set("retention.ms", "1000")],
            ..topic("t")
        };
        let made = create(&mut client, version, asked).await;
        assert!(made.error_code.is_ok(), "{made:?}");
        let info = server.log.topic("t").unwrap();
        assert_eq!((info.partitions, info.config.retention_ms), (2, Some(1000)));
        if version >= 5 {
            assert_eq!((made.num_partitions, made.replication_factor), (2, 1));
            let configs = made.configs.unwrap();
            let retention = configs.iter().find(|entry| entry.name == "retention.ms").unwrap();
            assert_eq!((retention.value.as_deref(), retention.config_source), (Some("1000"), 1));
        }
        if version >= 7 {
            assert_eq!(made.topic_id, info.id);
        }
        let delete = DeleteTopicsRequest {
            topic_names: vec!["t".to_owned()],
            topics: vec![DeleteTopicState { name: Some("t".to_owned()), ..Default::default() }],
            ..Default::default()
        };
        let deleted = client.call(version - 1, &delete).await.responses.remove(0);
        assert!(deleted.error_code.is_ok(), "{deleted:?}");
        assert!(server.log.topic("t").is_none());
    }
}

#[tokio::test]
async fn the_broker_has_defaults() {
    let server = Server::start_with(|config| {
        config.default_partitions = 4;
        config.topic_defaults.insert("retention.ms".to_owned(), "60000".to_owned());
        config.topic_defaults.insert("segment.bytes".to_owned(), "2048".to_owned());
    })
    .await;
    let mut client = server.client().await;
    let asked = CreatableTopic { configs: vec![set("segment.bytes", "4096")], ..topic("t") };
    create(&mut client, 7, asked).await;
    let info = server.log.topic("t").unwrap();
    assert_eq!(info.partitions, 4);
    assert_eq!((info.config.retention_ms, info.config.roll.bytes), (Some(60_000), 4096));
}

#[tokio::test]
async fn what_cannot_be_made_is_refused_by_its_own_code() {
    let server = Server::start().await;
    server.topic("there");
    let mut client = server.client().await;
    let assigned = |index, brokers: &[i32]| CreatableTopic {
        assignments: vec![CreatableReplicaAssignment {
            partition_index: index,
            broker_ids: brokers.to_vec(),
        }],
        ..topic("t")
    };
    let cases = [
        (topic("there"), ErrorCode::TOPIC_ALREADY_EXISTS),
        (topic("a b"), ErrorCode::INVALID_TOPIC_EXCEPTION),
        (CreatableTopic { num_partitions: 0, ..topic("t") }, ErrorCode::INVALID_PARTITIONS),
        (CreatableTopic { num_partitions: 1 << 30, ..topic("t") }, ErrorCode::INVALID_PARTITIONS),
        (
            CreatableTopic { replication_factor: 3, ..topic("t") },
            ErrorCode::INVALID_REPLICATION_FACTOR,
        ),
        (
            CreatableTopic { configs: vec![set("retention.ms", "soon")], ..topic("t") },
            ErrorCode::INVALID_CONFIG,
        ),
        (
            CreatableTopic { configs: vec![set("no.such", "1")], ..topic("t") },
            ErrorCode::INVALID_CONFIG,
        ),
        (assigned(0, &[7]), ErrorCode::INVALID_REPLICA_ASSIGNMENT),
        (assigned(1, &[0]), ErrorCode::INVALID_REPLICA_ASSIGNMENT),
    ];
    for (asked, code) in cases {
        let refused = create(&mut client, 7, asked.clone()).await;
        assert_eq!(refused.error_code, code, "{asked:?}");
        assert!(refused.error_message.is_some());
    }
    assert!(server.log.topic("t").is_none());
    assert!(create(&mut client, 7, assigned(0, &[0])).await.error_code.is_ok());
}

#[tokio::test]
async fn a_check_makes_nothing() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let request =
        CreateTopicsRequest { topics: vec![topic("t")], validate_only: true, ..Default::default() };
    let checked = client.call(7, &request).await.topics.remove(0);
    assert!(checked.error_code.is_ok());
    assert_eq!(checked.num_partitions, 1);
    assert!(server.log.topic("t").is_none());
}

#[tokio::test]
async fn a_topic_named_twice_is_not_made() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let topics = vec![topic("t"), topic("other"), topic("t")];
    let request = CreateTopicsRequest { topics, ..Default::default() };
    let answer = client.call(7, &request).await;
    let codes: Vec<_> = answer.topics.iter().map(|topic| topic.error_code).collect();
    let twice = ErrorCode::INVALID_REQUEST;
    assert_eq!(codes, [twice, ErrorCode::NONE], "answered once, as Apache Kafka does");
    assert!(server.log.topic("t").is_none());
}

#[tokio::test]
async fn topics_are_deleted_by_id_and_strangers_are_named() {
    let server = Server::start().await;
    server.topic("t");
    server.topic("stays");
    let mut client = server.client().await;
    let id = server.log.topic("t").unwrap().id;
    let by_id = DeleteTopicState { name: None, topic_id: id };
    let by_name = DeleteTopicState { name: Some("no-such".to_owned()), ..Default::default() };
    let request =
        DeleteTopicsRequest { topics: vec![by_id.clone(), by_name, by_id], ..Default::default() };
    let answers = client.call(6, &request).await.responses;
    let codes: Vec<_> = answers.iter().map(|answer| answer.error_code).collect();
    let expected =
        [ErrorCode::NONE, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, ErrorCode::UNKNOWN_TOPIC_ID];
    assert_eq!(codes, expected);
    assert_eq!(answers[0].name.as_deref(), Some("t"));
    assert!(server.log.topic("stays").is_some());
}

#[tokio::test]
async fn a_topic_to_be_deleted_is_named_in_one_way() {
    let server = Server::start().await;
    server.topic("t");
    let mut client = server.client().await;
    let id = server.log.topic("t").unwrap().id;
    let both = DeleteTopicState { name: Some("t".to_owned()), topic_id: id };
    let neither = DeleteTopicState { name: None, ..Default::default() };
    let request = DeleteTopicsRequest { topics: vec![both, neither], ..Default::default() };
    let answers = client.call(6, &request).await.responses;
    let codes: Vec<_> = answers.iter().map(|answer| answer.error_code).collect();
    assert_eq!(codes, [ErrorCode::INVALID_REQUEST; 2]);
    assert!(server.log.topic("t").is_some());
}

#[tokio::test]
async fn records_are_deleted_up_to_an_offset() {
    let server = Server::start().await;
    server.topic("t");
    let mut client = server.client().await;
    for timestamp in 0..5 {
        client.produce(9, "t", plain(&[timestamp])).await;
    }
    for (version, before, expected) in
        [(0, 2, Ok(2)), (1, -1, Ok(5)), (2, 6, Err(ErrorCode::OFFSET_OUT_OF_RANGE))]
    {
        let request = DeleteRecordsRequest {
            topics: vec![DeleteRecordsTopic {
                name: "t".to_owned(),
                partitions: vec![DeleteRecordsPartition { partition_index: 0, offset: before }],
            }],
            timeout_ms: 1_000,
        };
        let result = client.call(version, &request).await.topics.remove(0).partitions.remove(0);
        match expected {
            Ok(start) => {
                assert_eq!((result.error_code, result.low_watermark), (ErrorCode::NONE, start))
            }
            Err(code) => assert_eq!((result.error_code, result.low_watermark), (code, -1)),
        }
        if version == 0 {
            let answer = client.fetch(11, &fetch("t", 2)).await;
            assert_eq!((answer.log_start_offset, records(&answer).len()), (2, 3));
            let below = client.fetch(11, &fetch("t", 1)).await;
            assert_eq!(below.error_code, ErrorCode::OFFSET_OUT_OF_RANGE);
        }
    }
}

#[tokio::test]
async fn a_topic_that_is_held_is_not_deleted() {
    let server = Server::start().await;
    server.topic_with("t", 1, &[("highwater.hold.audit", "0:0")]);
    let mut client = server.client().await;
    let request = DeleteTopicsRequest { topic_names: vec!["t".to_owned()], ..Default::default() };
    let refused = client.call(5, &request).await.responses.remove(0);
    assert_eq!(refused.error_code, ErrorCode::POLICY_VIOLATION);
    let text = refused.error_message.unwrap();
    assert!(text.contains("LOG_HELD") && text.contains("audit"), "{text}");
    assert!(server.log.topic("t").is_some());
    server.log.set_config("t", [].into()).unwrap();
    assert!(client.call(5, &request).await.responses[0].error_code.is_ok(), "it was released");
}

/// Partitions are folders and open files: one request makes no more than one topic may have.
#[tokio::test]
async fn one_request_makes_only_so_many_partitions() {
    let server = Server::start_with(|config| config.limits.partitions_per_topic = 5).await;
    let mut client = server.client().await;
    let of = |name: &str, num_partitions| CreatableTopic { num_partitions, ..topic(name) };
    let together = [of("a", 3), of("b", 3)];
    let request = CreateTopicsRequest { topics: together.into(), ..Default::default() };
    let refused = client.call(7, &request).await.topics;
    let code = |topic: &CreatableTopicResult| topic.error_code;
    assert_eq!(refused.iter().map(code).collect::<Vec<_>>(), [ErrorCode::POLICY_VIOLATION; 2]);
    assert!(server.log.topics().is_empty());
    for name in ["a", "b"] {
        assert!(create(&mut client, 7, of(name, 1)).await.error_code.is_ok());
    }
    let raised =
        |name: &str| CreatePartitionsTopic { name: name.to_owned(), count: 4, assignments: None };
    let request =
        CreatePartitionsRequest { topics: vec![raised("a"), raised("b")], ..Default::default() };
    let refused = client.call(3, &request).await.results;
    assert!(refused.iter().all(|topic| topic.error_code == ErrorCode::POLICY_VIOLATION));
    let request = CreatePartitionsRequest { topics: vec![raised("a")], ..Default::default() };
    assert!(client.call(3, &request).await.results[0].error_code.is_ok());
}
