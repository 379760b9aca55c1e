//! A stream's records as lines for people: time, operation, table, and what changed.

use std::collections::HashMap;

use serde_json::{Map, Value};

use crate::record_text::printable;

/// Writes lines, knowing the keys of the tables that were described so far.
#[derive(Default)]
pub(crate) struct Lines {
    /// Key columns by table.
    keys: HashMap<String, Vec<String>>,
}

impl Lines {
    /// The line of a record; `None` for one that says nothing to a person. A record whose fields
    /// the stream renames is shown as the JSON that it is.
    pub(crate) fn line(&mut self, record: &Value) -> Option<String> {
        let text = |name: &str| record.get(name).and_then(Value::as_str);
        let Some(kind) = text("op_type") else {
            let is_schema = record.get("$schema").is_some();
            return (!is_schema).then(|| printable(record.to_string().as_bytes()));
        };
        let line = match kind {
            "STREAM_METADATA" => metadata(record),
            "OBJECT_METADATA" => self.table(record),
            "GAP" | "ERROR" => format!("-- {kind}: {}", text("what").unwrap_or_default()),
            kind => {
                let parts = [text("op_ts").unwrap_or("-"), kind, text("qual_table").unwrap_or("-")];
                format!("{}  {}", parts.join("  "), self.change(record))
            }
        };
        Some(printable(line.trim_end().as_bytes()))
    }

    fn table(&mut self, record: &Value) -> String {
        let table = plain(record.get("qual_table"));
        let columns = record.get("columns").and_then(Value::as_object);
        let columns: Vec<(&String, &Value)> = columns.into_iter().flatten().collect();
        let is_key = |column: &Value| column.get("key") == Some(&Value::Bool(true));
        let keys = columns.iter().filter(|(_, column)| is_key(column));
        self.keys.insert(table.clone(), keys.map(|(name, _)| (*name).clone()).collect());
        let columns: Vec<String> = columns
            .iter()
            .map(|(name, column)| {
                let key = if is_key(column) { " key" } else { "" };
                format!("{name} {}{key}", plain(column.get("source_type")))
            })
            .collect();
        format!("-- table {table} version {}: {}", plain(record.get("version")), columns.join(", "))
    }

    /// The key, and what changed.
    fn change(&self, record: &Value) -> String {
        let image = |name: &str| record.get(name).and_then(Value::as_object);
        let (before, after) = (image("before"), image("after"));
        let keys = self.keys.get(record["qual_table"].as_str().unwrap_or_default());
        let is_key = |name: &str| keys.is_some_and(|keys| keys.iter().any(|key| key == name));
        let mut words = Vec::new();
        match (before, after) {
            (Some(before), Some(after)) => {
                words.extend(named(after, |name, value| {
                    is_key(name) && before.get(name).is_none_or(|old| old == value)
                }));
                words.extend(differences(before, after));
            }
            (Some(row), None) | (None, Some(row)) => {
                words.extend(named(row, |name, _| is_key(name)));
                words.extend(named(row, |name, _| !is_key(name)));
            }
            (None, None) => {}
        }
        for name in ["ddl", "point", "key_change", "snapshot"] {
            words.extend(record.get(name).map(|value| format!("({name} {})", plain(Some(value)))));
        }
        words.join("  ")
    }
}

fn metadata(record: &Value) -> String {
    let (source, begin) = (&record["source"], &record["begin"]);
    let partition = source.get("partition").map(|p| format!(" partition {p}")).unwrap_or_default();
    format!(
        "-- topic {}{partition} from offset {} on ({})",
        plain(source.get("file")),
        plain(begin.get("offset")),
        plain(begin.get("requested")),
    )
}

fn named(row: &Map<String, Value>, wanted: impl Fn(&str, &Value) -> bool) -> Vec<String> {
    row.iter()
        .filter(|(name, value)| wanted(name, value))
        .map(|(name, value)| format!("{name}={}", shown(value)))
        .collect()
}

/// Columns whose value is another one now, or was not known before.
fn differences(before: &Map<String, Value>, after: &Map<String, Value>) -> Vec<String> {
    after
        .iter()
        .filter_map(|(name, value)| match before.get(name) {
            Some(old) if old == value => None,
            Some(old) => Some(format!("{name}: {} → {}", shown(old), shown(value))),
            None => Some(format!("{name}={}", shown(value))),
        })
        .collect()
}

/// A column's value; a text in quotes only where it could be taken for something else.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) if text.is_empty() || text.contains(' ') || text == "NULL" => {
            format!("{text:?}")
        }
        other => plain(Some(other)),
    }
}

fn plain(value: Option<&Value>) -> String {
    match value {
        None => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lines() -> Lines {
        let mut lines = Lines::default();
        let table = lines.line(&json!({
            "op_type": "OBJECT_METADATA", "qual_table": "public.orders", "version": 2, "columns": {
                "id": {"key": true, "source_type": "integer"},
                "note": {"key": false, "source_type": "text"},
            },
        }));
        let wanted = "-- table public.orders version 2: id integer key, note text";
        assert_eq!(table.as_deref(), Some(wanted));
        lines
    }

    fn row(op: &str, rest: Value) -> Value {
        let mut row =
            json!({"op_type": op, "qual_table": "public.orders", "op_ts": "T", "pos": "p"});
        row.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        row
    }

    #[test]
    fn a_row_is_its_key_and_what_changed() {
        let mut lines = lines();
        let mut line = |op, rest| lines.line(&row(op, rest)).unwrap();
        assert_eq!(
            line("INSERT", json!({"after": {"note": "a b", "id": 1}})),
            "T  INSERT  public.orders  id=1  note=\"a b\""
        );
        assert_eq!(
            line(
                "UPDATE",
                json!({"before": {"id": 1, "note": "x"}, "after": {"id": 1, "note": null}})
            ),
            "T  UPDATE  public.orders  id=1  note: x → NULL"
        );
        assert_eq!(
            line("UPDATE", json!({"before": {"id": 1}, "after": {"id": 2, "note": "x"}})),
            "T  UPDATE  public.orders  id: 1 → 2  note=x"
        );
        assert_eq!(
            line("DELETE", json!({"before": {"id": 2}, "key_change": {"id": 3}})),
            "T  DELETE  public.orders  id=2  (key_change {\"id\":3})"
        );
    }

    #[test]
    fn what_is_no_row_is_told_and_nothing_reaches_the_terminal_raw() {
        let mut lines = lines();
        let schema = json!({"$schema": "http://json-schema.org/draft-04/schema#", "id": "x"});
        assert_eq!(lines.line(&schema), None);
        let gap = json!({"op_type": "GAP", "what": "lost\u{1b}[2J"});
        assert_eq!(lines.line(&gap).unwrap(), "-- GAP: lost\\u{1b}[2J");
        let renamed = json!({"operation": "INSERT", "pos": "p"});
        assert_eq!(lines.line(&renamed).unwrap(), r#"{"operation":"INSERT","pos":"p"}"#);
    }
}
