//! Table descriptions (rule R4), read from the schema topic beside a trail or beside the topics of
//! tables: both are named by the connector's server.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use highwater_connector::{TableDescription, TableKey, schema_topic};
use highwater_kafka::{KafkaError, OffsetSpec, ReadRecord};
use parking_lot::{Mutex as SyncMutex, RwLock};
use tokio::sync::Mutex;
use tokio::time::Instant;
use uuid::Uuid;

use crate::trail::{Log, OFFSET_OUT_OF_RANGE, TopicPartition};

/// How often a description that is not there yet is looked for.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The descriptions that sessions are using, by schema topic and its id: a topic made anew shares
/// nothing with the one before. What nobody uses any longer is forgotten.
pub(crate) struct Descriptions {
    log: Arc<dyn Log>,
    used: SyncMutex<HashMap<(String, Uuid), Weak<Tables>>>,
}

impl Descriptions {
    pub(crate) fn new(log: Arc<dyn Log>) -> Self {
        Self { log, used: SyncMutex::default() }
    }

    /// The descriptions of a server's tables.
    ///
    /// # Errors
    /// When the log cannot be asked which topic it is.
    pub(crate) async fn of_server(&self, server: &str) -> Result<Arc<Tables>, KafkaError> {
        let topic = schema_topic(server);
        let id = self.log.topic(&topic).await?.map_or(Uuid::nil(), |topic| topic.id);
        let mut used = self.used.lock();
        if let Some(tables) = used.get(&(topic.clone(), id)).and_then(Weak::upgrade) {
            return Ok(tables);
        }
        used.retain(|_, tables| tables.strong_count() > 0);
        let tables = Arc::new(Tables::new(self.log.clone(), &topic));
        used.insert((topic, id), Arc::downgrade(&tables));
        Ok(tables)
    }
}

/// All descriptions in one schema topic, shared by sessions.
pub(crate) struct Tables {
    log: Arc<dyn Log>,
    source: TopicPartition,
    known: RwLock<HashMap<TableKey, Arc<TableDescription>>>,
    /// Offset to read on from.
    next: Mutex<i64>,
}

impl Tables {
    fn new(log: Arc<dyn Log>, topic: &str) -> Self {
        let source = TopicPartition::first(topic);
        Self { log, source, known: RwLock::default(), next: Mutex::new(0) }
    }

    pub(crate) fn topic(&self) -> &str {
        &self.source.topic
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
                tracing::debug!(topic = self.source.topic, %error, "table descriptions not readable now");
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
            let fetched = match self.log.fetch(&self.source, *next, AT_ONCE).await {
                Err(error) if error.code() == Some(OFFSET_OUT_OF_RANGE) => {
                    *next = self.log_start().await?;
                    self.log.fetch(&self.source, *next, AT_ONCE).await?
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
        let earliest = self.log.list_offset(&self.source, OffsetSpec::Earliest).await?;
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
                topic = self.source.topic,
                offset = record.offset,
                %error,
                "unreadable table description passed over"
            ),
        }
    }
}
