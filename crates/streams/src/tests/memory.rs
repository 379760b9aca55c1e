//! A log in memory that can be purged, cut, made anew and made unreachable.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use highwater_kafka::{
    EpochEnd, Fetched, KafkaError, ListedOffset, NewTopic, OffsetSpec, ReadRecord,
    TopicDescription, Watermarks,
};
use parking_lot::Mutex;
use tokio::sync::watch;
use uuid::Uuid;

use super::trails::TRAIL;
use crate::encoding::Encoding;
use crate::feed::View;
use crate::trail::{Log, OFFSET_OUT_OF_RANGE, TopicPartition};

/// Each further partition of a topic is a topic by itself, named as [`TopicPartition`] shows it.
#[derive(Default)]
pub(crate) struct MemoryLog {
    topics: Mutex<BTreeMap<String, Topic>>,
    away: AtomicBool,
    /// How long a fetch takes.
    fetch_time: Mutex<Duration>,
    pub(crate) largest_fetch: AtomicUsize,
}

struct Topic {
    id: Uuid,
    partitions: i32,
    records: BTreeMap<i64, ReadRecord>,
    end: i64,
    /// First offset of each epoch.
    epochs: BTreeMap<i32, i64>,
    edges: watch::Sender<Watermarks>,
    log_start: i64,
}

impl Topic {
    fn new(partitions: i32) -> Self {
        Self {
            id: Uuid::new_v4(),
            partitions,
            records: BTreeMap::new(),
            end: 0,
            epochs: BTreeMap::from([(0, 0)]),
            edges: watch::Sender::new(Watermarks::default()),
            log_start: 0,
        }
    }

    fn epoch(&self) -> i32 {
        *self.epochs.keys().last().unwrap()
    }

    fn publish(&self) {
        let (log_start, high_watermark, last_stable) = (self.log_start, self.end, self.end);
        self.edges.send_replace(Watermarks { log_start, high_watermark, last_stable });
    }
}

impl MemoryLog {
    pub(crate) fn new() -> Arc<Self> {
        Arc::default()
    }

    pub(crate) fn make(&self, topic: &str, partitions: i32) {
        self.topics.lock().insert(topic.to_owned(), Topic::new(partitions));
    }

    pub(crate) fn append(&self, topic: &str, mut record: ReadRecord) -> i64 {
        let mut topics = self.topics.lock();
        let topic = topics.entry(topic.to_owned()).or_insert_with(|| Topic::new(1));
        record.offset = topic.end;
        record.leader_epoch = topic.epoch();
        topic.records.insert(topic.end, record);
        topic.end += 1;
        topic.publish();
        topic.end - 1
    }

    /// Retention: everything below `log_start` goes. Nobody is told: a client that waits at the end
    /// learns of it from its next fetch.
    pub(crate) fn purge(&self, topic: &str, log_start: i64) {
        let mut topics = self.topics.lock();
        let topic = topics.get_mut(topic).unwrap();
        topic.records.retain(|offset, _| *offset >= log_start);
        topic.log_start = log_start;
    }

    /// Compaction: one record goes.
    pub(crate) fn compact_away(&self, topic: &str, offset: i64) {
        self.topics.lock().get_mut(topic).unwrap().records.remove(&offset);
    }

    /// An unclean start: everything from `end` on is lost, and a new epoch begins.
    pub(crate) fn cut(&self, topic: &str, end: i64) {
        let mut topics = self.topics.lock();
        let topic = topics.get_mut(topic).unwrap();
        topic.records.retain(|offset, _| *offset < end);
        topic.end = end;
        let epoch = topic.epoch() + 1;
        topic.epochs.insert(epoch, end);
        topic.publish();
    }

    /// A copy of the log that lags: the end is lower, the epoch the same.
    pub(crate) fn lag(&self, topic: &str, end: i64) -> Vec<ReadRecord> {
        let mut topics = self.topics.lock();
        let topic = topics.get_mut(topic).unwrap();
        let late = topic.records.split_off(&end).into_values().collect();
        topic.end = end;
        topic.publish();
        late
    }

    pub(crate) fn delete(&self, topic: &str) {
        self.topics.lock().remove(topic);
    }

    /// How many watch the topic.
    pub(crate) fn watchers(&self, topic: &str) -> usize {
        self.topics.lock()[topic].edges.receiver_count()
    }

    pub(crate) fn set_away(&self, away: bool) {
        self.away.store(away, Ordering::SeqCst);
    }

    /// The view of a stream `orders` of the trail.
    pub(crate) fn view(&self, encoding: Encoding) -> View {
        let (name, id) = (TRAIL.to_owned(), self.topic_id(TRAIL));
        let topic = TopicDescription { name, id, partitions: 1, internal: false };
        View::new("orders", &topic, 0, encoding)
    }

