//! Groups, as a client of each version asks for them.

use bytes::Bytes;
use highwater_broker::BrokerConfig;
use highwater_protocol::{
    DeleteGroupsRequest, DeleteTopicsRequest, DescribeGroupsRequest, ErrorCode,
    FindCoordinatorRequest, HeartbeatRequest, JoinGroupRequest, JoinGroupRequestProtocol,
    JoinGroupResponse, LeaveGroupRequest, ListGroupsRequest, MemberIdentity, Message,
    MetadataRequest, MetadataRequestTopic, OffsetCommitRequest, OffsetCommitRequestPartition,
    OffsetCommitRequestTopic, OffsetDeleteRequest, OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic, OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic,
    SyncGroupRequest, SyncGroupRequestAssignment,
};

use crate::client::{Client, plain};
use crate::server::Server;

fn join(group: &str, member_id: &str) -> JoinGroupRequest {
    JoinGroupRequest {
        group_id: group.to_owned(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 60_000,
        member_id: member_id.to_owned(),
        protocol_type: "consumer".to_owned(),
        protocols: vec![JoinGroupRequestProtocol {
            name: "range".to_owned(),
            metadata: Bytes::from_static(b"\0\0\0\0\0\0\xff\xff\xff\xff"),
        }],
        ..Default::default()
    }
}

/// Joins a group alone, at a version, with whatever it takes.
async fn joined(client: &mut Client, version: i16, group: &str) -> JoinGroupResponse {
    let answer = client.call(version, &join(group, "")).await;
    if answer.error_code != ErrorCode::MEMBER_ID_REQUIRED {
        assert!(version < 4, "from version 4 a member comes again with its id");
        return answer;
    }
    client.call(version, &join(group, &answer.member_id)).await
}

fn commit(group: &str, topic: &str, offset: i64) -> OffsetCommitRequest {
    let partition = OffsetCommitRequestPartition {
        committed_offset: offset,
        committed_metadata: Some("note".to_owned()),
        ..Default::default()
    };
    let topic = OffsetCommitRequestTopic { name: topic.to_owned(), partitions: vec![partition] };
    OffsetCommitRequest { group_id: group.to_owned(), topics: vec![topic], ..Default::default() }
}

async fn committed(client: &mut Client, version: i16, request: &OffsetCommitRequest) -> ErrorCode {
    client.call(version, request).await.topics[0].partitions[0].error_code
}

/// The offset of partition 0, asked for at a version.
async fn fetched(client: &mut Client, version: i16, group: &str) -> (i64, Option<String>) {
    let topic = OffsetFetchRequestTopic { name: "t".to_owned(), partition_indexes: vec![0] };
    let topics = Some(vec![topic]);
    let group_id = group.to_owned();
    let request = if version < 8 {
        OffsetFetchRequest { group_id, topics, ..Default::default() }
    } else {
        let group = OffsetFetchRequestGroup { group_id, topics, ..Default::default() };
        OffsetFetchRequest { groups: vec![group], ..Default::default() }
    };
    let mut answer = client.call(version, &request).await;
    let mut topics = if version < 8 { answer.topics } else { answer.groups.remove(0).topics };
    let partition = topics.remove(0).partitions.remove(0);
    assert_eq!(partition.error_code, ErrorCode::NONE);
    (partition.committed_offset, partition.metadata)
}

#[tokio::test]
async fn a_member_s_life_at_every_version() {
    let server = Server::start().await;
    server.topic("t");
    let mut client = server.client().await;
    for round in 0..10_i16 {
        let version = |last: i16| round.min(last);
        let group = format!("group-{round}");
        let joined = joined(&mut client, version(9), &group).await;
        assert_eq!(
            (joined.error_code, joined.generation_id, joined.members.len()),
            (ErrorCode::NONE, 1, 1)
        );
        assert_eq!(
            (joined.leader == joined.member_id, joined.protocol_name.as_deref()),
            (true, Some("range"))
        );
        let member_id = joined.member_id;
        let assignment = SyncGroupRequestAssignment {
            member_id: member_id.clone(),
            assignment: Bytes::from_static(b"everything"),
        };
        let sync = SyncGroupRequest {
            group_id: group.clone(),
            generation_id: 1,
            member_id: member_id.clone(),
            protocol_type: Some("consumer".to_owned()),
            protocol_name: Some("range".to_owned()),
            assignments: vec![assignment],
            ..Default::default()
        };
        let synced = client.call(version(5), &sync).await;
        assert_eq!(
            (synced.error_code, &synced.assignment[..]),
            (ErrorCode::NONE, &b"everything"[..])
        );
        let beat = HeartbeatRequest {
            group_id: group.clone(),
            generation_id: 1,
            member_id: member_id.clone(),
            ..Default::default()
        };
        assert_eq!(client.call(version(4), &beat).await.error_code, ErrorCode::NONE);
        let offset = i64::from(round) + 100;
        let request = OffsetCommitRequest {
            generation_id_or_member_epoch: 1,
            member_id: member_id.clone(),
            ..commit(&group, "t", offset)
        };
        assert_eq!(committed(&mut client, version(9).max(2), &request).await, ErrorCode::NONE);
        let found = fetched(&mut client, version(9).max(1), &group).await;
        assert_eq!(found, (offset, Some("note".to_owned())));
        let describe = DescribeGroupsRequest { groups: vec![group.clone()], ..Default::default() };
        let described = client.call(version(6), &describe).await.groups.remove(0);
        assert_eq!(
            (described.group_state.as_str(), described.protocol_data.as_str()),
            ("Stable", "range")
        );
        let member = &described.members[0];
        assert_eq!(
            (member.client_id.as_str(), member.client_host.as_str()),
            ("test", "/127.0.0.1")
        );
        leave(&mut client, version(5), &group, &member_id).await;
        assert_eq!(client.call(version(4), &beat).await.error_code, ErrorCode::UNKNOWN_MEMBER_ID);
    }
    let listed = client.call(5, &ListGroupsRequest::default()).await;
    assert_eq!(listed.groups.len(), 10);
    assert!(
        listed
            .groups
            .iter()
            .all(|group| group.group_state == "Empty" && group.group_type == "classic")
    );
}

async fn leave(client: &mut Client, version: i16, group: &str, member_id: &str) {
    let member_id = member_id.to_owned();
    let request = if version < 3 {
        LeaveGroupRequest { group_id: group.to_owned(), member_id, ..Default::default() }
    } else {
        let member = MemberIdentity { member_id, ..Default::default() };
        LeaveGroupRequest {
            group_id: group.to_owned(),
            members: vec![member],
            ..Default::default()
        }
    };
    let left = client.call(version, &request).await;
    assert_eq!((left.error_code, left.members.len()), (ErrorCode::NONE, usize::from(version >= 3)));
    let again = client.call(version, &request).await;
    let error = again.members.first().map_or(again.error_code, |member| member.error_code);
    assert_eq!(error, ErrorCode::UNKNOWN_MEMBER_ID);
}

#[tokio::test]
async fn the_broker_coordinates_every_group() {
    let server = Server::start().await;
    let mut client = server.client().await;
    for version in FindCoordinatorRequest::VERSIONS {
        let request = FindCoordinatorRequest {
            key: "g".to_owned(),
            coordinator_keys: vec!["g".to_owned(), "h".to_owned()],
            ..Default::default()
        };
        let found = client.call(version, &request).await;
        let ports: Vec<i32> = if version < 4 {
            vec![found.port]
        } else {
            found.coordinators.iter().map(|found| found.port).collect()
        };
        let port = i32::from(server.broker.local_addr().port());
        assert_eq!(ports, vec![port; if version < 4 { 1 } else { 2 }]);
    }
}

/// A member that is connected to one broker, and one that is to another, are in one group.
#[tokio::test]
async fn two_brokers_in_front_of_a_log_share_its_groups() {
    let server = Server::start().await;
    server.topic("t");
    let other = server.another(BrokerConfig::local()).await.unwrap();
    let mut here = server.client().await;
    let mut there = Client::connect(other.local_addr()).await;
    let first = joined(&mut here, 3, "g").await;
    let waiting = there.send(3, &join("g", "")).await;
    let beat = HeartbeatRequest {
        group_id: "g".to_owned(),
        generation_id: 1,
        member_id: first.member_id.clone(),
        ..Default::default()
    };
    while here.call(4, &beat).await.error_code != ErrorCode::REBALANCE_IN_PROGRESS {}
    let again = here.call(3, &join("g", &first.member_id)).await;
    let second: JoinGroupResponse = there.receive(3, waiting).await;
    assert_eq!((again.generation_id, second.generation_id), (2, 2));
    assert_eq!((again.members.len(), second.members.len()), (2, 0));
    other.shutdown().await;
}

#[tokio::test]
async fn a_broker_that_stops_does_not_wait_for_those_who_wait_for_others() {
    let server = Server::start().await;
    let (mut here, mut there) = (server.client().await, server.client().await);
    joined(&mut here, 3, "g").await;
    let waiting = there.send(3, &join("g", "")).await;
    while server.coordinator.groups().describe(5, "g".to_owned()).group_state
        != "PreparingRebalance"
    {
        tokio::task::yield_now().await;
    }
    let began = std::time::Instant::now();
    server.broker.shutdown().await;
    assert!(began.elapsed() < std::time::Duration::from_secs(4), "it waits for nobody");
    let answer: JoinGroupResponse = there.receive(3, waiting).await;
    assert_eq!(answer.error_code, ErrorCode::COORDINATOR_NOT_AVAILABLE);
}

#[tokio::test]
async fn committed_offsets_are_there_after_a_restart_and_go_with_group_or_topic() {
    let server = Server::start().await;
    server.topic("t");
    let mut client = server.client().await;
    for group in ["a", "b", "c"] {
        assert_eq!(committed(&mut client, 9, &commit(group, "t", 7)).await, ErrorCode::NONE);
    }
    let nowhere = committed(&mut client, 9, &commit("a", "nowhere", 7)).await;
    assert_eq!(nowhere, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    let server = server.restart(|_| {}).await;
    let mut client = server.client().await;
    while client.call(5, &ListGroupsRequest::default()).await.error_code != ErrorCode::NONE {}
    assert_eq!(fetched(&mut client, 9, "a").await.0, 7);
    let partitions = vec![OffsetDeleteRequestPartition { partition_index: 0 }];
    let topics = vec![OffsetDeleteRequestTopic { name: "t".to_owned(), partitions }];
    let request = OffsetDeleteRequest { group_id: "a".to_owned(), topics };
    let deleted = client.call(0, &request).await;
    assert_eq!(deleted.topics[0].partitions[0].error_code, ErrorCode::NONE);
    assert_eq!(fetched(&mut client, 9, "a").await.0, -1);
    let groups = vec!["b".to_owned(), "nobody".to_owned()];
    let deleted = client.call(2, &DeleteGroupsRequest { groups_names: groups }).await;
    let codes: Vec<_> = deleted.results.iter().map(|group| group.error_code).collect();
    assert_eq!(codes, [ErrorCode::NONE, ErrorCode::GROUP_ID_NOT_FOUND]);
    let request = DeleteTopicsRequest { topic_names: vec!["t".to_owned()], ..Default::default() };
    assert_eq!(client.call(5, &request).await.responses[0].error_code, ErrorCode::NONE);
    server.topic("t");
    assert_eq!(fetched(&mut client, 9, "c").await.0, -1, "another topic of the same name");
}

/// As in Apache Kafka, which looks for such groups from time to time.
#[tokio::test]
async fn a_group_that_lost_its_last_offset_stays_until_it_is_looked_for() {
    let server = Server::start().await;
    server.topic("t");
    let mut client = server.client().await;
    assert_eq!(committed(&mut client, 9, &commit("g", "t", 7)).await, ErrorCode::NONE);
    let partitions = vec![OffsetDeleteRequestPartition { partition_index: 0 }];
    let topics = vec![OffsetDeleteRequestTopic { name: "t".to_owned(), partitions }];
    let request = OffsetDeleteRequest { group_id: "g".to_owned(), topics };
    for _ in 0..2 {
        assert_eq!(client.call(0, &request).await.error_code, ErrorCode::NONE);
    }
    let listed = client.call(5, &ListGroupsRequest::default()).await;
    let states: Vec<_> = listed.groups.iter().map(|group| group.group_state.as_str()).collect();
    assert_eq!(states, ["Empty"]);
}

#[tokio::test]
async fn a_group_that_is_not_there_allows_nothing() {
    let server = Server::start().await;
    let mut client = server.client().await;
    let groups = vec!["nobody".to_owned()];
    let request = DescribeGroupsRequest { groups, include_authorized_operations: true };
    for (version, is_known) in [(5, true), (6, false)] {
        let group = client.call(version, &request).await.groups.remove(0);
        let error = if is_known { ErrorCode::NONE } else { ErrorCode::GROUP_ID_NOT_FOUND };
        assert_eq!((group.group_state.as_str(), group.error_code), ("Dead", error));
        assert_eq!(group.authorized_operations != i32::MIN, is_known, "version {version}");
    }
}

#[tokio::test]
async fn the_coordinators_topics_are_theirs() {
    let server = Server::start().await;
    server.topic("t");
    let mut client = server.client().await;
    assert_eq!(committed(&mut client, 9, &commit("g", "t", 7)).await, ErrorCode::NONE);
    let name = "__consumer_offsets";
    let produced = client.produce(9, name, plain(&[1])).await;
    assert_eq!(produced.error_code, ErrorCode::INVALID_TOPIC_EXCEPTION);
    let request = DeleteTopicsRequest { topic_names: vec![name.to_owned()], ..Default::default() };
    let deleted = client.call(5, &request).await;
    assert_eq!(deleted.responses[0].error_code, ErrorCode::INVALID_TOPIC_EXCEPTION);
    let topic = MetadataRequestTopic { name: Some(name.to_owned()), ..Default::default() };
    let request = MetadataRequest { topics: Some(vec![topic]), ..Default::default() };
    let described = client.call(12, &request).await.topics.remove(0);
    assert!(described.is_internal && described.partitions.len() == 1);
    let config = server.partition(name, 0).config();
    assert!(config.cleanup.compact && !config.cleanup.delete);
}
