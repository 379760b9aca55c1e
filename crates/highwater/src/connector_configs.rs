//! `highwater connector create`, `update`, `patch`, `validate` and `plugins`: configurations, from files.

use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, Instant};

use axum::http::Method;
use highwater_worker::Declaration;
use serde_json::{Map, Value, json};

use crate::api::{Api, segment};
use crate::cli::Output;
use crate::connector_status::{RESTARTING, doing, telling};
use crate::failure::{Exit, Failure};
use crate::output;

/// How long `create` waits for the source to be opened.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// How long it watches a task that fails and is started again: a wrong address is told soon.
const RETRY_PATIENCE: Duration = Duration::from_secs(3);

pub(crate) async fn create(api: &Api, output: Output, file: &Path) -> Result<(), Failure> {
    let body = declared(file, own_name(file))?.request();
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

/// Replaces the configuration of a connector that is there: a name that is misspelt makes none.
pub(crate) async fn update(
    api: &Api,
    output: Output,
    name: &str,
    file: &Path,
) -> Result<(), Failure> {
    let Declaration { name: given, properties, .. } = declared(file, name)?;
    if given != name {
        let what = format!("{} is the configuration of {given}, not of {name}", file.display());
        return Err(Failure::usage(what).remedy(format!("highwater connector update {given}")));
    }
    let path = format!("/connectors/{}", segment(name));
    api.get(&path).await?;
    changed(api, output, Method::PUT, name, &json!(properties)).await
}

/// Changes keys, given as KEY=VALUE, and takes others out.
pub(crate) async fn patch(
    api: &Api,
    output: Output,
    name: &str,
    keys: &[String],
    unset: &[String],
) -> Result<(), Failure> {
    changed(api, output, Method::PATCH, name, &patched(keys, unset)?.into()).await
}

fn patched(keys: &[String], unset: &[String]) -> Result<Map<String, Value>, Failure> {
    let set = keys.iter().map(|pair| match pair.split_once('=') {
        Some((key, value)) if !key.trim().is_empty() => Ok((key.trim().to_owned(), json!(value))),
        _ => Err(Failure::usage(format!("{pair:?} is not KEY=VALUE"))
            .remedy("write KEY=VALUE, or --unset KEY for one that is to go")),
    });
    set.chain(unset.iter().map(|key| Ok((key.clone(), Value::Null)))).collect()
}

async fn changed(
    api: &Api,
    output: Output,
    method: Method,
    name: &str,
    body: &Value,
) -> Result<(), Failure> {
    let path = format!("/connectors/{}/config", segment(name));
    let info = api.call(method, &path, Some(body)).await?;
    let text = format!(
        "connector {name}: configuration changed; highwater connector show {name} tells whether it runs"
    );
    Ok(output::result(output, &info, &text)?)
}

pub(crate) async fn validate(api: &Api, output: Output, file: &Path) -> Result<(), Failure> {
    let Declaration { name, properties, .. } = declared(file, own_name(file))?;
    let class = properties.get("connector.class").map_or("", String::as_str);
    let path = format!("/connector-plugins/{}/config/validate", segment(class));
    let verdict = api.call(Method::PUT, &path, Some(&json!(properties))).await?;
    if let Some(failure) = refused(&name, &verdict) {
        return Err(failure);
    }
    let document = json!({ "connector": name, "done": "valid" });
    Ok(output::result(output, &document, &format!("connector {name}: the configuration is valid"))?)
}

/// What is wrong with a configuration, key by key.
fn refused(name: &str, verdict: &Value) -> Option<Failure> {
    let keys = verdict["configs"].as_array().into_iter().flatten();
    let errors: Vec<String> = keys
        .flat_map(|key| {
            let errors = key["value"]["errors"].as_array().into_iter().flatten();
            errors.map(|error| {
                format!("{} {}", output::plain(&key["value"]["name"]), output::plain(error))
            })
        })
        .collect();
    if errors.is_empty() {
        return None;
    }
    let what = format!("the configuration of connector {name} is refused: {}", errors.join("; "));
    let failure = Failure::new(Exit::Refused, "CONFIG_INVALID", what).kept("nothing was changed");
    Some(failure.remedy("correct these keys; docs/reference/configuration.md says what each takes"))
}

pub(crate) async fn plugins(api: &Api, output: Output, all: bool) -> Result<(), Failure> {
    let answer = api.get(&format!("/connector-plugins?connectorsOnly={}", !all)).await?;
    if output == Output::Json {
        output::json(&answer)?;
        return Ok(());
    }
    let cells =
        |plugin: &Value| ["class", "type", "version"].map(|key| output::plain(&plugin[key]));
    let rows: Vec<Vec<String>> =
        answer.as_array().into_iter().flatten().map(|plugin| cells(plugin).into()).collect();
    Ok(output::line(&output::columns(&["CLASS", "TYPE", "VERSION"], &rows))?)
}

/// The name of a connector whose file gives none.
fn own_name(file: &Path) -> &str {
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    stem.filter(|stem| *stem != "-").unwrap_or_default()
}

/// What a file says; `unnamed` is the connector's name where it says none.
fn declared(file: &Path, unnamed: &str) -> Result<Declaration, Failure> {
    Declaration::read(file, &read(file)?, unnamed).map_err(|why| {
        Failure::usage(format!("{} is no connector: {why}", file.display()))
            .remedy("write {\"name\": …, \"config\": {…}}; highwater connector create --help shows every form")
    })
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

/// What keeps a connector that exists from running, in the parts that its source gave.
fn failure(name: &str, status: &Value) -> Option<Failure> {
    let (which, failed) = [("its task", telling(status)), ("it", &status["connector"])]
        .into_iter()
        .find(|(_, part)| part["state"] == "FAILED" || part["state"] == RESTARTING)?;
    let error = failed["highwater"]["error"].as_object()?;
    let part = |key: &str| error.get(key).map(output::plain).unwrap_or_default();
    let (code, what, remedy) = (part("code"), part("what"), part("do"));
    let failure = if failed["state"] == RESTARTING {
        let what = format!("connector {name} is created and does not run yet: {what}");
        let remedy = format!("{remedy}; highwater connector show {name} tells whether it runs");
        Failure::new(Exit::Failed, &code, what).remedy(remedy)
    } else {
        let what = format!("connector {name} is created, but {which} failed: {what}");
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
    std::fs::read_to_string(file).map_err(|error| {
        Failure::usage(format!("{} cannot be read: {error}", file.display()))
            .remedy("name a file that is there and may be read, or - for standard input")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_set_and_taken_out() {
        let words = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        let patch = patched(&words(&["topic=a=b", "empty="]), &words(&["gone"])).unwrap();
        assert_eq!(json!(patch), json!({ "topic": "a=b", "empty": "", "gone": null }));
        for wrong in ["topic", "=a", ""] {
            assert_eq!(patched(&words(&[wrong]), &[]).unwrap_err().exit, Exit::Usage, "{wrong}");
        }
    }

    #[test]
    fn every_key_that_is_wrong_is_told() {
        let key =
            |name: &str, errors: Value| json!({ "value": { "name": name, "errors": errors } });
        let verdict = |second| json!({ "configs": [key("a", json!([])), key("b", second)] });
        assert!(refused("x", &verdict(json!([]))).is_none());
        let failure = refused("x", &verdict(json!(["is odd", "is even"]))).unwrap();
        assert_eq!((failure.exit, failure.code.as_str()), (Exit::Refused, "CONFIG_INVALID"));
        assert!(failure.what.ends_with("b is odd; b is even"), "{}", failure.what);
    }

    #[test]
    fn a_file_in_each_form_is_one_connector() {
        let dir = tempfile::tempdir().unwrap();
        let read = |name: &str, text: &str| {
            let file = dir.path().join(name);
            std::fs::write(&file, text).unwrap();
            declared(&file, own_name(&file))
        };
        let body = r#"{"name": "shop", "config": {"connector.class": "file", "tasks.max": 2}}"#;
        let expected = read("a.json", body).unwrap();
        for (name, text) in [
            ("b.json", r#"{"name": "shop", "connector.class": "file", "tasks.max": "2"}"#),
            ("shop.json", r#"{"connector.class": "file", "tasks.max": 2}"#),
            ("c.properties", "name=shop\nconnector.class=file\ntasks.max=2"),
        ] {
            assert_eq!(read(name, text).unwrap(), expected, "{name}");
        }
        let failure = read("bad.json", r#"{"password": "s3cret""#).unwrap_err();
        assert!(failure.exit == Exit::Usage && !failure.what.contains("s3cret"), "{failure:?}");
        let failure = declared(dir.path(), "").unwrap_err();
        assert!(failure.exit == Exit::Usage && !failure.remedy.is_empty(), "{failure:?}");
    }
}
