//! OffsetCommit: answered once the offsets are safe on disk.

use std::sync::Arc;

use highwater_protocol::{
    ErrorCode, OffsetCommitRequest, OffsetCommitRequestTopic, OffsetCommitResponse,
    OffsetCommitResponsePartition, OffsetCommitResponseTopic,
};

use crate::node::Node;

pub(crate) fn begin(
    node: &Arc<Node>,
    version: i16,
    request: OffsetCommitRequest,
) -> impl Future<Output = OffsetCommitResponse> + Send + use<> {
    let asked = request.topics.clone();
    let waiting = node.coordinator.groups().commit(version, request);
    async move { waiting.answer().await.unwrap_or_else(|| stopped(asked)) }
}

fn stopped(topics: Vec<OffsetCommitRequestTopic>) -> OffsetCommitResponse {
    let error_code = ErrorCode::COORDINATOR_NOT_AVAILABLE;
    let topic = |topic: OffsetCommitRequestTopic| OffsetCommitResponseTopic {
        name: topic.name,
        partitions: topic
            .partitions
            .iter()
            .map(|partition| OffsetCommitResponsePartition {
                partition_index: partition.partition_index,
                error_code,
            })
            .collect(),
    };
    OffsetCommitResponse { topics: topics.into_iter().map(topic).collect(), ..Default::default() }
}
