//! Who may read and write records, and ask where they stand.

use highwater_access::{Kind, Operation, Resource};
use highwater_protocol::{
    DeleteRecordsPartitionResult, DeleteRecordsRequest, DeleteRecordsTopicResult, EpochEndOffset,
    ErrorCode, FetchRequest, FetchableTopicResponse, InitProducerIdRequest, InitProducerIdResponse,
    ListOffsetsPartitionResponse, ListOffsetsRequest, ListOffsetsTopicResponse,
    OffsetForLeaderEpochRequest, OffsetForLeaderTopicResult, PartitionData,
    PartitionProduceResponse, ProduceRequest, Records, TopicProduceData, TopicProduceResponse,
};

use crate::authorized::{Authorized, Verdict, take};
use crate::gate::Gate;

const TOPIC: ErrorCode = ErrorCode::TOPIC_AUTHORIZATION_FAILED;

impl Authorized for ProduceRequest {
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        let may_transact =
            self.transactional_id.as_ref().is_none_or(|id| gate.may_transact(Operation::Write, id));
        let code =
            if may_transact { TOPIC } else { ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED };
        let refused = take(&mut self.topic_data, |topic| {
            may_transact && gate.may_topic(Operation::Write, &topic.name)
        });
        let answer = |topic: TopicProduceData| {
            let partition = |index| PartitionProduceResponse {
                index,
                error_code: code,
                base_offset: -1,
                ..Default::default()
            };
            let partitions = topic.partition_data.iter().map(|one| partition(one.index));
            TopicProduceResponse { partition_responses: partitions.collect(), name: topic.name }
        };
        Verdict::beside(self, refused.into_iter().map(answer), |all| &mut all.responses)
    }
}

impl Authorized for FetchRequest {
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        let refused = take(&mut self.topics, |topic| gate.may_topic(Operation::Read, &topic.topic));
        if !refused.is_empty() {
            // Who is told of an error is told at once.
            self.max_wait_ms = 0;
        }
        let partition = |partition_index| PartitionData {
            partition_index,
            error_code: TOPIC,
            high_watermark: -1,
            records: Some(Records::default()),
            ..Default::default()
        };
        let answers = refused.into_iter().map(|topic| FetchableTopicResponse {
            partitions: topic.partitions.iter().map(|one| partition(one.partition)).collect(),
            topic: topic.topic,
        });
        Verdict::beside(self, answers, |all| &mut all.responses)
    }
}

impl Authorized for ListOffsetsRequest {
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        let refused =
            take(&mut self.topics, |topic| gate.may_topic(Operation::Describe, &topic.name));
        let partition = |partition_index| ListOffsetsPartitionResponse {
            partition_index,
            error_code: TOPIC,
            ..Default::default()
        };
        let answers = refused.into_iter().map(|topic| ListOffsetsTopicResponse {
            partitions: topic.partitions.iter().map(|one| partition(one.partition_index)).collect(),
            name: topic.name,
        });
        Verdict::beside(self, answers, |all| &mut all.topics)
    }
}

impl Authorized for OffsetForLeaderEpochRequest {
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        let refused =
            take(&mut self.topics, |topic| gate.may_topic(Operation::Describe, &topic.topic));
        let partition =
            |partition| EpochEndOffset { error_code: TOPIC, partition, ..Default::default() };
        let answers = refused.into_iter().map(|topic| OffsetForLeaderTopicResult {
            partitions: topic.partitions.iter().map(|one| partition(one.partition)).collect(),
            topic: topic.topic,
        });
        Verdict::beside(self, answers, |all| &mut all.topics)
    }
}

impl Authorized for DeleteRecordsRequest {
    fn authorize(mut self, gate: &Gate) -> Verdict<Self> {
        let refused =
            take(&mut self.topics, |topic| gate.may_topic(Operation::Delete, &topic.name));
        let partition = |partition_index| DeleteRecordsPartitionResult {
            partition_index,
            low_watermark: -1,
            error_code: TOPIC,
        };
        let answers = refused.into_iter().map(|topic| DeleteRecordsTopicResult {
            partitions: topic.partitions.iter().map(|one| partition(one.partition_index)).collect(),
            name: topic.name,
        });
        Verdict::beside(self, answers, |all| &mut all.topics)
    }
}

impl Authorized for InitProducerIdRequest {
    /// Who may write to any topic may have a producer id (KIP-679).
    fn authorize(self, gate: &Gate) -> Verdict<Self> {
        let (allowed, error_code) = match &self.transactional_id {
            Some(id) => (
                gate.may_transact(Operation::Write, id),
                ErrorCode::TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            ),
            None => (
                gate.may(Operation::IdempotentWrite, Resource::Cluster)
                    || gate.may_somewhere(Operation::Write, Kind::Topic),
                ErrorCode::CLUSTER_AUTHORIZATION_FAILED,
            ),
        };
        Verdict::whole(self, allowed, |_| InitProducerIdResponse {
            error_code,
            producer_epoch: -1,
            ..Default::default()
        })
    }
}
