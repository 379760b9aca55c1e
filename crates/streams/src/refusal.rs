//! Refusals: what happened and to what, what is kept, what to do (rule U3), as the answer to a
//! request or as the last record of a connection.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use highwater_kafka::KafkaError;
use serde_json::{Value, json};

use crate::bounds::Bounds;
use crate::state::Unreadable;
use crate::time;

/// What is safe whenever a connection is refused or ended.
const KEPT: &str = "your saved position and everything in the log";

/// An answer that refuses.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// Stable code, such as `position_gone`.
    pub(crate) code: &'static str,
    /// What happened, and to what.
    pub(crate) what: String,
    /// What is safe.
    pub(crate) kept: String,
    /// What to do.
    pub(crate) remedy: String,
    /// What is retained, where a position was refused.
    pub(crate) positions: Option<Box<Bounds>>,
}

impl Refusal {
    pub(crate) fn new(
        status: StatusCode,
        code: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            status,
            code,
            what: what.into(),
            kept: KEPT.to_owned(),
            remedy: remedy.into(),
            positions: None,
        }
    }

    pub(crate) fn bad_request(
        code: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, what, remedy)
    }

    pub(crate) fn conflict(
        code: &'static str,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(StatusCode::CONFLICT, code, what, remedy)
    }

    pub(crate) fn not_found(stream: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "stream_not_found",
            format!("there is no stream named {stream}"),
            "`highwater stream list` shows the streams; `highwater stream create NAME --trail TRAIL` \
             makes one",
        )
    }

    /// What is stored of the stream cannot be read by this release.
    pub(crate) fn stream_unreadable(unreadable: &Unreadable) -> Self {
        let Unreadable { stream, topic, offset, detail } = unreadable;
        Self::new(
            StatusCode::CONFLICT,
            "stream_unreadable",
            format!(
                "stream {stream} cannot be read as it is stored in topic {topic} at offset \
                 {offset}: {detail}"
            ),
            format!(
                "start the release that wrote it, or delete it with `highwater stream delete \
                 {stream}` and make it anew"
            ),
        )
        .keeping("the stored stream, unchanged, and everything in the log")
    }

    /// The log does not answer.
    pub(crate) fn log_unavailable(error: &KafkaError) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "log_unavailable",
            format!("the log cannot be read: {error}"),
            "try again in a few seconds",
        )
    }

    /// The topic is not there.
    pub(crate) fn trail_missing(topic: &str) -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "trail_missing",
            format!("the topic {topic} that the stream reads does not exist"),
            format!("start the connector that writes {topic}, then try again"),
        )
    }

    #[must_use]
    pub(crate) fn keeping(mut self, kept: &str) -> Self {
        kept.clone_into(&mut self.kept);
        self
    }

    #[must_use]
    pub(crate) fn with_positions(mut self, bounds: Option<Bounds>) -> Self {
        self.positions = bounds.map(Box::new);
        self
    }

    /// The members of rule U3.
    pub(crate) fn to_json(&self) -> Value {
        let Self { code, what, kept, remedy, positions, .. } = self;
        let mut body = json!({"code": code, "what": what, "kept": kept, "do": remedy});
        if let Some(positions) = positions {
            body["positions"] = json!(positions);
        }
        body
    }

    /// The same inside the response envelope of the REST interface.
    fn to_envelope(&self) -> Value {
        let mut body = self.to_json();
        body["$schema"] = json!("api:standardResponse");
        body["links"] = json!([]);
        body["messages"] = json!([{
            "$schema": "ogg:message",
            "title": self.what,
            "code": self.code,
            "severity": "ERROR",
            "issued": time::now(),
        }]);
        body
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        metrics::counter!("highwater_stream_refusals_total", "code" => self.code).increment(1);
        let mut response = (self.status, Json(self.to_envelope())).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }
}
