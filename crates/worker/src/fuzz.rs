//! Fuzz entries (rule T5): one plain function a parser, run by `testing/fuzz`. Each takes any bytes;
//! a panic, or much memory for little input, is a fault.

use bytes::Bytes;
use highwater_connector::{GENERATION_HEADER, TAIL_HEADER};
use highwater_kafka::ReadRecord;

use crate::configs::ConfigState;
use crate::{offsets, rest_offsets, statuses};

/// A parser's name, and the function that gives it any bytes.
pub type FuzzEntry = (&'static str, fn(&[u8]));

/// Names and functions.
pub const ENTRIES: &[FuzzEntry] = &[
    ("worker-config-record", config),
    ("worker-offset-record", offset),
    ("worker-status-record", status),
    ("worker-offsets-request", request),
];

/// Key and value, a line each.
fn split(input: &[u8]) -> (Option<&[u8]>, Option<&[u8]>) {
    let mut parts = input.splitn(2, |byte| *byte == b'\n');
    (parts.next(), parts.next())
}

fn config(input: &[u8]) {
    let (key, value) = split(input);
    let mut state = ConfigState::default();
    state.apply(key, value);
    state.apply(key, None);
    assert!(state.is_empty(), "a tombstone takes everything back: {state:?}");
}

/// Key, headers `hw.tail` and `hw.generation`, and value, a line each.
fn offset(input: &[u8]) {
    let mut parts = input.splitn(4, |byte| *byte == b'\n').map(Bytes::copy_from_slice);
    let key = parts.next();
    let mut headers = Vec::new();
    for name in [TAIL_HEADER, GENERATION_HEADER] {
        headers.extend(parts.next().map(|value| (name.to_owned(), value)));
    }
    let value = parts.next();
    let (offset, timestamp, leader_epoch) = (3, 0, 0);
    let record = ReadRecord { offset, timestamp, leader_epoch, key, value, headers };
    offsets::apply(&mut Default::default(), &record);
}

fn status(input: &[u8]) {
    let (key, value) = split(input);
    statuses::apply(&mut Default::default(), key, value);
}

fn request(input: &[u8]) {
    if let Ok(body) = serde_json::from_slice(input) {
        let _ = rest_offsets::wanted(body);
    }
}
