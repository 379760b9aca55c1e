//! `highwater connector list` and `show`: what the status of a connector says.

use serde_json::{Value, json};

use crate::api::{Api, segment};
use crate::cli::Output;
use crate::failure::Failure;
use crate::output;

/// State of a task that failed and is tried again by itself.
pub(crate) const RESTARTING: &str = "RESTARTING";

/// Offsets that are shown of one connector, at most.
const OFFSETS: usize = 10;

/// A label, and what stands behind it.
type Fact = (String, String);

fn fact(label: &str, text: String) -> Fact {
    (label.to_owned(), text)
}

pub(crate) async fn list(api: &Api, output: Output) -> Result<(), Failure> {
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
        running(status),
        [Some(doing(status)), pressing(status)]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("; "),
    ]
}

pub(crate) async fn show(api: &Api, output: Output, name: &str) -> Result<(), Failure> {
    let path = format!("/connectors/{}", segment(name));
    let info = api.get(&path).await?;
    let status = api.get(&format!("{path}/status")).await?;
    let offsets = api.get(&format!("{path}/offsets")).await?;
    if output == Output::Json {
        output::json(&json!({ "info": info, "status": status, "offsets": offsets["offsets"] }))?;
        return Ok(());
    }
    let mut facts = vec![fact("name", name.to_owned())];
    facts.extend(standing(&status));
    facts.extend(positions(name, &offsets["offsets"]));
    facts.extend(holding(&status));
    facts.retain(|(_, value)| value != "-");
    for (key, value) in info["config"].as_object().into_iter().flatten() {
        facts.push(fact("config", format!("{key} = {}", output::plain(value))));
    }
    output::line(&output::facts(&facts))?;
    Ok(())
}

/// How the connector and its tasks stand: each of several, or the one as the connector's own.
fn standing(status: &Value) -> Vec<Fact> {
    let connector = &status["connector"];
    let all = tasks(status);
    let own = all.len() < 2;
    let mut facts = vec![
        fact("state", output::plain(&connector["state"])),
        fact(if own { "task" } else { "tasks" }, running(status)),
    ];
    let stands = if own { part(status) } else { connector };
    if own || connector["state"] == "FAILED" {
        facts.push(fact("doing", doing(status)));
        facts.push(fact("since", output::plain(&stands["highwater"]["since"])));
        facts.extend(error(stands));
    }
    facts.push(fact("worker", output::plain(&stands["worker_id"])));
    if !own {
        facts.extend(all.iter().flat_map(task));
    }
    facts
}

/// One of several tasks: its state, where it runs, and what it does, with its error.
fn task(task: &Value) -> Vec<Fact> {
    let part = |key: &str| output::plain(&task[key]);
    let since = task["highwater"]["since"].as_str().map(|since| format!(" since {since}"));
    let (state, worker, since) = (part("state"), part("worker_id"), since.unwrap_or_default());
    let says = said(task).unwrap_or_else(|| "-".to_owned());
    let stands = format!("{state} on {worker}{since}: {says}");
    [fact(&format!("task {}", part("id")), stands)].into_iter().chain(error(task)).collect()
}

/// The error of a part, without what its activity says.
fn error(part: &Value) -> Vec<Fact> {
    let error = part["highwater"]["error"].as_object();
    let given = |key: &str| Some(fact(key, output::plain(error?.get(key)?)));
    ["code", "kept", "do"].into_iter().filter_map(given).collect()
}

/// The stored offsets; of several each with its partition.
fn positions(name: &str, offsets: &Value) -> Vec<Fact> {
    let all = offsets.as_array().map(Vec::as_slice).unwrap_or_default();
    let position = |entry: &Value| {
        let offset = output::plain(&entry["offset"]);
        let whole = format!("{}: {offset}", output::plain(&entry["partition"]));
        fact("offset", if all.len() == 1 { offset } else { whole })
    };
    let more = all.len().saturating_sub(OFFSETS);
    let more = (more > 0).then(|| format!("{more} more: highwater offsets show {name}"));
    all.iter().take(OFFSETS).map(position).chain(more.map(|more| fact("offset", more))).collect()
}

/// What the source keeps, and what to do where that matters.
fn holding(status: &Value) -> Vec<Fact> {
    let hold = held(status).unwrap_or(Value::Null);
    let remedy = pressing(status).map(|_| fact("do", output::plain(&hold["do"])));
    [fact("held", output::plain(&hold["says"]))].into_iter().chain(remedy).collect()
}

pub(crate) fn is_sink(status: &Value) -> bool {
    status["type"] == "sink"
}

/// What a status says of what the source keeps; none before it was asked.
pub(crate) fn held(status: &Value) -> Option<Value> {
    status["connector"]["highwater"].get("hold").cloned()
}

