//! The one HTTP listener: REST, streams, health and metrics behind the guard.

use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use highwater_log::Log;
use highwater_worker::Worker;
use metrics_exporter_prometheus::PrometheusHandle;
use serde_json::json;
use tower_service::Service;

use crate::guard::{self, Refusal};
use crate::http_access::{Asking, HttpAccess};
use crate::http_body::{Bodies, Gathered};
use crate::measures::{self, LogMeasures};
use crate::readiness::{Phase, Readiness};

/// Stands before the parts' routes: closed while the server starts, and saying why.
pub(crate) struct Gate {
    pub(crate) readiness: Readiness,
    parts: OnceLock<Router>,
    /// What is measured, once it is open.
    log: OnceLock<LogMeasures>,
    /// Its tasks are measured, once it runs.
    worker: OnceLock<Worker>,
}

impl Gate {
    /// Closed.
    pub(crate) fn new() -> Self {
        Self {
            readiness: Readiness::new(),
            parts: OnceLock::new(),
            log: OnceLock::new(),
            worker: OnceLock::new(),
        }
    }

    /// Opens it to the routes of the parts, which all run.
    pub(crate) fn open(&self, parts: Router) {
        if self.parts.set(parts).is_ok() {
            self.readiness.enter(Phase::Ready);
        }
    }

    /// Shows the log and its folder among the metrics.
    pub(crate) fn measure(&self, log: Log, data_dir: PathBuf) {
        // It is opened once.
        let _ = self.log.set(LogMeasures::new(log, data_dir));
    }

    /// Shows the worker's tasks among the metrics.
    pub(crate) fn measure_tasks(&self, worker: Worker) {
        // It is started once.
        let _ = self.worker.set(worker);
    }

    fn metrics(&self, recorded: &PrometheusHandle) -> String {
        measures::of_process();
        if let Some(log) = self.log.get() {
            log.take();
        }
        let tasks = self.worker.get().map(Worker::metrics);
        measures::text(recorded) + &tasks.unwrap_or_default()
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
pub(crate) fn router(
    gate: Arc<Gate>,
    metrics: PrometheusHandle,
    allowed: Vec<String>,
    access: HttpAccess,
) -> Router {
    let readiness = gate.readiness.clone();
    let measured = Arc::clone(&gate);
    let guard = Guard { allowed, access, bodies: Bodies::new() };
    Router::new()
        .route("/metrics", get(async move || measured.metrics(&metrics)))
        .route("/highwater/v1/health/live", get(live))
        .route("/highwater/v1/health/ready", get(move || std::future::ready(readiness.answer())))
        .fallback(async move |request: Request<Body>| gate.through(request).await)
        .layer(middleware::from_fn_with_state(Arc::new(guard), guarded))
}

/// The process answers, whatever its parts do.
async fn live() -> impl IntoResponse {
    Json(json!({ "live": true, "version": env!("CARGO_PKG_VERSION") }))
}

/// What is decided in front of all handlers.
struct Guard {
    /// Host names beside loopback, in lower case.
    allowed: Vec<String>,
    access: HttpAccess,
    bodies: Bodies,
}

async fn guarded(State(guard): State<Arc<Guard>>, request: Request<Body>, next: Next) -> Response {
    let method = measures::method(request.method());
    let response = guard.answered(request, next).await.unwrap_or_else(|refusal| refusal);
    measures::http(method, response.status());
    response
}

impl Guard {
    async fn answered(&self, request: Request<Body>, next: Next) -> Result<Response, Response> {
        let path = request.uri().path();
        guard::check(request.method(), path, request.headers(), &self.allowed).map_err(refused)?;
        let admitted = self.access.admit(Asking::of(&request)).await;
        let (mut head, body) = request.into_parts();
        if let Some(caller) = admitted.map_err(IntoResponse::into_response)? {
            head.extensions.insert(caller);
        }
        // Its part of the memory is held until the answer is there.
        let Gathered { bytes, share: _share } = self.bodies.gather(body).await.map_err(refused)?;
        Ok(next.run(Request::from_parts(head, bytes.into())).await)
    }
}

fn refused(refusal: Refusal) -> Response {
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

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    fn open() -> HttpAccess {
        HttpAccess::new(Arc::new(highwater_access::Access::open()), Default::default(), Vec::new())
    }

    async fn ask(router: &Router, path: &str) -> (StatusCode, String) {
        let request = Request::get(path).header("host", "localhost").body(Body::empty()).unwrap();
        let Ok(response) = router.clone().call(request).await;
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_server_that_starts_answers_and_says_how_far_it_is() {
        let gate = Arc::new(Gate::new());
        let metrics = PrometheusBuilder::new().build_recorder().handle();
        let router = router(Arc::clone(&gate), metrics, Vec::new(), open());
        for path in ["/connectors", "/health", "/highwater/v1/health/ready"] {
            let (status, body) = ask(&router, path).await;
            assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
            assert!(body.contains("SERVER_STARTING") && body.contains("reading the data folder"));
        }
        assert_eq!(ask(&router, "/highwater/v1/health/live").await.0, StatusCode::OK);
        assert_eq!(ask(&router, "/metrics").await.0, StatusCode::OK);

        gate.open(Router::new().route("/connectors", get(async || "[]")));
        assert_eq!(ask(&router, "/connectors").await, (StatusCode::OK, "[]".to_owned()));
        assert_eq!(ask(&router, "/highwater/v1/health/ready").await.0, StatusCode::OK);
    }
}
