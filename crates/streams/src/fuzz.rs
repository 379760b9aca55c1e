//! Fuzz entries (rule T5): one plain function a parser, run by `testing/fuzz`. Each takes any bytes;
//! a panic, or much memory for little input, is a fault.

use bytes::Bytes;
use highwater_connector::{HW_HEADER, STATES_HEADER};
use highwater_kafka::ReadRecord;
use serde_json::Value;
use uuid::Uuid;

use crate::begin::ConnectionRequest;
use crate::change::Change;
use crate::marks::Marks;
use crate::position::{Sealer, decode, encode};
use crate::qos::QualityOfService;
use crate::resource::{Resource, is_stream_name, merge};
use crate::state;
use crate::trail::TopicPartition;

/// A parser's name, and the function that gives it any bytes.
pub type FuzzEntry = (&'static str, fn(&[u8]));

/// Names and functions.
pub const ENTRIES: &[FuzzEntry] = &[
    ("position-token", token),
    ("position-body", body),
    ("stream-begin", begin),
    ("stream-resource", resource),
    ("stream-patch", patch),
    ("stream-record", stored),
    ("trail-record", record),
];

fn token(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let sealer = Sealer::new("stream", &TopicPartition::first("topic"), Uuid::nil());
    // Sealed by nobody who knows the key, it opens only when it is one of ours.
    if let Ok((place, marks)) = sealer.open(text) {
        assert_eq!(sealer.seal(&place, &marks), text);
    }
}

/// What is inside of a token.
fn body(input: &[u8]) {
    let Some((place, marks)) = decode(input) else { return };
    assert_eq!(decode(&encode(&place, &marks)), Some((place, marks.clone())));
    let sealer = Sealer::new("stream", &TopicPartition::first("topic"), Uuid::nil());
    let token = sealer.seal(&place, &marks);
    if token.len() <= crate::position::LONGEST {
        assert!(matches!(sealer.open(&token), Ok(opened) if opened == (place, marks)));
    }
}

/// A query: `name=value`, joined by `&`.
fn begin(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let pair = |text: &str| {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        (name.to_owned(), value.to_owned())
    };
    let pairs: Vec<_> = text.split('&').map(pair).collect();
    let _ = ConnectionRequest::parse(&pairs, QualityOfService::AtMostOnce);
}

fn resource(input: &[u8]) {
    let _ = is_stream_name(&String::from_utf8_lossy(input));
    let Ok(value) = serde_json::from_slice::<Value>(input) else { return };
    round_trip(&value);
}

/// A resource that is accepted reads the same from what it says of itself.
fn round_trip(value: &Value) {
    let Ok(resource) = Resource::parse(value) else { return };
    let again = Resource::parse(&resource.to_json());
    assert!(matches!(&again, Ok(again) if *again == resource), "{again:?}");
    let _ = resource.contract();
}

/// A resource and a merge patch, a line each.
fn patch(input: &[u8]) {
    let mut lines = input.splitn(2, |byte| *byte == b'\n');
    let mut value = || serde_json::from_slice::<Value>(lines.next().unwrap_or_default()).ok();
    let (Some(mut target), Some(patch)) = (value(), value()) else { return };
    merge(&mut target, &patch);
    round_trip(&target);
}

/// A record of the topic that keeps the streams.
fn stored(input: &[u8]) {
    let _ = state::parse(&read(Some(input), Vec::new()));
}

/// The headers `hw` and `hw.states`, a line each, then the value.
fn record(input: &[u8]) {
    let parts: Vec<&[u8]> = input.splitn(3, |byte| *byte == b'\n').collect();
    let mut headers = Vec::new();
    for (name, part) in [HW_HEADER, STATES_HEADER].into_iter().zip(&parts) {
        if !part.is_empty() {
            headers.push((name.to_owned(), Bytes::copy_from_slice(part)));
        }
    }
    let record = read(parts.get(2).copied(), headers);
    let Ok(change) = Change::decode(&record) else { return };
    let _ = (change.qualified_table(), change.table_key(), change.commit_time_us());
    let mut marks = Marks::default();
    marks.advance(&change.hw);
    let _ = marks.verdict(&change.hw);
}

fn read(value: Option<&[u8]>, headers: Vec<(String, Bytes)>) -> ReadRecord {
    ReadRecord {
        offset: 5,
        timestamp: 1_700_000_000_000,
        leader_epoch: 0,
        key: None,
        value: value.map(Bytes::copy_from_slice),
        headers,
    }
}
