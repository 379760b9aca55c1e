//! Streams over topics of tables (rule R3): a changed key is one update where its parts stand
//! together, and nothing is lost or shown twice wherever source and client break off.

use bytes::Bytes;
use highwater_connector::Hw;
use highwater_kafka::{ReadRecord, TopicDescription, partition_of};
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::client::{Server, config, log};
use super::trails::{envelope, hw, orders, snapshot};
use crate::batch::Batch;
use crate::encoding::Encoding;
use crate::feed::{Feed, Outcome, View};
use crate::marks::Marks;
use crate::qos::QualityOfService;

const PARTITIONS: i32 = 3;

/// What happens to a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Event {
    Insert,
    Delete,
    /// Both keys choose this partition.
    Change,
    /// The new key chooses another partition.
    Away,
    /// The old key was in another partition.
    Here,
    SnapshotRow,
}

const EVENTS: [Event; 6] =
    [Event::Insert, Event::Delete, Event::Change, Event::Away, Event::Here, Event::SnapshotRow];

/// A key that chooses partition 0, or another one.
fn key(event: usize, here: bool) -> Bytes {
    let mut ids = (0..).map(|salt| format!(r#"{{"id":{}}}"#, event * 1_000 + salt));
    ids.find(|key| (partition_of(key.as_bytes(), PARTITIONS) == 0) == here).unwrap().into()
}

/// A record of an event; `value` is its operation, or none for a tombstone.
fn part(event: usize, part: u32, op: Option<&str>, header: Option<(&str, Bytes)>) -> ReadRecord {
    let id = format!(r#"{{"id":{event}}}"#);
    let value = op.map(|op| match op {
        "d" => envelope(&format!(r#""op":"d","before":{id},"after":null"#)),
        op => envelope(&format!(r#""op":"{op}","before":null,"after":{id}"#)),
    });
    let hw = Hw { part, table_version: None, ..hw(event as u64 / 2, event as u64 % 2) };
    let mut headers = vec![("hw".to_owned(), Bytes::from(hw.encode()))];
    headers.extend(header.map(|(name, value)| (name.to_owned(), value)));
    ReadRecord {
        offset: 0,
        timestamp: 0,
        leader_epoch: 0,
        key: Some(id.into()),
        value: value.map(Bytes::from),
        headers,
    }
}

impl Event {
    /// Its records in this partition.
    fn records(self, event: usize) -> Vec<ReadRecord> {
        let new_key = |here| Some(("__debezium.newkey", key(event, here)));
        let old_key = |here| Some(("__debezium.oldkey", key(event, here)));
        let delete = |header| [part(event, 0, Some("d"), header), part(event, 1, None, None)];
        match self {
            Self::Insert => vec![part(event, 0, Some("c"), None)],
            Self::Delete => delete(None).into(),
            Self::Change => {
                let [first, second] = delete(new_key(true));
                vec![first, second, part(event, 2, Some("c"), old_key(true))]
            }
            Self::Away => delete(new_key(false)).into(),
            Self::Here => vec![part(event, 2, Some("c"), old_key(false))],
            Self::SnapshotRow => {
                let mut row = part(event, 0, Some("r"), None);
                let hw = Hw { table_version: None, ..snapshot(event as u64) };
                row.headers = vec![("hw".to_owned(), hw.encode().into())];
                vec![row]
            }
        }
    }

    /// What a client sees of it, and the place of the record that shows it.
    const fn shown(self) -> (&'static str, usize) {
        match self {
            Self::Insert | Self::Here | Self::SnapshotRow => ("INSERT", 0),
            Self::Delete | Self::Away => ("DELETE", 0),
            Self::Change => ("UPDATE", 2),
        }
    }
}

/// A partition as a source writes it that is stopped anywhere and delivers again from an event on.
/// `steps` say how many records until it is stopped, and how many events it then goes back.
fn partition(events: &[Event], steps: &[(u8, u8)]) -> Vec<(usize, usize, ReadRecord)> {
    let mut written = Vec::new();
    let mut next = 0;
    for (records, back) in steps.iter().copied().chain([(u8::MAX, 0)]) {
        let mut left = usize::from(records);
        'run: for (event, kind) in events.iter().enumerate().skip(next) {
            next = event;
            // Rows of a snapshot are read once here: none is recognised as a duplicate.
            if *kind == Event::SnapshotRow && written.iter().any(|(seen, _, _)| *seen == event) {
                continue;
            }
            for (part, mut record) in kind.records(event).into_iter().enumerate() {
                if left == 0 {
                    break 'run;
                }
                left -= 1;
                record.offset = written.len() as i64;
                written.push((event, part, record));
            }
            next = event + 1;
        }
        next = next.saturating_sub(usize::from(back));
    }
    written
}

fn view(partitions: i32) -> View {
    let name = "shop.public.orders".to_owned();
    let topic = TopicDescription { name, id: Uuid::nil(), partitions, internal: false };
    View::new("orders", &topic, 0, Encoding::default())
}

/// What one record was shown as: operation, row, offset, position.
type Shown = (String, u64, i64, String);

/// A client that resumes behind the record at `from`, and leaves after `most` records.
fn visit(trail: &[ReadRecord], from: i64, marks: Marks, qos: QualityOfService) -> Vec<Shown> {
    let mut feed = Feed::new(view(PARTITIONS), qos, marks);
    let mut shown = Vec::new();
    for record in trail.iter().filter(|record| record.offset > from) {
        let mut batch = Batch::default();
        let outcome = feed.take(record, &mut batch).unwrap();
        assert!(!matches!(outcome, Outcome::NeedsTable(_)));
        let Some(message) = batch.take() else { continue };
        let sent: Vec<Value> = serde_json::from_slice(&message.text).unwrap();
        for row in sent {
            let pos = row["pos"].as_str().unwrap().to_owned();
            let (place, _) = view(PARTITIONS).sealer.open(&pos).unwrap();
            let image = row.get("after").unwrap_or(&row["before"]);
            let id = image["id"].as_u64().unwrap();
            shown.push((row["op_type"].as_str().unwrap().to_owned(), id, place.offset, pos));
        }
    }
    shown
}

fn check(events: &[Event], steps: &[(u8, u8)]) {
    let written = partition(events, steps);
    let trail: Vec<ReadRecord> = written.iter().map(|(_, _, record)| record.clone()).collect();
    // By the first record that shows each event, and not by marks.
    let mut expected = Vec::new();
    for (event, part, _) in &written {
        let (label, at) = events[*event].shown();
        let row = (label.to_owned(), *event as u64);
        if *part == at && !expected.contains(&row) {
            expected.push(row);
        }
    }
    let strict = QualityOfService::ExactlyOnce;
    let whole = visit(&trail, -1, Marks::default(), strict);
    let seen: Vec<(String, u64)> = whole.iter().map(|(op, id, ..)| (op.clone(), *id)).collect();
    assert_eq!(seen, expected, "{events:?} {steps:?}");
    // Whichever record a client comes back with, it sees the rest, with the same positions.
    for (at, (_, _, offset, pos)) in whole.iter().enumerate() {
        let (_, marks) = view(PARTITIONS).sealer.open(pos).unwrap();
        assert_eq!(visit(&trail, *offset, marks, strict), whole[at + 1..], "{events:?} {steps:?}");
    }
    // Duplicates that pass bear the positions that others see.
    for (_, _, offset, pos) in visit(&trail, -1, Marks::default(), QualityOfService::AtLeastOnce) {
        assert!(whole.iter().all(|other| other.2 != offset || other.3 == pos));
        let (event, part, _) = &written[offset as usize];
        assert!(events[*event] != Event::Change || *part == 2, "a part was shown alone");
    }
}

fn cases() -> u32 {
    std::env::var("HW_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(1_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn each_event_is_seen_once_wherever_source_and_client_break_off(
        events in proptest::collection::vec(proptest::sample::select(&EVENTS[..]), 0..12),
        steps in proptest::collection::vec((0_u8..10, 0_u8..5), 0..5),
    ) {
        check(&events, &steps);
    }
}

/// The records that a client is shown of a partition.
fn shown(partitions: i32, records: &[ReadRecord]) -> Vec<Value> {
    let mut feed = Feed::new(view(partitions), QualityOfService::ExactlyOnce, Marks::default());
    let mut batch = Batch::default();
    for (record, offset) in records.iter().zip(0..) {
        let record = ReadRecord { offset, ..record.clone() };
        feed.take(&record, &mut batch).unwrap();
    }
    batch.take().map_or(Vec::new(), |message| serde_json::from_slice(&message.text).unwrap())
}

#[test]
fn parts_that_stand_together_are_one_update_with_the_last_ones_position() {
    let records = Event::Change.records(5);
    let [update] = shown(PARTITIONS, &records).try_into().unwrap();
    assert_eq!((&update["op_type"], &update["before"]["id"]), (&json!("UPDATE"), &json!(5)));
    assert_eq!(update["after"]["id"], 5);
    assert_eq!(update.get("key_change"), None);
    assert_eq!(update["record_id"], "0000000000000007:00000000/00000002:1:2");
    let (place, _) = view(PARTITIONS).sealer.open(update["pos"].as_str().unwrap()).unwrap();
    assert_eq!(place.offset, 2);
    // Without tombstones it is the same.
    let without = [records[0].clone(), records[2].clone()];
    assert_eq!(shown(PARTITIONS, &without).len(), 1);
}

#[test]
fn parts_of_two_partitions_name_each_others_key() {
    let [delete] = shown(PARTITIONS, &Event::Away.records(5)).try_into().unwrap();
    assert_eq!(delete["op_type"], "DELETE");
    let new_key: Value = serde_json::from_slice(&key(5, false)).unwrap();
    assert_eq!(delete["key_change"], new_key);
    let [insert] = shown(PARTITIONS, &Event::Here.records(5)).try_into().unwrap();
    assert_eq!((&insert["op_type"], &insert["key_change"]), (&json!("INSERT"), &new_key));
}

#[test]
fn a_delete_whose_create_went_elsewhere_after_all_is_shown_before_what_follows() {
    let [delete, tombstone, create] = Event::Change.records(4).try_into().unwrap();
    let next = Event::Insert.records(5).remove(0);
    let kinds = |records: &[ReadRecord]| -> Vec<Value> {
        shown(PARTITIONS, records).into_iter().map(|mut row| row["op_type"].take()).collect()
    };
    let log = [delete, tombstone, next, create];
    assert_eq!(kinds(&log[..2]), [json!(null); 0]);
    assert_eq!(kinds(&log[..3]), ["DELETE", "INSERT"]);
}

#[test]
fn a_tombstone_whose_delete_was_compacted_away_still_deletes() {
    let [_, tombstone] = Event::Delete.records(5).try_into().unwrap();
    let [delete] = shown(PARTITIONS, &[tombstone]).try_into().unwrap();
    assert_eq!((&delete["op_type"], &delete["before"]), (&json!("DELETE"), &json!({"id": 5})));
}

#[test]
fn a_key_inside_a_schema_is_shown_without_it() {
    let header = Bytes::from_static(br#"{"schema":{"type":"struct"},"payload":{"id":9}}"#);
    let delete = part(5, 0, Some("d"), Some(("__debezium.newkey", header)));
    let next = Event::Insert.records(6).remove(0);
    let rows = shown(1, &[delete, next]);
    assert_eq!(rows[0]["key_change"], json!({"id": 9}));
}

#[tokio::test]
async fn a_stream_names_its_partition_and_positions_belong_to_it() {
    let log = log();
    log.make("shop.public.orders", PARTITIONS);
    log.make("shop.public.orders-2", 1);
    super::trails::describe(&log, &orders(1));
    log.append("shop.public.orders-2", Event::Insert.records(1).remove(0));
    let server = Server::start(&log, config()).await;
    let make = async |name: &str, source: Value| {
        let path = format!("/services/v2/stream/{name}");
        server.send("POST", &path, &json!({"source": source})).await
    };
    let topic = "shop.public.orders";
    let refused = [
        (json!({"topic": topic}), "trail_partitioned"),
        (json!({"trail": topic}), "trail_partitioned"),
        (json!({"topic": topic, "partition": PARTITIONS}), "partition_missing"),
        (json!({"topic": topic, "partition": -1}), "configuration_invalid"),
        (json!({"trail": topic, "partition": 1}), "configuration_invalid"),
        (json!({"trail": topic, "topic": topic}), "configuration_invalid"),
    ];
    for (source, code) in refused {
        let (status, body) = make("orders", source.clone()).await;
        assert_eq!((status, body["code"].as_str()), (400, Some(code)), "{source}");
    }
    let source = json!({"topic": topic, "partition": 2});
    let (status, body) = make("orders", source.clone()).await;
    assert_eq!((status, &body["response"]["source"]), (201, &source));
    let mut client = server.connect("orders").await;
    let row = client.data().await;
    assert_eq!(row["after"]["id"], 1);
    // A position of this partition is none of another one.
    let other = json!({"source": {"topic": topic, "partition": 0}});
    let (status, _) = server.send("PATCH", "/services/v2/stream/orders", &other).await;
    assert_eq!(status, 200);
    let pos = row["pos"].as_str().unwrap();
    let (status, body) = server.refused(&format!("orders?begin={pos}")).await;
    assert_eq!((status, body["code"].as_str()), (409, Some("wrong_topic")));
}
