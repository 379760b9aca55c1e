//! `highwater offsets …`

use axum::http::Method;
use serde_json::{Value, json};

use crate::api::{Api, segment};
use crate::cli::{Cli, OffsetsCommand, Output};
use crate::connectors;
use crate::failure::{Exit, Failure};
use crate::output;

pub(crate) async fn run(cli: &Cli, command: &OffsetsCommand) -> Result<(), Failure> {
    let api = Api::of(cli)?;
    match command {
        OffsetsCommand::Show { name } => show(&api, cli.output, name).await,
        OffsetsCommand::Set { name, fields, remove, allow_skip, reason } => {
            let stored = only_offset(&api, name).await?;
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
            facts.push(("reason", output::plain(&change["reason"])));
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

/// The one stored entry of a connector, `{partition, offset}`.
async fn only_offset(api: &Api, name: &str) -> Result<Value, Failure> {
    let mut answer = api.get(&format!("/connectors/{}/offsets", segment(name))).await?;
    match answer["offsets"].as_array_mut() {
        Some(entries) if entries.len() == 1 => Ok(entries.remove(0)),
        Some(entries) if entries.is_empty() => Err(Failure::new(
            Exit::Refused,
            "NO_OFFSET",
            format!("connector {name} has no stored offset to change"),
        )
        .kept("nothing was changed")
        .remedy("start the connector once; it stores its first position by itself")),
        _ => Err(Failure::new(
            Exit::Refused,
            "SEVERAL_OFFSETS",
            format!("connector {name} has several stored offsets; this command changes one"),
        )
        .kept("nothing was changed")
        .remedy(format!("PATCH /connectors/{name}/offsets with the entries to change"))),
    }
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
    for field in fields {
        let (key, text) = field
            .split_once('=')
            .ok_or_else(|| Failure::usage(format!("{field} is not FIELD=VALUE")))?;
        offset.insert(key.to_owned(), primitive(text));
    }
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
    fn a_field_that_is_not_there_cannot_be_removed() {
        let entry = json!({ "partition": {}, "offset": {} });
        assert_eq!(edited(entry, &[], &["lsn".to_owned()]).unwrap_err().exit, Exit::Usage);
    }
}
