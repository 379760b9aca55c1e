//! Fuzz entries (rule T5): one plain function a parser, run by `testing/fuzz`. Each takes any bytes;
//! a panic, or much memory for little input, is a fault.

use bytes::Bytes;

use crate::{Converter, DateFormat, JsonConverter, JsonOptions, SchemaAndValue, infer, text};

/// A parser's name, and the function that gives it any bytes.
pub type FuzzEntry = (&'static str, fn(&[u8]));

/// Names and functions.
pub const ENTRIES: &[FuzzEntry] = &[
    ("connect-json", json),
    ("header-text", header),
    ("date-format", date),
    ("plain-converters", plain),
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
    for class in crate::CONVERTERS {
        let Ok(converter) = Converter::new(class, &[].into()) else { continue };
        if let Ok(read) = converter.to_connect(Some(&bytes)) {
            let _ = converter.from_connect(read.schema.as_ref(), &read.value);
        }
    }
}
