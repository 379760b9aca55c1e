//! Who may do what, over the wire: Kafka's operations and Kafka's errors.

use highwater_access::Access;
use highwater_protocol::{
    AlterConfigsRequest, AlterConfigsResource, AlterableConfig, CreatableTopic,
    CreatableTopicResult, CreateTopicsRequest, DeleteRecordsPartition, DeleteRecordsRequest,
    DeleteRecordsTopic, DeleteTopicState, DeleteTopicsRequest, DescribeClusterRequest,
    DescribeConfigsRequest, DescribeConfigsResource, ErrorCode, FetchRequest,
    IncrementalAlterConfigsRequest, InitProducerIdRequest, MetadataRequest, MetadataRequestTopic,
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic, ReplacedConfig,
    ReplacedConfigsResource,
};

use crate::client::{Client, fetch, list_offsets, plain, produce};
use crate::server::Server;
use crate::users::{TestUsers, client_of};

const NONE: ErrorCode = ErrorCode::NONE;
const TOPIC: ErrorCode = ErrorCode::TOPIC_AUTHORIZATION_FAILED;
const CLUSTER: ErrorCode = ErrorCode::CLUSTER_AUTHORIZATION_FAILED;

/// What somebody is told who tries everything on a topic.
#[derive(PartialEq, Eq, Debug)]
struct Told {
    produce: ErrorCode,
    fetch: ErrorCode,
    list_offsets: ErrorCode,
    epoch_end: ErrorCode,
    metadata: ErrorCode,
    describe_configs: ErrorCode,
    alter_configs: ErrorCode,
    delete_records: ErrorCode,
    delete: ErrorCode,
}

impl Told {
    const NOTHING: Self = Self {
        produce: TOPIC,
        fetch: TOPIC,
        list_offsets: TOPIC,
        epoch_end: TOPIC,
        metadata: TOPIC,
        describe_configs: TOPIC,
        alter_configs: TOPIC,
        delete_records: TOPIC,
        delete: TOPIC,
    };
    const SEES: Self =
        Self { list_offsets: NONE, epoch_end: NONE, metadata: NONE, ..Self::NOTHING };
}

async fn metadata(client: &mut Client, topic: &str) -> ErrorCode {
    let named = MetadataRequestTopic { name: Some(topic.to_owned()), ..Default::default() };
    let request = MetadataRequest { topics: Some(vec![named]), ..Default::default() };
    client.call(9, &request).await.topics[0].error_code
}

async fn epoch_end(client: &mut Client, topic: &str) -> ErrorCode {
    let partition = OffsetForLeaderPartition { leader_epoch: 0, ..Default::default() };
    let topic = OffsetForLeaderTopic { topic: topic.to_owned(), partitions: vec![partition] };
    let request = OffsetForLeaderEpochRequest { topics: vec![topic], ..Default::default() };
    client.call(4, &request).await.topics[0].partitions[0].error_code
}

async fn describe_configs(client: &mut Client, kind: i8, name: &str) -> ErrorCode {
    let resource = DescribeConfigsResource {
        resource_type: kind,
        resource_name: name.to_owned(),
        ..Default::default()
    };
    let request = DescribeConfigsRequest { resources: vec![resource], ..Default::default() };
    client.call(4, &request).await.results[0].error_code
}

async fn alter_configs(client: &mut Client, kind: i8, name: &str) -> ErrorCode {
    let change = AlterableConfig {
        name: "retention.ms".to_owned(),
        value: Some("60000".to_owned()),
        ..Default::default()
    };
    let resource = AlterConfigsResource {
        resource_type: kind,
        resource_name: name.to_owned(),
        configs: vec![change],
    };
    let request =
        IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
    client.call(1, &request).await.responses[0].error_code
}

async fn delete_records(client: &mut Client, topic: &str) -> ErrorCode {
    let partition = DeleteRecordsPartition { offset: 0, ..Default::default() };
    let topic = DeleteRecordsTopic { name: topic.to_owned(), partitions: vec![partition] };
    let request = DeleteRecordsRequest { topics: vec![topic], ..Default::default() };
    client.call(2, &request).await.topics[0].partitions[0].error_code
}

