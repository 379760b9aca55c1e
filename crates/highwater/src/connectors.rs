//! `highwater connector …`

use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

use axum::http::Method;
use serde_json::{Value, json};

use crate::api::{Api, segment};
use crate::cli::{Cli, ConnectorCommand, Output};
use crate::failure::{Exit, Failure};
use crate::output;

/// How long `create` waits for the source to be opened.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// How long it watches a task that fails and is started again: a wrong address is told soon.
const RETRY_PATIENCE: Duration = Duration::from_secs(3);

pub(crate) async fn run(cli: &Cli, command: &ConnectorCommand) -> Result<(), Failure> {
    let api = Api::of(cli)?;
    match command {
        ConnectorCommand::List => list(&api, cli.output).await,
        ConnectorCommand::Show { name } => show(&api, cli.output, name).await,
        ConnectorCommand::Create { file } => create(&api, cli.output, file).await,
        ConnectorCommand::Delete { name, drop_slot: true } => release(&api, cli.output, name).await,
        ConnectorCommand::Delete { name, drop_slot: false } => delete(&api, cli.output, name).await,
        ConnectorCommand::Pause { name } => {
            steer(&api, cli.output, Method::PUT, name, "pause", "pausing").await
        }
        ConnectorCommand::Stop { name } => stop(&api, cli.output, name).await,
        ConnectorCommand::Resume { name } => {
            steer(&api, cli.output, Method::PUT, name, "resume", "resuming").await
        }
        ConnectorCommand::Restart { name } => {
            let verb = "restart?includeTasks=true";
            steer(&api, cli.output, Method::POST, name, verb, "restarting").await
        }
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

fn is_sink(status: &Value) -> bool {
    status["type"] == "sink"
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

/// What a status says of it; none before the source was asked.
fn held(status: &Value) -> Option<Value> {
    status["connector"]["highwater"].get("hold").cloned()
}

/// The sentence behind another, and what to do.
pub(crate) fn kept(hold: &Value) -> String {
    match (hold["says"].as_str(), hold["do"].as_str()) {
        (Some(says), Some(remedy)) => format!("; {says}\n  do    {remedy}"),
        (Some(says), None) => format!("; {says}"),
        _ => String::new(),
    }
}

async fn create(api: &Api, output: Output, file: &Path) -> Result<(), Failure> {
    let text = read(file)?;
    let body: Value = serde_json::from_str(&text).map_err(|error| {
        Failure::usage(format!("{} is not JSON: {error}", file.display()))
            .remedy("write {\"name\": …, \"config\": {…}}; README.md has an example")
    })?;
    let created = api.call(Method::POST, "/connectors", Some(&body)).await?;
    let name = output::plain(&created["name"]);
    let status = settled(api, &name).await?;
    if let Some(failure) = failure(&name, &status) {
        return Err(failure);
    }
    let state = output::plain(&status["connector"]["state"]);
    let text = format!("connector {name}: created, {state}: {}", doing(&status));
    Ok(output::result(output, &created, &text)?)
}

/// Waits until a new connector runs, failed, or is meant not to run, within [`START_PATIENCE`], or
/// [`RETRY_PATIENCE`] of its first failure.
async fn settled(api: &Api, name: &str) -> Result<Value, Failure> {
    let mut until = Instant::now() + START_PATIENCE;
    let mut progress = output::Progress::new();
    loop {
        let status = api.get(&format!("/connectors/{}/status", segment(name))).await?;
        let state = |part: &Value| part["state"].as_str().unwrap_or_default().to_owned();
        let (connector, task) = (state(&status["connector"]), state(telling(&status)));
        let opening = matches!(connector.as_str(), "" | "UNASSIGNED" | "RUNNING")
            && matches!(task.as_str(), "" | "UNASSIGNED" | RESTARTING);
        if task == RESTARTING {
            until = until.min(Instant::now() + RETRY_PATIENCE);
        }
        if !opening || Instant::now() >= until {
            progress.end();
            return Ok(status);
        }
        progress.say(&format!("connector {name}: {}", doing(&status)));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// State of a task that failed and is tried again by itself.
const RESTARTING: &str = "RESTARTING";

/// What keeps a connector that exists from running, in the parts that its source gave.
fn failure(name: &str, status: &Value) -> Option<Failure> {
    let failed = [telling(status), &status["connector"]]
        .into_iter()
        .find(|part| part["state"] == "FAILED" || part["state"] == RESTARTING)?;
    let error = failed["highwater"]["error"].as_object()?;
    let part = |key: &str| error.get(key).map(output::plain).unwrap_or_default();
    let (code, what, remedy) = (part("code"), part("what"), part("do"));
    let failure = if failed["state"] == RESTARTING {
        let what = format!("connector {name} is created and does not run yet: {what}");
        let remedy = format!("{remedy}; highwater connector show {name} tells whether it runs");
        Failure::new(Exit::Failed, &code, what).remedy(remedy)
    } else {
        let what = format!("connector {name} is created, but its task failed: {what}");
        Failure::new(Exit::Failed, &code, what).remedy(and_restart(remedy, name))
    };
    Some(failure.kept(part("kept")))
}

/// What to do about a failed task, and that it has to be started; a remedy that steers the connector
/// starts it itself.
fn and_restart(remedy: String, name: &str) -> String {
    if remedy.contains("highwater connector") {
        return remedy;
    }
    format!("{remedy}; then highwater connector restart {name}")
}

/// The text of a file, or of standard input for `-`.
pub(crate) fn read(file: &Path) -> Result<String, Failure> {
    if file.as_os_str() == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    std::fs::read_to_string(file)
        .map_err(|error| Failure::usage(format!("{} cannot be read: {error}", file.display())))
}

async fn list(api: &Api, output: Output) -> Result<(), Failure> {
    let all = api.get("/connectors?expand=status").await?;
    if output == Output::Json {
        output::json(&all)?;
        return Ok(());
    }
    let rows: Vec<Vec<String>> =
        all.as_object().into_iter().flatten().map(|(name, entry)| row(name, entry)).collect();
    if rows.is_empty() {
        output::line("no connectors; make one with `highwater connector create --file FILE`")?;
    } else {
        output::line(&output::columns(&["NAME", "TYPE", "STATE", "TASK", "DOING"], &rows))?;
    }
    Ok(())
}

fn row(name: &str, entry: &Value) -> Vec<String> {
    let status = &entry["status"];
    vec![
        name.to_owned(),
        output::plain(&status["type"]),
        output::plain(&status["connector"]["state"]),
        tasks(status),
        [Some(doing(status)), pressing(status)]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("; "),
    ]
}

/// The state of its task, or how many of several run.
fn tasks(status: &Value) -> String {
    let all = status["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let running = all.iter().filter(|task| task["state"] == "RUNNING").count();
    match all.len() {
        0 | 1 => output::plain(&telling(status)["state"]),
        tasks => format!("{running} of {tasks} RUNNING"),
    }
}

/// The task that tells most of the connector: one that does not run, or the first one.
fn telling(status: &Value) -> &Value {
    let all = status["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let states = ["FAILED", RESTARTING, "UNASSIGNED"].into_iter();
    let mut found = states.filter_map(|state| all.iter().find(|task| task["state"] == state));
    found.next().unwrap_or(&status["tasks"][0])
}

/// What the source keeps, where that matters: nobody reads it, or it is too much.
fn pressing(status: &Value) -> Option<String> {
    let hold = held(status)?;
    let reads = telling(status)["state"] == "RUNNING";
    let says = hold["says"].as_str().filter(|_| !reads || hold["pressing"] == true)?;
    Some(says.to_owned())
}

/// The sentence that says whether it moves, or the first line of what stopped it.
fn doing(status: &Value) -> String {
    let task = telling(status);
    let connector = &status["connector"];
    [
        &task["highwater"]["activity"],
        &task["trace"],
        &connector["highwater"]["activity"],
        &connector["trace"],
    ]
    .into_iter()
    .find_map(Value::as_str)
    .and_then(|text| text.lines().next())
    .unwrap_or("-")
    .to_owned()
}

/// Since when it is in its state: the task's, or the connector's when it has no task.
fn since(status: &Value) -> String {
    match &telling(status)["highwater"]["since"] {
        Value::Null => output::plain(&status["connector"]["highwater"]["since"]),
        since => output::plain(since),
    }
}

async fn show(api: &Api, output: Output, name: &str) -> Result<(), Failure> {
    let path = format!("/connectors/{}", segment(name));
    let info = api.get(&path).await?;
    let status = api.get(&format!("{path}/status")).await?;
    let offsets = api.get(&format!("{path}/offsets")).await?;
    if output == Output::Json {
        output::json(&json!({ "info": info, "status": status, "offsets": offsets["offsets"] }))?;
        return Ok(());
    }
    let task = telling(&status);
    let mut facts = vec![
        ("name", name.to_owned()),
        ("state", output::plain(&status["connector"]["state"])),
        ("task", tasks(&status)),
        ("doing", doing(&status)),
        ("since", since(&status)),
        ("code", output::plain(&task["highwater"]["error"]["code"])),
        ("kept", output::plain(&task["highwater"]["error"]["kept"])),
        ("do", output::plain(&task["highwater"]["error"]["do"])),
        ("worker", output::plain(&status["connector"]["worker_id"])),
        ("offset", output::plain(&offsets["offsets"][0]["offset"])),
    ];
    let hold = held(&status).unwrap_or(Value::Null);
    facts.push(("held", output::plain(&hold["says"])));
    if pressing(&status).is_some() {
        facts.push(("do", output::plain(&hold["do"])));
    }
    facts.retain(|(_, value)| value != "-");
    for (key, value) in info["config"].as_object().into_iter().flatten() {
        facts.push(("config", format!("{key} = {}", output::plain(value))));
    }
    output::line(&output::facts(&facts))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(task: &str, hold: Value) -> Value {
        json!({
            "connector": { "state": "RUNNING", "highwater": { "hold": hold } },
            "tasks": [{ "state": task, "highwater": { "activity": "reads" } }],
        })
    }

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

    #[test]
    fn of_several_tasks_the_one_that_does_not_run_is_told() {
        let task =
            |state: &str, says: &str| json!({ "state": state, "highwater": { "activity": says } });
        let two = |second| json!({ "tasks": [task("RUNNING", "reads"), second] });
        let shown = |status: Value| (tasks(&status), doing(&status));
        let pair = |tasks: &str, doing: &str| (tasks.to_owned(), doing.to_owned());
        assert_eq!(shown(two(task("FAILED", "fails"))), pair("1 of 2 RUNNING", "fails"));
        assert_eq!(shown(two(task("RUNNING", "reads on"))), pair("2 of 2 RUNNING", "reads"));
        assert_eq!(shown(json!({ "tasks": [] })), pair("-", "-"));
    }

    #[test]
    fn what_is_held_is_listed_where_nobody_reads_it_or_it_is_too_much() {
        let hold = |pressing| json!({ "says": "slot a holds 7 bytes", "pressing": pressing });
        let listed = |status: Value| row("a", &json!({ "status": status }))[4].clone();
        assert_eq!(listed(status("RUNNING", hold(false))), "reads");
        let said = "reads; slot a holds 7 bytes";
        assert_eq!(listed(status("RUNNING", hold(true))), said);
        assert_eq!(listed(status("FAILED", hold(false))), said);
        assert_eq!(listed(status("FAILED", Value::Null)), "reads");
    }
}
