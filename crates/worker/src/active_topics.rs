//! Topics that connectors have used since they were made or their list was reset (KIP-558), in the
//! format of Kafka Connect's `status.storage.topic`: key `status-topic-TOPIC:connector-NAME`, value
//! `{topic: {name, connector, task, discoverTimestamp}}`, tombstone = forgotten.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use highwater_kafka::{Journal, KafkaError, OutgoingRecord};
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::json;

use crate::cluster::Cluster;
use crate::journal::{journal, record};
use crate::settings::{TopicTracking, WorkerConfig};

const TOPIC: &str = "status-topic-";
/// No topic's name has a colon in it.
const CONNECTOR: &str = ":connector-";

/// Topics of each connector.
type Known = BTreeMap<String, BTreeSet<String>>;

/// See the module's text.
pub(crate) struct ActiveTopics {
    status_topic: String,
    /// Whether anything is noted.
    tracking: TopicTracking,
    journal: Journal,
    known: Mutex<Known>,
    /// How often something was forgotten, so that tasks tell again what they use.
    resets: AtomicU64,
}

impl ActiveTopics {
    /// None yet: they come with [`Self::apply`].
    pub(crate) fn new(cluster: &Cluster, config: &WorkerConfig) -> Self {
        let (status_topic, tracking) = (config.status_topic.clone(), config.topic_tracking);
        let (journal, known) = (journal(cluster), Mutex::default());
        Self { status_topic, tracking, journal, known, resets: AtomicU64::new(0) }
    }

    /// Takes in one record of the topic, whichever worker wrote it.
    pub(crate) fn apply(&self, key: Option<&[u8]>, used: bool) {
        if apply(&mut self.known.lock(), key, used) == Applied::Forgotten {
            self.resets.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Topics of a connector; none of one that does not exist.
    pub(crate) fn of(&self, connector: &str) -> BTreeSet<String> {
        self.known.lock().get(connector).cloned().unwrap_or_default()
    }

    /// A task of a connector uses a topic. That it does is no reason to stop when the log does not
    /// take it; the next start says it again.
    pub(crate) async fn note(&self, connector: &str, task: u32, topic: &str) {
        if self.tracking == TopicTracking::Off {
            return;
        }
        let new =
            self.known.lock().entry(connector.to_owned()).or_default().insert(topic.to_owned());
        if !new {
            return;
        }
        let said = seen(&self.status_topic, connector, task, topic, Timestamp::now());
        if let Err(error) = self.journal.write(vec![said]).await {
            tracing::warn!(topic, %error, "that a connector uses a topic is not in the log");
            if let Some(topics) = self.known.lock().get_mut(connector) {
                topics.remove(topic);
            }
        }
    }

    /// Those of a task.
    pub(crate) fn of_task(self: &Arc<Self>, connector: &str, task: u32) -> UsedTopics {
        let (all, connector) = (Arc::clone(self), connector.to_owned());
        UsedTopics { all, connector, task, resets: 0, told: HashSet::new() }
    }

    /// Closes the connection to the log.
    pub(crate) async fn close(&self) {
        self.journal.close().await;
    }

    /// Forgets a connector's topics, until they are used again.
    ///
    /// # Errors
    /// When the log does not take it; nothing is forgotten then.
    pub(crate) async fn reset(&self, connector: &str) -> Result<(), KafkaError> {
        let topics = self.of(connector);
        let gone = |topic| record(&self.status_topic, &key(connector, topic), None);
        let records: Vec<_> = topics.iter().map(|topic| gone(topic)).collect();
        if !records.is_empty() {
            self.journal.write(records).await?;
        }
        self.known.lock().remove(connector);
        self.resets.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// As [`Self::reset`], of a connector that is gone.
    pub(crate) async fn forget(&self, connector: &str) {
        if let Err(error) = self.reset(connector).await {
            tracing::warn!(%error, "the topics of a deleted connector stay in the log");
        }
    }
}

/// The topics of one task, which tells of each once.
pub(crate) struct UsedTopics {
    all: Arc<ActiveTopics>,
    connector: String,
    task: u32,
    /// Of which reset the told ones are.
    resets: u64,
    told: HashSet<Arc<str>>,
}

impl UsedTopics {
    /// The task uses a topic. Cheap when that is known.
    pub(crate) async fn note(&mut self, topic: &Arc<str>) {
        let resets = self.all.resets.load(Ordering::Relaxed);
        if self.resets != resets {
            self.resets = resets;
            self.told.clear();
        }
        if self.told.insert(Arc::clone(topic)) {
            self.all.note(&self.connector, self.task, topic).await;
        }
    }
}

fn key(connector: &str, topic: &str) -> String {
    format!("{TOPIC}{topic}{CONNECTOR}{connector}")
}

fn seen(
    status_topic: &str,
    connector: &str,
    task: u32,
    topic: &str,
    at: Timestamp,
) -> OutgoingRecord {
    let value = json!({ "topic": {
        "name": topic,
        "connector": connector,
        "task": task,
        "discoverTimestamp": at.as_millisecond(),
    } });
    record(status_topic, &key(connector, topic), Some(&value))
}

/// What a record of the topic did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Applied {
    Kept,
    /// A topic that was known is not any more.
    Forgotten,
}

/// Takes in one record of the topic.
fn apply(known: &mut Known, key: Option<&[u8]>, used: bool) -> Applied {
    let key = key.and_then(|key| std::str::from_utf8(key).ok());
    let Some((topic, connector)) =
        key.and_then(|key| key.strip_prefix(TOPIC)?.split_once(CONNECTOR))
    else {
        return Applied::Kept;
    };
    let topics = known.entry(connector.to_owned()).or_default();
    if used {
        topics.insert(topic.to_owned());
        return Applied::Kept;
    }
    if topics.remove(topic) { Applied::Forgotten } else { Applied::Kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_format_is_kafka_connects() {
        let said = seen("s", "a:connector-b", 3, "lines", Timestamp::from_millisecond(7).unwrap());
        let key = String::from_utf8(said.key.unwrap().to_vec()).unwrap();
        assert_eq!(key, "status-topic-lines:connector-a:connector-b");
        let value: serde_json::Value = serde_json::from_slice(&said.value.unwrap()).unwrap();
        let expected = json!({ "name": "lines", "connector": "a:connector-b", "task": 3, "discoverTimestamp": 7 });
        assert_eq!(value["topic"], expected);
    }

    #[test]
    fn a_replay_knows_what_is_used() {
        let mut known = Known::new();
        for (key, used) in [
            ("status-topic-t:connector-a", true),
            ("status-topic-u:connector-a", true),
            ("status-topic-t:connector-b:connector-c", true),
            ("status-topic-u:connector-a", false),
            ("status-connector-a", true),
            ("status-topic-t", true),
        ] {
            apply(&mut known, Some(key.as_bytes()), used);
        }
        let only = |topic: &str| BTreeSet::from([topic.to_owned()]);
        assert_eq!(
            known,
            [("a".to_owned(), only("t")), ("b:connector-c".to_owned(), only("t"))].into()
        );
    }
}
