//! OffsetForLeaderEpoch: where an epoch ended, so that a reader learns that the log was cut.

use std::sync::Arc;

use highwater_protocol::{
    EpochEndOffset, ErrorCode, OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition, OffsetForLeaderTopic, OffsetForLeaderTopicResult,
};

use crate::fault::Fault;
use crate::node::Node;

pub(crate) async fn answer(
    node: &Arc<Node>,
    request: OffsetForLeaderEpochRequest,
) -> OffsetForLeaderEpochResponse {
    let topics = request.topics.into_iter().map(|topic| of_topic(node, topic)).collect();
    OffsetForLeaderEpochResponse { topics, ..Default::default() }
}

fn of_topic(node: &Node, asked: OffsetForLeaderTopic) -> OffsetForLeaderTopicResult {
    let partitions = asked.partitions.iter().map(|partition| {
        let index = partition.partition;
        match of_partition(node, &asked.topic, partition) {
            Ok((leader_epoch, end_offset)) => EpochEndOffset {
                error_code: ErrorCode::NONE,
                partition: index,
                leader_epoch,
                end_offset,
            },
            Err(fault) => {
                EpochEndOffset { error_code: fault.code, partition: index, ..Default::default() }
            }
        }
    });
    OffsetForLeaderTopicResult { partitions: partitions.collect(), topic: asked.topic }
}

fn of_partition(
    node: &Node,
    topic: &str,
    asked: &OffsetForLeaderPartition,
) -> Result<(i32, i64), Fault> {
    let partition = node.partition(topic, asked.partition)?;
    partition.check_leader_epoch(asked.current_leader_epoch)?;
    Ok(partition.epoch_end(asked.leader_epoch))
}
