//! `highwater stream …`

use axum::http::Method;
use serde_json::{Map, Value, json};

use crate::api::{Api, segment};
use crate::cli::{Cli, Output, StreamAttributes, StreamCommand};
use crate::connector_configs::read;
use crate::failure::Failure;
use crate::{output, tail};

pub(crate) async fn run(cli: &Cli, command: &StreamCommand) -> Result<(), Failure> {
    let api = Api::of(cli)?;
    match command {
        StreamCommand::List => list(&api, cli.output).await,
        StreamCommand::Show { name } => show(&api, cli.output, name).await,
        StreamCommand::Create(attributes) => create(&api, cli.output, attributes).await,
        StreamCommand::Delete { name } => delete(&api, cli.output, name).await,
        StreamCommand::Tail { name, begin, count, checkpoint } => {
            tail::run(&api, cli.output, name, begin, *count, checkpoint.as_deref()).await
        }
    }
}

fn path(name: &str) -> String {
    format!("/services/v2/stream/{}", segment(name))
}

async fn list(api: &Api, output: Output) -> Result<(), Failure> {
    let answer = api.get("/services/v2/stream").await?;
    let items = answer["response"]["items"].clone();
    if output == Output::Json {
        output::json(&items)?;
        return Ok(());
    }
    let rows: Vec<Vec<String>> = items.as_array().into_iter().flatten().map(row).collect();
    if rows.is_empty() {
        output::line(
            "no data streams; make one with `highwater stream create NAME --trail TRAIL`",
        )?;
    } else {
        let headings = ["NAME", "READS", "QUALITY OF SERVICE", "STATUS"];
        output::line(&output::columns(&headings, &rows))?;
    }
    Ok(())
}

fn row(item: &Value) -> Vec<String> {
    let details = &item["details"];
    vec![
        output::plain(&item["name"]),
        reads(&details["source"]),
        output::plain(&details["qualityOfService"]),
        output::plain(&item["status"]),
    ]
}

/// What a stream reads, in words.
fn reads(source: &Value) -> String {
    match (&source["trail"], &source["topic"], &source["partition"]) {
        (Value::String(trail), ..) => format!("trail {trail}"),
        (_, Value::String(topic), Value::Null) => format!("topic {topic}"),
        (_, Value::String(topic), partition) => format!("topic {topic} partition {partition}"),
        _ => "-".to_owned(),
    }
}

async fn show(api: &Api, output: Output, name: &str) -> Result<(), Failure> {
    let resource = api.get(&path(name)).await?["response"].clone();
    let status = api.get(&format!("/highwater/v1/streams/{}", segment(name))).await?;
    if output == Output::Json {
        output::json(&json!({ "resource": resource, "status": status }))?;
        return Ok(());
    }
    let mut facts = vec![
        ("name", name.to_owned()),
        ("reads", reads(&resource["source"])),
        ("doing", output::plain(&status["activity"])),
        ("holds", held(&status["trail"])),
        ("quality of service", output::plain(&resource["qualityOfService"])),
        ("description", output::plain(&resource["description"])),
    ];
    facts.retain(|(_, value)| value != "-");
    for session in status["sessions"].as_array().into_iter().flatten() {
        let part = |name: &str| output::plain(&session[name]);
        let text = format!(
            "{} since {}: {} records sent, {} behind",
            part("id"),
            part("since"),
            part("records_sent"),
            part("lag"),
        );
        facts.push(("connection", text));
    }
    Ok(output::line(&output::facts(&facts))?)
}

fn held(edges: &Value) -> String {
    match &edges["unknown"] {
        Value::Null => format!(
            "offsets {} to {}",
            output::plain(&edges["log_start"]),
            output::plain(&edges["last_stable"])
        ),
        why => format!("unknown: {}", output::plain(why)),
    }
}

async fn create(api: &Api, output: Output, given: &StreamAttributes) -> Result<(), Failure> {
    let body = attributes(given)?;
    let answer = api.call(Method::POST, &path(&given.name), Some(&body)).await?;
    let made = &answer["response"];
    let text = format!(
        "stream {}: made, reads {}; follow it with `highwater stream tail {}`",
        given.name,
        reads(&made["source"]),
        given.name
    );
    Ok(output::result(output, made, &text)?)
}

