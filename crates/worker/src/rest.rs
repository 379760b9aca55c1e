//! Kafka Connect's REST API: its paths, shapes, codes and error bodies.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::routing::{MethodRouter, get, post, put};
use axum::{Json, Router};
use serde_json::{Value, json};

use crate::health::{self, Health};
use crate::herder::Herder;
use crate::rest_connectors as connectors;
use crate::rest_error::Refusal;
use crate::rest_exchange as exchange;
use crate::rest_forward::forwarded;
use crate::rest_loggers as loggers;
use crate::rest_offsets as offsets;
use crate::rest_openapi as openapi;
use crate::rest_plugins as plugins;
use crate::rest_topics as topics;

/// Shared by all handlers.
pub(crate) type App = State<Arc<Herder>>;

/// The version of Kafka Connect whose API this is: clients read in it what they may ask for.
const CONNECT_VERSION: &str = "4.3.1";

/// All paths, each with what answers.
fn routes() -> Vec<(&'static str, MethodRouter<Arc<Herder>>)> {
    let config =
        get(connectors::config).put(connectors::put_config).patch(connectors::patch_config);
    let stored = get(offsets::list).patch(offsets::alter).delete(offsets::reset);
    vec![
        ("/", get(root)),
        ("/health", get(health)),
        ("/openapi.json", get(openapi::document)),
        ("/connector-plugins", get(plugins::list)),
        ("/connector-plugins/{plugin}/config", get(plugins::config)),
        ("/connector-plugins/{plugin}/config/validate", put(plugins::validate)),
        ("/admin/loggers", get(loggers::list)),
        ("/admin/loggers/{logger}", get(loggers::get).put(loggers::set)),
        ("/connectors", get(connectors::list).post(connectors::create)),
        ("/connectors/{connector}", get(connectors::info).delete(connectors::delete)),
        ("/connectors/{connector}/config", config),
        ("/connectors/{connector}/status", get(connectors::status)),
        ("/connectors/{connector}/restart", post(connectors::restart)),
        ("/connectors/{connector}/pause", put(connectors::pause)),
        ("/connectors/{connector}/resume", put(connectors::resume)),
        ("/connectors/{connector}/stop", put(connectors::stop)),
        ("/connectors/{connector}/tasks", get(connectors::tasks)),
        ("/connectors/{connector}/tasks/{task}/status", get(connectors::task_status)),
        ("/connectors/{connector}/tasks/{task}/restart", post(connectors::restart_task)),
        ("/connectors/{connector}/offsets", stored),
        ("/connectors/{connector}/topics", get(topics::list)),
        ("/connectors/{connector}/topics/reset", put(topics::reset)),
    ]
}

/// The API in front of `herder`.
pub(crate) fn router(herder: Arc<Herder>) -> Router {
    let limit = herder.config.request_timeout;
    let router = routes().into_iter().fold(Router::new(), |router, (path, methods)| {
        let allowed = openapi::methods(path);
        router.route(path, methods.options(async move || exchange::options(&allowed)))
    });
    let router = router
        .method_not_allowed_fallback(method_not_allowed)
        .route_layer(middleware::from_fn_with_state(Arc::clone(&herder), forwarded))
        .route_layer(middleware::from_fn(exchange::negotiated))
        .route_layer(middleware::from_fn(move |request: Request, next: Next| {
            exchange::bounded(limit, request, next)
        }))
        .fallback(not_found)
        .with_state(herder);
    let again = router.clone();
    router.fallback(async move |request: Request| exchange::without_slash(again, request).await)
}

async fn root(State(herder): App) -> Json<Value> {
    let commit = option_env!("HIGHWATER_COMMIT").unwrap_or("unknown");
    Json(json!({
        "version": CONNECT_VERSION,
        "commit": commit,
        "kafka_cluster_id": herder.cluster_id,
        "highwater": { "version": env!("CARGO_PKG_VERSION") },
    }))
}

/// A worker that is still starting has no API yet: whoever serves it answers 503.
async fn health(State(herder): App) -> (StatusCode, Json<Value>) {
    let (code, status, message) = match health::look(&herder).await {
        Health::Healthy => (StatusCode::OK, "healthy", HEALTHY.to_owned()),
        Health::Stuck(why) => {
            (StatusCode::INTERNAL_SERVER_ERROR, "unhealthy", format!("{STUCK} {why}"))
        }
    };
    let ours = health::tasks(&herder);
    (code, Json(json!({ "status": status, "message": message, "highwater": ours })))
}

const HEALTHY: &str = "Worker has completed startup and is ready to handle requests.";
const STUCK: &str =
    "Worker was unable to handle this request and may be unable to handle other requests.";

async fn not_found() -> Refusal {
    Refusal::Http(StatusCode::NOT_FOUND, "HTTP 404 Not Found".to_owned())
}

async fn method_not_allowed() -> Refusal {
    Refusal::Http(StatusCode::METHOD_NOT_ALLOWED, "HTTP 405 Method Not Allowed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_document_names_every_path() {
        let served: BTreeSet<_> = routes().into_iter().map(|(path, _)| path).collect();
        let named: BTreeSet<_> =
            openapi::OPERATIONS.iter().map(|operation| operation.path).collect();
        assert_eq!(served, named);
    }
}