fn tasks(status: &Value) -> &[Value] {
    status["tasks"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// The state of its task, or how many of several run.
fn running(status: &Value) -> String {
    let all = tasks(status);
    let running = all.iter().filter(|task| task["state"] == "RUNNING").count();
    match all.len() {
        0 | 1 => output::plain(&telling(status)["state"]),
        tasks => format!("{running} of {tasks} RUNNING"),
    }
}

/// The task that tells most of the connector: one that does not run, or the first one.
pub(crate) fn telling(status: &Value) -> &Value {
    let all = tasks(status);
    let states = ["FAILED", RESTARTING, "UNASSIGNED"].into_iter();
    let mut found = states.filter_map(|state| all.iter().find(|task| task["state"] == state));
    found.next().unwrap_or(&status["tasks"][0])
}

/// The part that tells most: the connector where it has failed itself or has no task, else a task.
fn part(status: &Value) -> &Value {
    let connector = &status["connector"];
    if connector["state"] == "FAILED" || tasks(status).is_empty() {
        return connector;
    }
    telling(status)
}

/// What the source keeps, where that matters: nobody reads it, or it is too much.
fn pressing(status: &Value) -> Option<String> {
    let hold = held(status)?;
    let reads = telling(status)["state"] == "RUNNING";
    let says = hold["says"].as_str().filter(|_| !reads || hold["pressing"] == true)?;
    Some(says.to_owned())
}

/// The sentence that says whether it moves, or what stopped it; of several tasks, whose it is.
pub(crate) fn doing(status: &Value) -> String {
    let part = part(status);
    let said = said(part).or_else(|| said(&status["connector"])).unwrap_or_else(|| "-".to_owned());
    match &part["id"] {
        Value::Number(id) if tasks(status).len() > 1 => format!("task {id}: {said}"),
        _ => said,
    }
}

/// The sentence of one part, or the first line of what stopped it.
fn said(part: &Value) -> Option<String> {
    let mut texts = [&part["highwater"]["activity"], &part["trace"]].into_iter();
    Some(texts.find_map(Value::as_str)?.lines().next()?.to_owned())
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

    fn task_of(id: u32, state: &str, ours: Value) -> Value {
        json!({ "id": id, "state": state, "worker_id": format!("w{id}:1"), "highwater": ours })
    }

    fn failed() -> Value {
        json!({
            "activity": "a row is odd", "since": "then",
            "error": { "code": "X_1", "what": "a row is odd", "kept": "all", "do": "mend it" },
        })
    }

    fn lines(facts: Vec<Fact>) -> Vec<String> {
        facts.into_iter().map(|(label, text)| format!("{label} = {text}")).collect()
    }

    #[test]
    fn of_several_tasks_the_one_that_does_not_run_is_told() {
        let task = |id, state, says: &str| task_of(id, state, json!({ "activity": says }));
        let two = |second| json!({ "tasks": [task(0, "RUNNING", "reads"), second] });
        let shown = |status: Value| (running(&status), doing(&status));
        let pair = |tasks: &str, doing: &str| (tasks.to_owned(), doing.to_owned());
        let fails = shown(two(task(1, "FAILED", "fails")));
        assert_eq!(fails, pair("1 of 2 RUNNING", "task 1: fails"));
        let reads = shown(two(task(1, "RUNNING", "reads on")));
        assert_eq!(reads, pair("2 of 2 RUNNING", "task 0: reads"));
        assert_eq!(shown(json!({ "tasks": [] })), pair("-", "-"));
    }

    #[test]
    fn each_of_several_tasks_is_shown_with_where_it_runs_and_what_is_wrong() {
        let status = json!({
            "connector": { "state": "RUNNING", "worker_id": "w0:1" },
            "tasks": [task_of(0, "RUNNING", json!({ "activity": "reads" })), task_of(1, "FAILED", failed())],
        });
        let expected = [
            "state = RUNNING",
            "tasks = 1 of 2 RUNNING",
            "worker = w0:1",
            "task 0 = RUNNING on w0:1: reads",
            "task 1 = FAILED on w1:1 since then: a row is odd",
            "code = X_1",
            "kept = all",
            "do = mend it",
        ];
        assert_eq!(lines(standing(&status)), expected);
    }

    #[test]
    fn one_task_is_shown_as_the_connector_with_its_own_worker() {
        let status = json!({
            "connector": { "state": "RUNNING", "worker_id": "w0:1" },
            "tasks": [task_of(7, "FAILED", failed())],
        });
        let expected = [
            "state = RUNNING",
            "task = FAILED",
            "doing = a row is odd",
            "since = then",
            "code = X_1",
            "kept = all",
            "do = mend it",
            "worker = w7:1",
        ];
        assert_eq!(lines(standing(&status)), expected);
    }

    #[test]
    fn a_connector_that_failed_itself_says_what_to_do() {
        let connector = json!({ "state": "FAILED", "worker_id": "w:1", "highwater": failed() });
        for tasks in [json!([]), json!([task_of(0, "UNASSIGNED", json!({ "activity": "waits" }))])]
        {
            let status = json!({ "connector": connector, "tasks": tasks });
            assert_eq!(doing(&status), "a row is odd");
            let shown = lines(standing(&status));
            for line in ["code = X_1", "kept = all", "do = mend it"] {
                assert!(shown.iter().any(|shown| shown == line), "{line} of {shown:?}");
            }
        }
    }

    #[test]
    fn of_several_offsets_each_is_shown_with_its_partition() {
        let entry =
            |partition: usize| json!({ "partition": { "p": partition }, "offset": { "o": 5 } });
        let shown = |number| lines(positions("a", &(0..number).map(entry).collect()));
        assert_eq!(shown(1), [r#"offset = {"o":5}"#]);
        assert_eq!(shown(2), [r#"offset = {"p":0}: {"o":5}"#, r#"offset = {"p":1}: {"o":5}"#]);
        assert_eq!(shown(12).last().unwrap(), "offset = 2 more: highwater offsets show a");
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