async fn delete(client: &mut Client, topic: &str) -> ErrorCode {
    let request = DeleteTopicsRequest { topic_names: vec![topic.to_owned()], ..Default::default() };
    client.call(5, &request).await.responses[0].error_code
}

async fn create(client: &mut Client, topic: &str) -> ErrorCode {
    creation(client, topic).await.error_code
}

async fn creation(client: &mut Client, topic: &str) -> CreatableTopicResult {
    let topic = CreatableTopic {
        name: topic.to_owned(),
        num_partitions: 1,
        replication_factor: 1,
        ..Default::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], ..Default::default() };
    client.call(7, &request).await.topics.remove(0)
}

async fn tries_everything(client: &mut Client, topic: &str) -> Told {
    Told {
        produce: client.produce(9, topic, plain(&[1])).await.error_code,
        fetch: client.fetch(11, &fetch(topic, 0)).await.error_code,
        list_offsets: client.list_offset(5, topic, -1).await.error_code,
        epoch_end: epoch_end(client, topic).await,
        metadata: metadata(client, topic).await,
        describe_configs: describe_configs(client, 2, topic).await,
        alter_configs: alter_configs(client, 2, topic).await,
        delete_records: delete_records(client, topic).await,
        delete: delete(client, topic).await,
    }
}

#[tokio::test]
async fn each_grant_allows_what_kafka_says_and_nothing_else() {
    use Told as T;
    let cases = [
        (vec![], T::NOTHING),
        (vec!["describe topic shop"], T::SEES),
        (vec!["read topic shop"], T { fetch: NONE, ..T::SEES }),
        (vec!["write topic sh*"], T { produce: NONE, ..T::SEES }),
        (vec!["describe-configs topic shop"], T { describe_configs: NONE, ..T::NOTHING }),
        (
            vec!["alter-configs topic shop"],
            T { describe_configs: NONE, alter_configs: NONE, ..T::NOTHING },
        ),
        (vec!["delete topic shop"], T { delete_records: NONE, delete: NONE, ..T::SEES }),
        (vec!["all group shop", "all topic other", "create cluster"], T::NOTHING),
        (vec!["all topic shopping"], T::NOTHING),
    ];
    for (grants, told) in cases {
        let server = TestUsers::new().with("ann", &grants).server().await;
        server.topic("shop");
        let mut client = client_of(&server, "ann").await;
        assert_eq!(tries_everything(&mut client, "shop").await, told, "{grants:?}");
    }
}

#[tokio::test]
async fn an_administrator_may_do_everything() {
    let server = TestUsers::new().with("admin", &[]).server().await;
    server.topic("shop");
    server.topic("highwater.status");
    let mut client = client_of(&server, "admin").await;
    assert_eq!(client.produce(9, "highwater.status", plain(&[1])).await.error_code, NONE);
    assert_eq!(describe_configs(&mut client, 4, "0").await, NONE);
    assert_eq!(create(&mut client, "new").await, NONE);
    let told = tries_everything(&mut client, "shop").await;
    assert_eq!(told.delete, NONE);
}

/// One partition is no reason to refuse another.
#[tokio::test]
async fn what_is_allowed_is_done_beside_what_is_not() {
    let server = TestUsers::new().with("ann", &["all topic mine"]).server().await;
    let (mine, theirs) = (server.topic("mine"), server.topic("theirs"));
    let mut client = client_of(&server, "ann").await;
    let mut request = produce("mine", -1, plain(&[1]));
    request.topic_data.extend(produce("theirs", -1, plain(&[1])).topic_data);
    let answer = client.call(9, &request).await;
    let codes: Vec<_> = answer
        .responses
        .iter()
        .map(|topic| (topic.name.as_str(), topic.partition_responses[0].error_code))
        .collect();
    assert_eq!(codes, [("mine", NONE), ("theirs", TOPIC)]);
    assert_eq!(mine.watermarks_now().log_end, 1);
    assert_eq!(theirs.watermarks_now().log_end, 0);

    let mut request = FetchRequest { max_wait_ms: 60_000, min_bytes: 1 << 20, ..fetch("mine", 0) };
    request.topics.extend(fetch("theirs", 0).topics);
    let answer = client.call(11, &request).await;
    let codes: Vec<_> =
        answer.responses.iter().map(|topic| topic.partitions[0].error_code).collect();
    assert_eq!(codes, [NONE, TOPIC], "and at once");

    let mut request = list_offsets("mine", -1);
    request.topics.extend(list_offsets("theirs", -1).topics);
    let answer = client.call(5, &request).await;
    assert_eq!(answer.topics.len(), 2);

    let all = client.call(9, &MetadataRequest::default()).await;
    let names: Vec<_> = all.topics.iter().filter_map(|topic| topic.name.as_deref()).collect();
    assert_eq!(names, ["mine"]);
}

