//! `/connectors/{name}/offsets` (KIP-875).

use axum::Json;
use axum::extract::State;
use highwater_connector::{SourceOffset, SourcePartition};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::offset_changes::{Terms, Wanted};
use crate::rest::App;
use crate::rest_error::Refusal;
use crate::rest_request::{Body, Form, Params, Segments};

type Answer = Result<Json<Value>, Refusal>;

/// Query of a change; ours, beside Kafka Connect's body.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangeQuery {
    #[serde(default)]
    allow_skip: bool,
    #[serde(default)]
    reason: String,
}

impl From<ChangeQuery> for Terms {
    fn from(ChangeQuery { allow_skip, reason }: ChangeQuery) -> Self {
        Self { allow_skip, reason }
    }
}

/// Body of a change.
#[derive(Deserialize)]
pub(crate) struct Offsets {
    #[serde(default)]
    offsets: Option<Vec<Entry>>,
}

impl Form for Offsets {
    const FORM: &'static str = r#"{"offsets": [{"partition": {…}, "offset": {…}}]}"#;
}

#[derive(Deserialize)]
struct Entry {
    #[serde(default)]
    partition: Option<Map<String, Value>>,
    #[serde(default)]
    offset: Option<Map<String, Value>>,
}

pub(crate) async fn list(State(herder): App, Segments(name): Segments<String>) -> Answer {
    let stored = herder.offsets(&name).await?;
    let entry = |stored: crate::offsets::StoredOffset| {
        let mut entry = json!({ "partition": stored.partition, "offset": stored.offset? });
        if let Some(change) = stored.last_change {
            let at = jiff::Timestamp::from_millisecond(change.at_ms).map(|at| at.to_string());
            entry["highwater"] = json!({ "last_change": at.ok(), "reason": change.reason });
        }
        Some(entry)
    };
    let offsets: Vec<_> = stored.into_iter().filter_map(entry).collect();
    Ok(Json(json!({ "offsets": offsets })))
}

pub(crate) async fn alter(
    State(herder): App,
    Segments(name): Segments<String>,
    Params(query): Params<ChangeQuery>,
    Body(body): Body<Offsets>,
) -> Answer {
    let wanted = wanted(body)?;
    herder.alter_offsets(&name, wanted, &query.into()).await?;
    Ok(message("altered"))
}

pub(crate) async fn reset(
    State(herder): App,
    Segments(name): Segments<String>,
    Params(query): Params<ChangeQuery>,
) -> Answer {
    herder.reset_offsets(&name, &query.into()).await?;
    Ok(message("reset"))
}

fn message(done: &str) -> Json<Value> {
    Json(
        json!({ "message": format!("The offsets for this connector have been {done} successfully") }),
    )
}

pub(crate) fn wanted(body: Offsets) -> Result<Vec<Wanted>, Refusal> {
    let entries = body.offsets.unwrap_or_default();
    if entries.is_empty() {
        let text = "Partitions / offsets need to be provided for an alter offsets request";
        return Err(Refusal::BadRequest(text.to_owned()));
    }
    let wanted: Vec<_> = entries.into_iter().map(Entry::wanted).collect::<Result<_, _>>()?;
    for (at, entry) in wanted.iter().enumerate() {
        if wanted.iter().take(at).any(|other| other.partition == entry.partition) {
            let partition = Value::from(entry.partition.0.clone());
            return Err(Refusal::BadRequest(format!("Partition {partition} is given twice")));
        }
    }
    Ok(wanted)
}

impl Entry {
    fn wanted(self) -> Result<Wanted, Refusal> {
        let partition = self
            .partition
            .ok_or_else(|| Refusal::BadRequest("The partition of an offset is missing".into()))?;
        primitive("partition", &partition)?;
        if let Some(offset) = &self.offset {
            primitive("offset", offset)?;
        }
        Ok(Wanted { partition: SourcePartition(partition), offset: self.offset.map(SourceOffset) })
    }
}

/// Source partitions and offsets are flat maps of primitive values.
fn primitive(what: &str, map: &Map<String, Value>) -> Result<(), Refusal> {
    match map.iter().find(|(_, value)| value.is_object() || value.is_array()) {
        None => Ok(()),
        Some((key, _)) => Err(Refusal::BadRequest(format!(
            "Field {key} of the {what} is an object or array; only primitive values are stored"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Value) -> Result<Vec<Wanted>, Refusal> {
        wanted(serde_json::from_value(body).unwrap())
    }

    #[test]
    fn an_empty_request_is_refused() {
        for body in [json!({}), json!({ "offsets": null }), json!({ "offsets": [] })] {
            assert!(matches!(read(body), Err(Refusal::BadRequest(_))));
        }
    }

    #[test]
    fn a_null_offset_is_a_reset() {
        let entry = json!({ "partition": { "server": "a" }, "offset": null });
        let wanted = read(json!({ "offsets": [entry] })).unwrap();
        assert_eq!(wanted[0].offset, None);
    }

    #[test]
    fn each_malformed_entry_is_refused() {
        let twice = json!({ "partition": { "server": "a" }, "offset": { "lsn": 1 } });
        for offsets in [
            json!([{ "offset": { "lsn": 1 } }]),
            json!([{ "partition": { "server": ["a"] }, "offset": null }]),
            json!([{ "partition": { "server": "a" }, "offset": { "lsn": {} } }]),
            json!([twice, twice]),
        ] {
            assert!(read(json!({ "offsets": offsets })).is_err(), "{offsets}");
        }
    }
}
