//! Whether a topic can be streamed, asked when a stream is made.

use axum::http::StatusCode;
use highwater_kafka::{KafkaError, OffsetSpec, ReadRecord};

use crate::change::Change;
use crate::refusal::Refusal;
use crate::trail::Log;

/// Checks that the topic exists, has one partition, and holds records of a trail at both ends.
///
/// # Errors
/// What is wrong with it, or that the log cannot be asked.
pub(crate) async fn check(log: &dyn Log, topic: &str) -> Result<(), Refusal> {
    if topic.starts_with("highwater.") || topic.starts_with("__") {
        return Err(refused(
            "trail_internal",
            format!("the topic {topic} is internal to the server"),
            "name the topic that a connector writes: its topic.prefix",
        ));
    }
    let described = log.topic(topic).await.map_err(|error| Refusal::log_unavailable(&error))?;
    match described {
        None => Err(refused(
            "trail_missing",
            format!("the topic {topic} does not exist"),
            "start the connector that writes it, or name another topic in source.trail",
        )),
        Some(described) if described.partitions != 1 => Err(refused(
            "trail_partitioned",
            format!(
                "the topic {topic} has {} partitions, and a stream reads one",
                described.partitions
            ),
            "name the topic of a connector with topic.routing=trail",
        )),
        Some(_) => check_records(log, topic).await,
    }
}

async fn check_records(log: &dyn Log, topic: &str) -> Result<(), Refusal> {
    let ends = ends(log, topic).await.map_err(|error| Refusal::log_unavailable(&error))?;
    match ends.iter().find_map(|record| Change::decode(record).err()) {
        None => Ok(()),
        Some(error) => Err(refused(
            "trail_undecodable",
            format!("topic {topic}: {error}"),
            "name a topic that a connector of this product writes",
        )),
    }
}

/// The first and the last record; neither when the topic is empty.
async fn ends(log: &dyn Log, topic: &str) -> Result<Vec<ReadRecord>, KafkaError> {
    let start = log.list_offset(topic, OffsetSpec::Earliest).await?.map_or(0, |at| at.offset);
    let end = log.list_offset(topic, OffsetSpec::Latest).await?.map_or(0, |at| at.offset);
    let mut records = Vec::new();
    for offset in [start, end - 1] {
        if (start..end).contains(&offset) {
            records.extend(log.fetch(topic, offset, 1).await?.records.into_iter().next());
        }
    }
    Ok(records)
}

fn refused(code: &'static str, what: String, remedy: &str) -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, code, what, remedy)
        .keeping("everything: no stream was made or changed")
}
