//! DeleteRecords: moves the start of a log forward.

use std::sync::Arc;

use highwater_coordinator::blocking;
use highwater_protocol::{
    DeleteRecordsPartition, DeleteRecordsPartitionResult, DeleteRecordsRequest,
    DeleteRecordsResponse, DeleteRecordsTopic, DeleteRecordsTopicResult, ErrorCode,
};

use crate::fault::Fault;
use crate::internal_topic::check_not_internal;
use crate::node::Node;

pub(crate) async fn answer(
    node: &Arc<Node>,
    request: DeleteRecordsRequest,
) -> DeleteRecordsResponse {
    let node = Arc::clone(node);
    let topics =
        blocking(move || request.topics.into_iter().map(|topic| of_topic(&node, topic)).collect());
    DeleteRecordsResponse { topics: topics.await, ..Default::default() }
}

fn of_topic(node: &Node, asked: DeleteRecordsTopic) -> DeleteRecordsTopicResult {
    let partitions = asked.partitions.iter().map(|partition| {
        let deleted = of_partition(node, &asked.name, partition);
        DeleteRecordsPartitionResult {
            partition_index: partition.partition_index,
            low_watermark: *deleted.as_ref().unwrap_or(&-1),
            error_code: deleted.err().map_or(ErrorCode::NONE, |fault| fault.code),
        }
    });
    DeleteRecordsTopicResult { partitions: partitions.collect(), name: asked.name }
}

fn of_partition(node: &Node, topic: &str, asked: &DeleteRecordsPartition) -> Result<i64, Fault> {
    let partition = node.partition(topic, asked.partition_index)?;
    check_not_internal(topic)?;
    if !partition.config().cleanup.delete {
        let text = "nothing is deleted from the front of a topic that is only compacted";
        return Err(Fault::new(ErrorCode::POLICY_VIOLATION, text));
    }
    if asked.offset < -1 {
        let text = format!("{} is no offset", asked.offset);
        return Err(Fault::new(ErrorCode::OFFSET_OUT_OF_RANGE, text));
    }
    Ok(partition.delete_records(asked.offset)?)
}
