//! ListOffsets: offsets by timestamp, and the special ones (KIP-79, KIP-734).

use std::collections::HashMap;
use std::sync::Arc;

use highwater_coordinator::blocking;
use highwater_log::{FoundOffset, Isolation, LogError, OffsetSpec};
use highwater_protocol::{
    ErrorCode, ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsRequest,
    ListOffsetsResponse, ListOffsetsTopic, ListOffsetsTopicResponse,
};

use crate::fault::Fault;
use crate::node::Node;

/// The first version that knows OFFSET_NOT_AVAILABLE.
const NOT_AVAILABLE_SINCE: i16 = 5;

/// Who asks, as far as it matters to what is seen.
#[derive(Clone, Copy)]
enum Asker {
    Client(Isolation),
    /// A follower sees the log to its end.
    Follower,
}

/// What holds for a whole request.
struct Question<'a> {
    node: &'a Node,
    version: i16,
    asker: Asker,
    /// How often the request names each partition that is not answered for yet.
    named: HashMap<(&'a str, i32), usize>,
}

pub(crate) async fn answer(
    node: &Arc<Node>,
    version: i16,
    request: ListOffsetsRequest,
) -> ListOffsetsResponse {
    let node = Arc::clone(node);
    let topics = blocking(move || {
        let mut question = Question::new(&node, version, &request);
        request.topics.iter().map(|topic| question.of_topic(topic)).collect()
    });
    ListOffsetsResponse { topics: topics.await, ..Default::default() }
}

impl<'a> Question<'a> {
    fn new(node: &'a Node, version: i16, request: &'a ListOffsetsRequest) -> Self {
        let mut named = HashMap::new();
        for topic in &request.topics {
            for partition in &topic.partitions {
                *named.entry((topic.name.as_str(), partition.partition_index)).or_insert(0) += 1;
            }
        }
        Self { node, version, asker: Asker::of(request), named }
    }

    /// A partition that is named twice is answered once, as Kafka does.
    fn of_topic(&mut self, asked: &'a ListOffsetsTopic) -> ListOffsetsTopicResponse {
        let partitions = asked.partitions.iter().filter_map(|one| {
            let named = self.named.remove(&(asked.name.as_str(), one.partition_index))?;
            let found = if named > 1 {
                Err(ErrorCode::INVALID_REQUEST)
            } else {
                self.of_partition(&asked.name, one)
            };
            Some(response(one.partition_index, found))
        });
        let partitions: Vec<_> = partitions.collect();
        ListOffsetsTopicResponse { name: asked.name.clone(), partitions }
    }

    /// The order of the checks is Kafka's.
    fn of_partition(
        &self,
        topic: &str,
        asked: &ListOffsetsPartition,
    ) -> Result<Option<FoundOffset>, ErrorCode> {
        let index = asked.partition_index;
        let spec = spec(asked.timestamp, self.version).ok_or(ErrorCode::UNSUPPORTED_VERSION)?;
        let partition = self.node.partition(topic, index).map_err(|fault| fault.code)?;
        let found =
            partition.check_leader_epoch(asked.current_leader_epoch).and_then(|()| {
                match (self.asker, spec) {
                    (Asker::Follower, OffsetSpec::Latest) => Ok(Some(log_end(&partition))),
                    (Asker::Follower, spec) => {
                        partition.list_offset(spec, Isolation::ReadUncommitted)
                    }
                    (Asker::Client(isolation), spec) => partition.list_offset(spec, isolation),
                }
            });
        found.map_err(|error| refusal(error, self.version))
    }
}

impl Asker {
    fn of(request: &ListOffsetsRequest) -> Self {
        match (request.replica_id, request.isolation_level) {
            (0.., _) => Self::Follower,
            (-1, 1) => Self::Client(Isolation::ReadCommitted),
            _ => Self::Client(Isolation::ReadUncommitted),
        }
    }
}

fn log_end(partition: &highwater_log::Partition) -> FoundOffset {
    let watermarks = partition.watermarks_now();
    FoundOffset { offset: watermarks.log_end, timestamp: -1, leader_epoch: watermarks.leader_epoch }
}

/// What a timestamp asks for, if this version may ask for it.
fn spec(timestamp: i64, version: i16) -> Option<OffsetSpec> {
    OffsetSpec::from_wire(timestamp).filter(|spec| version >= spec.since_version())
}

/// A partition that reopens itself will know the offset soon; clients before version 5 know only
/// a missing leader as such.
fn refusal(error: LogError, version: i16) -> ErrorCode {
    match error {
        LogError::Poisoned { .. } if version < NOT_AVAILABLE_SINCE => {
            ErrorCode::LEADER_NOT_AVAILABLE
        }
        LogError::Poisoned { .. } => ErrorCode::OFFSET_NOT_AVAILABLE,
        error => Fault::from(error).code,
    }
}

fn response(
    partition_index: i32,
    found: Result<Option<FoundOffset>, ErrorCode>,
) -> ListOffsetsPartitionResponse {
    let nothing = ListOffsetsPartitionResponse { partition_index, ..Default::default() };
    match found {
        Ok(Some(FoundOffset { offset, timestamp, leader_epoch })) => {
            ListOffsetsPartitionResponse { offset, timestamp, leader_epoch, ..nothing }
        }
        Ok(None) => nothing,
        Err(error_code) => ListOffsetsPartitionResponse { error_code, ..nothing },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_timestamps_have_a_first_version() {
        for (timestamp, since) in [(-1, 1), (-2, 1), (-3, 7), (-4, 8), (-5, 9), (-6, 11), (0, 1)] {
            assert!(spec(timestamp, since).is_some(), "{timestamp} at {since}");
            assert_eq!(spec(timestamp, since - 1), None, "{timestamp} at {}", since - 1);
        }
        assert_eq!(spec(-7, 11), None);
        assert_eq!(spec(i64::MIN, 11), None);
    }

    #[test]
    fn an_offset_that_comes_soon_has_an_older_name() {
        let poisoned =
            || LogError::Poisoned { partition: "t-0".to_owned(), reason: "EIO".to_owned() };
        assert_eq!(refusal(poisoned(), 4), ErrorCode::LEADER_NOT_AVAILABLE);
        assert_eq!(refusal(poisoned(), 5), ErrorCode::OFFSET_NOT_AVAILABLE);
    }
}
