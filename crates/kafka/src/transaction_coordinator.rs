//! What a transactional producer asks its coordinator (KIP-98).
//!
//! Spoken as by clients before KIP-890's second part, which both our own broker and Apache Kafka take:
//! partitions are added by AddPartitionsToTxn, and the epoch stays from one transaction to the next.
//! What KIP-890 guards against, a batch that arrives in the transaction after its own, cannot
//! happen here: a transaction is ended only once all its batches are answered. One that cannot be
//! ended so is left to whoever takes the transactional id next, under a higher epoch.

use std::sync::Arc;
use std::time::Duration;

use highwater_protocol::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, AddPartitionsToTxnTopic, EndTxnRequest,
    ErrorCode, InitProducerIdRequest, TopicPartition,
};

use crate::KafkaError;
use crate::cluster::{Cluster, Failure};
use crate::coordinator::{Coordinator, KeyType};
use crate::queue::Producer;

/// Why partitions are not in the transaction, and which of them is in the way, if one is.
pub(crate) type NotAdded = (Option<usize>, Failure);

/// See the module's text.
#[derive(Debug)]
pub(crate) struct TransactionCoordinator {
    coordinator: Coordinator,
    pub(crate) id: String,
    timeout: Duration,
}

impl TransactionCoordinator {
    pub(crate) fn new(cluster: Arc<Cluster>, id: &str, timeout: Duration) -> Self {
        let coordinator = Coordinator::new(cluster, KeyType::Transaction, id);
        Self { coordinator, id: id.to_owned(), timeout }
    }

    /// Asks until it answers, for as long as the cluster's own calls are tried again.
    pub(crate) async fn persist<T, F>(&self, attempt: impl FnMut() -> F) -> Result<T, KafkaError>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        self.coordinator.persist(attempt).await
    }

    /// Takes the transactional id: whoever had it before is fenced, and what that one left open is
    /// aborted when this is answered.
    pub(crate) async fn introduce(&self) -> Result<Producer, Failure> {
        let request = InitProducerIdRequest {
            transactional_id: Some(self.id.clone()),
            transaction_timeout_ms: i32::try_from(self.timeout.as_millis()).unwrap_or(i32::MAX),
            ..Default::default()
        };
        let answer = self.coordinator.ask(&request).await?;
        let what = || format!("take transactional id {}", self.id);
        self.coordinator.check(answer.error_code, what).await?;
        Ok(Producer { id: answer.producer_id, epoch: answer.producer_epoch, transactional: true })
    }

    /// Makes partitions part of the open transaction, which begins with the first of them.
    pub(crate) async fn add(
        &self,
        producer: Producer,
        partitions: &[TopicPartition],
    ) -> Result<(), NotAdded> {
        let request = AddPartitionsToTxnRequest {
            v3_and_below_transactional_id: self.id.clone(),
            v3_and_below_producer_id: producer.id,
            v3_and_below_producer_epoch: producer.epoch,
            v3_and_below_topics: by_topic(partitions),
        };
        let answer = self.coordinator.ask(&request).await.map_err(|failure| (None, failure))?;
        match refusal(&answer, partitions) {
            None => Ok(()),
            Some((at, code)) => {
                let refused = &partitions[at];
                if code == ErrorCode::UNKNOWN_TOPIC_OR_PARTITION {
                    let (topic, partition) = (refused.topic.to_string(), refused.partition);
                    let unknown = KafkaError::UnknownPartition { topic, partition };
                    return Err((Some(at), Failure::Final(unknown)));
                }
                let what = || format!("add {refused} to a transaction of {}", self.id);
                let checked = self.coordinator.check(code, what).await;
                checked.map_err(|failure| (Some(at), failure))
            }
        }
    }

    /// Commits the open transaction, or aborts it. Asking again is harmless.
    pub(crate) async fn end(&self, producer: Producer, committed: bool) -> Result<(), Failure> {
        let request = EndTxnRequest {
            transactional_id: self.id.clone(),
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            committed,
        };
        let answer = self.coordinator.ask(&request).await?;
        let what = || {
            let end = if committed { "commit" } else { "abort" };
            format!("{end} a transaction of {}", self.id)
        };
        self.coordinator.check(answer.error_code, what).await
    }
}