    pub(crate) fn set_fetch_time(&self, time: Duration) {
        *self.fetch_time.lock() = time;
    }

    pub(crate) fn records(&self, topic: &str) -> Vec<ReadRecord> {
        self.topics.lock()[topic].records.values().cloned().collect()
    }

    pub(crate) fn topic_id(&self, topic: &str) -> Uuid {
        self.topics.lock()[topic].id
    }

    fn with<T>(&self, name: &str, ask: impl FnOnce(&Topic) -> T) -> Result<T, KafkaError> {
        if self.away.load(Ordering::SeqCst) {
            return Err(KafkaError::Unreachable {
                bootstrap: "memory".to_owned(),
                detail: "away".to_owned(),
            });
        }
        let topics = self.topics.lock();
        let topic = topics
            .get(name)
            .ok_or_else(|| KafkaError::UnknownPartition { topic: name.to_owned(), partition: 0 })?;
        Ok(ask(topic))
    }
}

#[async_trait]
impl Log for MemoryLog {
    async fn topic(&self, name: &str) -> Result<Option<TopicDescription>, KafkaError> {
        let described = self.with(name, |topic| TopicDescription {
            name: name.to_owned(),
            id: topic.id,
            partitions: topic.partitions,
            internal: false,
        });
        match described {
            Err(KafkaError::UnknownPartition { .. }) => Ok(None),
            other => other.map(Some),
        }
    }

    async fn create_topic(&self, topic: &NewTopic) -> Result<bool, KafkaError> {
        if self.topic(&topic.name).await?.is_some() {
            return Ok(false);
        }
        self.make(&topic.name, topic.partitions);
        Ok(true)
    }

    async fn fetch(
        &self,
        at: &TopicPartition,
        offset: i64,
        max_bytes: u32,
    ) -> Result<Fetched, KafkaError> {
        let time = *self.fetch_time.lock();
        if !time.is_zero() {
            tokio::time::sleep(time).await;
        }
        self.with(&at.to_string(), |topic| {
            if !(topic.log_start..=topic.end).contains(&offset) {
                return Err(KafkaError::Refused {
                    what: format!("fetch at offset {offset}"),
                    code: OFFSET_OUT_OF_RANGE,
                    name: "OFFSET_OUT_OF_RANGE",
                    detail: String::new(),
                });
            }
            let mut records = Vec::new();
            let mut bytes = 0;
            for record in topic.records.range(offset..).map(|(_, record)| record) {
                if !records.is_empty() && bytes >= max_bytes as usize {
                    break;
                }
                bytes += record.value.as_ref().map_or(0, |value| value.len());
                records.push(record.clone());
            }
            self.largest_fetch.fetch_max(bytes, Ordering::SeqCst);
            let whole = topic.records.range(offset..).count() == records.len();
            let behind = records.last().map_or(offset, |record| record.offset + 1);
            let next_offset = if whole { topic.end } else { behind };
            Ok(Fetched { records, next_offset, watermarks: *topic.edges.borrow() })
        })?
    }

    async fn watch(&self, at: &TopicPartition) -> Result<watch::Receiver<Watermarks>, KafkaError> {
        self.with(&at.to_string(), |topic| topic.edges.subscribe())
    }

    async fn list_offset(
        &self,
        at: &TopicPartition,
        spec: OffsetSpec,
    ) -> Result<Option<ListedOffset>, KafkaError> {
        self.with(&at.to_string(), |topic| {
            let offset = match spec {
                OffsetSpec::Earliest => topic.log_start,
                _ => topic.end,
            };
            Some(ListedOffset { offset, timestamp: -1, leader_epoch: Some(topic.epoch()) })
        })
    }

    async fn epoch_end(
        &self,
        at: &TopicPartition,
        leader_epoch: i32,
    ) -> Result<EpochEnd, KafkaError> {
        self.with(&at.to_string(), |topic| {
            let found = topic.epochs.range(..=leader_epoch).next_back();
            let next = topic.epochs.range(leader_epoch + 1..).next();
            EpochEnd {
                leader_epoch: found.map_or(-1, |(epoch, _)| *epoch),
                end_offset: found.map_or(-1, |_| next.map_or(topic.end, |(_, start)| *start)),
            }
        })
    }

    async fn put(&self, topic: &str, key: &str, value: Option<Vec<u8>>) -> Result<(), KafkaError> {
        self.with(topic, |_| ())?;
        let record = ReadRecord {
            offset: 0,
            timestamp: 0,
            leader_epoch: 0,
            key: Some(key.as_bytes().to_vec().into()),
            value: value.map(Into::into),
            headers: Vec::new(),
        };
        self.append(topic, record);
        Ok(())
    }
}
