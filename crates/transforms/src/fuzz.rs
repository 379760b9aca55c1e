//! Fuzz entries (rule T5): one plain function a parser, run by `testing/fuzz`. Each takes any bytes;
//! a panic, or much memory for little input, is a fault.

use std::collections::BTreeMap;

use highwater_data::{Header, JsonConverter, JsonOptions};

use crate::{Chain, Record};

/// A parser's name, and the function that gives it any bytes.
pub type FuzzEntry = (&'static str, fn(&[u8]));

/// Names and functions.
pub const ENTRIES: &[FuzzEntry] = &[("transform-chain", chain)];

/// Lines `key=value`, and in the last line the JSON of key and value, with or without schema.
fn chain(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (lines, json) = text.rsplit_once('\n').unwrap_or((text, "{}"));
    let pair =
        |line: &str| line.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    let config: BTreeMap<String, String> = lines.lines().filter_map(pair).collect();
    let Ok(chain) = Chain::new(&config) else { return };
    for schemas_enable in [false, true] {
        let options = JsonOptions { schemas_enable, schemas_cache_size: 4, ..Default::default() };
        let read = JsonConverter::new(options)
            .and_then(|converter| converter.to_connect(Some(json.as_bytes())));
        let Ok(both) = read else { continue };
        let header = Header { name: "a".into(), value: both.clone() };
        let record = Record {
            key: both.clone(),
            value: both,
            timestamp: Some(1_700_000_000_123),
            headers: vec![header],
            ..Record::new("shop.orders")
        };
        let _ = chain.apply(record);
    }
}
