//! AddPartitionsToTxn: partitions join a transaction, all of them or none.

use std::collections::BTreeSet;
use std::sync::Arc;

use highwater_coordinator::{CONSUMER_OFFSETS, Producer, TRANSACTION_STATE};
use highwater_protocol::{
    AddPartitionsToTxnPartitionResult, AddPartitionsToTxnRequest, AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic, AddPartitionsToTxnTopicResult, ErrorCode, TopicPartition,
};

use crate::node::Node;
use crate::producer_fenced;

/// The first version whose clients know PRODUCER_FENCED.
const FENCED_SINCE: i16 = 2;

pub(crate) async fn answer(
    node: &Node,
    version: i16,
    request: AddPartitionsToTxnRequest,
) -> AddPartitionsToTxnResponse {
    let topics = request.v3_and_below_topics;
    if let Some(refused) = refused(node, &topics) {
        return refused;
    }
    let producer = Producer {
        id: request.v3_and_below_producer_id,
        epoch: request.v3_and_below_producer_epoch,
    };
    let id = request.v3_and_below_transactional_id;
    let added = node.coordinator.transactions().add_partitions(&id, producer, partitions(&topics));
    let error = added.await.err().unwrap_or_default();
    let error = producer_fenced::as_known_to(version, FENCED_SINCE, error);
    response(&topics, |_, _| error)
}

/// One partition that cannot join keeps all others out, too.
fn refused(node: &Node, topics: &[AddPartitionsToTxnTopic]) -> Option<AddPartitionsToTxnResponse> {
    let fails = |topic: &AddPartitionsToTxnTopic| {
        topic.partitions.iter().any(|index| !check(node, &topic.name, *index).is_ok())
    };
    topics.iter().any(fails).then(|| {
        response(topics, |topic, index| match check(node, topic, index) {
            ErrorCode::NONE => ErrorCode::OPERATION_NOT_ATTEMPTED,
            error => error,
        })
    })
}

/// The coordinators' own topics are written for clients, and not by them.
fn check(node: &Node, topic: &str, index: i32) -> ErrorCode {
    if topic == CONSUMER_OFFSETS || topic == TRANSACTION_STATE {
        return ErrorCode::TOPIC_AUTHORIZATION_FAILED;
    }
    node.partition(topic, index).err().map_or(ErrorCode::NONE, |fault| fault.code)
}

fn partitions(topics: &[AddPartitionsToTxnTopic]) -> BTreeSet<TopicPartition> {
    let of_topic = |topic: &AddPartitionsToTxnTopic| {
        let name: Arc<str> = topic.name.as_str().into();
        let partition = |index: &i32| TopicPartition::new(Arc::clone(&name), *index);
        topic.partitions.iter().map(partition).collect::<Vec<_>>()
    };
    topics.iter().flat_map(of_topic).collect()
}

fn response(
    topics: &[AddPartitionsToTxnTopic],
    error: impl Fn(&str, i32) -> ErrorCode,
) -> AddPartitionsToTxnResponse {
    let of_topic = |topic: &AddPartitionsToTxnTopic| {
        let of_partition = |index: &i32| AddPartitionsToTxnPartitionResult {
            partition_index: *index,
            partition_error_code: error(&topic.name, *index),
        };
        AddPartitionsToTxnTopicResult {
            name: topic.name.clone(),
            results_by_partition: topic.partitions.iter().map(of_partition).collect(),
        }
    };
    let results_by_topic_v3_and_below = topics.iter().map(of_topic).collect();
    AddPartitionsToTxnResponse { results_by_topic_v3_and_below, ..Default::default() }
}
