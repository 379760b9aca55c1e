//! `/connectors` and below it, except offsets.

use std::ops::RangeToInclusive;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::config_records::Restart as Anew;
use crate::connector_changes::Put;
use crate::herder::Herder;
use crate::offset_changes::Terms;
use crate::pipeline::Properties;
use crate::plugins::Plugin;
use crate::rest::App;
use crate::rest_error::{Refusal, Thing};
use crate::rest_request::{Body, Configuration, Form, Given, Params, Segments, Text, truth, whole};
use crate::secrets;
use crate::status::{self, ConnectorStatus, Seen};
use crate::target_state::TargetState;

type Answer = Result<Json<Value>, Refusal>;

/// `expand` may be given several times; what is not known of it is ignored.
pub(crate) async fn list(
    State(herder): App,
    Params(query): Params<Vec<(String, String)>>,
) -> Json<Value> {
    let names: Vec<String> = herder.configs().names().map(str::to_owned).collect();
    let expand = |what: &str| query.iter().any(|(key, value)| key == "expand" && value == what);
    let (status, info) = (expand("status"), expand("info"));
    if !query.iter().any(|(key, _)| key == "expand") {
        return Json(json!(names));
    }
    let entry = |name: &String| {
        let mut entry = Map::new();
        // A connector that is deleted meanwhile is left out.
        if status {
            entry.insert("status".to_owned(), status_json(&herder, name).ok()?);
        }
        if info {
            entry.insert("info".to_owned(), info_json(&herder, name).ok()?);
        }
        Some((name.clone(), Value::Object(entry)))
    };
    Json(Value::Object(names.iter().filter_map(entry).collect()))
}

/// Body of `POST /connectors`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Create {
    #[serde(default)]
    name: Text,
    #[serde(default)]
    config: Option<Given>,
    #[serde(default)]
    initial_state: Option<String>,
}

impl Form for Create {
    const FORM: &'static str = r#"{"name": "NAME", "config": {"KEY": VALUE, …}}: the connector's keys stand under "config""#;
}

/// What Kafka Connect takes off the ends of a name: Java's white space.
const BLANK: RangeToInclusive<char> = ..=' ';

pub(crate) async fn create(
    State(herder): App,
    Body(create): Body<Create>,
) -> Result<Response, Refusal> {
    let properties = whole(create.config.unwrap_or_default())?;
    let name = create.name.0.unwrap_or_default();
    let name = name.trim_matches(|char| BLANK.contains(&char)).to_owned();
    let target = match create.initial_state.as_deref() {
        None => TargetState::Started,
        Some(text) => TargetState::from_initial(text).ok_or_else(|| {
            Refusal::BadRequest(format!(
                "initial_state is {text}; it must be RUNNING, PAUSED or STOPPED"
            ))
        })?,
    };
    herder.check_undeclared(&name)?;
    herder.create(&name, properties, target).await?;
    created(&herder, &name)
}

fn created(herder: &Herder, name: &str) -> Result<Response, Refusal> {
    let location = [(header::LOCATION, format!("/connectors/{}", segment(name)))];
    Ok((StatusCode::CREATED, location, Json(info_json(herder, name)?)).into_response())
}

pub(crate) async fn info(State(herder): App, Segments(name): Segments<String>) -> Answer {
    info_json(&herder, &name).map(Json)
}

pub(crate) async fn config(State(herder): App, Segments(name): Segments<String>) -> Answer {
    Ok(Json(json!(shown(&herder, &herder.properties(&name)?))))
}

pub(crate) async fn put_config(
    State(herder): App,
    Segments(name): Segments<String>,
    Body(Configuration(given)): Body<Configuration>,
) -> Result<Response, Refusal> {
    let properties = whole(given)?;
    herder.check_undeclared(&name)?;
    match herder.put_config(&name, properties).await? {
        Put::Created => created(&herder, &name),
        Put::Updated => Ok(Json(info_json(&herder, &name)?).into_response()),
    }
}

pub(crate) async fn patch_config(
    State(herder): App,
    Segments(name): Segments<String>,
    Body(Configuration(given)): Body<Configuration>,
) -> Answer {
    let patch = given.into_iter().map(|(key, Text(value))| (key, value)).collect();
    herder.check_undeclared(&name)?;
    herder.patch_config(&name, patch).await?;
    info_json(&herder, &name).map(Json)
}

/// Query of `DELETE`; ours.
#[derive(Deserialize)]
pub(crate) struct Delete {
    /// Whether the source lets go of what it keeps for the connector.
    #[serde(default)]
    release: bool,
}

