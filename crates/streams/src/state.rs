//! Stream resources in their compacted topic: key the stream's name, value its configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_kafka::{Fetched, KafkaError, NewTopic, OffsetSpec, ReadRecord};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::StreamsError;
use crate::registry::Stream;
use crate::resource::Resource;
use crate::trail::{Log, TopicPartition};

/// Version of the stored form.
const VERSION: u8 = 1;

#[derive(Serialize, Deserialize)]
struct Stored {
    v: u8,
    stream: Value,
}

/// A stored stream that this release cannot read. It is refused by name; the others work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Unreadable {
    pub(crate) stream: String,
    /// The topic of state.
    pub(crate) topic: String,
    pub(crate) offset: i64,
    /// What is wrong.
    pub(crate) detail: String,
}

/// What the topic of state holds.
#[derive(Default)]
pub(crate) struct Restored {
    pub(crate) streams: Vec<Arc<Stream>>,
    pub(crate) unreadable: Vec<Unreadable>,
}

/// Makes the topic when it is missing, and reads the streams that it holds.
pub(crate) async fn restore(log: &dyn Log, topic: &str) -> Result<Restored, StreamsError> {
    let failed = |source| StreamsError::State { topic: topic.to_owned(), source };
    let new = NewTopic {
        // It is read whole at start: small segments have compaction keep it small.
        configs: [
            ("cleanup.policy".to_owned(), "compact".to_owned()),
            ("segment.bytes".to_owned(), "16777216".to_owned()),
            ("segment.ms".to_owned(), "86400000".to_owned()),
        ]
        .into(),
        ..NewTopic::of_one(topic)
    };
    log.create_topic(&new).await.map_err(failed)?;
    let newest = read_newest(log, topic).await.map_err(failed)?;
    let mut restored = Restored::default();
    for (name, record) in &newest {
        match parse(record) {
            Ok(resource) => restored.streams.push(Stream::new(name, resource)),
            Err(detail) => restored.unreadable.push(unreadable(topic, name, record, detail)),
        }
    }
    Ok(restored)
}

fn unreadable(topic: &str, name: &str, record: &ReadRecord, detail: String) -> Unreadable {
    tracing::error!(stream = name, topic, offset = record.offset, detail, "unreadable stream");
    let (stream, topic) = (name.to_owned(), topic.to_owned());
    Unreadable { stream, topic, offset: record.offset, detail }
}

/// The newest record of each name.
async fn read_newest(
    log: &dyn Log,
    topic: &str,
) -> Result<BTreeMap<String, ReadRecord>, KafkaError> {
    const AT_ONCE: u32 = 1 << 20;
    let at = TopicPartition::first(topic);
    let end = log.list_offset(&at, OffsetSpec::Latest).await?.map_or(0, |end| end.offset);
    let start = log.list_offset(&at, OffsetSpec::Earliest).await?;
    let mut next = start.map_or(0, |start| start.offset);
    let mut newest = BTreeMap::new();
    while next < end {
        let Fetched { records, next_offset, watermarks } = log.fetch(&at, next, AT_ONCE).await?;
        if next_offset <= next && watermarks.last_stable >= end {
            // Compaction has left nothing from here to the end.
            break;
        }
        if next_offset <= next {
            return Err(KafkaError::Malformed {
                what: format!("topic {topic} at offset {next}"),
                detail: format!("nothing can be read there, though the log ends at {end}"),
            });
        }
        next = next_offset;
        for record in records {
            let name = String::from_utf8_lossy(record.key.as_deref().unwrap_or_default());
            match record.value {
                Some(_) => drop(newest.insert(name.into_owned(), record)),
                None => drop(newest.remove(name.as_ref())),
            }
        }
    }
    Ok(newest)
}

pub(crate) fn parse(record: &ReadRecord) -> Result<Resource, String> {
    let value = record.value.as_deref().unwrap_or_default();
    let stored: Stored = serde_json::from_slice(value).map_err(|error| error.to_string())?;
    if stored.v > VERSION {
        return Err(format!("it has version {}, this release reads up to {VERSION}", stored.v));
    }
    Resource::parse(&stored.stream).map_err(|problems| {
        problems
            .iter()
            .map(|problem| format!("{} {}", problem.attribute, problem.message))
            .collect::<Vec<_>>()
            .join("; ")
    })
}

/// Stores a stream; returns once it is safe.
pub(crate) async fn store(
    log: &dyn Log,
    topic: &str,
    name: &str,
    resource: &Resource,
) -> Result<(), KafkaError> {
    let stored = Stored { v: VERSION, stream: resource.to_json() };
    // A JSON value always serialises.
    log.put(topic, name, Some(serde_json::to_vec(&stored).unwrap_or_default())).await
}

/// Removes a stream; returns once that is safe.
pub(crate) async fn remove(log: &dyn Log, topic: &str, name: &str) -> Result<(), KafkaError> {
    log.put(topic, name, None).await
}
