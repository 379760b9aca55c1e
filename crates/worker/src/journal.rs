//! Writes records of state and waits until the log holds them.

use highwater_kafka::{KafkaError, OutgoingRecord, Writer};
use tokio::sync::Mutex;

use crate::cluster::Cluster;

/// The writer behind configurations, statuses and edited offsets. One write at a time.
pub(crate) struct Journal {
    cluster: Cluster,
    writer: Mutex<Option<Box<dyn Writer>>>,
}

/// Largest record of state: a configuration with a generous certificate in it.
const MAX_RECORD_BYTES: usize = 4 << 20;

impl Journal {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        Self { cluster: cluster.clone(), writer: Mutex::new(None) }
    }

    /// Writes `records` in order; on return the log holds all of them.
    ///
    /// # Errors
    /// The outcome is then unknown, and the next write uses a new writer.
    pub(crate) async fn write(&self, records: Vec<OutgoingRecord>) -> Result<(), KafkaError> {
        let mut slot = self.writer.lock().await;
        let mut writer = match slot.take() {
            Some(writer) => writer,
            None => self.cluster.writer(MAX_RECORD_BYTES)?,
        };
        writer.begin().await?;
        for record in records {
            writer.send(record).await?;
        }
        writer.commit().await?;
        writer.acknowledged()?;
        *slot = Some(writer);
        Ok(())
    }

    /// Closes the connection to the log. A write that comes later opens another one.
    pub(crate) async fn close(&self) {
        self.writer.lock().await.take();
    }
}

/// A record of a topic of state: text key, JSON value or tombstone.
pub(crate) fn record(topic: &str, key: &str, value: Option<&serde_json::Value>) -> OutgoingRecord {
    OutgoingRecord {
        topic: topic.into(),
        partition: None,
        key: Some(key.to_owned().into_bytes().into()),
        value: value.map(|value| value.to_string().into_bytes().into()),
        headers: Vec::new(),
    }
}
