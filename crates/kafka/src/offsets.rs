//! Looking up offsets, by time and by epoch.

use highwater_protocol::{
    EpochEndOffset, ErrorCode, ListOffsetsPartition, ListOffsetsPartitionResponse,
    ListOffsetsRequest, ListOffsetsResponse, ListOffsetsTopic, OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse, OffsetForLeaderPartition, OffsetForLeaderTopic,
};

use crate::cluster::{Cluster, Failure};
use crate::reader::{EpochEnd, ListedOffset, OffsetSpec};
use crate::{KafkaError, fetch};

/// Reads up to the last stable offset only (rule L8).
pub(crate) const READ_COMMITTED: i8 = 1;

/// A consumer that is no replica.
pub(crate) const CONSUMER: i32 = -1;

impl OffsetSpec {
    /// The timestamp that asks for it.
    const fn timestamp(self) -> i64 {
        match self {
            Self::Latest => -1,
            Self::Earliest => -2,
            Self::MaxTimestamp => -3,
            Self::Timestamp(at) => at,
        }
    }

    /// Its name in messages: Java's, for what an old broker does not have.
    const fn name(self) -> &'static str {
        match self {
            Self::Latest => "the LATEST offset spec",
            Self::Earliest => "the EARLIEST offset spec",
            Self::MaxTimestamp => "the MAX_TIMESTAMP offset spec",
            Self::Timestamp(_) => "an offset spec with a timestamp",
        }
    }

    /// The first version of ListOffsets that answers it at read_committed. As Java's admin, we
    /// never ask an older one: it would answer something else.
    const fn needs(self) -> i16 {
        match self {
            Self::MaxTimestamp => 7,
            _ => 2,
        }
    }
}

/// Looks up an offset, once.
pub(crate) async fn list(
    cluster: &Cluster,
    topic: &str,
    partition: i32,
    spec: OffsetSpec,
) -> Result<Option<ListedOffset>, Failure> {
    if let OffsetSpec::Timestamp(at @ ..0) = spec {
        let what = format!("an offset lookup at the negative time {at}");
        return Err(Failure::Final(KafkaError::Unsupported { what }));
    }
    let leader = cluster.leader(topic, partition).await?;
    let version = cluster.version::<ListOffsetsRequest>(&leader).await?;
    if version < spec.needs() {
        let spoken = format!("ListOffsets version {} is needed, {version} is spoken", spec.needs());
        return Err(unsupported(spec, &format!(": {spoken} by {}", leader.address)));
    }
    let answer = cluster.ask(&leader, &list_request(topic, partition, spec)).await?;
    let found = listed(answer, topic, partition)?;
    if found.error_code == ErrorCode::UNSUPPORTED_VERSION {
        return Err(unsupported(spec, ""));
    }
    cluster
        .check(&leader, found.error_code, || format!("look up {spec:?} of {topic}-{partition}"))?;
    Ok((found.offset >= 0).then(|| ListedOffset {
        offset: found.offset,
        timestamp: found.timestamp,
        leader_epoch: Some(found.leader_epoch).filter(|epoch| *epoch >= 0),
    }))
}

fn unsupported(spec: OffsetSpec, why: &str) -> Failure {
    let what = format!("{}{why}", spec.name());
    Failure::Final(KafkaError::Unsupported { what })
}

fn list_request(topic: &str, partition: i32, spec: OffsetSpec) -> ListOffsetsRequest {
    ListOffsetsRequest {
        replica_id: CONSUMER,
        isolation_level: READ_COMMITTED,
        topics: vec![ListOffsetsTopic {
            name: topic.to_owned(),
            partitions: vec![ListOffsetsPartition {
                partition_index: partition,
                current_leader_epoch: -1,
                timestamp: spec.timestamp(),
            }],
        }],
        timeout_ms: 30_000,
    }
}

fn listed(
    answer: ListOffsetsResponse,
    topic: &str,
    partition: i32,
) -> Result<ListOffsetsPartitionResponse, Failure> {
    let mut partitions = answer.topics.into_iter().flat_map(|topic| topic.partitions);
    let found = partitions.find(|found| found.partition_index == partition);
    found.ok_or_else(|| fetch::left_out("ListOffsets", topic, partition))
}

/// Asks where an epoch ended, once.
pub(crate) async fn epoch_end(
    cluster: &Cluster,
    topic: &str,
    partition: i32,
    leader_epoch: i32,
) -> Result<EpochEnd, Failure> {
    let leader = cluster.leader(topic, partition).await?;
    let answer = cluster.ask(&leader, &epoch_request(topic, partition, leader_epoch)).await?;
    let end = ended(answer, topic, partition)?;
    let what = || format!("find the end of epoch {leader_epoch} of {topic}-{partition}");
    cluster.check(&leader, end.error_code, what)?;
    Ok(EpochEnd { leader_epoch: end.leader_epoch, end_offset: end.end_offset })
}

fn epoch_request(topic: &str, partition: i32, leader_epoch: i32) -> OffsetForLeaderEpochRequest {
    OffsetForLeaderEpochRequest {
        replica_id: CONSUMER,
        topics: vec![OffsetForLeaderTopic {
            topic: topic.to_owned(),
            partitions: vec![OffsetForLeaderPartition {
                partition,
                current_leader_epoch: -1,
                leader_epoch,
            }],
        }],
    }
}

fn ended(
    answer: OffsetForLeaderEpochResponse,
    topic: &str,
    partition: i32,
) -> Result<EpochEndOffset, Failure> {
    let mut partitions = answer.topics.into_iter().flat_map(|topic| topic.partitions);
    let end = partitions.find(|end| end.partition == partition);
    end.ok_or_else(|| fetch::left_out("OffsetForLeaderEpoch", topic, partition))
}
