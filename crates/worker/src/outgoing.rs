//! A source's record as it goes to the log, and why one may not.

use std::sync::Arc;

use bytes::Bytes;
use highwater_connector::{
    ConnectorError, ErrorKind, HW_HEADER, Hw, OtherKey, Position, STATES_HEADER, SourceRecord,
};
use highwater_kafka::OutgoingRecord;

use crate::keys;

/// Bytes of a record beside its key, value and headers: lengths, deltas and the batch around it.
const RECORD_OVERHEAD: usize = 128;

/// How large a record may be, and which settings say so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RecordLimit {
    /// The connector's own bound, in bytes.
    pub(crate) connector: usize,
    /// The topic's `max.message.bytes`, when the broker says it.
    pub(crate) topic: Option<usize>,
}

impl RecordLimit {
    pub(crate) fn admits(&self, size: usize) -> bool {
        size <= self.connector && self.topic.is_none_or(|topic| size + RECORD_OVERHEAD <= topic)
    }
}

/// The record as the log gets it, with what the ledger needs.
pub(crate) fn outgoing(record: SourceRecord) -> (OutgoingRecord, Option<Hw>, Arc<dyn Position>) {
    let SourceRecord { topic, partition, key, value, other_key, hw, states, position, .. } = record;
    let further = record.headers;
    let mut headers = Vec::with_capacity(2 + further.len());
    if let Some(hw) = &hw {
        headers.push((HW_HEADER.into(), Bytes::from(hw.encode())));
    }
    if !states.is_empty() {
        headers.push((STATES_HEADER.into(), Bytes::from(states.encode())));
    }
    let other_key = other_key.as_ref().map(OtherKey::header);
    headers.extend(other_key.map(|(name, key)| (name.into(), key)));
    headers.extend(further.into_iter().map(|(name, value)| (name.into(), value)));
    (OutgoingRecord { topic, partition, key, value, headers }, hw, position)
}

pub(crate) fn size_of(record: &OutgoingRecord) -> usize {
    let bytes = |bytes: &Option<Bytes>| bytes.as_ref().map_or(0, Bytes::len);
    let headers: usize = record.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
    bytes(&record.key) + bytes(&record.value) + headers
}

/// Rule R5: table or place, key, size and both settings.
pub(crate) fn too_large(
    record: &OutgoingRecord,
    size: usize,
    limit: &RecordLimit,
    position: &dyn Position,
) -> ConnectorError {
    let topic_limit = limit.topic.map_or_else(|| "not known".to_owned(), |topic| topic.to_string());
    let key = record.key.as_deref().map_or("none".into(), String::from_utf8_lossy);
    let key: String = key.chars().take(200).collect();
    let topic = &record.topic;
    let setting = keys::MAX_RECORD;
    ConnectorError::stop(
        "RECORD_TOO_LARGE",
        ErrorKind::Data,
        format!(
            "{} with key {key} makes a record of {size} bytes; the connector's \
             {setting} is {}, topic {topic}'s max.message.bytes is {topic_limit}",
            subject(record, position),
            limit.connector
        ),
        format!(
            "raise {setting} of the connector to at least {size} and max.message.bytes of topic \
             {topic} to at least {}, then restart the connector",
            size + RECORD_OVERHEAD
        ),
    )
}

/// Rule R2: compaction keeps the newest record of each key, and so takes none without.
pub(crate) fn without_key(record: &OutgoingRecord, position: &dyn Position) -> ConnectorError {
    let topic = &record.topic;
    ConnectorError::stop(
        "RECORD_WITHOUT_KEY",
        ErrorKind::Data,
        format!(
            "{} has no key, being a TRUNCATE or of what has none, and topic {topic} is compacted",
            subject(record, position)
        ),
        format!(
            "set cleanup.policy=delete on topic {topic}, or leave the table out of the captured \
             ones, then restart the connector"
        ),
    )
}

/// A row by its table, which the envelope names (rule R1); what is no row by its place in the source.
fn subject(record: &OutgoingRecord, position: &dyn Position) -> String {
    match table_of(record) {
        Some(table) => format!("a row of table {table}"),
        None => format!("the record that ends at source offset {}", position.offset()),
    }
}

fn table_of(record: &OutgoingRecord) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Envelope {
        source: Source,
    }
    #[derive(serde::Deserialize)]
    struct Source {
        #[serde(default)]
        schema: Option<String>,
        table: String,
    }
    let Envelope { source } = serde_json::from_slice(record.value.as_deref()?).ok()?;
    Some(match source {
        Source { schema: Some(schema), table } => format!("{schema}.{table}"),
        Source { schema: None, table } => table,
    })
}

#[cfg(test)]
mod tests {
    use highwater_connector::SourceOffset;

    use super::*;

    fn record(value: &'static str) -> OutgoingRecord {
        OutgoingRecord {
            topic: "lines".into(),
            partition: None,
            key: None,
            value: Some(value.into()),
            headers: Vec::new(),
        }
    }

    #[test]
    fn a_row_is_named_by_its_table_and_a_line_by_its_place() {
        let mut position = SourceOffset::default();
        position.set("position", 20);
        let limit = RecordLimit { connector: 3, topic: None };
        let row = record(r#"{"source":{"schema":"public","table":"files"}}"#);
        let said = too_large(&row, 9, &limit, &position).what;
        assert!(said.starts_with("a row of table public.files with key none"), "{said}");
        let line = record("a line");
        let place = r#"the record that ends at source offset {"position":20}"#;
        let said = too_large(&line, 9, &limit, &position).what;
        assert!(said.starts_with(&format!("{place} with key none")), "{said}");
        assert!(without_key(&line, &position).what.starts_with(place));
    }
}
