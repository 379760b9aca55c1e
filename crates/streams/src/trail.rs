//! The log as streams see it: what a session asks of it, so that sessions can be tested over a log
//! that lies in memory.

use std::fmt;

use async_trait::async_trait;
use highwater_kafka::{
    EpochEnd, Fetched, KafkaError, ListedOffset, NewTopic, OffsetSpec, TopicDescription, Watermarks,
};
use tokio::sync::watch;

/// Kafka's code of an offset that is not in the log.
pub(crate) const OFFSET_OUT_OF_RANGE: i16 = 1;

/// One partition of a topic: what a stream reads.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct TopicPartition {
    pub(crate) topic: String,
    pub(crate) partition: i32,
}

impl TopicPartition {
    /// The first partition, which is the only one of a trail (rule R2) and of a topic of state.
    pub(crate) fn first(topic: &str) -> Self {
        Self { topic: topic.to_owned(), partition: 0 }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.partition {
            0 => f.write_str(&self.topic),
            partition => write!(f, "{}-{partition}", self.topic),
        }
    }
}

/// A log of topics.
#[async_trait]
pub(crate) trait Log: Send + Sync {
    /// Describes a topic; `None` when it does not exist.
    async fn topic(&self, name: &str) -> Result<Option<TopicDescription>, KafkaError>;

    /// Makes a topic whose writes are durable (rule L1); `false` when it exists already.
    async fn create_topic(&self, topic: &NewTopic) -> Result<bool, KafkaError>;

    /// Committed records from `offset` on, without waiting.
    async fn fetch(
        &self,
        at: &TopicPartition,
        offset: i64,
        max_bytes: u32,
    ) -> Result<Fetched, KafkaError>;

    /// The edges of a partition, kept up to date.
    async fn watch(&self, at: &TopicPartition) -> Result<watch::Receiver<Watermarks>, KafkaError>;

    /// Looks up an offset.
    async fn list_offset(
        &self,
        at: &TopicPartition,
        spec: OffsetSpec,
    ) -> Result<Option<ListedOffset>, KafkaError>;

    /// Where an epoch ended.
    async fn epoch_end(
        &self,
        at: &TopicPartition,
        leader_epoch: i32,
    ) -> Result<EpochEnd, KafkaError>;

    /// Appends a record to a topic of state and returns once it is safe; no value removes the key.
    async fn put(&self, topic: &str, key: &str, value: Option<Vec<u8>>) -> Result<(), KafkaError>;

    /// Closes what writes, before the log ends.
    async fn close(&self) {}
}