/// acks=0 has no answer: its sender learns of a refusal by the end of the connection.
#[tokio::test]
async fn a_refusal_without_an_answer_ends_the_connection() {
    let server = TestUsers::new().with("ann", &[]).server().await;
    let partition = server.topic("shop");
    let mut client = client_of(&server, "ann").await;
    client.send(9, &produce("shop", 0, plain(&[1]))).await;
    assert_eq!(client.frame().await, None);
    assert_eq!(partition.watermarks_now().log_end, 0);
}

#[tokio::test]
async fn topics_are_made_by_the_right_to_make_any_or_this_one() {
    let users = TestUsers::new()
        .with("any", &["create cluster"])
        .with("one", &["create topic a-*"])
        .with("none", &["write topic *"]);
    let server = users.server().await;
    for (user, mine, theirs) in [("any", NONE, NONE), ("one", NONE, TOPIC), ("none", TOPIC, TOPIC)]
    {
        let mut client = client_of(&server, user).await;
        assert_eq!(create(&mut client, &format!("a-{user}")).await, mine, "{user}");
        assert_eq!(create(&mut client, &format!("b-{user}")).await, theirs, "{user}");
        let own = creation(&mut client, "highwater.x").await;
        assert_eq!(own.error_code, TOPIC, "{user}");
        assert!(own.error_message.unwrap().contains("the server's own"), "{user}");
    }
}

/// Who asks by id does not learn that there is something that it may not see.
#[tokio::test]
async fn an_id_says_no_more_than_a_name() {
    let server = TestUsers::new().with("ann", &[]).server().await;
    server.topic("shop");
    let topic_id = server.log.topic("shop").unwrap().id;
    let mut client = client_of(&server, "ann").await;
    let named = MetadataRequestTopic { topic_id, name: None };
    let request = MetadataRequest { topics: Some(vec![named]), ..Default::default() };
    let topic = client.call(12, &request).await.topics.remove(0);
    assert_eq!((topic.error_code, topic.name), (ErrorCode::UNKNOWN_TOPIC_ID, None));
    assert!(topic.partitions.is_empty());
    let state = DeleteTopicState { name: None, topic_id };
    let request = DeleteTopicsRequest { topics: vec![state], ..Default::default() };
    let gone = client.call(6, &request).await.responses.remove(0);
    assert_eq!((gone.error_code, gone.name), (ErrorCode::UNKNOWN_TOPIC_ID, None));
    assert!(server.log.topic("shop").is_some());
}

#[tokio::test]
async fn a_producer_id_is_for_who_may_write_somewhere() {
    let users = TestUsers::new()
        .with("writer", &["write topic a"])
        .with("reader", &["read topic a"])
        .with("idempotent", &["idempotent-write cluster"]);
    let server = users.server().await;
    for (user, code) in [("writer", NONE), ("reader", CLUSTER), ("idempotent", NONE)] {
        let mut client = client_of(&server, user).await;
        let answer = client.call(4, &InitProducerIdRequest::default()).await;
        assert_eq!(answer.error_code, code, "{user}");
        let request =
            InitProducerIdRequest { transactional_id: Some("t".to_owned()), ..Default::default() };
        let answer = client.call(4, &request).await;
        assert_eq!(answer.error_code, ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "{user}");
    }
}

