//! The log over the Kafka client.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use highwater_kafka::{
    Admin, Bootstrap, EpochEnd, Fetched, Journal, KafkaError, ListedOffset, NewTopic, OffsetSpec,
    OutgoingRecord, Reader, TopicDescription, Watermarks, WriterSettings, at_least_once,
};
use tokio::sync::watch;

use crate::trail::{Log, TopicPartition};

/// Reads through the one reader that all sessions share, and writes state through a journal.
pub(crate) struct KafkaLog {
    reader: Reader,
    admin: Admin,
    journal: Journal,
}

impl KafkaLog {
    pub(crate) fn new(bootstrap: &Bootstrap) -> Self {
        let reader = Reader::new(bootstrap);
        let settings = WriterSettings::new(bootstrap);
        let journal = Journal::new(move || at_least_once(&settings));
        Self { admin: Admin::new(reader.clone()), reader, journal }
    }
}

#[async_trait]
impl Log for KafkaLog {
    async fn topic(&self, name: &str) -> Result<Option<TopicDescription>, KafkaError> {
        self.admin.describe_topic(name).await
    }

    async fn create_topic(&self, topic: &NewTopic) -> Result<bool, KafkaError> {
        self.admin.create_durable_topic(topic).await
    }

    async fn fetch(
        &self,
        at: &TopicPartition,
        offset: i64,
        max_bytes: u32,
    ) -> Result<Fetched, KafkaError> {
        self.reader.fetch(&at.topic, at.partition, offset, max_bytes).await
    }

    async fn watch(&self, at: &TopicPartition) -> Result<watch::Receiver<Watermarks>, KafkaError> {
        self.reader.watch(&at.topic, at.partition).await
    }

    async fn list_offset(
        &self,
        at: &TopicPartition,
        spec: OffsetSpec,
    ) -> Result<Option<ListedOffset>, KafkaError> {
        self.reader.list_offset(&at.topic, at.partition, spec).await
    }

    async fn epoch_end(
        &self,
        at: &TopicPartition,
        leader_epoch: i32,
    ) -> Result<EpochEnd, KafkaError> {
        self.reader.epoch_end(&at.topic, at.partition, leader_epoch).await
    }

    async fn put(&self, topic: &str, key: &str, value: Option<Vec<u8>>) -> Result<(), KafkaError> {
        let record = OutgoingRecord {
            topic: Arc::from(topic),
            partition: Some(0),
            key: Some(Bytes::copy_from_slice(key.as_bytes())),
            value: value.map(Bytes::from),
            headers: Vec::new(),
        };
        self.journal.write(vec![record]).await
    }

    async fn close(&self) {
        self.journal.close().await;
    }
}
