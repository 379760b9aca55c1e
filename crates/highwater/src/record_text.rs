//! A Kafka record as one line: readable, and harmless to a terminal whatever it holds.

use std::fmt::Write as _;

use highwater_connector::{HW_HEADER, Hw};
use highwater_kafka::ReadRecord;
use serde_json::{Map, Value, json};

use crate::kafka::time_text;

/// The record as text: where it stands, when it came, what it says of its source, key, value.
pub(crate) fn line(topic: &str, partition: i32, record: &ReadRecord) -> String {
    let mut line = format!("{topic}-{partition}@{}", record.offset);
    // Writing into a text cannot fail.
    let _ = write!(line, "  {}", time_text(record.timestamp));
    for (name, value) in &record.headers {
        let words = (name == HW_HEADER).then(|| Hw::decode(value).ok()).flatten();
        let _ = match words {
            Some(hw) => write!(line, "  [{}]", source(&hw)),
            None => write!(line, "  {}={}", printable(name.as_bytes()), printable(value)),
        };
    }
    let _ = write!(line, "  key {}", optional(record.key.as_deref()));
    let _ = write!(line, "  value {}", optional(record.value.as_deref()));
    line
}

/// The record as JSON; 64-bit numbers are texts (rule U1).
pub(crate) fn object(topic: &str, partition: i32, record: &ReadRecord) -> Value {
    let mut object = json!({
        "topic": topic,
        "partition": partition,
        "offset": record.offset.to_string(),
        "timestamp": time_text(record.timestamp),
        "leader_epoch": record.leader_epoch,
    });
    if let Some(map) = object.as_object_mut() {
        put(map, "key", record.key.as_deref());
        put(map, "value", record.value.as_deref());
    }
    object["headers"] = record
        .headers
        .iter()
        .map(|(name, value)| {
            let mut header = Map::from_iter([("name".to_owned(), json!(name))]);
            put(&mut header, "value", Some(value));
            Value::Object(header)
        })
        .collect();
    if let Some(hw) = record.header(HW_HEADER).and_then(|header| Hw::decode(header).ok()) {
        object["source"] = json!(source(&hw));
    }
    object
}

/// Bytes under `name` as text, or under `name_hex` where they are none.
fn put(object: &mut Map<String, Value>, name: &str, bytes: Option<&[u8]>) {
    let text = bytes.map(std::str::from_utf8);
    match text {
        None => object.insert(name.to_owned(), Value::Null),
        Some(Ok(text)) => object.insert(name.to_owned(), json!(text)),
        Some(Err(_)) => object.insert(format!("{name}_hex"), json!(hex(bytes.unwrap_or_default()))),
    };
}

/// What the `hw` header says (rule P6), in words.
fn source(hw: &Hw) -> String {
    let mut words = Vec::new();
    match &hw.lane {
        Some(lane) => words.push(format!("{lane} {} event {}", hw.position, hw.index)),
        None => words.push(format!("snapshot {} row {}", hw.position, hw.index)),
    }
    if hw.part > 0 {
        words.push(format!("part {}", hw.part));
    }
    if let Some(count) = hw.count {
        words.push(format!("last of {count}"));
    }
    if let Some(xid) = &hw.xid {
        words.push(format!("transaction {xid}"));
    }
    if let Some(time) = hw.commit_time_us {
        words.push(format!("committed {}", time_text(time.div_euclid(1_000))));
    }
    if let Some(version) = hw.table_version {
        words.push(format!("table version {version}"));
    }
    words.push(format!("generation {}", hw.generation));
    printable(words.join(", ").as_bytes())
}

fn optional(bytes: Option<&[u8]>) -> String {
    bytes.map_or_else(|| "null".to_owned(), printable)
}

/// Text on one line, nothing in it a command to a terminal; other bytes in hexadecimal.
pub(crate) fn printable(bytes: &[u8]) -> String {
    let Ok(text) = std::str::from_utf8(bytes) else { return format!("0x{}", hex(bytes)) };
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        // Marks that turn the direction of writing hide what stands where.
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || turns {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
    }
    safe
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing into a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use highwater_connector::Generation;

    use super::*;

    fn record() -> ReadRecord {
        let hw = Hw {
            generation: Generation::from_bits(7),
            lane: Some("pg".to_owned()),
            position: "00000000/0000002A".to_owned(),
            index: 3,
            part: 2,
            commit_time_us: Some(1_000_000),
            table_version: Some(1),
            xid: Some("742".to_owned()),
            count: Some(4),
        };
        ReadRecord {
            offset: 17,
            timestamp: 1_500,
            leader_epoch: 0,
            key: Some(Bytes::from_static(b"{\"id\":1}")),
            value: None,
            headers: vec![("hw".to_owned(), hw.encode().into())],
        }
    }

    #[test]
    fn a_record_is_one_readable_line() {
        assert_eq!(
            line("shop", 2, &record()),
            "shop-2@17  1970-01-01T00:00:01.500Z  [pg 00000000/0000002A event 3, part 2, last of 4, \
             transaction 742, committed 1970-01-01T00:00:01.000Z, table version 1, generation \
             0000000000000007]  key {\"id\":1}  value null"
        );
        assert_eq!(object("shop", 2, &record())["offset"], "17");
    }

    #[test]
    fn what_a_terminal_would_obey_is_shown_instead() {
        assert_eq!(printable(b"a\x1b[2Jb\tc\nd"), "a\\u{1b}[2Jb\\tc\\nd");
        assert_eq!(printable("a\u{202e}b".as_bytes()), "a\\u{202e}b");
        assert_eq!(printable(&[0xff, 0x00]), "0xff00");
        let binary = ReadRecord { value: Some(Bytes::from_static(&[0xff])), ..record() };
        assert_eq!(object("shop", 0, &binary)["value_hex"], "ff");
    }
}
