//! AddOffsetsToTxn: a group's offsets will be committed with a transaction.

use std::sync::Arc;

use highwater_coordinator::{Producer, blocking};
use highwater_protocol::{
    AddOffsetsToTxnRequest, AddOffsetsToTxnResponse, ErrorCode, TopicPartition,
};

use crate::node::Node;
use crate::producer_fenced;

/// The first version whose clients know PRODUCER_FENCED.
const FENCED_SINCE: i16 = 2;

pub(crate) async fn answer(
    node: &Node,
    version: i16,
    request: AddOffsetsToTxnRequest,
) -> AddOffsetsToTxnResponse {
    let error = add(node, request).await.err().unwrap_or_default();
    let error_code = producer_fenced::as_known_to(version, FENCED_SINCE, error);
    AddOffsetsToTxnResponse { error_code, ..Default::default() }
}

async fn add(node: &Node, request: AddOffsetsToTxnRequest) -> Result<(), ErrorCode> {
    let groups = Arc::clone(node.coordinator.groups());
    let offsets = blocking(move || groups.offsets_partition()).await;
    let (topic, partition) = offsets.map_err(|error| error.kafka_code())?;
    let producer = Producer { id: request.producer_id, epoch: request.producer_epoch };
    let partition = TopicPartition::new(topic, partition);
    let transactions = node.coordinator.transactions();
    transactions.add_partitions(&request.transactional_id, producer, [partition].into()).await
}
