//! Refusals of the REST API: Kafka Connect's codes and `{error_code, message}`, with ours beside.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use highwater_connector::{ConnectorError, Problem};
use highwater_kafka::KafkaError;
use serde_json::{Value, json};

use crate::status::error_json;

/// Why a request is refused.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// 404.
    NotFound(String),
    /// 409.
    Exists(String),
    /// 400.
    BadRequest(String),
    /// 400 with the number of errors and each of them.
    Invalid(Vec<Problem>),
    /// 400: the connector refuses.
    Connector(ConnectorError),
    /// 500: the source cannot be asked.
    Source(ConnectorError),
    /// 500: the log fails.
    Log(KafkaError),
    /// Any other status, with its own text.
    Http(StatusCode, String),
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::NotFound(_) => StatusCode::NOT_FOUND,
            Self::Exists(_) => StatusCode::CONFLICT,
            Self::BadRequest(_) | Self::Invalid(_) | Self::Connector(_) => StatusCode::BAD_REQUEST,
            Self::Source(_) | Self::Log(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Http(status, _) => *status,
        }
    }

    fn message(&self) -> String {
        match self {
            Self::NotFound(text)
            | Self::Exists(text)
            | Self::BadRequest(text)
            | Self::Http(_, text) => text.clone(),
            Self::Invalid(problems) => invalid(problems),
            Self::Connector(error) | Self::Source(error) => error.to_string(),
            Self::Log(error) => format!(
                "The log failed, so the outcome is not known; this may be a transient error and \
                 the request can be safely retried: {error}"
            ),
        }
    }
}

fn invalid(problems: &[Problem]) -> String {
    let mut text = format!(
        "Connector configuration is invalid and contains the following {} error(s):",
        problems.len()
    );
    for Problem { key, message } in problems {
        text.push_str(&format!("\n{key} {message}"));
    }
    text
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut body = json!({ "error_code": status.as_u16(), "message": self.message() });
        if let (Self::Connector(error) | Self::Source(error), Value::Object(body)) =
            (&self, &mut body)
            && let Value::Object(parts) = error_json(error)
        {
            body.extend(parts);
        }
        (status, Json(body)).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_invalid_configuration_counts_its_errors() {
        let problem = |key: &str| Problem { key: key.to_owned(), message: "is wrong".to_owned() };
        let refusal = Refusal::Invalid(vec![problem("a"), problem("b")]);
        assert_eq!(
            refusal.message(),
            "Connector configuration is invalid and contains the following 2 error(s):\n\
             a is wrong\nb is wrong"
        );
    }
}