/// Kafka Connect's answer has no body; what a source let go of is said in one.
pub(crate) async fn delete(
    State(herder): App,
    Segments(name): Segments<String>,
    Params(query): Params<Delete>,
) -> Result<Response, Refusal> {
    herder.check_undeclared(&name)?;
    if !query.release {
        herder.delete(&name).await?;
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let released = herder.release(&name).await?;
    // Nothing can go on from the offset any more, and a connector of this name would be refused for it.
    let terms =
        Terms { allow_skip: true, reason: "what it continued from was released".to_owned() };
    herder.reset_offsets(&name, &terms).await?;
    herder.delete(&name).await?;
    Ok(Json(json!({ "released": released })).into_response())
}

pub(crate) async fn status(State(herder): App, Segments(name): Segments<String>) -> Answer {
    status_json(&herder, &name).map(Json)
}

/// Query of `POST …/restart` (KIP-745).
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Restart {
    #[serde(default, deserialize_with = "truth")]
    include_tasks: bool,
    #[serde(default, deserialize_with = "truth")]
    only_failed: bool,
}

/// A connector is nothing beside its tasks here, so restarting the connector alone tries a
/// configuration again that could not be run, and leaves tasks alone.
pub(crate) async fn restart(
    State(herder): App,
    Segments(name): Segments<String>,
    Params(query): Params<Restart>,
) -> Result<Response, Refusal> {
    let status = herder
        .status(&name)
        .map_err(|_| Refusal::NotFound(format!("Unknown connector: {name}")))?;
    let affected = |part: &Seen| !query.only_failed || part.state() == status::State::Failed;
    let connector = affected(&status.connector);
    let tasks: Vec<u32> = status
        .tasks
        .iter()
        .filter_map(|(id, task)| (query.include_tasks && affected(task)).then_some(*id))
        .collect();
    let wanted = Anew { tasks: query.include_tasks, only_failed: query.only_failed };
    herder.restart(&name, wanted).await?;
    if !query.include_tasks && !query.only_failed {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let mut plan = status;
    if connector {
        plan.connector = plan.connector.restarting();
    }
    for id in tasks {
        plan.tasks.entry(id).and_modify(|task| *task = task.clone().restarting());
    }
    Ok((StatusCode::ACCEPTED, Json(status_of(&herder, &name, &plan))).into_response())
}

pub(crate) async fn pause(
    State(herder): App,
    Segments(name): Segments<String>,
) -> Result<StatusCode, Refusal> {
    herder.set_target(&name, TargetState::Paused).await?;
    Ok(StatusCode::ACCEPTED)
}

pub(crate) async fn resume(
    State(herder): App,
    Segments(name): Segments<String>,
) -> Result<StatusCode, Refusal> {
    herder.set_target(&name, TargetState::Started).await?;
    Ok(StatusCode::ACCEPTED)
}

pub(crate) async fn stop(
    State(herder): App,
    Segments(name): Segments<String>,
) -> Result<StatusCode, Refusal> {
    herder.set_target(&name, TargetState::Stopped).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(crate) async fn tasks(State(herder): App, Segments(name): Segments<String>) -> Answer {
    herder.properties(&name)?;
    let configs = herder.configs().tasks(&name).clone();
    let task = |(id, properties): (u32, &Properties)| json!({ "id": task_id(&name, id), "config": shown(&herder, properties) });
    let tasks: Vec<_> = (0..).zip(configs.committed().unwrap_or_default()).map(task).collect();
    Ok(Json(json!(tasks)))
}

pub(crate) async fn task_status(
    State(herder): App,
    Segments((name, task)): Segments<(String, String)>,
) -> Answer {
    let text = || format!("No status found for task {name}-{task}");
    let missing = || Refusal::Unknown(Thing::Task, text());
    let status = herder.status(&name).map_err(|_| Refusal::NotFound(text()))?;
    let id = task.parse().map_err(|_| missing())?;
    let found = status.task_json(id, &herder.config.worker_id, version(&herder, &name));
    found.map(Json).ok_or_else(missing)
}

pub(crate) async fn restart_task(
    State(herder): App,
    Segments((name, task)): Segments<(String, String)>,
) -> Result<StatusCode, Refusal> {
    let unknown = || Refusal::NotFound(format!("Unknown connector: {name}"));
    let status = herder.status(&name).map_err(|_| unknown())?;
    match task.parse() {
        Ok(id) if status.tasks.contains_key(&id) => herder.restart_task(&name, id)?,
        _ => return Err(Refusal::Unknown(Thing::Task, format!("Unknown task: {name}-{task}"))),
    }
    Ok(StatusCode::NO_CONTENT)
}

fn info_json(herder: &Herder, name: &str) -> Result<Value, Refusal> {
    let properties = herder.properties(name)?;
    Ok(json!({
        "name": name,
        "config": shown(herder, &properties),
        "tasks": task_ids(herder, name),
        "type": kind(herder, name),
    }))
}

fn status_json(herder: &Herder, name: &str) -> Result<Value, Refusal> {
    Ok(status_of(herder, name, &herder.status(name)?))
}

fn status_of(herder: &Herder, name: &str, status: &ConnectorStatus) -> Value {
    let worker_id = &herder.config.worker_id;
    let version = version(herder, name);
    json!({
        "name": name,
        "connector": status.connector_json(worker_id, version),
        "tasks": status.tasks_json(worker_id, version),
        "type": kind(herder, name),
    })
}

/// Kafka Connect's word for it; `unknown` for a class that is not known here.
fn kind(herder: &Herder, name: &str) -> &'static str {
    let properties = herder.properties(name).unwrap_or_default();
    herder.plugin(&properties).map_or("unknown", Plugin::kind)
}

fn version<'a>(herder: &'a Herder, name: &str) -> Option<&'a str> {
    let properties = herder.properties(name).ok()?;
    Some(herder.plugin(&properties)?.version())
}

fn shown(herder: &Herder, properties: &Properties) -> Properties {
    secrets::masked(herder.plugin(properties), properties)
}

fn task_ids(herder: &Herder, name: &str) -> Vec<Value> {
    let tasks = herder.configs().tasks(name).committed().map_or(0, |tasks| tasks.len());
    (0..).take(tasks).map(|id| task_id(name, id)).collect()
}

fn task_id(name: &str, id: u32) -> Value {
    json!({ "connector": name, "task": id })
}

/// A name as one segment of a path (RFC 3986), in which Kafka Connect leaves all as it is that may be.
pub(crate) fn segment(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,=:@".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}
