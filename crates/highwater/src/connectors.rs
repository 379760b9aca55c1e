//! `highwater connector …`

use std::time::{Duration, Instant};

use axum::http::Method;
use serde_json::{Value, json};

use crate::api::{Api, segment};
use crate::cli::{Cli, ConnectorCommand, Output};
use crate::connector_configs as configs;
use crate::connector_status::{self as statuses, held, is_sink};
use crate::failure::Failure;
use crate::output;

pub(crate) async fn run(cli: &Cli, command: &ConnectorCommand) -> Result<(), Failure> {
    let api = Api::of(cli)?;
    match command {
        ConnectorCommand::List => statuses::list(&api, cli.output).await,
        ConnectorCommand::Show { name } => statuses::show(&api, cli.output, name).await,
        ConnectorCommand::Create { file } => configs::create(&api, cli.output, file).await,
        ConnectorCommand::Update { name, file } => {
            configs::update(&api, cli.output, name, file).await
        }
        ConnectorCommand::Patch { name, keys, unset } => {
            configs::patch(&api, cli.output, name, keys, unset).await
        }
        ConnectorCommand::Validate { file } => configs::validate(&api, cli.output, file).await,
        ConnectorCommand::Plugins { all } => configs::plugins(&api, cli.output, *all).await,
        ConnectorCommand::Delete { name, drop_slot: true } => release(&api, cli.output, name).await,
        ConnectorCommand::Delete { name, drop_slot: false } => delete(&api, cli.output, name).await,
        ConnectorCommand::Pause { name } => {
            steer(&api, cli.output, Method::PUT, name, "pause", "pausing").await
        }
        ConnectorCommand::Stop { name } => stop(&api, cli.output, name).await,
        ConnectorCommand::Resume { name } => {
            steer(&api, cli.output, Method::PUT, name, "resume", "resuming").await
        }
        ConnectorCommand::Restart { name, only_failed, task } => {
            let (verb, done) = restart(*only_failed, *task);
            steer(&api, cli.output, Method::POST, name, &verb, &done).await
        }
    }
}

/// What is asked for to restart all, what has failed, or one task; and what is said then.
fn restart(only_failed: bool, task: Option<u32>) -> (String, String) {
    match task {
        Some(id) => (format!("tasks/{id}/restart"), format!("task {id} is restarting")),
        None => (
            format!("restart?includeTasks=true&onlyFailed={only_failed}"),
            if only_failed { "restarting what has failed" } else { "restarting" }.to_owned(),
        ),
    }
}

async fn steer(
    api: &Api,
    output: Output,
    method: Method,
    name: &str,
    verb: &str,
    done: &str,
) -> Result<(), Failure> {
    let path = format!("/connectors/{}/{verb}", segment(name));
    act(api, output, method, &path, name, done).await
}

async fn act(
    api: &Api,
    output: Output,
    method: Method,
    path: &str,
    name: &str,
    done: &str,
) -> Result<(), Failure> {
    api.call(method, path, None).await?;
    let document = json!({ "connector": name, "done": done });
    Ok(output::result(output, &document, &format!("connector {name}: {done}"))?)
}

/// Stops it and says what its source keeps meanwhile.
async fn stop(api: &Api, output: Output, name: &str) -> Result<(), Failure> {
    api.call(Method::PUT, &format!("/connectors/{}/stop", segment(name)), None).await?;
    let hold = hold(api, name).await?;
    let status = api.get(&format!("/connectors/{}/status", segment(name))).await?;
    let done = stopped(name, &status);
    let document = json!({ "connector": name, "done": done, "hold": hold });
    let text = format!("connector {name}: {done}{}", kept(&hold));
    Ok(output::result(output, &document, &text)?)
}

/// How far a connector came that was told to stop: one that drains for long is awaited for a while
/// only.
fn stopped(name: &str, status: &Value) -> String {
    match status["connector"]["state"].as_str() {
        Some("STOPPED") => "stopped".to_owned(),
        _ => format!(
            "stopping, and {} still; highwater connector show {name} says when it is stopped",
            output::plain(&status["connector"]["state"])
        ),
    }
}

/// Deletes it and says what its source goes on keeping, which nobody will say again.
async fn delete(api: &Api, output: Output, name: &str) -> Result<(), Failure> {
    let path = format!("/connectors/{}", segment(name));
    let status = api.get(&format!("{path}/status")).await.unwrap_or_default();
    api.call(Method::DELETE, &path, None).await?;
    let hold = held(&status).unwrap_or(Value::Null);
    let done = deleted(&status);
    let document = json!({ "connector": name, "done": done, "hold": hold });
    let text = match (hold["says"].as_str(), hold["by_hand"].as_str()) {
        (Some(says), Some(by_hand)) => format!(
            "connector {name}: deleted; its topics and its offset stay, and so does this: {says}; \
             {by_hand}"
        ),
        _ => format!("connector {name}: {done}"),
    };
    Ok(output::result(output, &document, &text)?)
}

/// What is left of a connector that is deleted.
fn deleted(status: &Value) -> &'static str {
    if is_sink(status) {
        "deleted; the topics that it read, the offsets of its group and what it wrote stay"
    } else {
        "deleted; its topics and its offset stay, and what its source keeps for it, such as a \
         replication slot with the WAL behind it"
    }
}

async fn release(api: &Api, output: Output, name: &str) -> Result<(), Failure> {
    let path = format!("/connectors/{}?release=true", segment(name));
    let answer = api.call(Method::DELETE, &path, None).await?;
    let released = answer["released"].as_str().unwrap_or("nothing else was kept for it");
    let document = json!({ "connector": name, "done": "deleted", "released": answer["released"] });
    let text = format!("connector {name}: deleted with its offset, {released}; its topics stay");
    Ok(output::result(output, &document, &text)?)
}

/// How long a command waits until the source has said what it keeps.
const HOLD_PATIENCE: Duration = Duration::from_secs(5);

/// What the source keeps for a connector that was just stopped: null when it keeps nothing or has
/// not answered, and of a sink, which has none.
pub(crate) async fn hold(api: &Api, name: &str) -> Result<Value, Failure> {
    let until = Instant::now() + HOLD_PATIENCE;
    loop {
        let status = api.get(&format!("/connectors/{}/status", segment(name))).await?;
        match held(&status) {
            Some(hold) => return Ok(hold),
            None if is_sink(&status) || Instant::now() >= until => return Ok(Value::Null),
            None => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
}

/// The sentence behind another, and what to do.
pub(crate) fn kept(hold: &Value) -> String {
    match (hold["says"].as_str(), hold["do"].as_str()) {
        (Some(says), Some(remedy)) => format!("; {says}\n  do    {remedy}"),
        (Some(says), None) => format!("; {says}"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connector_that_drains_is_not_said_to_be_stopped() {
        let said = |state: &str| stopped("a", &json!({ "connector": { "state": state } }));
        assert_eq!(said("STOPPED"), "stopped");
        assert!(said("RUNNING").starts_with("stopping, and RUNNING still"), "{}", said("RUNNING"));
    }

    #[test]
    fn a_sink_that_is_deleted_leaves_no_source_behind() {
        assert!(deleted(&json!({ "type": "source" })).contains("replication slot"));
        let said = deleted(&json!({ "type": "sink" }));
        assert!(said.contains("offsets of its group") && !said.contains("source"), "{said}");
    }
}
