//! DescribeConfigs and IncrementalAlterConfigs.

use highwater_protocol::{
    AlterConfigsRequest, AlterConfigsResource, AlterConfigsResourceResponse, AlterableConfig,
    CreatePartitionsRequest, CreatePartitionsTopic, DeleteRecordsPartition, DeleteRecordsRequest,
    DeleteRecordsTopic, DescribeConfigsRequest, DescribeConfigsResource, DescribeConfigsResult,
    ErrorCode, IncrementalAlterConfigsRequest, ReplacedConfigsResource,
};

use crate::client::{Client, plain};
use crate::server::Server;

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

async fn describe(
    client: &mut Client,
    version: i16,
    resource_type: i8,
    name: &str,
    keys: Option<&[&str]>,
) -> DescribeConfigsResult {
    let request = DescribeConfigsRequest {
        resources: vec![DescribeConfigsResource {
            resource_type,
            resource_name: name.to_owned(),
            configuration_keys: keys.map(|keys| keys.iter().map(ToString::to_string).collect()),
        }],
        include_synonyms: true,
        ..Default::default()
    };
    client.call(version, &request).await.results.remove(0)
}

#[tokio::test]
async fn a_topics_settings_say_where_they_come_from() {
    let server = Server::start().await;
    server.topic_with("t", 1, &[("cleanup.policy", "compact"), ("highwater.flush", "os")]);
    let mut client = server.client().await;
    for version in 1..=4 {
        let result = describe(&mut client, version, TOPIC, "t", None).await;
        let of = |name: &str| {
            let entry = result.configs.iter().find(|entry| entry.name == name).unwrap();
            (entry.value.clone().unwrap(), entry.config_source, entry.read_only)
        };
        assert_eq!(of("cleanup.policy"), ("compact".to_owned(), 1, false));
        assert_eq!(of("highwater.flush"), ("os".to_owned(), 1, false));
        assert_eq!(of("retention.ms"), ("604800000".to_owned(), 5, false));
    }
    let some = describe(&mut client, 4, TOPIC, "t", Some(&["cleanup.policy"])).await;
    assert_eq!(some.configs.len(), 1);
    let synonyms: Vec<_> =
        some.configs[0].synonyms.iter().map(|one| (one.value.as_deref(), one.source)).collect();
    assert_eq!(synonyms, [(Some("compact"), 1), (Some("delete"), 5)]);
}

#[tokio::test]
async fn the_brokers_settings() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let result = describe(&mut client, 4, BROKER, "0", Some(&["num.partitions", "node.id"])).await;
    assert!(result.error_code.is_ok());
    assert_eq!(result.configs.len(), 2);
    assert!(result.configs.iter().all(|entry| entry.read_only));
}

#[tokio::test]
async fn what_has_no_settings_is_refused() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let cases = [
        (TOPIC, "no-such", ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        (BROKER, "9", ErrorCode::INVALID_REQUEST),
        (99, "x", ErrorCode::INVALID_REQUEST),
    ];
    for (resource_type, name, code) in cases {
        let result = describe(&mut client, 4, resource_type, name, None).await;
        assert_eq!(result.error_code, code);
        assert!(result.error_message.is_some() && result.configs.is_empty());
    }
}

async fn alter(
    client: &mut Client,
    version: i16,
    validate_only: bool,
    changes: &[(&str, i8, Option<&str>)],
) -> AlterConfigsResourceResponse {
    let request = IncrementalAlterConfigsRequest { validate_only, ..changes_of("t", changes) };
    client.call(version, &request).await.responses.remove(0)
}

fn changes_of(topic: &str, changes: &[(&str, i8, Option<&str>)]) -> IncrementalAlterConfigsRequest {
    let change = |(name, config_operation, value): &(&str, i8, Option<&str>)| AlterableConfig {
        name: (*name).to_owned(),
        config_operation: *config_operation,
        value: value.map(str::to_owned),
    };
    IncrementalAlterConfigsRequest {
        resources: vec![AlterConfigsResource {
            resource_type: TOPIC,
            resource_name: topic.to_owned(),
            configs: changes.iter().map(change).collect(),
        }],
        validate_only: false,
    }
}

