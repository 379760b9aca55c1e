//! WriteTxnMarkers: an operator ends a transaction that hangs in a partition (`kafka-transactions abort`).

use highwater_log::{EndMarker, MarkerKind};
use highwater_protocol::{
    WritableTxnMarker, WritableTxnMarkerPartitionResult, WritableTxnMarkerResult,
    WritableTxnMarkerTopic, WritableTxnMarkerTopicResult, WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
};

use crate::node::Node;

pub(crate) async fn answer(
    node: &Node,
    request: WriteTxnMarkersRequest,
) -> WriteTxnMarkersResponse {
    let mut markers = Vec::with_capacity(request.markers.len());
    for marker in request.markers {
        markers.push(of_producer(node, marker).await);
    }
    WriteTxnMarkersResponse { markers }
}

async fn of_producer(node: &Node, asked: WritableTxnMarker) -> WritableTxnMarkerResult {
    let marker = EndMarker {
        producer_id: asked.producer_id,
        producer_epoch: asked.producer_epoch,
        kind: if asked.transaction_result { MarkerKind::Commit } else { MarkerKind::Abort },
        coordinator_epoch: asked.coordinator_epoch,
    };
    let mut topics = Vec::with_capacity(asked.topics.len());
    for topic in asked.topics {
        topics.push(of_topic(node, marker, topic).await);
    }
    WritableTxnMarkerResult { producer_id: asked.producer_id, topics }
}

async fn of_topic(
    node: &Node,
    marker: EndMarker,
    asked: WritableTxnMarkerTopic,
) -> WritableTxnMarkerTopicResult {
    let mut partitions = Vec::with_capacity(asked.partition_indexes.len());
    for partition_index in asked.partition_indexes {
        let transactions = node.coordinator.transactions();
        let written = transactions.write_marker(&asked.name, partition_index, marker).await;
        let error_code = written.err().unwrap_or_default();
        partitions.push(WritableTxnMarkerPartitionResult { partition_index, error_code });
    }
    WritableTxnMarkerTopicResult { name: asked.name, partitions }
}
