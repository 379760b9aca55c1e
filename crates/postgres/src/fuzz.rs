//! Fuzz entries (rule T5): one plain function a parser, run by `testing/fuzz`. Each takes any bytes;
//! a panic, or much memory for little input, is a fault.

use std::collections::BTreeMap;

use bytes::Bytes;
use highwater_connector::{Json, SourceOffset};

use crate::auth::Authentication;
use crate::column_form::plain;
use crate::filter::Filter;
use crate::frame::{Frame, FrameBuffer};
use crate::name::TableName;
use crate::offset::StoredOffset;
use crate::pgoutput::{Decoder, cut_row};
use crate::reader::{Wal, copy_data, cut};
use crate::session::{server_error, text_row};
use crate::settings::{Settings, definition};
use crate::shape::JsonKind;
use crate::{copy_text, timeline};

/// A parser's name, and the function that gives it any bytes.
pub type FuzzEntry = (&'static str, fn(&[u8]));

/// Names and functions.
pub const ENTRIES: &[FuzzEntry] = &[
    ("postgres-stream", stream),
    ("pgoutput", pgoutput),
    ("copy-text", copy),
    ("postgres-auth", auth),
    ("postgres-offset", offset),
    ("postgres-config", config),
    ("include-list", include),
    ("timeline-history", history),
    ("table-name", name),
    ("json-value", json),
];

/// Bound of a frame here; the real one depends on the largest record.
const LIMIT: usize = 8 << 10;

/// What a server sends, in pieces as a network delivers them: frames of all kinds.
fn stream(input: &[u8]) {
    let mut buffer = FrameBuffer::new(LIMIT);
    let mut decoder = Decoder::default();
    for piece in input.chunks(100) {
        buffer.space(piece.len()).extend_from_slice(piece);
        while let Ok(Some(frame)) = buffer.next() {
            take(&mut decoder, frame);
        }
    }
}

fn take(decoder: &mut Decoder, frame: Frame) {
    match frame {
        Frame::Whole { tag: b'd', body } => {
            if let Ok((Wal::Data { payload, .. }, _)) = copy_data(body) {
                let _ = decoder.decode(payload);
            }
        }
        Frame::Whole { tag: b'D', body } => drop(text_row(body)),
        Frame::Whole { tag: b'E', body } => drop(server_error("reading", body)),
        Frame::Whole { .. } => {}
        Frame::Cut { size, prefix, .. } => {
            if let Ok(Wal::Cut { prefix, .. }) = cut(size, prefix) {
                let _ = cut_row(prefix);
            }
        }
    }
}

/// One message, inside and outside of a streamed part, and its cut-off beginnings.
fn pgoutput(input: &[u8]) {
    let bytes = Bytes::copy_from_slice(input);
    let _ = Decoder::default().decode(bytes.clone());
    let mut streaming = Decoder::default();
    let begun = streaming.decode(Bytes::from_static(b"S\0\0\0\x05\x01"));
    assert!(begun.is_ok(), "{begun:?}");
    let _ = streaming.decode(bytes.clone());
    let _ = cut_row(bytes);
}

/// The number of columns, then rows.
fn copy(input: &[u8]) {
    let Some((columns, rows)) = input.split_first() else { return };
    let mut lines = copy_text::Lines::default();
    for piece in rows.chunks(7) {
        for line in lines.feed(Bytes::copy_from_slice(piece)) {
            assert!(!line.contains(&b'\n'));
            if let Ok(row) = copy_text::row(&line, usize::from(*columns)) {
                assert_eq!(row.0.len(), usize::from(*columns));
            }
        }
    }
}

/// Bodies of authentication messages, each behind its length in two bytes, in one dialogue.
fn auth(mut input: &[u8]) {
    let values = BTreeMap::from(
        [
            ("database.hostname", "h"),
            ("database.user", "u"),
            ("database.password", "p"),
            ("database.dbname", "d"),
            ("topic.prefix", "t"),
        ]
        .map(|(key, value)| (key.to_owned(), value.to_owned())),
    );
    let config = definition().parse(&values, &[]);
    let Some(settings) = config.ok().and_then(|config| Settings::new(&config).ok()) else {
        panic!("the configuration of this entry is refused")
    };
    let mut dialogue = Authentication::new(&settings.login, None);
    while let Some((length, rest)) = input.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length)).min(rest.len());
        let (body, rest) = rest.split_at(length);
        if dialogue.step(Bytes::copy_from_slice(body)).is_err() {
            return;
        }
        input = rest;
    }
}

fn offset(input: &[u8]) {
    let Ok(offset) = serde_json::from_slice::<SourceOffset>(input) else { return };
    let Ok(stored) = StoredOffset::read(&offset) else { return };
    // An intent drops the position that somebody may have put into it, and no more.
    let written = stored.write();
    let again = StoredOffset::read(&written).map(|again| again.write());
    assert!(matches!(&again, Ok(again) if *again == written), "{written:?}: {again:?}");
}

fn config(input: &[u8]) {
    let Ok(values) = serde_json::from_slice::<BTreeMap<String, String>>(input) else { return };
    if let Ok(config) = definition().parse(&values, &[]) {
        let _ = Settings::new(&config);
    }
}

/// A list, and behind a line feed a name to match.
fn include(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (list, name) = text.split_once('\n').unwrap_or((text, "public.orders"));
    let Ok(filter) = Filter::new(list, "", list, "") else { return };
    let (schema, table) = name.split_once('.').unwrap_or(("public", name));
    let name = TableName::new(schema, table);
    let _ = (filter.matches(&name), filter.unmatched(&[name]));
}

fn history(input: &[u8]) {
    let _ = timeline::parse(&String::from_utf8_lossy(input));
}

fn name(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(name) = text.parse::<TableName>() else { return };
    assert_eq!(name.to_string().parse::<TableName>(), Ok(name.clone()), "{name}");
}

/// Whatever the source sends for a value, what is written is JSON.
fn json(input: &[u8]) {
    let mut json = Json::default();
    for kind in [JsonKind::String, JsonKind::Boolean, JsonKind::Number] {
        match plain(&mut json, kind, input) {
            Ok(()) => {
                let text = json.finish();
                let read = serde_json::from_slice::<serde_json::Value>(&text);
                assert!(read.is_ok(), "{text:?} is no JSON: {read:?}");
            }
            Err(_) => json.discard(),
        }
    }
}