/// The body of the request: the file, and the flags over it.
fn attributes(given: &StreamAttributes) -> Result<Value, Failure> {
    let mut body = match &given.file {
        None => json!({}),
        Some(file) => {
            let body: Value = serde_json::from_str(&read(file)?).map_err(|error| {
                Failure::usage(format!("{} is not JSON: {error}", file.display()))
            })?;
            // As it is listed by the server, too.
            body.get("response").cloned().unwrap_or(body)
        }
    };
    let Some(attributes) = body.as_object_mut() else {
        return Err(Failure::usage("the file does not hold a JSON object"));
    };
    let flags = [
        ("description", given.description.clone().map(Value::from)),
        ("qualityOfService", given.qos.clone().map(Value::from)),
        ("bufferSize", given.buffer_size.map(Value::from)),
    ];
    for (name, value) in flags {
        attributes.extend(value.map(|value| (name.to_owned(), value)));
    }
    match (&given.trail, &given.topic, given.partition) {
        (Some(trail), ..) => drop(attributes.insert("source".to_owned(), json!({"trail": trail}))),
        (None, Some(topic), partition) => {
            let mut source = json!({"topic": topic});
            source["partition"] = json!(partition);
            attributes.insert("source".to_owned(), source);
        }
        (None, None, _) => {}
    }
    for set in &given.set {
        set_at(attributes, set)?;
    }
    if attributes.get("source").is_none() {
        return Err(Failure::usage("nothing says what the stream reads")
            .remedy("add --trail TRAIL, or --topic TOPIC --partition N"));
    }
    Ok(body)
}

/// Sets `a.b.c=value`, making the objects on the way.
fn set_at(attributes: &mut Map<String, Value>, set: &str) -> Result<(), Failure> {
    let malformed = || {
        Failure::usage(format!("--set {set} is not PATH=VALUE"))
            .remedy("write such as --set encoding.json.omitNullColumnValues=true")
    };
    let (path, value) = set.split_once('=').ok_or_else(malformed)?;
    let mut names: Vec<&str> = path.split('.').collect();
    if names.iter().any(|name| name.is_empty()) {
        return Err(malformed());
    }
    let last = names.pop().ok_or_else(malformed)?;
    let mut object = attributes;
    for name in names {
        let inner = object.entry(name).or_insert_with(|| json!({}));
        object = inner.as_object_mut().ok_or_else(malformed)?;
    }
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    object.insert(last.to_owned(), value);
    Ok(())
}

async fn delete(api: &Api, output: Output, name: &str) -> Result<(), Failure> {
    api.call(Method::DELETE, &path(name), None).await?;
    let done = "deleted; the topic and its records stay";
    let document = json!({ "stream": name, "done": done });
    Ok(output::result(output, &document, &format!("stream {name}: {done}"))?)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::Command;

    fn body(flags: &[&str]) -> Result<Value, Failure> {
        let arguments = ["highwater", "stream", "create", "shop"];
        let cli = Cli::try_parse_from(arguments.iter().chain(flags)).unwrap();
        let Command::Stream { command: StreamCommand::Create(given) } = cli.command else {
            panic!("another command")
        };
        attributes(&given)
    }

    #[test]
    fn flags_become_attributes() {
        let given = ["--topic", "shop.public.orders", "--partition", "2", "--qos", "atLeastOnce"];
        let set = ["--set", "encoding.json.model=row", "--set", "encoding.json.omit=true"];
        assert_eq!(
            body(&[&given[..], &set[..]].concat()).unwrap(),
            json!({
                "source": {"topic": "shop.public.orders", "partition": 2},
                "qualityOfService": "atLeastOnce",
                "encoding": {"json": {"model": "row", "omit": true}},
            })
        );
        assert_eq!(body(&["--trail", "shop"]).unwrap(), json!({"source": {"trail": "shop"}}));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for flags in
            [&[][..], &["--trail", "shop", "--set", "x"], &["--trail", "a", "--set", ".=1"]]
        {
            assert_eq!(body(flags).unwrap_err().exit, crate::failure::Exit::Usage, "{flags:?}");
        }
        let both = ["highwater", "stream", "create", "x", "--trail", "a", "--topic", "b"];
        assert!(Cli::try_parse_from(both).is_err());
    }
}
