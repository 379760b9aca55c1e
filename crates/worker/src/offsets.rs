//! Source offsets, in the format of Kafka Connect's `offset.storage.topic`: key
//! `["NAME",{partition}]`, value `{offset}`, tombstone = reset. Headers `hw.tail` and
//! `hw.generation` are ours and may be absent (a hand edit, Kafka Connect).

use std::collections::BTreeMap;

use bytes::Bytes;
use highwater_connector::{
    GENERATION_HEADER, GenerationMark, SourceOffset, SourcePartition, TAIL_HEADER, Tail,
};
use highwater_kafka::{KafkaError, OutgoingRecord, ReadRecord};
use tokio::sync::Mutex;

use crate::cluster::Cluster;
use crate::replay::Replay;

/// Header of an offset record that an operator wrote: why.
const REASON_HEADER: &str = "hw.reason";

/// The newest offset record of a source partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct StoredOffset {
    pub(crate) partition: SourcePartition,
    /// `None` after a reset, and while only a generation is stored.
    pub(crate) offset: Option<SourceOffset>,
    pub(crate) mark: Option<GenerationMark>,
    pub(crate) tail: Tail,
    /// The last change that no task made, as far back as the topic goes.
    pub(crate) last_change: Option<LastChange>,
    /// What of the record cannot be read. It says nothing then, which is not the same as a reset.
    pub(crate) damage: Option<String>,
}

/// A change of an offset by an operator, or by another program.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct LastChange {
    /// When the log took it, in milliseconds.
    pub(crate) at_ms: i64,
    /// Why, if that was said.
    pub(crate) reason: String,
}

/// The topic, and what it says up to where it was read.
pub(crate) struct Offsets {
    topic: String,
    book: Mutex<Book>,
}

struct Book {
    replay: Replay,
    entries: Entries,
}

/// By connector, and by partition as text with sorted keys.
pub(crate) type Entries = BTreeMap<(String, String), StoredOffset>;

impl Offsets {
    pub(crate) async fn open(cluster: &Cluster, topic: &str) -> Result<Self, KafkaError> {
        let replay = Replay::open(&cluster.reader, &cluster.admin, topic).await?;
        let book = Mutex::new(Book { replay, entries: Entries::new() });
        Ok(Self { topic: topic.to_owned(), book })
    }

    pub(crate) fn topic(&self) -> &str {
        &self.topic
    }

    /// The newest record of one partition, as the log has it now.
    pub(crate) async fn find(
        &self,
        connector: &str,
        partition: &SourcePartition,
    ) -> Result<Option<StoredOffset>, KafkaError> {
        let mut book = self.book.lock().await;
        book.catch_up().await?;
        Ok(book.entries.get(&(connector.to_owned(), canonical(partition))).cloned())
    }

    /// The newest records of all partitions of a connector, as the log has them now.
    pub(crate) async fn all(&self, connector: &str) -> Result<Vec<StoredOffset>, KafkaError> {
        let mut book = self.book.lock().await;
        book.catch_up().await?;
        let entries = book.entries.iter().filter(|((name, _), _)| name == connector);
        Ok(entries.map(|(_, stored)| stored.clone()).collect())
    }
}

impl Book {
    async fn catch_up(&mut self) -> Result<(), KafkaError> {
        let Self { replay, entries } = self;
        replay.catch_up(&mut |record| apply(entries, &record)).await
    }
}

pub(crate) fn apply(entries: &mut Entries, record: &ReadRecord) {
    let key = record.key.as_deref().and_then(|key| serde_json::from_slice(key).ok());
    let Some((connector, partition)) = key else { return };
    let partition: SourcePartition = partition;
    let header = |name| record.header(name).map(Bytes::as_ref);
    let place = (connector, canonical(&partition));
    // A task's record always bears its generation.
    let last_change = match header(GENERATION_HEADER) {
        None => Some(LastChange {
            at_ms: record.timestamp,
            reason: String::from_utf8_lossy(header(REASON_HEADER).unwrap_or_default()).into_owned(),
        }),
        Some(_) => entries.get(&place).and_then(|stored| stored.last_change.clone()),
    };
    let mut damage = None;
    let offset: Option<SourceOffset> =
        kept(record.value.as_deref().map(serde_json::from_slice), &mut damage);
    let tail = kept(header(TAIL_HEADER).map(Tail::decode), &mut damage);
    let stored = StoredOffset {
        offset: offset.filter(|offset| !offset.0.is_empty()),
        mark: header(GENERATION_HEADER).and_then(GenerationMark::decode),
        tail: tail.unwrap_or_default(),
        damage: damage.map(|why| format!("record {} of the topic: {why}", record.offset)),
        last_change,
        partition,
    };
    entries.insert(place, stored);
}

/// What was read; an error is kept as the damage.
fn kept<T, E: ToString>(read: Option<Result<T, E>>, damage: &mut Option<String>) -> Option<T> {
    read?.map_err(|error| *damage = Some(error.to_string())).ok()
}

/// A partition as text that does not depend on the order of its keys.
fn canonical(partition: &SourcePartition) -> String {
    let sorted: BTreeMap<_, _> = partition.0.iter().collect();
    serde_json::to_string(&sorted).unwrap_or_default()
}

/// Key of the offset records of one partition.
pub(crate) fn key(connector: &str, partition: &SourcePartition) -> Bytes {
    serde_json::json!([connector, partition.0]).to_string().into_bytes().into()
}

