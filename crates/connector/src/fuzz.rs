//! Fuzz entries (rule T5): one plain function a parser, run by `testing/fuzz`. Each takes any bytes;
//! a panic, or much memory for little input, is a fault.

use std::collections::BTreeMap;

use crate::{
    ColumnStates, ConfigDef, ConfigKey, GenerationMark, Hw, Importance, KeyType, SourceOffset,
    TableDescription, Tail,
};

/// A parser's name, and the function that gives it any bytes.
pub type FuzzEntry = (&'static str, fn(&[u8]));

/// Names and functions.
pub const ENTRIES: &[FuzzEntry] = &[
    ("hw-header", hw),
    ("states-header", states),
    ("tail-header", tail),
    ("generation-header", generation),
    ("source-offset", offset),
    ("table-description", table),
    ("connector-config", config),
];

fn hw(input: &[u8]) {
    let Ok(hw) = Hw::decode(input) else { return };
    assert!(matches!(Hw::decode(&hw.encode()), Ok(again) if again == hw), "{hw:?}");
    let _ = hw.record_id().to_string();
}

fn states(input: &[u8]) {
    let Ok(states) = ColumnStates::decode(input) else { return };
    assert!(matches!(ColumnStates::decode(&states.encode()), Ok(again) if again == states));
}

fn tail(input: &[u8]) {
    let Ok(tail) = Tail::decode(input) else { return };
    assert!(matches!(Tail::decode(&tail.encode()), Ok(again) if again == tail));
}

fn generation(input: &[u8]) {
    let Some(mark) = GenerationMark::decode(input) else { return };
    assert_eq!(GenerationMark::decode(&mark.encode()), Some(mark));
}

fn offset(input: &[u8]) {
    let Ok(offset) = serde_json::from_slice::<SourceOffset>(input) else { return };
    let text = serde_json::to_vec(&offset).unwrap_or_default();
    assert!(matches!(serde_json::from_slice::<SourceOffset>(&text), Ok(again) if again == offset));
    let _ = (offset.text("lsn"), offset.number("event_index"));
}

fn table(input: &[u8]) {
    let Ok(table) = serde_json::from_slice::<TableDescription>(input) else { return };
    let text = serde_json::to_vec(&table).unwrap_or_default();
    let again = serde_json::from_slice::<TableDescription>(&text);
    assert!(matches!(again, Ok(again) if again == table));
    let _ = table.key_columns().count();
}

/// A connector's configuration, against one key of each type.
fn config(input: &[u8]) {
    let Ok(values) = serde_json::from_slice::<BTreeMap<String, String>>(input) else { return };
    let types = [
        ("text", KeyType::String),
        ("secret", KeyType::Password),
        ("int", KeyType::Int { min: 1, max: 100 }),
        ("flag", KeyType::Boolean),
        ("list", KeyType::List),
        ("choice", KeyType::Choice(&["", "one", "two"])),
    ];
    let key = |(name, kind): (&'static str, _)| {
        let default = if name == "int" {
            "1"
        } else if name == "flag" {
            "true"
        } else {
            ""
        };
        ConfigKey::new(name, kind, Some(default), Importance::Low, "")
    };
    match ConfigDef::new(types.map(key).to_vec()).parse(&values, &[]) {
        Ok(config) => {
            assert!((1..=100).contains(&config.int("int")));
            let _ = (config.text("text"), config.flag("flag"), config.list("list"));
        }
        Err(problems) => assert!(!problems.is_empty()),
    }
}
