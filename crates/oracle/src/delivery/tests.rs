//! Records of committed transactions, from the text of their changes.

use std::sync::Arc;

use highwater_connector::{Generation, Position, SourceOffset, SourceRecord};
use serde_json::Value;

use super::sample::{self, KEY, change};
use super::{
    Delivered, Delivery, LargeObjects, OnDecodeError, Output, OversizedLob, OwnTopics, PositionAt,
    SplitLimits, TableTopics, Template, TopicNames,
};
use crate::schema::{LayoutVersion, Layouts};
use crate::statement::Quoting;
use crate::{Change, Committed, OracleError, Verb};

mod images;
mod own_records;
mod properties;
mod routing;
mod snapshots;
mod splits;

/// Microseconds of the commit of every transaction: 2024-05-06 07:08:09.123456.
const COMMIT_US: i64 = 1_714_979_289_123_456;
const NOW_MS: i64 = 1_714_979_290_000;

/// All into the trail `shop`.
fn trail() -> Output {
    output(TableTopics::Trail("shop".into()))
}

/// Those of a table into `shop.<schema>.<table>`.
fn per_table() -> Output {
    output(TableTopics::PerTable(Template::new(None, "shop", "ORCL", false).unwrap()))
}

fn output(tables: TableTopics) -> Output {
    Output {
        server: "shop".to_owned(),
        database: "ORCL".to_owned(),
        generation: Generation::from_bits(7),
        topics: TopicNames::new(tables, OwnTopics::of("shop")),
        has_tombstones: true,
        large: LargeObjects::Shown { placeholder: "?".to_owned() },
        oversized: OversizedLob::Fail,
        quoting: Quoting::Strict,
        on_decode_error: OnDecodeError::Fail,
        split: SplitLimits { records: 500_000, bytes: 268_435_456 },
    }
}

/// A position that says how many changes are safe.
fn positions() -> PositionAt {
    Box::new(|changes| {
        let mut offset = SourceOffset::default();
        offset.set("changes", changes);
        Arc::new(offset) as Arc<dyn Position>
    })
}

fn safe(record: &SourceRecord) -> i64 {
    record.position.offset().number("changes").unwrap()
}

fn committed(changes: Vec<Change>) -> Committed {
    Committed {
        key: KEY,
        commit: sample::at(0xf0),
        first: sample::at(0x10),
        time_us: COMMIT_US,
        user: Some("HR".to_owned()),
        count: u64::try_from(changes.len()).unwrap(),
        changes: Box::new(changes.into_iter().map(Ok)),
    }
}

/// What a transaction of these changes gives, without the descriptions, and its error.
fn delivered(
    output: Output,
    layouts: &Layouts,
    committed: Committed,
    skip: u64,
) -> (Vec<SourceRecord>, Result<(), OracleError>) {
    let mut delivery = Delivery::new(output, &[]);
    let mut emission = delivery.begin(committed, skip, positions());
    let mut out = Vec::new();
    let end = loop {
        match delivery.deliver(&mut emission, layouts, NOW_MS, &mut out) {
            Ok(Delivered::Partly) => {}
            Ok(Delivered::Whole) => break Ok(()),
            Err(error) => break Err(error),
        }
    };
    out.retain(|record| &*record.topic != "shop.schema");
    (out, end)
}

fn records(output: Output, version: LayoutVersion, changes: Vec<Change>) -> Vec<SourceRecord> {
    let (records, end) = delivered(output, &sample::layouts(vec![version]), committed(changes), 0);
    end.unwrap();
    records
}

/// The one record of a change on a trail.
fn record(columns: &[&str], verb: Verb, sql: &str) -> SourceRecord {
    let changes = vec![change(verb, 0x20, sql, Vec::new())];
    let mut records = records(trail(), sample::version(columns), changes);
    assert_eq!(records.len(), 1);
    records.remove(0)
}

fn refusal(columns: &[&str], verb: Verb, sql: &str) -> OracleError {
    let changes = vec![change(verb, 0x20, sql, Vec::new())];
    let layouts = sample::layouts(vec![sample::version(columns)]);
    delivered(trail(), &layouts, committed(changes), 0).1.unwrap_err()
}

fn json(bytes: &Option<bytes::Bytes>) -> Value {
    bytes.as_deref().map_or(Value::Null, |bytes| serde_json::from_slice(bytes).unwrap())
}

fn value(record: &SourceRecord) -> Value {
    json(&record.value)
}

/// The bytes of one member of the envelope.
fn member(record: &SourceRecord, name: &str) -> String {
    value(record)[name].to_string()
}