/// KIP-430: what one may do is said where it is asked for.
#[tokio::test]
async fn the_operations_that_are_shown_are_those_that_are_allowed() {
    let server = TestUsers::new().with("ann", &["read topic shop"]).server().await;
    server.topic("shop");
    let mut client = client_of(&server, "ann").await;
    let request = MetadataRequest {
        include_topic_authorized_operations: true,
        include_cluster_authorized_operations: true,
        ..Default::default()
    };
    let answer = client.call(9, &request).await;
    // Read and describe.
    assert_eq!(answer.topics[0].topic_authorized_operations, 1 << 3 | 1 << 8);
    assert_eq!(answer.cluster_authorized_operations, 0);
    let request =
        DescribeClusterRequest { include_cluster_authorized_operations: true, endpoint_type: 1 };
    assert_eq!(client.call(1, &request).await.cluster_authorized_operations, 0);
    assert_eq!(describe_configs(&mut client, 4, "0").await, CLUSTER);
    assert_eq!(alter_configs(&mut client, 4, "0").await, CLUSTER);
}

/// Rule A4: where nobody logs in, what is the server's own stays the server's own.
#[tokio::test]
async fn an_open_listener_keeps_the_servers_own_topics() {
    let server = Server::start_with(|config| {
        config.access = std::sync::Arc::new(Access::open());
    })
    .await;
    let own =
        ["highwater.configs", "highwater.offsets", "__consumer_offsets", "__transaction_state"];
    for topic in own {
        server.topic(topic);
    }
    server.topic("shop");
    let mut client = server.client().await;
    for topic in own {
        let told = tries_everything(&mut client, topic).await;
        let fetch = if topic == "highwater.configs" { TOPIC } else { NONE };
        assert_eq!(told, Told { fetch, describe_configs: NONE, ..Told::SEES }, "{topic}");
        assert_eq!(create(&mut client, topic).await, TOPIC);
    }
    assert_eq!(tries_everything(&mut client, "shop").await.delete, NONE);
    assert_eq!(create(&mut client, "shop2").await, NONE);
}

/// Rule R2: a trail has one writer, and who that is only an administrator changes.
#[tokio::test]
async fn a_topic_with_an_owner_is_written_by_nobody_else() {
    let grants = ["all topic *"];
    let users = TestUsers::new().with("ann", &grants).with("admin", &[]);
    let closed = users.server().await;
    let open = Server::start_with(|config| {
        config.access = std::sync::Arc::new(Access::open());
    })
    .await;
    for server in [&closed, &open] {
        server.topic_with("trail", 1, &[("highwater.owner", "shop")]);
    }
    let others = [client_of(&closed, "ann").await, open.client().await];
    for mut client in others {
        assert_eq!(client.produce(9, "trail", plain(&[1])).await.error_code, TOPIC);
        assert_eq!(client.fetch(11, &fetch("trail", 0)).await.error_code, NONE);
        assert_eq!(alter_configs(&mut client, 2, "trail").await, NONE);
        let unsaid = AlterableConfig {
            name: "highwater.owner".to_owned(),
            config_operation: 1,
            value: None,
        };
        let resource = AlterConfigsResource {
            resource_type: 2,
            resource_name: "trail".to_owned(),
            configs: vec![unsaid],
        };
        let request =
            IncrementalAlterConfigsRequest { resources: vec![resource], ..Default::default() };
        assert_eq!(client.call(1, &request).await.responses[0].error_code, TOPIC);
        let other =
            ReplacedConfig { name: "highwater.owner".to_owned(), value: Some("mine".to_owned()) };
        let resource = ReplacedConfigsResource {
            resource_type: 2,
            resource_name: "trail".to_owned(),
            configs: vec![other],
        };
        let request = AlterConfigsRequest { resources: vec![resource], ..Default::default() };
        assert_eq!(client.call(2, &request).await.responses[0].error_code, TOPIC);
    }
    let mut admin = client_of(&closed, "admin").await;
    assert_eq!(admin.produce(9, "trail", plain(&[1])).await.error_code, NONE);
    let trusted = Server::start().await;
    let mut own = trusted.client().await;
    assert_eq!(create(&mut own, "highwater.x").await, NONE, "the server itself");
}
