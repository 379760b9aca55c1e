//! `highwater offsets …`

use axum::http::Method;
use serde_json::{Map, Value, json};

use crate::api::{Api, segment};
use crate::cli::{Cli, OffsetsCommand, Output};
use crate::connectors;
use crate::failure::{Exit, Failure};
use crate::output;

pub(crate) async fn run(cli: &Cli, command: &OffsetsCommand) -> Result<(), Failure> {
    let api = Api::of(cli)?;
    match command {
        OffsetsCommand::Show { name } => show(&api, cli.output, name).await,
        OffsetsCommand::Set { name, fields, remove, partition, allow_skip, reason } => {
            let stored = stored(&api, name).await?;
            let stored = chosen(name, stored, &pairs(partition, |text| Value::from(text))?)?;
            let body = json!({ "offsets": [edited(stored, fields, remove)?] });
            let query = query(*allow_skip, reason);
            change(&api, cli.output, Method::PATCH, name, &query, Some(&body)).await
        }
        OffsetsCommand::Delete { name, reason } => {
            change(&api, cli.output, Method::DELETE, name, &query(false, reason), None).await
        }
    }
}

async fn show(api: &Api, output: Output, name: &str) -> Result<(), Failure> {
    let answer = api.get(&format!("/connectors/{}/offsets", segment(name))).await?;
    if output == Output::Json {
        output::json(&answer)?;
        return Ok(());
    }
    let offsets = answer["offsets"].as_array().map(Vec::as_slice).unwrap_or_default();
    if offsets.is_empty() {
        output::line(&format!("connector {name} has no stored offset: it starts from nothing"))?;
    }
    for entry in offsets {
        let mut facts = vec![("partition", output::plain(&entry["partition"]))];
        for (key, value) in entry["offset"].as_object().into_iter().flatten() {
            facts.push((key, output::plain(value)));
        }
        let change = &entry["highwater"];
        if !change.is_null() {
            facts.push(("last change", output::plain(&change["last_change"])));
            let reason = output::plain(&change["reason"]);
            facts.extend((!reason.is_empty()).then_some(("reason", reason)));
        }
        output::line(&output::facts(&facts))?;
    }
    Ok(())
}

async fn change(
    api: &Api,
    output: Output,
    method: Method,
    name: &str,
    query: &str,
    body: Option<&Value>,
) -> Result<(), Failure> {
    let path = format!("/connectors/{}/offsets{query}", segment(name));
    // Without an offset nothing reads what the source still keeps.
    let removed = method == Method::DELETE;
    let answer = api.call(method, &path, body).await?;
    let mut text = output::plain(&answer["message"]);
    if removed {
        text.push_str(&connectors::kept(&connectors::hold(api, name).await?));
    }
    Ok(output::result(output, &answer, &text)?)
}

fn query(allow_skip: bool, reason: &str) -> String {
    format!("?allowSkip={allow_skip}&reason={}", segment(reason))
}

/// The stored entries of a connector, each `{partition, offset}`.
async fn stored(api: &Api, name: &str) -> Result<Vec<Value>, Failure> {
    let mut answer = api.get(&format!("/connectors/{}/offsets", segment(name))).await?;
    match answer["offsets"].take() {
        Value::Array(entries) => Ok(entries),
        _ => Ok(Vec::new()),
    }
}

