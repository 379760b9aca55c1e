//! `/connector-plugins` and below it.

use axum::Json;
use axum::extract::State;
use highwater_connector::Problem;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::keys;
use crate::pipeline::Properties;
use crate::plugin_kinds::{self, Part, VERSION};
use crate::plugins::Plugin;
use crate::rest::App;
use crate::rest_definitions::{self as definitions, Described};
use crate::rest_error::{Refusal, Thing};
use crate::rest_forms as forms;
use crate::rest_request::{Body, Configuration, Params, Segments, truth};

type Answer = Result<Json<Value>, Refusal>;

/// Query of the list: connectors alone, unless it says otherwise.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    #[serde(default = "connectors_only", deserialize_with = "truth")]
    connectors_only: bool,
}

const fn connectors_only() -> bool {
    true
}

pub(crate) async fn list(State(herder): App, Params(query): Params<Listed>) -> Json<Vec<Value>> {
    let connector = |plugin: &Plugin| {
        let class = plugin.classes().first()?;
        Some(json!({ "class": class, "type": plugin.kind(), "version": plugin.version() }))
    };
    let mut plugins: Vec<Value> = herder.plugins.iter().filter_map(connector).collect();
    if !query.connectors_only {
        plugins.extend(plugin_kinds::all().into_iter().map(
            |Part { class, kind }| json!({ "class": class, "type": kind, "version": VERSION }),
        ));
    }
    Json(plugins)
}

/// Query of a definition (KIP-891).
#[derive(Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    version: Option<String>,
}

pub(crate) async fn config(
    State(herder): App,
    Segments(name): Segments<String>,
    Params(wanted): Params<Wanted>,
) -> Answer {
    let (keys, version) = described(herder.plugins.find(&name), &name)
        .ok_or_else(|| Refusal::Unknown(Thing::Plugin, format!("Unknown plugin {name}.")))?;
    if let Some(wanted) = wanted.version.filter(|wanted| wanted != version && wanted != "latest") {
        return Err(Refusal::BadRequest(format!(
            "Plugin {name} not found that matches the version range {wanted}, available versions: \
             [{version}]"
        )));
    }
    Ok(Json(keys.iter().map(Described::definition).collect()))
}

/// The keys of a connector, or of a part of one.
fn described(connector: Option<&Plugin>, class: &str) -> Option<(Vec<Described>, &'static str)> {
    if let Some(plugin) = connector {
        return Some((forms::of_plugin(plugin), plugin.version()));
    }
    let converter = plugin_kinds::keys_of_converter(class);
    let keys = match &converter {
        Some(keys) => keys.iter().map(Described::of_converter).collect(),
        None => {
            plugin_kinds::keys_of_transform(class)?.iter().map(Described::of_transform).collect()
        }
    };
    Some((keys, VERSION))
}

pub(crate) async fn validate(
    State(herder): App,
    Segments(name): Segments<String>,
    Body(Configuration(given)): Body<Configuration>,
) -> Answer {
    // A null says that the key is not given.
    let given: Properties =
        given.into_iter().filter_map(|(key, text)| Some((key, text.0?))).collect();
    let Some(class) = given.get(keys::CLASS).cloned() else {
        return Err(Refusal::BadRequest("Connector config contains no connector type".to_owned()));
    };
    if !stem(&class).ends_with(stem(&name)) {
        return Err(Refusal::BadRequest(format!(
            "Included connector type {class} does not match request type {name}"
        )));
    }
    let unknown = || {
        Refusal::BadRequest(format!(
            "Failed to find any class that implements Connector and which name matches {class}, \
             available connectors are: {}",
            herder.plugins.class_names()
        ))
    };
    let plugin = herder.plugins.find(&class).ok_or_else(unknown)?;
    let mut unmasked = given.clone();
    let planned = herder.judged(name_of(&given), &mut unmasked).await;
    let problems = planned.err().unwrap_or_default();
    let keys = forms::of_config(plugin, &given, &herder.config.converters);
    Ok(Json(verdict(&class, &keys, &given, problems)))
}

fn name_of(given: &Properties) -> &str {
    given.get(keys::NAME).map_or("", String::as_str)
}

/// A class without the word that every class ends with.
fn stem(class: &str) -> &str {
    class.strip_suffix("Connector").unwrap_or(class)
}

fn verdict(
    class: &str,
    defined: &[Described],
    given: &Properties,
    mut problems: Vec<Problem>,
) -> Value {
    if name_of(given).is_empty() {
        let message = "is required and has no default".to_owned();
        problems.push(Problem { key: keys::NAME.to_owned(), message });
    }
    let known = |key: &Described| json!({ "definition": key.definition(), "value": key.value(given, &problems) });
    let stray = problems
        .iter()
        .filter(|problem| defined.iter().all(|key| key.name != problem.key))
        .map(|problem| definitions::stray(problem, given));
    let configs: Vec<Value> = defined.iter().map(known).chain(stray).collect();
    json!({
        "name": class,
        "error_count": problems.len(),
        "groups": definitions::groups(defined),
        "configs": configs,
    })
}
