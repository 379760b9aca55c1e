//! `/admin/loggers` and below it (KIP-495, KIP-976).

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::config_records::LOGGER;
use crate::journal::record;
use crate::loggers::{LogLevel, Logger, ROOT};
use crate::rest::App;
use crate::rest_error::{Refusal, Thing};
use crate::rest_request::{Body, Given, Params, Segments};

/// Query of a change. Any scope but `cluster` is this worker.
#[derive(Deserialize)]
pub(crate) struct ScopeQuery {
    #[serde(default)]
    scope: String,
}

pub(crate) async fn list(State(herder): App) -> Json<Value> {
    let all = herder.config.loggers.all();
    Json(all.into_iter().map(|(name, logger)| (name, shown(logger))).collect::<Map<_, _>>().into())
}

pub(crate) async fn get(
    State(herder): App,
    Segments(name): Segments<String>,
) -> Result<Json<Value>, Refusal> {
    let found = herder.config.loggers.all().get(canonical(&name)).copied();
    let missing = || Refusal::Unknown(Thing::Logger, format!("Logger {name} not found."));
    found.map(shown).map(Json).ok_or_else(missing)
}

pub(crate) async fn set(
    State(herder): App,
    Segments(name): Segments<String>,
    Params(query): Params<ScopeQuery>,
    Body(mut given): Body<Given>,
) -> Result<Response, Refusal> {
    let wanted = given.remove("level").and_then(|level| level.0).ok_or_else(|| {
        Refusal::BadRequest("Desired 'level' parameter was not specified in request.".to_owned())
    })?;
    let level = LogLevel::from_name(&wanted).ok_or_else(|| {
        Refusal::Unknown(Thing::LogLevel, format!("invalid log level '{wanted}'."))
    })?;
    let name = canonical(&name);
    if query.scope.eq_ignore_ascii_case("cluster") {
        herder.config.loggers.set(name, level);
        // A name that is no logger's would stand in the topic for ever.
        if herder.config.loggers.all().contains_key(name) {
            // As Kafka Connect keeps it; workers hear of it while they run, and begin without it.
            let key = format!("{LOGGER}{name}");
            let value = json!({ "level": level.name() });
            let told = record(&herder.config.configs_topic, &key, Some(&value));
            herder.shared.journal.write(vec![told]).await.map_err(Refusal::Log)?;
        }
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    Ok(Json(herder.config.loggers.set(name, level)).into_response())
}

fn canonical(name: &str) -> &str {
    if name.eq_ignore_ascii_case(ROOT) { ROOT } else { name }
}

fn shown(logger: Logger) -> Value {
    json!({ "level": logger.level.name(), "last_modified": logger.last_modified })
}