#[tokio::test]
async fn settings_change_one_by_one() {
    let server = Server::start().await;
    server.topic_with("t", 1, &[("retention.ms", "1000"), ("segment.bytes", "4096")]);
    let mut client = server.client().await;
    for version in 0..=1 {
        let changes = [
            ("retention.ms", SET, Some("2000")),
            ("segment.bytes", DELETE, None),
            ("cleanup.policy", APPEND, Some("compact")),
        ];
        let answer = alter(&mut client, version, false, &changes).await;
        assert!(answer.error_code.is_ok(), "{answer:?}");
        let config = server.log.topic("t").unwrap().config;
        assert_eq!((config.retention_ms, config.roll.bytes), (Some(2000), 1 << 30));
        assert!(config.cleanup.delete && config.cleanup.compact);
        let subtract = [("cleanup.policy", SUBTRACT, Some("compact"))];
        assert!(alter(&mut client, version, false, &subtract).await.error_code.is_ok());
        assert!(!server.log.topic("t").unwrap().config.cleanup.compact);
    }
}

#[tokio::test]
async fn what_a_list_has_already_stays_where_it_stands() {
    let server = Server::start().await;
    server.topic_with("t", 1, &[("cleanup.policy", "compact,delete")]);
    let mut client = server.client().await;
    let append = [("cleanup.policy", APPEND, Some("compact"))];
    assert!(alter(&mut client, 1, false, &append).await.error_code.is_ok());
    let result = describe(&mut client, 4, TOPIC, "t", Some(&["cleanup.policy"])).await;
    assert_eq!(result.configs[0].value.as_deref(), Some("compact,delete"));
}

/// In the order of Apache Kafka's checks.
#[tokio::test]
async fn an_operation_that_no_setting_allows_is_refused_before_the_name_is_looked_at() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let cases = [
        (APPEND, ErrorCode::INVALID_CONFIG),
        (SUBTRACT, ErrorCode::INVALID_CONFIG),
        (SET, ErrorCode::INVALID_REQUEST),
    ];
    for (operation, code) in cases {
        let request = changes_of("", &[("retention.ms", operation, Some("1"))]);
        let answer = client.call(1, &request).await.responses.remove(0);
        assert_eq!(answer.error_code, code, "operation {operation}");
    }
}

#[tokio::test]
async fn a_change_that_does_not_fit_changes_nothing() {
    let server = Server::start().await;
    server.topic_with("t", 1, &[("retention.ms", "1000")]);
    let mut client = server.client().await;
    type Changes = &'static [(&'static str, i8, Option<&'static str>)];
    let (config, request) = (ErrorCode::INVALID_CONFIG, ErrorCode::INVALID_REQUEST);
    let cases: [(Changes, ErrorCode); 5] = [
        (&[("retention.ms", SET, Some("5")), ("segment.bytes", SET, Some("many"))], config),
        (&[("no.such", SET, Some("1"))], config),
        (&[("retention.ms", SET, None)], request),
        (&[("retention.ms", APPEND, Some("1"))], config),
        (&[("retention.ms", 9, Some("1"))], config),
    ];
    for (changes, code) in cases {
        let answer = alter(&mut client, 1, false, changes).await;
        assert_eq!(answer.error_code, code, "{changes:?}");
        assert_eq!(server.log.topic("t").unwrap().config.retention_ms, Some(1000));
    }
    let checked = alter(&mut client, 1, true, &[("retention.ms", SET, Some("5"))]).await;
    assert!(checked.error_code.is_ok());
    assert_eq!(server.log.topic("t").unwrap().config.retention_ms, Some(1000), "only a check");
}

#[tokio::test]
async fn a_hold_is_a_setting_of_its_topic_and_keeps_records_from_deletion() {
    let server = Server::start().await;
    let partition = server.topic("t");
    let mut client = server.client().await;
    for _ in 0..5 {
        client.produce(9, "t", plain(&[7])).await;
    }
    let hold = "highwater.hold.audit";
    let set = [(hold, SET, Some("2 until 2999-01-01T00:00:00Z"))];
    assert!(alter(&mut client, 1, false, &set).await.error_code.is_ok());
    let told = describe(&mut client, 4, TOPIC, "t", Some(&[hold])).await;
    let told = &told.configs[0];
    assert_eq!(told.value.as_deref(), Some("2 until 2999-01-01T00:00:00Z"));
    assert_eq!((told.config_source, told.synonyms.len()), (1, 1), "it has no default");

    assert_eq!(delete_before(&mut client, "t", 3).await, (ErrorCode::POLICY_VIOLATION, -1));
    assert_eq!(delete_before(&mut client, "t", 2).await, (ErrorCode::NONE, 2));
    for wrong in ["x", "1", "1:9"] {
        let answer = alter(&mut client, 1, true, &[("highwater.hold.b", SET, Some(wrong))]).await;
        assert_eq!(answer.error_code, ErrorCode::INVALID_CONFIG, "{wrong}");
    }
    let release = alter(&mut client, 1, false, &[(hold, DELETE, None)]).await;
    assert!(release.error_code.is_ok());
    assert_eq!(delete_before(&mut client, "t", 3).await, (ErrorCode::NONE, 3));
    assert_eq!(partition.watermarks_now().log_start, 3);
}