/// The one entry whose partition has these fields. Where none has them they are all of it: an entry
/// that is to be made.
fn chosen(
    name: &str,
    entries: Vec<Value>,
    partition: &Map<String, Value>,
) -> Result<Value, Failure> {
    let has = |entry: &Value| {
        let stored = |key: &str| output::plain(&entry["partition"][key]);
        partition.iter().all(|(key, value)| stored(key) == output::plain(value))
    };
    let mut fitting: Vec<Value> = entries.into_iter().filter(has).collect();
    match (fitting.len(), partition.is_empty()) {
        (1, _) => Ok(fitting.remove(0)),
        (0, false) => Ok(json!({ "partition": partition, "offset": {} })),
        (0, true) => Err(Failure::new(
            Exit::Refused,
            "NO_OFFSET",
            format!("connector {name} has no stored offset to change"),
        )
        .kept("nothing was changed")
        .remedy(
            "start the connector once: it stores its first position by itself; or name the partition \
             of a sink with --partition",
        )),
        (several, _) => Err(Failure::new(
            Exit::Refused,
            "SEVERAL_OFFSETS",
            format!("connector {name} has {several} such stored offsets; this command changes one"),
        )
        .kept("nothing was changed")
        .remedy(format!(
            "name the partition as highwater offsets show {name} does, such as --partition \
             kafka_topic=lines --partition kafka_partition=0"
        ))),
    }
}

/// Fields that are given as FIELD=VALUE.
fn pairs(given: &[String], read: fn(&str) -> Value) -> Result<Map<String, Value>, Failure> {
    let pair = |text: &String| {
        let (key, value) = text
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("{text} is not FIELD=VALUE")))?;
        Ok((key.to_owned(), read(value)))
    };
    given.iter().map(pair).collect()
}

/// The entry with its fields set and removed.
fn edited(mut entry: Value, fields: &[String], remove: &[String]) -> Result<Value, Failure> {
    let offset = entry["offset"]
        .as_object_mut()
        .ok_or_else(|| Failure::usage("the stored offset is not a map of fields"))?;
    for key in remove {
        if offset.remove(key).is_none() {
            return Err(Failure::usage(format!("the stored offset has no field {key} to remove")));
        }
    }
    offset.extend(pairs(fields, primitive)?);
    Ok(entry)
}

/// A number or flag when it reads as one, else text.
fn primitive(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
        _ => Value::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_set_and_removed() {
        let entry = json!({ "partition": {}, "offset": { "lsn": "0/1", "event_index": 3 } });
        let fields = ["lsn=0/2".to_owned(), "v=1".to_owned()];
        let entry = edited(entry, &fields, &["event_index".to_owned()]).unwrap();
        assert_eq!(entry["offset"], json!({ "lsn": "0/2", "v": 1 }));
    }

    #[test]
    fn of_several_offsets_one_is_named_by_its_partition_or_is_made() {
        let at = |topic: &str, partition: i32| json!({ "kafka_partition": partition, "kafka_topic": topic });
        let entry = |topic, partition| json!({ "partition": at(topic, partition), "offset": { "kafka_offset": 7 } });
        let entries = || vec![entry("a", 0), entry("a", 1), entry("b", 0)];
        let named = |entries, given: &[&str]| {
            let given: Vec<_> = given.iter().map(|text| (*text).to_owned()).collect();
            chosen("out", entries, &pairs(&given, |text| Value::from(text))?)
        };
        assert_eq!(named(entries(), &["kafka_topic=b"]).unwrap(), entry("b", 0));
        let one = ["kafka_topic=a", "kafka_partition=1"];
        assert_eq!(named(entries(), &one).unwrap(), entry("a", 1));
        let made = named(Vec::new(), &one).unwrap();
        let partition = json!({ "kafka_partition": "1", "kafka_topic": "a" });
        assert_eq!(made, json!({ "partition": partition, "offset": {} }));
        assert_eq!(named(vec![entry("a", 0)], &[]).unwrap(), entry("a", 0));
        for (entries, given, code) in [
            (entries(), &["kafka_topic=a"][..], "SEVERAL_OFFSETS"),
            (entries(), &[], "SEVERAL_OFFSETS"),
            (Vec::new(), &[], "NO_OFFSET"),
            (entries(), &["kafka_topic"], "USAGE"),
        ] {
            assert_eq!(named(entries, given).unwrap_err().code, code, "{given:?}");
        }
    }

    #[test]
    fn a_field_that_is_not_there_cannot_be_removed() {
        let entry = json!({ "partition": {}, "offset": {} });
        assert_eq!(edited(entry, &[], &["lsn".to_owned()]).unwrap_err().exit, Exit::Usage);
    }
}
