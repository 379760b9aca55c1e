//! Committed offsets of a group: asking its coordinator for them, and storing them there.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use highwater_protocol::{
    ErrorCode, OffsetCommitRequest, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    OffsetCommitResponse, OffsetCommitResponsePartition, OffsetCommitResponseTopic,
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchResponse,
    OffsetFetchResponseTopic, TopicPartition,
};

use crate::KafkaError;
use crate::cluster::{Failure, refused};
use crate::coordinator::Coordinator;
use crate::membership::{Identity, Next};

/// The next offset to read, by partition.
pub type GroupOffsets = BTreeMap<TopicPartition, i64>;

/// Whether offsets were stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Commit {
    /// All of them.
    Stored,
    /// None: the group has given the partitions to others.
    Lost,
}

/// Asks for the offsets of these partitions, or of all that the group has some of. Left out is what
/// has none.
pub(crate) async fn fetch(
    coordinator: &Coordinator,
    group: &str,
    partitions: Option<&BTreeSet<TopicPartition>>,
) -> Result<GroupOffsets, KafkaError> {
    coordinator.persist(|| fetch_once(coordinator, group, partitions)).await
}

async fn fetch_once(
    coordinator: &Coordinator,
    group: &str,
    partitions: Option<&BTreeSet<TopicPartition>>,
) -> Result<GroupOffsets, Failure> {
    let what = || format!("read the offsets of group {group}");
    let answer = coordinator.ask(&fetch_request(group, partitions)).await?;
    let (code, topics) = fetched(answer);
    coordinator.check(code, what).await?;
    let mut offsets = GroupOffsets::new();
    for OffsetFetchResponseTopic { name, partitions } in topics {
        let topic: Arc<str> = name.into();
        for told in partitions {
            // UNSTABLE_OFFSET_COMMIT among them: a transaction is about to change it.
            coordinator.check(told.error_code, what).await?;
            if told.committed_offset >= 0 {
                let partition = told.partition_index;
                let partition = TopicPartition { topic: Arc::clone(&topic), partition };
                offsets.insert(partition, told.committed_offset);
            }
        }
    }
    Ok(offsets)
}

fn fetch_request(group: &str, partitions: Option<&BTreeSet<TopicPartition>>) -> OffsetFetchRequest {
    let topics = partitions.map(|partitions| {
        by_topic(partitions.iter().map(|asked| (asked, asked.partition)))
            .into_iter()
            .map(|(name, partition_indexes)| OffsetFetchRequestTopic { name, partition_indexes })
            .collect::<Vec<_>>()
    });
    OffsetFetchRequest {
        group_id: group.to_owned(),
        topics: topics.clone(),
        groups: vec![OffsetFetchRequestGroup {
            group_id: group.to_owned(),
            topics,
            ..Default::default()
        }],
        require_stable: true,
    }
}

/// From version 8 the answer is a list of groups.
fn fetched(answer: OffsetFetchResponse) -> (ErrorCode, Vec<OffsetFetchResponseTopic>) {
    match answer.groups.into_iter().next() {
        Some(group) => (group.error_code, group.topics),
        None => (answer.error_code, answer.topics),
    }
}

/// Stores offsets as this member, or as nobody in particular.
pub(crate) async fn commit(
    coordinator: &Coordinator,
    group: &str,
    identity: &Identity,
    offsets: &GroupOffsets,
) -> Result<Commit, KafkaError> {
    coordinator.persist(|| commit_once(coordinator, group, identity, offsets)).await
}

async fn commit_once(
    coordinator: &Coordinator,
    group: &str,
    identity: &Identity,
    offsets: &GroupOffsets,
) -> Result<Commit, Failure> {
    let answer = coordinator.ask(&commit_request(group, identity, offsets)).await?;
    for (topic, partition, code) in committed(answer) {
        let what = || format!("store the offset of group {group} for {topic}-{partition}");
        match identity.clone().held(code) {
            Next::Go => {}
            Next::Lost | Next::Rejoin => return Ok(Commit::Lost),
            // Another has taken the static member's place, and its partitions.
            Next::Stop if code == ErrorCode::FENCED_INSTANCE_ID => return Ok(Commit::Lost),
            Next::Stop => return Err(Failure::Final(refused(what(), code, None))),
            Next::Again => coordinator.check(code, what).await?,
        }
    }
    Ok(Commit::Stored)
}

/// What became of each offset.
fn committed(answer: OffsetCommitResponse) -> Vec<(Arc<str>, i32, ErrorCode)> {
    let of_topic = |told: OffsetCommitResponseTopic| {
        let topic: Arc<str> = told.name.into();
        let partition = move |told: OffsetCommitResponsePartition| {
            (Arc::clone(&topic), told.partition_index, told.error_code)
        };
        told.partitions.into_iter().map(partition)
    };
    answer.topics.into_iter().flat_map(of_topic).collect()
}

fn commit_request(group: &str, identity: &Identity, offsets: &GroupOffsets) -> OffsetCommitRequest {
    let partition = |(partition, offset): (&TopicPartition, &i64)| OffsetCommitRequestPartition {
        partition_index: partition.partition,
        committed_offset: *offset,
        committed_metadata: Some(String::new()),
        ..Default::default()
    };
    let topics = by_topic(offsets.iter().map(|entry| (entry.0, partition(entry))));
    OffsetCommitRequest {
        group_id: group.to_owned(),
        generation_id_or_member_epoch: identity.generation,
        member_id: identity.member_id.clone(),
        group_instance_id: identity.instance_id.clone(),
        topics: topics
            .into_iter()
            .map(|(name, partitions)| OffsetCommitRequestTopic { name, partitions })
            .collect(),
        ..Default::default()
    }
}

/// Requests name a topic once.
pub(crate) fn by_topic<'a, T>(
    partitions: impl Iterator<Item = (&'a TopicPartition, T)>,
) -> BTreeMap<String, Vec<T>> {
    let mut topics = BTreeMap::<String, Vec<T>>::new();
    for (partition, value) in partitions {
        topics.entry(partition.topic.to_string()).or_default().push(value);
    }
    topics
}
