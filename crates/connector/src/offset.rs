//! Source partitions and offsets, in Kafka Connect's form: flat maps with string keys.

use std::fmt;

use highwater_config::nearest;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Which part of a source an offset speaks of, such as `{"server": "shop"}`.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SourcePartition(pub Map<String, Value>);

/// Where reading continues: a flat map of primitive values that the connector defines.
///
/// Fields that a connector does not know are kept and written back.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SourceOffset(pub Map<String, Value>);

impl SourceOffset {
    /// The text under `key`.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str)
    }

    /// The whole number under `key`, also when it stands as text.
    pub fn number(&self, key: &str) -> Option<i64> {
        let value = self.0.get(key)?;
        value.as_i64().or_else(|| value.as_str()?.parse().ok())
    }

    /// What is wrong with the first field that is neither among `known` nor in `stored`: nobody reads it, so an edit
    /// with it would be answered as done, and move nothing.
    pub fn stray_field(&self, known: &[&str], stored: Option<&Self>) -> Option<String> {
        let is_stored = |field: &str| stored.is_some_and(|stored| stored.0.contains_key(field));
        let is_stray = |field: &str| !known.contains(&field) && !is_stored(field);
        self.0.keys().find(|field| is_stray(field)).map(|field| stray_field(field, known))
    }

    /// Sets one field.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.0.insert(key.to_owned(), value.into());
    }
}

/// What is wrong with a field that is not among `known`, with what may be meant.
fn stray_field(field: &str, known: &[&str]) -> String {
    match nearest(field, known.iter().copied()) {
        Some(right) => format!("{field} is not known; did you mean {right}?"),
        None => format!("{field} is not known; the fields are {}", known.join(", ")),
    }
}

impl fmt::Display for SourceOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&Value::Object(self.0.clone()).to_string())
    }
}

/// The offset that holds once a record is acknowledged, encoded only when it is stored.
///
/// A source makes one for every record, a worker encodes one a second, so making it must be
/// cheap.
pub trait Position: Send + Sync + fmt::Debug {
    /// The offset to store.
    fn offset(&self) -> SourceOffset;
}

impl Position for SourceOffset {
    fn offset(&self) -> SourceOffset {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_numbers_and_as_text() {
        let offset: SourceOffset =
            serde_json::from_str(r#"{"a":9223372036854775807,"b":"42","c":1.5,"d":true}"#).unwrap();
        assert_eq!(offset.number("a"), Some(i64::MAX));
        assert_eq!(offset.number("b"), Some(42));
        assert_eq!(
            (offset.number("c"), offset.number("d"), offset.number("e")),
            (None, None, None)
        );
    }

    #[test]
    fn a_field_that_nobody_reads_is_named_with_what_may_be_meant() {
        let offset = |text: &str| serde_json::from_str::<SourceOffset>(text).unwrap();
        fn stray(text: &str, stored: Option<&SourceOffset>) -> Option<String> {
            let offset: SourceOffset = serde_json::from_str(text).unwrap();
            offset.stray_field(&["position", "lsn"], stored)
        }
        assert_eq!(stray(r#"{"position":1,"lsn":2}"#, None), None);
        let meant = "positon is not known; did you mean position?";
        assert_eq!(stray(r#"{"position":1,"positon":2}"#, None).as_deref(), Some(meant));
        let fields = "pos is not known; the fields are position, lsn";
        assert_eq!(stray(r#"{"pos":2}"#, Some(&offset("{}"))).as_deref(), Some(fields));
        assert_eq!(stray(r#"{"theirs":2}"#, Some(&offset(r#"{"theirs":1}"#))), None);
    }

    #[test]
    fn fields_that_nobody_knows_are_written_back() {
        let text = r#"{"lsn":1,"theirs":"kept"}"#;
        let mut offset: SourceOffset = serde_json::from_str(text).unwrap();
        offset.set("lsn", 2);
        assert_eq!(offset.to_string(), r#"{"lsn":2,"theirs":"kept"}"#);
    }
}
