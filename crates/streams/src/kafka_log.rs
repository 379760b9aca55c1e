//! The log over the Kafka client.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use highwater_kafka::{
    Admin, EpochEnd, Fetched, KafkaError, ListedOffset, NewTopic, OffsetSpec, OutgoingRecord,
    Reader, TopicDescription, Watermarks, Writer, WriterSettings, at_least_once,
};
use tokio::sync::{Mutex, watch};

use crate::trail::Log;

/// Partition of every trail (rule R2) and of the state topic.
const PARTITION: i32 = 0;

/// Reads through the one reader that all sessions share, and writes state through a writer that is
/// made when first needed.
pub(crate) struct KafkaLog {
    reader: Reader,
    admin: Admin,
    writer: Mutex<Option<Box<dyn Writer>>>,
}

impl KafkaLog {
    pub(crate) fn new(bootstrap: &str) -> Self {
        let reader = Reader::new(bootstrap);
        Self { admin: Admin::new(reader.clone()), reader, writer: Mutex::new(None) }
    }

    async fn write(&self, record: OutgoingRecord) -> Result<(), KafkaError> {
        let mut slot = self.writer.lock().await;
        let mut writer = match slot.take() {
            Some(writer) => writer,
            None => at_least_once(&WriterSettings::new(self.reader.bootstrap()))?,
        };
        writer.begin().await?;
        writer.send(record).await?;
        writer.commit().await?;
        // Nobody else takes them, and they must not pile up.
        writer.acknowledged()?;
        // Not put back after an error: its fate is unknown and it must be made anew.
        *slot = Some(writer);
        Ok(())
    }
}

#[async_trait]
impl Log for KafkaLog {
    async fn topic(&self, name: &str) -> Result<Option<TopicDescription>, KafkaError> {
        self.admin.describe_topic(name).await
    }

    async fn create_topic(&self, topic: &NewTopic) -> Result<bool, KafkaError> {
        self.admin.create_topic(topic).await
    }

    async fn fetch(&self, topic: &str, offset: i64, max_bytes: u32) -> Result<Fetched, KafkaError> {
        self.reader.fetch(topic, PARTITION, offset, max_bytes).await
    }

    async fn watch(&self, topic: &str) -> Result<watch::Receiver<Watermarks>, KafkaError> {
        self.reader.watch(topic, PARTITION).await
    }

    async fn list_offset(
        &self,
        topic: &str,
        spec: OffsetSpec,
    ) -> Result<Option<ListedOffset>, KafkaError> {
        self.reader.list_offset(topic, PARTITION, spec).await
    }

    async fn epoch_end(&self, topic: &str, leader_epoch: i32) -> Result<EpochEnd, KafkaError> {
        self.reader.epoch_end(topic, PARTITION, leader_epoch).await
    }

    async fn put(&self, topic: &str, key: &str, value: Option<Vec<u8>>) -> Result<(), KafkaError> {
        self.write(OutgoingRecord {
            topic: Arc::from(topic),
            partition: Some(PARTITION),
            key: Some(Bytes::copy_from_slice(key.as_bytes())),
            value: value.map(Bytes::from),
            headers: Vec::new(),
        })
        .await
    }

    async fn close(&self) {
        self.writer.lock().await.take();
    }
}
