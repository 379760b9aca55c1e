//! TxnOffsetCommit: a group's offsets, which count once the producer's transaction is committed.

use std::sync::Arc;

use highwater_coordinator::{
    CONSUMER_OFFSETS, Producer, StillOpen, Transaction, TransactionalCommit,
};
use highwater_protocol::{
    ErrorCode, OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetCommitResponseTopic,
    TxnOffsetCommitRequest, TxnOffsetCommitRequestPartition, TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
};

use crate::node::Node;

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
    let topics: Vec<_> = request.topics.into_iter().map(|one| (one.name, one.partitions)).collect();
    let commit = TransactionalCommit {
        group_id: request.group_id,
        generation: request.generation_id,
        member_id: request.member_id,
        group_instance_id: request.group_instance_id,
        transaction: Transaction { producer_id: producer.id, producer_epoch: producer.epoch },
        topics: topics.iter().map(asked).collect(),
    };
    let waiting = node.coordinator.groups().commit_in_transaction(commit, still_open);
    async move {
        match waiting.answer().await {
            Some(answers) => response(answers.into_iter().map(|one| answered(version, one))),
            None => response(topics.into_iter().map(stopped)),
        }
    }
}

/// Asked right before the append, so that the transaction does not end in between.
fn still_open(node: &Arc<Node>, transactional_id: String, producer: Producer) -> StillOpen {
    let transactions = node.coordinator.transactions().clone();
    Box::new(move || {
        if transactional_id.is_empty() {
            return Err(ErrorCode::INVALID_REQUEST);
        }
        transactions.verify(&transactional_id, producer, CONSUMER_OFFSETS, 0)
    })
}

fn asked(
    (name, partitions): &(String, Vec<TxnOffsetCommitRequestPartition>),
) -> OffsetCommitRequestTopic {
    let partition = |one: &TxnOffsetCommitRequestPartition| OffsetCommitRequestPartition {
        partition_index: one.partition_index,
        committed_offset: one.committed_offset,
        committed_leader_epoch: one.committed_leader_epoch,
        committed_metadata: one.committed_metadata.clone(),
    };
    OffsetCommitRequestTopic {
        name: name.clone(),
        partitions: partitions.iter().map(partition).collect(),
    }
}

fn answered(version: i16, topic: OffsetCommitResponseTopic) -> TxnOffsetCommitResponseTopic {
    let partition = |one: highwater_protocol::OffsetCommitResponsePartition| {
        let error_code = as_known_to(version, one.error_code);
        TxnOffsetCommitResponsePartition { partition_index: one.partition_index, error_code }
    };
    TxnOffsetCommitResponseTopic {
        name: topic.name,
        partitions: topic.partitions.into_iter().map(partition).collect(),
    }
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

fn stopped(
    (name, partitions): (String, Vec<TxnOffsetCommitRequestPartition>),
) -> TxnOffsetCommitResponseTopic {
    let partition = |one: &TxnOffsetCommitRequestPartition| TxnOffsetCommitResponsePartition {
        partition_index: one.partition_index,
        error_code: ErrorCode::COORDINATOR_NOT_AVAILABLE,
    };
    TxnOffsetCommitResponseTopic { name, partitions: partitions.iter().map(partition).collect() }
}

fn response(topics: impl Iterator<Item = TxnOffsetCommitResponseTopic>) -> TxnOffsetCommitResponse {
    TxnOffsetCommitResponse { topics: topics.collect(), ..Default::default() }
}
