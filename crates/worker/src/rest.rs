//! Kafka Connect's REST API: its paths, shapes, codes and error bodies.

use std::sync::Arc;

use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::herder::Herder;
use crate::rest_connectors as connectors;
use crate::rest_error::Refusal;
use crate::rest_offsets as offsets;

/// Shared by all handlers.
pub(crate) type App = State<Arc<Herder>>;

/// The API in front of `herder`.
pub(crate) fn router(herder: Arc<Herder>) -> Router {
    let config =
        get(connectors::config).put(connectors::put_config).patch(connectors::patch_config);
    let stored = get(offsets::list).patch(offsets::alter).delete(offsets::reset);
    Router::new()
        .route("/", get(root))
        .route("/health", get(health))
        .route("/connector-plugins", get(plugins))
        .route("/connectors", get(connectors::list).post(connectors::create))
        .route("/connectors/{name}", get(connectors::info).delete(connectors::delete))
        .route("/connectors/{name}/config", config)
        .route("/connectors/{name}/status", get(connectors::status))
        .route("/connectors/{name}/restart", post(connectors::restart))
        .route("/connectors/{name}/pause", put(connectors::pause))
        .route("/connectors/{name}/resume", put(connectors::resume))
        .route("/connectors/{name}/stop", put(connectors::stop))
        .route("/connectors/{name}/tasks", get(connectors::tasks))
        .route("/connectors/{name}/tasks/{task}/status", get(connectors::task_status))
        .route("/connectors/{name}/tasks/{task}/restart", post(connectors::restart_task))
        .route("/connectors/{name}/offsets", stored)
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(not_found)
        .with_state(herder)
}

async fn root(State(herder): App) -> Json<Value> {
    Json(json!({
        "version": env!("CARGO_PKG_VERSION"),
        "commit": option_env!("HIGHWATER_COMMIT").unwrap_or("unknown"),
        "kafka_cluster_id": herder.cluster_id,
    }))
}

async fn health() -> Json<Value> {
    Json(json!({
        "status": "healthy",
        "message": "Worker has completed startup and is ready to handle requests.",
    }))
}

/// Only connectors are plugins of this release, so `connectorsOnly` changes nothing.
async fn plugins(State(herder): App) -> Json<Vec<Value>> {
    let plugin = |plugin: &crate::plugins::Plugin| {
        let class = plugin.classes().first()?;
        Some(json!({ "class": class, "type": plugin.kind(), "version": plugin.version() }))
    };
    Json(herder.plugins.iter().filter_map(plugin).collect())
}

async fn not_found() -> Refusal {
    Refusal::Http(StatusCode::NOT_FOUND, "HTTP 404 Not Found".to_owned())
}

async fn method_not_allowed() -> Refusal {
    Refusal::Http(StatusCode::METHOD_NOT_ALLOWED, "HTTP 405 Method Not Allowed".to_owned())
}

/// Parts of the path, refused in Kafka Connect's shape when they cannot be read.
pub(crate) struct Segments<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Segments<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(segments)) => Ok(Self(segments)),
            Err(error) => Err(Refusal::Http(error.status(), error.body_text())),
        }
    }
}

/// The query, refused in Kafka Connect's shape when it cannot be read.
pub(crate) struct Params<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Refusal> {
        match Query::from_request_parts(parts, state).await {
            Ok(Query(query)) => Ok(Self(query)),
            Err(error) => Err(Refusal::Http(error.status(), error.body_text())),
        }
    }
}

/// A JSON body, refused in Kafka Connect's shape when it is none.
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Refusal;

    async fn from_request(request: Request, state: &S) -> Result<Self, Refusal> {
        if !is_json(&request) {
            let text = "HTTP 415 Unsupported Media Type: the body must be application/json";
            return Err(Refusal::Http(StatusCode::UNSUPPORTED_MEDIA_TYPE, text.to_owned()));
        }
        let bytes = Bytes::from_request(request, state)
            .await
            .map_err(|error| Refusal::Http(error.status(), error.body_text()))?;
        serde_json::from_slice(&bytes)
            .map(Self)
            .map_err(|error| Refusal::BadRequest(format!("The body is not readable: {error}")))
    }
}

fn is_json(request: &Request) -> bool {
    let given = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let media = given.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    media.eq_ignore_ascii_case("application/json")
}