fn by_topic(partitions: &[TopicPartition]) -> Vec<AddPartitionsToTxnTopic> {
    let mut topics: Vec<AddPartitionsToTxnTopic> = Vec::new();
    for TopicPartition { topic: name, partition } in partitions {
        match topics.iter_mut().find(|topic| topic.name == **name) {
            Some(topic) => topic.partitions.push(*partition),
            None => topics.push(AddPartitionsToTxnTopic {
                name: name.as_ref().to_owned(),
                partitions: vec![*partition],
            }),
        }
    }
    topics
}

/// The partition that keeps all from being added, and why: what is said of the others is only that
/// they were not tried. One that the answer leaves out was not added either.
fn refusal(
    answer: &AddPartitionsToTxnResponse,
    partitions: &[TopicPartition],
) -> Option<(usize, ErrorCode)> {
    let code = |TopicPartition { topic: name, partition: index }: &TopicPartition| {
        let topics = answer.results_by_topic_v3_and_below.iter();
        let told = topics
            .filter(|topic| topic.name == **name)
            .flat_map(|topic| &topic.results_by_partition)
            .find(|told| told.partition_index == *index);
        told.map_or(ErrorCode::UNKNOWN_SERVER_ERROR, |told| told.partition_error_code)
    };
    let codes = partitions.iter().map(code).enumerate().filter(|(_, code)| !code.is_ok());
    codes.min_by_key(|(_, code)| *code == ErrorCode::OPERATION_NOT_ATTEMPTED)
}

#[cfg(test)]
mod tests {
    use highwater_protocol::{
        AddPartitionsToTxnPartitionResult as Partition, AddPartitionsToTxnTopicResult as Topic,
    };

    use super::*;

    fn partitions() -> Vec<TopicPartition> {
        [("a", 0), ("b", 0), ("a", 1)]
            .map(|(topic, index)| TopicPartition::new(topic, index))
            .into()
    }

    fn answer(codes: [ErrorCode; 3]) -> AddPartitionsToTxnResponse {
        let told = partitions().into_iter().zip(codes).map(|(told, code)| Topic {
            name: told.topic.to_string(),
            results_by_partition: vec![Partition {
                partition_index: told.partition,
                partition_error_code: code,
            }],
        });
        let results_by_topic_v3_and_below = told.collect();
        AddPartitionsToTxnResponse { results_by_topic_v3_and_below, ..Default::default() }
    }

    #[test]
    fn partitions_of_a_topic_are_asked_for_together() {
        let topics = by_topic(&partitions());
        let said: Vec<_> =
            topics.iter().map(|topic| (topic.name.as_str(), topic.partitions.as_slice())).collect();
        assert_eq!(said, [("a", &[0, 1][..]), ("b", &[0][..])]);
    }

    #[test]
    fn the_partition_that_is_in_the_way_is_named_and_not_those_beside_it() {
        let none = ErrorCode::NONE;
        let (skipped, denied) =
            (ErrorCode::OPERATION_NOT_ATTEMPTED, ErrorCode::TOPIC_AUTHORIZATION_FAILED);
        assert_eq!(refusal(&answer([none; 3]), &partitions()), None);
        assert_eq!(
            refusal(&answer([skipped, skipped, denied]), &partitions()),
            Some((2, ErrorCode::TOPIC_AUTHORIZATION_FAILED))
        );
    }

    #[test]
    fn a_partition_that_the_answer_leaves_out_is_not_added() {
        let silent = AddPartitionsToTxnResponse::default();
        assert_eq!(refusal(&silent, &partitions()), Some((0, ErrorCode::UNKNOWN_SERVER_ERROR)));
    }
}
