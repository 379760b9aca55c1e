//! The one HTTP listener: REST, streams, health and metrics behind the guard.

use std::convert::Infallible;
use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::json;
use tower_service::Service;

use crate::guard;
use crate::readiness::{Phase, Readiness};

/// Stands before the parts' routes: closed while the server starts, and saying why.
pub(crate) struct Gate {
    pub(crate) readiness: Readiness,
    parts: OnceLock<Router>,
}

impl Gate {
    /// Closed.
    pub(crate) fn new() -> Self {
        Self { readiness: Readiness::new(), parts: OnceLock::new() }
    }

    /// Opens it to the routes of the parts, which all run.
    pub(crate) fn open(&self, parts: Router) {
        if self.parts.set(parts).is_ok() {
            self.readiness.enter(Phase::Ready);
        }
    }

    async fn through(&self, request: Request<Body>) -> Response {
        match self.parts.get().cloned() {
            Some(mut parts) => {
                let answered: Result<Response, Infallible> = parts.call(request).await;
                answered.unwrap_or_else(|never| match never {})
            }
            None => self.readiness.refusal(),
        }
    }
}

/// What the server answers by itself, the parts behind the gate, and the guard in front of all.
pub(crate) fn router(gate: Arc<Gate>, metrics: PrometheusHandle, allowed: Vec<String>) -> Router {
    let readiness = gate.readiness.clone();
    Router::new()
        .route("/metrics", get(move || std::future::ready(metrics.render())))
        .route("/highwater/v1/health/live", get(live))
        .route("/highwater/v1/health/ready", get(move || std::future::ready(readiness.answer())))
        .fallback(async move |request: Request<Body>| gate.through(request).await)
        .layer(middleware::from_fn_with_state(Arc::new(allowed), guarded))
}

/// The process answers, whatever its parts do.
async fn live() -> impl IntoResponse {
    Json(json!({ "live": true, "version": env!("CARGO_PKG_VERSION") }))
}

async fn guarded(
    State(allowed): State<Arc<Vec<String>>>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let path = request.uri().path();
    match guard::check(request.method(), path, request.headers(), &allowed) {
        Ok(()) => next.run(request).await,
        Err(refusal) => {
            let status = refusal.status();
            // Kafka Connect's two members, and the parts of rule U3.
            let body = json!({
                "error_code": status.as_u16(),
                "message": refusal.what(),
                "code": refusal.code(),
                "what": refusal.what(),
                "kept": "everything: nothing was changed",
                "do": refusal.remedy(),
            });
            (status, Json(body)).into_response()
        }
    }
}
