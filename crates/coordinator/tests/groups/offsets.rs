//! Committed offsets: bounds, deletion, expiry.

use std::time::Duration;

use highwater_coordinator::GroupSettings;
use highwater_protocol::{
    ErrorCode, OffsetDeleteRequest, OffsetDeleteRequestPartition, OffsetDeleteRequestTopic,
    OffsetFetchRequestGroup,
};

use crate::rig::{Rig, commit, consumer};

#[tokio::test]
async fn an_offset_is_given_back_as_it_was_committed() {
    let rig = Rig::start().await;
    assert_eq!(rig.put("g", 1, 42).await, ErrorCode::NONE);
    let rig = rig.kill().await;
    let found = rig.offset("g", 1);
    assert_eq!((found.committed_offset, found.committed_leader_epoch), (42, 4));
    assert_eq!(found.metadata.as_deref(), Some("note"));
    let nothing = rig.offset("g", 2);
    assert_eq!((nothing.committed_offset, nothing.metadata.as_deref()), (-1, Some("")));
    let asked =
        OffsetFetchRequestGroup { group_id: "g".to_owned(), topics: None, ..Default::default() };
    let all = rig.groups().fetch(asked, false);
    assert_eq!((all.topics.len(), all.topics[0].partitions[0].committed_offset), (1, 42));
}

#[tokio::test]
async fn what_may_not_be_committed() {
    let settings = GroupSettings { max_offsets: 1, max_groups: 2, ..GroupSettings::default() };
    let rig = Rig::start_with(settings).await;
    let mut request = commit("g", 0, 1);
    request.topics[0].partitions[0].committed_metadata = Some("x".repeat(4097));
    assert_eq!(rig.commit(request).await, ErrorCode::OFFSET_METADATA_TOO_LARGE);
    let mut request = commit("g", 0, 1);
    request.topics[0].name = "nowhere".to_owned();
    assert_eq!(rig.commit(request).await, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    assert_eq!(
        rig.put("g", 9, 1).await,
        ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        "no such partition"
    );
    let mut request = commit("g", 0, 1);
    request.generation_id_or_member_epoch = 1;
    assert_eq!(rig.commit(request.clone()).await, ErrorCode::GROUP_ID_NOT_FOUND);
    let old = rig.groups().commit(8, request).answer().await.unwrap();
    assert_eq!(old.topics[0].partitions[0].error_code, ErrorCode::ILLEGAL_GENERATION);
    assert_eq!(rig.put("g", 0, 1).await, ErrorCode::NONE);
    assert_eq!(rig.put("g", 0, 2).await, ErrorCode::NONE, "in place of the other");
    assert_eq!(rig.put("g", 1, 1).await, ErrorCode::INVALID_COMMIT_OFFSET_SIZE);
    assert_eq!(rig.put("h", 0, 1).await, ErrorCode::NONE);
    assert_eq!(rig.put("i", 0, 1).await, ErrorCode::POLICY_VIOLATION);
    assert_eq!(rig.list().len(), 2);
}

fn deletion(topic: &str) -> OffsetDeleteRequest {
    let partitions = vec![OffsetDeleteRequestPartition { partition_index: 0 }];
    OffsetDeleteRequest {
        group_id: "g".to_owned(),
        topics: vec![OffsetDeleteRequestTopic { name: topic.to_owned(), partitions }],
    }
}

#[tokio::test]
async fn offsets_are_deleted_where_nobody_is_subscribed() {
    let rig = Rig::start().await;
    let deleted = rig.groups().delete_offsets(deletion("t")).answer().await.unwrap();
    assert_eq!(deleted.error_code, ErrorCode::GROUP_ID_NOT_FOUND);
    rig.put("g", 0, 5).await;
    rig.log.create_topic("u", 1, Default::default()).unwrap();
    let (member_id, _) = rig.alone(consumer("g", &["t"])).await;
    let of = async |topic: &str| {
        let deleted = rig.groups().delete_offsets(deletion(topic)).answer().await.unwrap();
        assert_eq!(deleted.error_code, ErrorCode::NONE);
        deleted.topics[0].partitions[0].error_code
    };
    assert_eq!(of("t").await, ErrorCode::GROUP_SUBSCRIBED_TO_TOPIC);
    assert_eq!(of("u").await, ErrorCode::NONE);
    assert_eq!(of("nowhere").await, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    rig.leave("g", &member_id);
    assert_eq!(of("t").await, ErrorCode::NONE);
    assert_eq!(rig.offset("g", 0).committed_offset, -1);
    let nameless = OffsetDeleteRequest { group_id: String::new(), ..deletion("t") };
    rig.put("", 0, 5).await;
    let deleted = rig.groups().delete_offsets(nameless).answer().await.unwrap();
    assert_eq!(deleted.error_code, ErrorCode::INVALID_GROUP_ID);
    assert_eq!(rig.offset("", 0).committed_offset, 5);
    let rig = rig.kill().await;
    assert_eq!(rig.offset("g", 0).committed_offset, -1, "the tombstone is safe");
}

#[tokio::test]
async fn offsets_of_a_deleted_topic_go_with_it() {
    let rig = Rig::start().await;
    rig.put("g", 0, 5).await;
    rig.put("h", 1, 6).await;
    rig.log.delete_topic("t").unwrap();
    rig.groups().topic_deleted("t").await;
    let rig = rig.kill().await;
    assert_eq!(
        (rig.offset("g", 0).committed_offset, rig.offset("h", 1).committed_offset),
        (-1, -1)
    );
    assert_eq!(rig.list(), [], "nothing else was known of them");
}

/// KIP-211.
#[tokio::test]
async fn what_nobody_reads_any_more_is_forgotten_in_time() {
    let settings = GroupSettings {
        offsets_retention_ms: 1,
        retention_check_interval_ms: 10,
        ..GroupSettings::default()
    };
    let rig = Rig::start_with(settings).await;
    let (member_id, _) = rig.alone(consumer("g", &["t"])).await;
    let mut request = commit("g", 0, 7);
    (request.member_id, request.generation_id_or_member_epoch) = (member_id.clone(), 1);
    assert_eq!(rig.commit(request).await, ErrorCode::NONE);
    rig.put("simple", 0, 1).await;
    until(|| rig.list() == [("g".to_owned(), "Stable".to_owned())]).await;
    assert_eq!(rig.offset("g", 0).committed_offset, 7, "a member is subscribed");
    rig.leave("g", &member_id);
    until(|| rig.list().is_empty()).await;
    let rig = rig.kill().await;
    assert_eq!(rig.list(), []);
}

/// Apache Kafka, too, looks for such groups in rounds.
#[tokio::test]
async fn a_group_that_lost_its_last_offset_goes_with_the_next_round() {
    let settings = GroupSettings { retention_check_interval_ms: 10, ..GroupSettings::default() };
    let rig = Rig::start_with(settings).await;
    rig.put("g", 0, 5).await;
    rig.log.delete_topic("t").unwrap();
    rig.groups().topic_deleted("t").await;
    until(|| rig.list().is_empty()).await;
    let rig = rig.kill().await;
    assert_eq!(rig.list(), []);
}

async fn until(mut holds: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("it does not come to that within 10 s");
}
