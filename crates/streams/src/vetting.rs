//! Whether a topic can be streamed, asked when a stream is made.

use axum::http::StatusCode;
use highwater_kafka::{KafkaError, OffsetSpec, ReadRecord};

use crate::change::Change;
use crate::refusal::Refusal;
use crate::resource::Resource;
use crate::trail::{Log, TopicPartition};

/// Checks that the topic exists, has the partition, and holds records that can be shown at both ends.
///
/// # Errors
/// What is wrong with it, or that the log cannot be asked.
pub(crate) async fn check(log: &dyn Log, resource: &Resource) -> Result<(), Refusal> {
    let source = resource.source();
    let topic = &source.topic;
    if topic.starts_with("highwater.") || topic.starts_with("__") {
        return Err(refused(
            "trail_internal",
            format!("the topic {topic} is internal to the server"),
            "name a topic that a connector writes: its topic.prefix, or one of a table",
        ));
    }
    let described = log.topic(topic).await.map_err(|error| Refusal::log_unavailable(&error))?;
    let described = described.ok_or_else(|| {
        refused(
            "trail_missing",
            format!("the topic {topic} does not exist"),
            "start the connector that writes it, or name another topic in source",
        )
    })?;
    check_partition(resource, described.partitions)?;
    check_records(log, &source).await
}

/// A stream reads one partition, and which one is never guessed.
fn check_partition(resource: &Resource, partitions: i32) -> Result<(), Refusal> {
    let TopicPartition { topic, partition } = resource.source();
    let last = partitions - 1;
    if partition > last {
        return Err(refused(
            "partition_missing",
            format!(
                "the topic {topic} has {partitions} partitions, and {partition} is none of them"
            ),
            format!("name a source.partition from 0 to {last}"),
        ));
    }
    if partitions > 1 && !resource.names_partition() {
        return Err(refused(
            "trail_partitioned",
            format!("the topic {topic} has {partitions} partitions, and a stream reads one"),
            format!(
                "make a stream for each, as {{\"topic\": \"{topic}\", \"partition\": 0 to {last}}} in \
                 source; or capture with topic.routing=trail, whose topic has one"
            ),
        ));
    }
    Ok(())
}

async fn check_records(log: &dyn Log, source: &TopicPartition) -> Result<(), Refusal> {
    let ends = ends(log, source).await.map_err(|error| Refusal::log_unavailable(&error))?;
    match ends.iter().find_map(|record| Change::decode(record).err()) {
        None => Ok(()),
        Some(error) => Err(refused(
            "trail_undecodable",
            format!("topic {source}: {error}"),
            "name a topic that a connector of this product writes as JSON without schema",
        )),
    }
}

/// The first and the last record; neither when the topic is empty.
async fn ends(log: &dyn Log, at: &TopicPartition) -> Result<Vec<ReadRecord>, KafkaError> {
    let start = log.list_offset(at, OffsetSpec::Earliest).await?.map_or(0, |found| found.offset);
    let end = log.list_offset(at, OffsetSpec::Latest).await?.map_or(0, |found| found.offset);
    let mut records = Vec::new();
    for offset in [start, end - 1] {
        if (start..end).contains(&offset) {
            records.extend(log.fetch(at, offset, 1).await?.records.into_iter().next());
        }
    }
    Ok(records)
}

fn refused(code: &'static str, what: String, remedy: impl Into<String>) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, code, what, remedy)
        .keeping("everything: no stream was made or changed")
}
