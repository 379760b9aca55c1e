//! The log as streams see it: what a session asks of it, so that sessions can be tested over a log
//! that lies in memory.

use async_trait::async_trait;
use highwater_kafka::{
    EpochEnd, Fetched, KafkaError, ListedOffset, NewTopic, OffsetSpec, TopicDescription, Watermarks,
};
use tokio::sync::watch;

/// Kafka's code of an offset that is not in the log.
pub(crate) const OFFSET_OUT_OF_RANGE: i16 = 1;

/// A log of topics; every trail is partition 0 of its topic.
#[async_trait]
pub(crate) trait Log: Send + Sync {
    /// Describes a topic; `None` when it does not exist.
    async fn topic(&self, name: &str) -> Result<Option<TopicDescription>, KafkaError>;

    /// Makes a topic; `false` when it exists already.
    async fn create_topic(&self, topic: &NewTopic) -> Result<bool, KafkaError>;

    /// Committed records from `offset` on, without waiting.
    async fn fetch(&self, topic: &str, offset: i64, max_bytes: u32) -> Result<Fetched, KafkaError>;

    /// The edges of the trail, kept up to date.
    async fn watch(&self, topic: &str) -> Result<watch::Receiver<Watermarks>, KafkaError>;

    /// Looks up an offset.
    async fn list_offset(
        &self,
        topic: &str,
        spec: OffsetSpec,
    ) -> Result<Option<ListedOffset>, KafkaError>;

    /// Where an epoch ended.
    async fn epoch_end(&self, topic: &str, leader_epoch: i32) -> Result<EpochEnd, KafkaError>;

    /// Appends a record of state and returns once it is safe; no value removes the key.
    async fn put(&self, topic: &str, key: &str, value: Option<Vec<u8>>) -> Result<(), KafkaError>;

    /// Closes what writes, before the log ends.
    async fn close(&self) {}
}
