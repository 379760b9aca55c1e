//! Who may write in transactions, see them, and end those that hang.

use highwater_access::{Operation, Resource};
use highwater_protocol::{
    AddOffsetsToTxnRequest, AddOffsetsToTxnResponse, AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, AddPartitionsToTxnTopicResult,
    DescribeProducersRequest, DescribeTransactionsRequest, DescribedProducersPartition,
    DescribedProducersTopic, DescribedTransaction, EndTxnRequest, EndTxnResponse, ErrorCode,
    ListTransactionsRequest, TxnOffsetCommitRequest, TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse, TxnOffsetCommitResponsePartition, TxnOffsetCommitResponseTopic,
    WritableTxnMarkerPartitionResult, WritableTxnMarkerResult, WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest, WriteTxnMarkersResponse,
};

use crate::authorized::{Authorized, Verdict, take};
use crate::gate::Gate;

const TOPIC: ErrorCode = ErrorCode::TOPIC_AUTHORIZATION_FAILED;
const GROUP: ErrorCode = ErrorCode::GROUP_AUTHORIZATION_FAILED;
const TRANSACTIONAL_ID: ErrorCode = ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED;

impl Authorized for AddPartitionsToTxnRequest {
    /// All partitions become part of the transaction, or none.
    fn authorize(self, gate: &Gate) -> Verdict<Self> {
        let may_write = |topic: &str| gate.may_topic(Operation::Write, topic);
        let transacts = gate.may_transact(Operation::Write, &self.v3_and_below_transactional_id);
        let topics = &self.v3_and_below_topics;
        let allowed = transacts && topics.iter().all(|topic| may_write(&topic.name));
        Verdict::whole(self, allowed, |asked| {
            let results = asked.v3_and_below_topics.iter().map(|topic| {
                let code = match (transacts, may_write(&topic.name)) {
                    (false, _) => TRANSACTIONAL_ID,
                    (true, false) => TOPIC,
                    (true, true) => ErrorCode::OPERATION_NOT_ATTEMPTED,
                };
                let partition = |index: &i32| AddPartitionsToTxnPartitionResult {
                    partition_index: *index,
                    partition_error_code: code,
                };
                AddPartitionsToTxnTopicResult {
                    name: topic.name.clone(),
                    results_by_partition: topic.partitions.iter().map(partition).collect(),
                }
            });
            AddPartitionsToTxnResponse {
                results_by_topic_v3_and_below: results.collect(),
                ..Default::default()
            }
        })
    }
}

impl Authorized for AddOffsetsToTxnRequest {
    fn authorize(self, gate: &Gate) -> Verdict<Self> {
        let transacts = gate.may_transact(Operation::Write, &self.transactional_id);
        let allowed = transacts && gate.may_group(Operation::Read, &self.group_id);
        Verdict::whole(self, allowed, |_| AddOffsetsToTxnResponse {
            error_code: if transacts { GROUP } else { TRANSACTIONAL_ID },
            ..Default::default()
        })
    }
}

impl Authorized for EndTxnRequest {
    fn authorize(self, gate: &Gate) -> Verdict<Self> {
        let allowed = gate.may_transact(Operation::Write, &self.transactional_id);
        Verdict::whole(self, allowed, |_| EndTxnResponse {
            error_code: TRANSACTIONAL_ID,
            ..Default::default()
        })
    }
}

impl Authorized for TxnOffsetCommitRequest {
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        let whole = if !gate.may_transact(Operation::Write, &self.transactional_id) {
            Some(TRANSACTIONAL_ID)
        } else if !gate.may_group(Operation::Read, &self.group_id) {
            Some(GROUP)
        } else {
            None
        };
        if let Some(code) = whole {
            let topics = self.topics.into_iter().map(|topic| not_committed(topic, code)).collect();
            return Verdict::No(TxnOffsetCommitResponse { topics, ..Default::default() });
        }
        let refused = take(&mut self.topics, |topic| gate.may_topic(Operation::Read, &topic.name));
        let answers = refused.into_iter().map(|topic| not_committed(topic, TOPIC));
        Verdict::beside(self, answers, |all| &mut all.topics)
    }
}

fn not_committed(
    topic: TxnOffsetCommitRequestTopic,
    error_code: ErrorCode,
) -> TxnOffsetCommitResponseTopic {
    let partition =
        |partition_index| TxnOffsetCommitResponsePartition { partition_index, error_code };
    let partitions = topic.partitions.iter().map(|one| partition(one.partition_index));
    TxnOffsetCommitResponseTopic { partitions: partitions.collect(), name: topic.name }
}

impl Authorized for DescribeProducersRequest {
    /// Kafka asks for the right to read. No record is shown, so of the server's own topics, of which some
    /// cannot be read at all, the right to see them is enough: `kafka-transactions find-hanging` asks of all.
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        let may = |name: &str| {
            let own = highwater_access::is_internal(name);
            gate.may_topic(if own { Operation::Describe } else { Operation::Read }, name)
        };
        let refused = take(&mut self.topics, |topic| may(&topic.name));
        let partition = |partition_index| DescribedProducersPartition {
            partition_index,
            error_code: TOPIC,
            ..Default::default()
        };
        let answers = refused.into_iter().map(|topic| DescribedProducersTopic {
            partitions: topic.partition_indexes.into_iter().map(partition).collect(),
            name: topic.name,
        });
        Verdict::beside(self, answers, |all| &mut all.topics)
    }
}

impl Authorized for DescribeTransactionsRequest {
    /// Topics in a transaction are shown to who may describe them.
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        let refused =
            take(&mut self.transactional_ids, |id| gate.may_transact(Operation::Describe, id));
        let refused = refused.into_iter().map(|transactional_id| DescribedTransaction {
            error_code: TRANSACTIONAL_ID,
            transactional_id,
            ..Default::default()
        });
        let mut refused: Vec<_> = refused.collect();
        let gate = gate.clone();
        Verdict::rest(self, move |answer| {
            for transaction in &mut answer.transaction_states {
                transaction
                    .topics
                    .retain(|topic| gate.may_topic(Operation::Describe, &topic.topic));
            }
            answer.transaction_states.append(&mut refused);
        })
    }
}

impl Authorized for ListTransactionsRequest {
    fn authorize(self, gate: &Gate) -> Verdict<Self> {
        let gate = gate.clone();
        Verdict::rest(self, move |answer| {
            answer.transaction_states.retain(|transaction| {
                gate.may_transact(Operation::Describe, &transaction.transactional_id)
            });
        })
    }
}

impl Authorized for WriteTxnMarkersRequest {
    fn authorize(self, gate: &Gate) -> Verdict<Self> {
        let allowed = gate.may(Operation::Alter, Resource::Cluster)
            || gate.may(Operation::ClusterAction, Resource::Cluster);
        Verdict::whole(self, allowed, unmarked)
    }
}

fn unmarked(request: &WriteTxnMarkersRequest) -> WriteTxnMarkersResponse {
    let error_code = ErrorCode::CLUSTER_AUTHORIZATION_FAILED;
    let partition =
        |index: &i32| WritableTxnMarkerPartitionResult { partition_index: *index, error_code };
    let markers = request.markers.iter().map(|marker| {
        let topics = marker.topics.iter().map(|topic| WritableTxnMarkerTopicResult {
            name: topic.name.clone(),
            partitions: topic.partition_indexes.iter().map(partition).collect(),
        });
        WritableTxnMarkerResult { producer_id: marker.producer_id, topics: topics.collect() }
    });
    WriteTxnMarkersResponse { markers: markers.collect() }
}
