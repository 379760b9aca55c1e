//! Table descriptions of one trail (rule R4), read from the schema topic beside it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use highwater_connector::{TableDescription, TableKey, schema_topic};
use highwater_kafka::{KafkaError, OffsetSpec, ReadRecord};
use parking_lot::RwLock;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::trail::{Log, OFFSET_OUT_OF_RANGE};

/// How often a description that is not there yet is looked for.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// All descriptions of a trail, shared by its sessions.
pub(crate) struct Tables {
    log: Arc<dyn Log>,
    topic: String,
    known: RwLock<HashMap<TableKey, Arc<TableDescription>>>,
    /// Offset to read on from.
    next: Mutex<i64>,
}

impl Tables {
    pub(crate) fn of_trail(log: Arc<dyn Log>, trail: &str) -> Self {
        Self { log, topic: schema_topic(trail), known: RwLock::default(), next: Mutex::new(0) }
    }

    pub(crate) fn topic(&self) -> &str {
        &self.topic
    }

    /// A description, waited for if it is not there yet; `None` when it did not come.
    pub(crate) async fn get(
        &self,
        key: &TableKey,
        wait: Duration,
    ) -> Option<Arc<TableDescription>> {
        let deadline = Instant::now() + wait;
        loop {
            if let Some(table) = self.known(key) {
                return Some(table);
            }
            if let Err(error) = self.read_on().await {
                tracing::debug!(topic = self.topic, %error, "table descriptions not readable now");
            }
            match self.known(key) {
                None if Instant::now() < deadline => tokio::time::sleep(LOOK_AGAIN).await,
                found => return found,
            }
        }
    }

    fn known(&self, key: &TableKey) -> Option<Arc<TableDescription>> {
        self.known.read().get(key).cloned()
    }

    /// Reads what came since the last time. Callers wait for one another, so that each record is
    /// read once.
    async fn read_on(&self) -> Result<(), KafkaError> {
        const AT_ONCE: u32 = 1 << 20;
        let mut next = self.next.lock().await;
        loop {
            let fetched = match self.log.fetch(&self.topic, *next, AT_ONCE).await {
                Err(error) if error.code() == Some(OFFSET_OUT_OF_RANGE) => {
                    *next = self.log_start().await?;
                    self.log.fetch(&self.topic, *next, AT_ONCE).await?
                }
                other => other?,
            };
            fetched.records.iter().for_each(|record| self.take(record));
            if fetched.next_offset <= *next {
                return Ok(());
            }
            *next = fetched.next_offset;
        }
    }

    async fn log_start(&self) -> Result<i64, KafkaError> {
        let earliest = self.log.list_offset(&self.topic, OffsetSpec::Earliest).await?;
        Ok(earliest.map_or(0, |earliest| earliest.offset))
    }

    fn take(&self, record: &ReadRecord) {
        let Some(key) = record.key.as_deref().and_then(|key| serde_json::from_slice(key).ok())
        else {
            return;
        };
        let table = record.value.as_deref().map(serde_json::from_slice::<TableDescription>);
        match table {
            Some(Ok(table)) => drop(self.known.write().insert(key, Arc::new(table))),
            None => drop(self.known.write().remove(&key)),
            Some(Err(error)) => tracing::warn!(
                topic = self.topic,
                offset = record.offset,
                %error,
                "unreadable table description passed over"
            ),
        }
    }
}