/// An offset record of a running task. Before the first offset it holds an empty map: the
/// generation must be stored before a record bears it (rule P4).
pub(crate) fn task_record(
    topic: &str,
    key: &Bytes,
    offset: &SourceOffset,
    tail: &Tail,
    mark: &GenerationMark,
) -> OutgoingRecord {
    OutgoingRecord {
        topic: topic.into(),
        partition: None,
        key: Some(key.clone()),
        value: Some(offset.to_string().into_bytes().into()),
        headers: vec![
            (TAIL_HEADER.into(), tail.encode().into()),
            (GENERATION_HEADER.into(), mark.encode().into()),
        ],
    }
}

/// An offset record that an operator asked for: without `hw.generation`, so that the next start
/// mints one (rule P4), and without `hw.tail`.
pub(crate) fn edited_record(
    topic: &str,
    key: &Bytes,
    offset: Option<&SourceOffset>,
    reason: &str,
) -> OutgoingRecord {
    let reason =
        (!reason.is_empty()).then(|| (REASON_HEADER.into(), Bytes::from(reason.to_owned())));
    OutgoingRecord {
        topic: topic.into(),
        partition: None,
        key: Some(key.clone()),
        value: offset.map(|offset| offset.to_string().into_bytes().into()),
        headers: reason.into_iter().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater_connector::{Generation, TailEntry};
    use serde_json::json;

    fn partition() -> SourcePartition {
        serde_json::from_value(json!({ "server": "shop" })).unwrap()
    }

    fn offset() -> SourceOffset {
        serde_json::from_value(json!({ "lsn": 42, "snapshot": true })).unwrap()
    }

    fn read(record: OutgoingRecord) -> ReadRecord {
        ReadRecord {
            offset: 0,
            timestamp: 0,
            leader_epoch: 0,
            key: record.key,
            value: record.value,
            headers: record
                .headers
                .into_iter()
                .map(|(name, value)| (name.into_owned(), value))
                .collect(),
        }
    }

    fn find(entries: &Entries) -> StoredOffset {
        entries[&("a".to_owned(), canonical(&partition()))].clone()
    }

    #[test]
    fn the_key_is_kafka_connects() {
        assert_eq!(key("a", &partition()), br#"["a",{"server":"shop"}]"#.as_slice());
    }

    #[test]
    fn a_task_record_is_read_back_whole() {
        let mark =
            GenerationMark { generation: Generation::from_bits(7), fingerprint: "f".to_owned() };
        let tail = Tail(vec![TailEntry {
            topic: "shop".to_owned(),
            partition: 0,
            offset: 4,
            id: "i".to_owned(),
        }]);
        let mut entries = Entries::new();
        let key = key("a", &partition());
        apply(&mut entries, &read(task_record("o", &key, &offset(), &tail, &mark)));
        let stored = find(&entries);
        assert_eq!((stored.offset, stored.mark, stored.tail), (Some(offset()), Some(mark), tail));
    }

    #[test]
    fn an_edit_bears_no_generation_and_no_tail_but_its_reason() {
        let record = edited_record("o", &key("a", &partition()), Some(&offset()), "moved back");
        assert_eq!(record.headers, [(REASON_HEADER.into(), Bytes::from("moved back"))]);
        let mut entries = Entries::new();
        apply(&mut entries, &read(record));
        let stored = find(&entries);
        assert_eq!((stored.offset, stored.mark), (Some(offset()), None));
        assert_eq!(stored.tail, Tail::default());
        assert_eq!(stored.last_change.unwrap().reason, "moved back");
    }

    #[test]
    fn the_last_change_is_known_after_the_task_went_on() {
        let key = key("a", &partition());
        let mark =
            GenerationMark { generation: Generation::from_bits(7), fingerprint: "f".to_owned() };
        let mut entries = Entries::new();
        let task = || task_record("o", &key, &offset(), &Tail::default(), &mark);
        apply(&mut entries, &read(task()));
        assert_eq!(find(&entries).last_change, None);
        apply(&mut entries, &read(edited_record("o", &key, Some(&offset()), "moved back")));
        apply(&mut entries, &read(task()));
        assert_eq!(find(&entries).last_change.unwrap().reason, "moved back");
    }

    #[test]
    fn a_tombstone_and_an_empty_map_mean_that_nothing_was_read() {
        let mut entries = Entries::new();
        let key = key("a", &partition());
        apply(&mut entries, &read(edited_record("o", &key, Some(&offset()), "")));
        apply(&mut entries, &read(edited_record("o", &key, None, "")));
        assert_eq!(find(&entries).offset, None);
        let empty = SourceOffset::default();
        apply(&mut entries, &read(edited_record("o", &key, Some(&empty), "")));
        assert_eq!(find(&entries).offset, None);
    }

    #[test]
    fn what_cannot_be_read_is_damage_and_no_reset() {
        let key = key("a", &partition());
        let mut entries = Entries::new();
        let mut record = read(edited_record("o", &key, None, ""));
        for value in ["garbage", "[]", "5", "\"x\"", ""] {
            record.value = Some(value.into());
            apply(&mut entries, &record);
            assert!(find(&entries).damage.is_some(), "{value}");
        }
        record.value = Some("{\"lsn\":42}".into());
        record.headers = vec![(TAIL_HEADER.to_owned(), "garbage".into())];
        apply(&mut entries, &record);
        assert!(find(&entries).damage.is_some());
        record.headers.clear();
        apply(&mut entries, &record);
        assert_eq!(find(&entries).damage, None);
        record.value = None;
        apply(&mut entries, &record);
        assert_eq!((find(&entries).offset, find(&entries).damage), (None, None));
    }

    #[test]
    fn the_order_of_partition_keys_does_not_matter() {
        let one = serde_json::from_str(r#"{"a":1,"b":"x"}"#).unwrap();
        let other = serde_json::from_str(r#"{"b":"x","a":1}"#).unwrap();
        assert_eq!(canonical(&one), canonical(&other));
    }
}
