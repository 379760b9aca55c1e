//! The engine's own records: JSON without schema, on topics of one partition, outside of transactions.

use std::sync::Arc;

use bytes::Bytes;
use highwater_connector::{ColumnStates, Json, Position, RecordKind, SourceRecord};

/// Longest text in such a record, in characters.
pub(crate) const LONGEST_TEXT: usize = 2_000;

/// A record of the engine.
pub(crate) fn own_record(
    topic: &Arc<str>,
    key: Bytes,
    value: Bytes,
    position: Arc<dyn Position>,
) -> SourceRecord {
    SourceRecord {
        kind: RecordKind::Event,
        topic: Arc::clone(topic),
        partition: Some(0),
        key: Some(key),
        value: Some(value),
        other_key: None,
        headers: Vec::new(),
        hw: None,
        states: ColumnStates::default(),
        position,
        boundary: true,
    }
}

/// Writes the members of a JSON object, leaving out those that have no value.
#[derive(Debug, Default)]
pub(crate) struct Object {
    json: Json,
    has_members: bool,
}

impl Object {
    fn name(&mut self, name: &str) -> &mut Json {
        self.json.raw(if std::mem::replace(&mut self.has_members, true) { "," } else { "{" });
        self.json.string(name);
        self.json.raw(":");
        &mut self.json
    }

    /// A text, cut to [`LONGEST_TEXT`].
    pub(crate) fn text(mut self, name: &str, text: &str) -> Self {
        self.name(name).string(cut(text));
        self
    }

    /// A text, if there is one.
    pub(crate) fn optional(self, name: &str, text: Option<&str>) -> Self {
        match text {
            Some(text) => self.text(name, text),
            None => self,
        }
    }

    /// A number that 53 bits hold.
    pub(crate) fn number(mut self, name: &str, number: i64) -> Self {
        self.name(name).int(i128::from(number));
        self
    }

    /// JSON.
    pub(crate) fn json(mut self, name: &str, json: &[u8]) -> Self {
        let json = String::from_utf8_lossy(json);
        self.name(name).raw(&json);
        self
    }

    pub(crate) fn close(mut self) -> Bytes {
        self.json.raw(if self.has_members { "}" } else { "{}" });
        self.json.finish()
    }
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(LONGEST_TEXT).map_or(text, |(end, _)| text.get(..end).unwrap_or(text))
}

/// The key of records that tell of the whole connector.
pub(crate) fn server_key(server: &str) -> Bytes {
    Object::default().text("server", server).close()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_json_and_its_texts_are_bounded() {
        let long = "ä".repeat(LONGEST_TEXT + 1);
        let object = Object::default()
            .text("long", &long)
            .optional("absent", None)
            .optional("quoted \" name", Some("a\nb"))
            .number("n", -1)
            .json("inner", &Object::default().close());
        let json: serde_json::Value = serde_json::from_slice(&object.close()).unwrap();
        let expected = serde_json::json!({
            "long": "ä".repeat(LONGEST_TEXT), "quoted \" name": "a\nb", "n": -1, "inner": {},
        });
        assert_eq!(json, expected);
    }
}
