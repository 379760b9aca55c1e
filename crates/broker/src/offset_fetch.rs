//! OffsetFetch: of one group up to version 7, of several from version 8.

use highwater_protocol::{
    OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopic, OffsetFetchResponse,
    OffsetFetchResponsePartition, OffsetFetchResponseTopic,
};

use crate::node::Node;

/// The first version that asks for several groups.
const BATCHED_SINCE: i16 = 8;
/// The first version that has a place for an error of the whole group.
const HAS_GROUP_ERROR: i16 = 2;

pub(crate) fn answer(
    node: &Node,
    version: i16,
    request: OffsetFetchRequest,
) -> OffsetFetchResponse {
    let groups = node.coordinator.groups();
    let require_stable = request.require_stable;
    if version >= BATCHED_SINCE {
        let groups = request.groups.into_iter().map(|group| groups.fetch(group, require_stable));
        return OffsetFetchResponse { groups: groups.collect(), ..Default::default() };
    }
    let (group_id, topics) = (request.group_id, request.topics);
    let asked = OffsetFetchRequestGroup { group_id, topics, ..Default::default() };
    let found = groups.fetch(asked.clone(), require_stable);
    let error_code = found.error_code;
    let topics = if error_code.is_ok() || version >= HAS_GROUP_ERROR {
        found.topics
    } else {
        let topics = asked.topics.into_iter().flatten();
        topics.map(|topic| failed(topic, error_code)).collect()
    };
    OffsetFetchResponse { topics, error_code, ..Default::default() }
}

fn failed(
    topic: OffsetFetchRequestTopic,
    error_code: highwater_protocol::ErrorCode,
) -> OffsetFetchResponseTopic {
    let partition = |partition_index| OffsetFetchResponsePartition {
        partition_index,
        committed_offset: -1,
        metadata: Some(String::new()),
        error_code,
        ..Default::default()
    };
    let partitions = topic.partition_indexes.into_iter().map(partition).collect();
    OffsetFetchResponseTopic { name: topic.name, partitions }
}
