//! Fuzz entries (rule T5): one plain function a parser, run by `testing/fuzz`. Each takes any bytes;
//! a panic, or much memory for little input, is a fault.

use bytes::Bytes;

use crate::{
    AvroSchema, DateFormat, JsonConverter, JsonOptions, PlainConverter, SchemaAndValue, infer, text,
};

/// A parser's name, and the function that gives it any bytes.
pub type FuzzEntry = (&'static str, fn(&[u8]));

/// Names and functions.
pub const ENTRIES: &[FuzzEntry] = &[
    ("connect-json", json),
    ("header-text", header),
    ("date-format", date),
    ("plain-converters", plain),
    ("avro", avro),
];

/// What is read is written so that it is read as the same.
fn json(input: &[u8]) {
    for schemas_enable in [true, false] {
        let options = JsonOptions {
            schemas_enable,
            replace_null_with_default: false,
            schemas_cache_size: 4,
            ..Default::default()
        };
        let Ok(converter) = JsonConverter::new(options) else { continue };
        let Ok(read) = converter.to_connect(Some(input)) else { continue };
        // A decimal of another scale than that of its schema is read, as in Connect, and not written.
        if let Ok(written) = converter.from_connect(read.schema.as_ref(), &read.value) {
            let again = converter.to_connect(written.as_deref());
            assert!(matches!(&again, Ok(again) if *again == read), "{read:?}: {again:?}");
        }
    }
}

fn header(input: &[u8]) {
    let Ok(input) = std::str::from_utf8(input) else { return };
    let SchemaAndValue { schema, value } = infer::parse(input);
    assert!(schema.is_some() || value.is_null());
    let _ = (text::of(&value), text::java(&value));
}

/// A pattern, and behind a line feed a text.
fn date(input: &[u8]) {
    let Ok(input) = std::str::from_utf8(input) else { return };
    let (pattern, text) = input.split_once('\n').unwrap_or((input, "2024-02-29"));
    let Ok(format) = DateFormat::new(pattern) else { return };
    let _ = format.format(1_700_000_000_123);
    if let Some(ms) = format.parse(text) {
        let _ = format.format(ms);
    }
}

fn plain(input: &[u8]) {
    let bytes = Bytes::copy_from_slice(input);
    for class in crate::PLAIN_CONVERTERS {
        let Ok(converter) = PlainConverter::new(class, &[].into()) else { continue };
        if let Ok(read) = converter.to_connect(Some(&bytes)) {
            let _ = converter.from_connect(read.schema.as_ref(), &read.value);
        }
    }
}

/// A schema, and behind a line feed the bytes of a value. What is read is written so that it is read as
/// the same.
fn avro(input: &[u8]) {
    let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (schema, bytes) = input.split_at(end);
    let Ok(schema) = std::str::from_utf8(schema) else { return };
    let Ok(avro) = AvroSchema::parse(schema) else { return };
    let Ok(read) = avro.decode(bytes.get(1..).unwrap_or_default()) else { return };
    let Some(schema) = &read.schema else { return };
    let Ok(ours) = AvroSchema::of(schema) else { return };
    if let Ok(written) = ours.encode(&read.value) {
        let again = ours.decode(&written);
        assert!(
            matches!(&again, Ok(again) if again.value.kind_name() == read.value.kind_name()),
            "{again:?}"
        );
    }
}
