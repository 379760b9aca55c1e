//! The one HTTP listener: REST, streams, health and metrics behind the guard.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::json;

use crate::guard;

/// Joins the parts' routes and puts the guard in front of all of them.
pub(crate) fn router(parts: Router, metrics: PrometheusHandle, allowed: Vec<String>) -> Router {
    parts
        .route("/metrics", get(move || std::future::ready(metrics.render())))
        .layer(middleware::from_fn_with_state(Arc::new(allowed), guarded))
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