async fn delete_before(client: &mut Client, topic: &str, offset: i64) -> (ErrorCode, i64) {
    let request = DeleteRecordsRequest {
        topics: vec![DeleteRecordsTopic {
            name: topic.to_owned(),
            partitions: vec![DeleteRecordsPartition { partition_index: 0, offset }],
        }],
        timeout_ms: 1000,
    };
    let answer = client.call(2, &request).await.topics.remove(0).partitions.remove(0);
    (answer.error_code, answer.low_watermark)
}

/// A coordinator's state would be lost in silence under other settings.
#[tokio::test]
async fn the_coordinators_topics_keep_what_keeps_their_state() {
    let server = Server::start().await;
    let set = [("cleanup.policy", "compact"), ("highwater.flush", "durable")];
    let mut client = server.client().await;
    for topic in ["__consumer_offsets", "__transaction_state"] {
        server.topic_with(topic, 1, &set);
        let refused: [(&str, i8, Option<&str>); 6] = [
            ("cleanup.policy", SET, Some("delete")),
            ("cleanup.policy", DELETE, None),
            ("highwater.flush", SET, Some("os")),
            ("retention.ms", SET, Some("1")),
            ("max.message.bytes", SET, Some("10")),
            ("highwater.hold.all", SET, Some("0")),
        ];
        for change in refused {
            let answer = client.call(1, &changes_of(topic, &[change])).await.responses.remove(0);
            assert_eq!(answer.error_code, ErrorCode::POLICY_VIOLATION, "{topic} {change:?}");
        }
        let chosen = changes_of(topic, &[("segment.bytes", SET, Some("1048576"))]);
        assert!(client.call(1, &chosen).await.responses[0].error_code.is_ok());

        // What is not named would go back to its default.
        let resource = ReplacedConfigsResource {
            resource_type: TOPIC,
            resource_name: topic.to_owned(),
            configs: Vec::new(),
        };
        let replace = AlterConfigsRequest { resources: vec![resource], validate_only: false };
        let answer = client.call(2, &replace).await.responses.remove(0);
        assert_eq!(answer.error_code, ErrorCode::POLICY_VIOLATION);
        let config = server.log.topic(topic).unwrap().config;
        assert!(config.cleanup.compact && !config.cleanup.delete && config.holds.is_empty());

        let deleted = delete_before(&mut client, topic, 0).await;
        assert_eq!(deleted, (ErrorCode::INVALID_TOPIC_EXCEPTION, -1));
        let more = CreatePartitionsTopic { name: topic.to_owned(), count: 2, assignments: None };
        let more = CreatePartitionsRequest { topics: vec![more], ..Default::default() };
        let answer = client.call(3, &more).await.results.remove(0);
        assert_eq!(answer.error_code, ErrorCode::INVALID_TOPIC_EXCEPTION);
    }
}

/// Of changes that come at once none is lost: a hold least of all.
#[tokio::test(flavor = "multi_thread")]
async fn changes_that_come_at_once_all_hold() {
    let server = Server::start().await;
    server.topic("t");
    let changing = (0..20).map(|n| {
        let address = server.broker.local_addr();
        tokio::spawn(async move {
            let name = format!("highwater.hold.h{n}");
            let mut client = Client::connect(address).await;
            alter(&mut client, 1, false, &[(&name, SET, Some("0"))]).await.error_code
        })
    });
    for changed in changing.collect::<Vec<_>>() {
        assert!(changed.await.unwrap().is_ok());
    }
    assert_eq!(server.log.topic("t").unwrap().config.holds.len(), 20);
}
