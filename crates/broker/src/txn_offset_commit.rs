//! TxnOffsetCommit: a group's offsets, which count once the producer's transaction is committed.

use std::collections::HashMap;
use std::sync::Arc;

use highwater_coordinator::{
    CONSUMER_OFFSETS, Producer, StillOpen, Transaction, TransactionalCommit,
};
use highwater_protocol::{
    ErrorCode, OffsetCommitRequestPartition, OffsetCommitRequestTopic,
    OffsetCommitResponsePartition, OffsetCommitResponseTopic, TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic, TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};

use crate::node::Node;

/// What became of each offset, by topic and partition.
type Codes = HashMap<(String, i32), ErrorCode>;

/// The first version whose clients know that the coordinator may still be loading (KAFKA-7296).
const LOADING_SINCE: i16 = 2;

/// The first version whose clients know TRANSACTION_ABORTABLE.
const ABORTABLE_SINCE: i16 = 4;

pub(crate) fn begin(
    node: &Arc<Node>,
    version: i16,
    request: TxnOffsetCommitRequest,
) -> impl Future<Output = TxnOffsetCommitResponse> + Send + use<> {
    let producer = Producer { id: request.producer_id, epoch: request.producer_epoch };
    let still_open = still_open(node, request.transactional_id, producer);
    let topics = request.topics;
    let known = known(node, &topics);
    let refused = match (request.group_id.is_empty(), known.is_empty()) {
        (_, true) => Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION),
        (true, false) => Some(ErrorCode::INVALID_GROUP_ID),
        (false, false) => None,
    };
    let commit = TransactionalCommit {
        group_id: request.group_id,
        generation: request.generation_id,
        member_id: request.member_id,
        group_instance_id: request.group_instance_id,
        transaction: Transaction { producer_id: producer.id, producer_epoch: producer.epoch },
        topics: known.clone(),
    };
    let groups = node.coordinator.groups();
    let waiting = refused.is_none().then(|| groups.commit_in_transaction(commit, still_open));
    async move {
        let codes = match waiting {
            None => codes_of_all(&known, refused.unwrap_or_default()),
            Some(waiting) => match waiting.answer().await {
                Some(answers) => codes(answers),
                None => codes_of_all(&known, ErrorCode::COORDINATOR_NOT_AVAILABLE),
            },
        };
        response(version, topics, &codes)
    }
}

/// What is to be committed. A partition that does not exist is refused alone.
fn known(node: &Node, topics: &[TxnOffsetCommitRequestTopic]) -> Vec<OffsetCommitRequestTopic> {
    let of_topic = |topic: &TxnOffsetCommitRequestTopic| OffsetCommitRequestTopic {
        name: topic.name.clone(),
        partitions: topic
            .partitions
            .iter()
            .filter(|one| node.partition(&topic.name, one.partition_index).is_ok())
            .map(asked)
            .collect(),
    };
    topics.iter().map(of_topic).filter(|topic| !topic.partitions.is_empty()).collect()
}

fn asked(one: &TxnOffsetCommitRequestPartition) -> OffsetCommitRequestPartition {
    OffsetCommitRequestPartition {
        partition_index: one.partition_index,
        committed_offset: one.committed_offset,
        committed_leader_epoch: one.committed_leader_epoch,
        committed_metadata: one.committed_metadata.clone(),
    }
}

/// Asked right before the append, so that the transaction does not end in between.
fn still_open(node: &Arc<Node>, transactional_id: String, producer: Producer) -> StillOpen {
    let transactions = node.coordinator.transactions().clone();
    let offsets = node.log.partition(CONSUMER_OFFSETS, 0);
    Box::new(move || {
        // The partition is asked before the coordinator, as by Apache Kafka.
        let known = offsets
            .as_ref()
            .map(|offsets| offsets.check_producer_epoch(producer.id, producer.epoch));
        if let Some(Err(_)) = known {
            return Err(ErrorCode::INVALID_PRODUCER_EPOCH);
        }
        if transactional_id.is_empty() {
            return Err(ErrorCode::INVALID_REQUEST);
        }
        transactions.verify(&transactional_id, producer, CONSUMER_OFFSETS, 0)
    })
}

fn codes(answers: Vec<OffsetCommitResponseTopic>) -> Codes {
    let of_topic = |topic: OffsetCommitResponseTopic| {
        let name = topic.name;
        let code = move |one: OffsetCommitResponsePartition| {
            ((name.clone(), one.partition_index), one.error_code)
        };
        topic.partitions.into_iter().map(code)
    };
    answers.into_iter().flat_map(of_topic).collect()
}

fn codes_of_all(topics: &[OffsetCommitRequestTopic], error: ErrorCode) -> Codes {
    let of_topic = |topic: &OffsetCommitRequestTopic| {
        let name = topic.name.clone();
        let code =
            move |one: &OffsetCommitRequestPartition| ((name.clone(), one.partition_index), error);
        topic.partitions.iter().map(code).collect::<Vec<_>>()
    };
    topics.iter().flat_map(of_topic).collect()
}

/// In codes that clients of this version know, as Apache Kafka chooses them.
fn as_known_to(version: i16, error: ErrorCode) -> ErrorCode {
    match error {
        ErrorCode::PRODUCER_FENCED => ErrorCode::INVALID_PRODUCER_EPOCH,
        ErrorCode::TRANSACTION_ABORTABLE if version < ABORTABLE_SINCE => {
            ErrorCode::INVALID_TXN_STATE
        }
        ErrorCode::COORDINATOR_LOAD_IN_PROGRESS if version < LOADING_SINCE => {
            ErrorCode::COORDINATOR_NOT_AVAILABLE
        }
        other => other,
    }
}

fn response(
    version: i16,
    topics: Vec<TxnOffsetCommitRequestTopic>,
    codes: &Codes,
) -> TxnOffsetCommitResponse {
    let of_topic = |topic: TxnOffsetCommitRequestTopic| {
        let partition = |one: &TxnOffsetCommitRequestPartition| {
            let code = codes.get(&(topic.name.clone(), one.partition_index)).copied();
            let code = code.unwrap_or(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
            let error_code = as_known_to(version, code);
            TxnOffsetCommitResponsePartition { partition_index: one.partition_index, error_code }
        };
        let partitions = topic.partitions.iter().map(partition).collect();
        TxnOffsetCommitResponseTopic { name: topic.name, partitions }
    };
    let topics = topics.into_iter().map(of_topic).collect();
    TxnOffsetCommitResponse { topics, ..Default::default() }
}
