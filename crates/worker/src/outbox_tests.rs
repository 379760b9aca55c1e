//! The outbox over a log in memory.

use std::sync::Arc;

use highwater_connector::{ColumnStates, Generation, OtherKey, Tail};

use super::*;
use crate::ledger::Cover;
use crate::scripted::MemoryWriter;
use crate::task_topics::TopicFacts;

fn record(kind: RecordKind, value: &str) -> SourceRecord {
    let mut position = SourceOffset::default();
    position.set("at", value);
    SourceRecord {
        kind,
        topic: "shop".into(),
        partition: Some(0),
        key: Some(Bytes::from_static(br#"{"id":7}"#)),
        value: Some(Bytes::from(value.to_owned())),
        other_key: None,
        headers: Vec::new(),
        hw: None,
        states: ColumnStates::default(),
        position: Arc::new(position),
        boundary: true,
    }
}

fn outbox(writer: &MemoryWriter, limit: usize, facts: TopicFacts) -> Outbox {
    let slot = OffsetSlot {
        topic: "offsets".to_owned(),
        key: Bytes::from_static(b"k"),
        mark: GenerationMark { generation: Generation::from_bits(1), fingerprint: String::new() },
    };
    let ledger = Ledger::new(Cover::Acknowledged, Tail::default(), std::time::Instant::now());
    let topics = TaskTopics::fixed([("shop".into(), facts)]);
    let (writer, sending) = (Box::new(writer.clone()), Sending::up_to(limit));
    Outbox::new(writer, Contract::AtLeastOnce, ledger, slot, sending, topics)
}

const WIDE: usize = 1 << 20;
const FREE: TopicFacts = TopicFacts { max_message_bytes: None, compacted: false };

#[tokio::test]
async fn a_table_description_is_acknowledged_before_anything_behind_it_is_sent() {
    let writer = MemoryWriter::default();
    let mut outbox = outbox(&writer, WIDE, FREE);
    writer.0.lock().unwrap().held = true;
    outbox.accept(record(RecordKind::Event, "a")).await.unwrap();

    let description = outbox.accept(record(RecordKind::TableDescription, "t"));
    let waited = tokio::time::timeout(Duration::from_millis(20), description).await;
    assert!(waited.is_err(), "it went on while the description was in flight");
}

#[tokio::test]
async fn a_record_above_the_connectors_limit_stops_by_name() {
    let writer = MemoryWriter::default();
    let facts = TopicFacts { max_message_bytes: Some(1_000), ..FREE };
    let mut outbox = outbox(&writer, 60, facts);
    let value =
        format!(r#"{{"source":{{"schema":"public","table":"orders"}},"after":"{:80}"}}"#, "");
    let error = outbox.accept(record(RecordKind::Event, &value)).await.unwrap_err();
    let size = (value.len() + 8).to_string();
    for part in [
        "RECORD_TOO_LARGE",
        "public.orders",
        r#"{"id":7}"#,
        &size,
        "is 60",
        "max.message.bytes is 1000",
    ] {
        assert!(error.to_string().contains(part), "{part} is missing in {error}");
    }
    assert!(writer.0.lock().unwrap().records.is_empty(), "it was sent all the same");
}

#[tokio::test]
async fn a_record_above_the_topics_limit_stops_too() {
    let facts = TopicFacts { max_message_bytes: Some(200), ..FREE };
    let mut outbox = outbox(&MemoryWriter::default(), 10_000, facts);
    outbox.accept(record(RecordKind::Event, &"x".repeat(60))).await.unwrap();
    let error = outbox.accept(record(RecordKind::Event, &"x".repeat(190))).await.unwrap_err();
    assert_eq!(error.code, "RECORD_TOO_LARGE");
}

#[tokio::test]
async fn a_record_without_key_stops_before_a_compacted_topic() {
    let writer = MemoryWriter::default();
    let mut outbox = outbox(&writer, WIDE, TopicFacts { compacted: true, ..FREE });
    outbox.accept(record(RecordKind::Event, "a")).await.unwrap();
    let truncated = r#"{"source":{"schema":"public","table":"orders"},"op":"t"}"#;
    let keyless = SourceRecord { key: None, ..record(RecordKind::Event, truncated) };
    let error = outbox.accept(keyless).await.unwrap_err();
    assert_eq!(error.code, "RECORD_WITHOUT_KEY");
    assert!(error.what.contains("public.orders") && error.what.contains("topic shop"), "{error}");
    assert_eq!(writer.0.lock().unwrap().records.len(), 1);
}

#[tokio::test]
async fn the_other_key_of_a_row_goes_into_a_header() {
    let writer = MemoryWriter::default();
    let mut outbox = outbox(&writer, WIDE, FREE);
    let other_key = Some(OtherKey::New(Bytes::from_static(br#"{"id":8}"#)));
    outbox.accept(SourceRecord { other_key, ..record(RecordKind::Event, "d") }).await.unwrap();
    let memory = writer.0.lock().unwrap();
    let header = ("__debezium.newkey".into(), Bytes::from_static(br#"{"id":8}"#));
    assert_eq!(memory.records[0].headers, [header]);
}

#[tokio::test]
async fn further_headers_stand_behind_those_that_every_source_has() {
    let writer = MemoryWriter::default();
    let mut outbox = outbox(&writer, WIDE, FREE);
    let other_key = Some(OtherKey::Old(Bytes::from_static(b"k")));
    let headers = vec![("cdc.scn", "42".into()), ("cdc.xid", "1.2.3".into())];
    let event = SourceRecord { other_key, headers, ..record(RecordKind::Event, "d") };
    outbox.accept(event).await.unwrap();
    let memory = writer.0.lock().unwrap();
    let headers: Vec<(&str, &[u8])> =
        memory.records[0].headers.iter().map(|(name, value)| (&**name, &**value)).collect();
    let expected: [(&str, &[u8]); 3] =
        [("__debezium.oldkey", b"k"), ("cdc.scn", b"42"), ("cdc.xid", b"1.2.3")];
    assert_eq!(headers, expected);
}

#[tokio::test]
async fn an_explicit_offset_waits_for_what_is_in_flight() {
    let writer = MemoryWriter::default();
    let mut outbox = outbox(&writer, WIDE, FREE);
    outbox.accept(record(RecordKind::Event, "a")).await.unwrap();
    outbox.store_explicit(SourceOffset::default()).await.unwrap();
    let memory = writer.0.lock().unwrap();
    assert_eq!(memory.offsets[0].0, 1, "the offset record went before the record");
}

#[tokio::test]
async fn a_failed_offset_write_gives_nothing_out_any_more() {
    let writer = MemoryWriter::default();
    let mut outbox = outbox(&writer, WIDE, FREE);
    outbox.accept(record(RecordKind::Event, "a")).await.unwrap();
    outbox.settle().await.unwrap();
    writer.0.lock().unwrap().offsets_fail = true;
    let error = outbox.store().await.unwrap_err();
    assert_eq!(
        (error.code, error.retry),
        ("LOG_WRITE_FAILED", highwater_connector::Retry::Backoff)
    );

    writer.0.lock().unwrap().offsets_fail = false;
    outbox.accept(record(RecordKind::Event, "b")).await.unwrap();
    outbox.settle().await.unwrap();
    assert!(outbox.store().await.unwrap().is_none());
    assert!(outbox.stored().is_none());
    assert!(outbox.store_explicit(SourceOffset::default()).await.is_err());
}
