//! Refusals of the REST API: Kafka Connect's codes and `{error_code, message}`, with ours beside.

use std::time::Duration;

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use highwater_connector::{ConnectorError, Problem};
use highwater_kafka::KafkaError;
use serde_json::{Value, json};

use crate::cluster::log_error;
use crate::loggers::LogLevel;
use crate::status::error_json;

/// Why a request is refused.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// 404.
    NotFound(String),
    /// 404 of what is no connector.
    Unknown(Thing, String),
    /// 409.
    Exists(String),
    /// 409: a file of the server wants the connector so.
    Declared {
        /// The connector.
        name: String,
        /// The file's name.
        file: String,
    },
    /// 400.
    BadRequest(String),
    /// 400: the body is not what the path takes.
    Unreadable {
        /// Why not.
        why: String,
        /// What it takes.
        form: &'static str,
    },
    /// 400: the connector of this name must be stopped first.
    NotStopped(String),
    /// 409: the consumer group of a sink has members, who alone may store its offsets.
    GroupInUse {
        /// The connector.
        connector: String,
        /// Its group.
        group: String,
        /// Some of the members.
        members: String,
        /// How long one counts that is heard of no more.
        session: Duration,
    },
    /// 400 with the number of errors and each of them.
    Invalid(Vec<Problem>),
    /// 409: nobody can do it until the workers have shared out their work.
    Rebalancing(String),
    /// 409: the worker that has to do it cannot be reached.
    Unreached {
        /// Where that worker is.
        url: String,
        /// Why not.
        why: String,
    },
    /// 421: the worker that has to do it would not know who asks.
    CallerUnknownThere {
        /// Where that worker is.
        url: String,
        /// Who asks.
        caller: String,
    },
    /// 500: the worker that has to do it is not trusted, or does not trust this one.
    Untrusted {
        /// Where that worker is.
        url: String,
        /// What TLS says.
        why: String,
    },
    /// 400: the connector refuses.
    Connector(ConnectorError),
    /// 500: the source cannot be asked.
    Source(ConnectorError),
    /// 500: the log fails at a change.
    Log(KafkaError),
    /// 500: the log cannot be read, before or without a change.
    Unread(KafkaError),
    /// 500: a part of the worker panicked, or took longer than a request may.
    Broken(String),
    /// Any other status, with its own text.
    Http(StatusCode, String),
}

/// What may be asked for by a name that is not there, beside a connector.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Thing {
    Task,
    Plugin,
    Logger,
    LogLevel,
}

impl Thing {
    const fn code(self) -> &'static str {
        match self {
            Self::Task => "TASK_NOT_FOUND",
            Self::Plugin => "PLUGIN_NOT_FOUND",
            Self::Logger => "LOGGER_NOT_FOUND",
            Self::LogLevel => "LOG_LEVEL_UNKNOWN",
        }
    }

    fn remedy(self) -> String {
        match self {
            Self::Task => "see which there are: highwater connector show NAME".to_owned(),
            Self::Plugin => "see which there are: highwater connector plugins --all".to_owned(),
            Self::Logger => "see which there are: GET /admin/loggers".to_owned(),
            Self::LogLevel => {
                let levels: Vec<_> = LogLevel::ALL.into_iter().map(LogLevel::name).collect();
                format!("give one of {}; FATAL and ALL stand for the nearest", levels.join(", "))
            }
        }
    }
}

/// What Kafka Connect says.
const NO_LEADER: &str =
    "Cannot complete request because of a conflicting operation (e.g. worker rebalance)";

impl Refusal {
    /// No worker can make a change now.
    pub(crate) fn rebalancing() -> Self {
        Self::Rebalancing(NO_LEADER.to_owned())
    }

    /// The worker that has to make a change cannot be reached.
    pub(crate) fn unreached(url: &str, why: &str) -> Self {
        Self::Unreached { url: url.to_owned(), why: why.to_owned() }
    }

    fn status(&self) -> StatusCode {
        match self {
            Self::NotFound(_) | Self::Unknown(..) => StatusCode::NOT_FOUND,
            Self::Exists(_)
            | Self::Declared { .. }
            | Self::GroupInUse { .. }
            | Self::Rebalancing(_)
            | Self::Unreached { .. } => StatusCode::CONFLICT,
            Self::BadRequest(_)
            | Self::Unreadable { .. }
            | Self::NotStopped(_)
            | Self::Invalid(_)
            | Self::Connector(_) => StatusCode::BAD_REQUEST,
            Self::CallerUnknownThere { .. } => StatusCode::MISDIRECTED_REQUEST,
            Self::Source(_)
            | Self::Log(_)
            | Self::Unread(_)
            | Self::Broken(_)
            | Self::Untrusted { .. } => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Http(status, _) => *status,
        }
    }

    /// What happened, in words.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::NotFound(text)
            | Self::Exists(text)
            | Self::BadRequest(text)
            | Self::Broken(text)
            | Self::Rebalancing(text)
            | Self::Unknown(_, text)
            | Self::Http(_, text) => text.clone(),
            Self::Unreadable { why, .. } => format!("The body is not readable: {why}"),
            Self::Unreached { url, why } => {
                format!("{NO_LEADER}: the worker at {url} cannot be reached: {why}")
            }
            Self::CallerUnknownThere { url, caller } => format!(
                "the worker at {url} has to do this, and {caller} is known here by a client certificate, \
                 which cannot be passed on"
            ),
            Self::Untrusted { url, why } => {
                format!("IO Error trying to forward REST request: {url}: {why}")
            }
            Self::Declared { name, file } => format!(
                "Connector {name} is kept as file {file} of the server's connectors_dir says"
            ),
            Self::NotStopped(name) => format!(
                "Connectors must be in the STOPPED state before their offsets can be modified. \
                 This can be done for the specified connector by issuing a 'PUT' request to the \
                 '/connectors/{name}/stop' endpoint"
            ),
            Self::GroupInUse { connector, group, members, .. } => format!(
                "Consumer group {group}, whose offsets are those of connector {connector}, has members \
                 that alone may store them (NON_EMPTY_GROUP): {}",
                if members.is_empty() { "one has just joined" } else { members }
            ),
            Self::Invalid(problems) => invalid(problems),
            Self::Connector(error) | Self::Source(error) => error.to_string(),
            Self::Unread(error) => format!("The log cannot be read: {error}"),
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
    text.push_str(
        "\nYou can also find the above list of errors at the endpoint \
         `/connector-plugins/{connectorType}/config/validate`",
    );
    text
}

/// A worker that is out of its group, since Kafka is away for it, says so there.
const REBALANCING_REMEDY: &str =
    "send the request again in a few seconds; if it stays so, GET /health says why";

/// What is kept when a request is refused before anything is done.
const UNCHANGED: &str = "everything: nothing was changed";

impl Refusal {
    /// The parts of rule U3: code, what, kept, do.
    fn parts(&self) -> Value {
        let parts = |code: &str, kept: &str, remedy: &str| json!({ "code": code, "what": self.message(), "kept": kept, "do": remedy });
        match self {
            Self::NotFound(_) => parts(
                "CONNECTOR_NOT_FOUND",
                UNCHANGED,
                "see which connectors there are: highwater connector list",
            ),
            Self::Unknown(thing, _) => parts(thing.code(), UNCHANGED, &thing.remedy()),
            Self::Exists(_) => parts(
                "CONNECTOR_EXISTS",
                UNCHANGED,
                "choose another name, or change that one: highwater connector update NAME --file FILE",
            ),
            Self::Declared { file, .. } => parts(
                "CONNECTOR_DECLARED",
                UNCHANGED,
                &format!("change {file}, or remove it: the server follows within seconds"),
            ),
            Self::NotStopped(name) => parts(
                "CONNECTOR_NOT_STOPPED",
                UNCHANGED,
                &format!("highwater connector stop {name}"),
            ),
            Self::GroupInUse { session, .. } => parts(
                "SINK_GROUP_IN_USE",
                UNCHANGED,
                &format!(
                    "wait {} s, which a task that was killed or a static member counts as a member, and \
                     send the request again; end who reads in this group and is no task of the connector",
                    session.as_secs_f64()
                ),
            ),
            Self::BadRequest(_) => {
                parts("REQUEST_INVALID", UNCHANGED, "correct the request and send it again")
            }
            Self::Unreadable { form, .. } => {
                parts("REQUEST_INVALID", UNCHANGED, &format!("send {form}"))
            }
            Self::Invalid(_) => parts(
                "CONFIG_INVALID",
                UNCHANGED,
                "correct these keys; docs/reference/configuration.md says what each takes, and highwater \
                 connector validate --file FILE tries them",
            ),
            Self::Connector(error) | Self::Source(error) => error_json(error),
            Self::Unread(error) => parts(
                log_error(error).code,
                UNCHANGED,
                "send the request again once the log answers; highwater doctor says what is wrong with it",
            ),
            Self::Log(error) => parts(
                log_error(error).code,
                "what is in the log; whether this change is among it is not known",
                "look whether it is done, and if not send the request again",
            ),
            Self::Broken(_) => parts(
                "REQUEST_NOT_DONE",
                "what is in the log; whether this request did what it asks for is not known",
                "look whether it is done, then at the server's log lines, and report them",
            ),
            Self::Rebalancing(_) | Self::Unreached { .. } => {
                parts("WORKERS_REBALANCING", UNCHANGED, REBALANCING_REMEDY)
            }
            Self::CallerUnknownThere { url, .. } => parts(
                "WORKER_CALLER_UNKNOWN",
                UNCHANGED,
                &format!(
                    "ask {url}, or with a token; or give the servers worker.forward_cert and worker.forward_users"
                ),
            ),
            Self::Untrusted { .. } => parts(
                "WORKER_TLS_FAILED",
                UNCHANGED,
                "correct worker.forward_ca of this server, its worker.forward_cert where the other one asks for a certificate, or that one's http.tls.cert",
            ),
            Self::Http(status, _) => {
                let (code, remedy) = http(*status);
                parts(code, UNCHANGED, remedy)
            }
        }
    }
}

/// Code and remedy of a request that no handler saw.
const fn http(status: StatusCode) -> (&'static str, &'static str) {
    match status {
        StatusCode::NOT_FOUND => (
            "PATH_UNKNOWN",
            "the paths are those of Kafka Connect's REST API; GET /connectors is one",
        ),
        StatusCode::METHOD_NOT_ALLOWED => {
            ("METHOD_NOT_ALLOWED", "use one of the methods that header Allow names")
        }
        StatusCode::UNSUPPORTED_MEDIA_TYPE => {
            ("MEDIA_TYPE_NOT_ALLOWED", "send Content-Type: application/json")
        }
        StatusCode::NOT_ACCEPTABLE => ("MEDIA_TYPE_NOT_ANSWERED", "send Accept: application/json"),
        StatusCode::PAYLOAD_TOO_LARGE => ("BODY_TOO_LARGE", "send a smaller body"),
        _ => ("REQUEST_INVALID", "correct the request and send it again"),
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut body = json!({ "error_code": status.as_u16(), "message": self.message() });
        if let (Value::Object(body), Value::Object(parts)) = (&mut body, self.parts()) {
            body.extend(parts);
        }
        (status, Json(body)).into_response()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_has_the_parts_of_an_error() {
        let text = || "it is so".to_owned();
        let error = highwater_connector::ConnectorError::stop(
            "X_1",
            highwater_connector::ErrorKind::Data,
            "a row is odd",
            "mend it",
        );
        for refusal in [
            Refusal::NotFound(text()),
            Refusal::Unknown(Thing::Plugin, text()),
            Refusal::Unknown(Thing::Logger, text()),
            Refusal::Unknown(Thing::LogLevel, text()),
            Refusal::Exists(text()),
            Refusal::BadRequest(text()),
            Refusal::Unreadable { why: text(), form: "a body" },
            Refusal::Unknown(Thing::Task, text()),
            Refusal::NotStopped("shop".to_owned()),
            Refusal::GroupInUse {
                connector: text(),
                group: text(),
                members: String::new(),
                session: Duration::from_secs(45),
            },
            Refusal::Invalid(Vec::new()),
            Refusal::Connector(error),
            Refusal::Broken(text()),
            Refusal::Rebalancing(text()),
            Refusal::CallerUnknownThere { url: text(), caller: text() },
            Refusal::Untrusted { url: text(), why: text() },
            Refusal::Unreached { url: text(), why: text() },
            Refusal::Http(StatusCode::NOT_FOUND, text()),
            Refusal::Http(StatusCode::IM_A_TEAPOT, text()),
        ] {
            let parts = refusal.parts();
            for part in ["code", "what", "kept", "do"] {
                let text = parts[part].as_str().unwrap_or_default();
                assert!(!text.is_empty(), "{part} of {refusal:?}");
            }
        }
    }

    #[test]
    fn who_only_reads_is_not_told_of_a_change() {
        let away = || KafkaError::Unreachable {
            bootstrap: "kafka:9092".to_owned(),
            detail: "connection refused".to_owned(),
        };
        let read = Refusal::Unread(away());
        let told = format!("{}{}", read.message(), read.parts());
        assert!(told.contains("connection refused") && told.contains(UNCHANGED), "{told}");
        assert!(!told.contains("outcome") && !told.contains("is not known"), "{told}");
        assert!(Refusal::Log(away()).parts()["kept"].to_string().contains("is not known"));
    }

    #[test]
    fn what_is_no_connector_is_not_called_one_and_all_levels_are_named() {
        let logger = Refusal::Unknown(Thing::Logger, String::new()).parts();
        assert_eq!(logger["code"], "LOGGER_NOT_FOUND");
        let level = Refusal::Unknown(Thing::LogLevel, String::new()).parts();
        let remedy = level["do"].as_str().unwrap();
        assert!(LogLevel::ALL.iter().all(|level| remedy.contains(level.name())), "{remedy}");
    }

    #[test]
    fn an_invalid_configuration_counts_its_errors() {
        let problem = |key: &str| Problem { key: key.to_owned(), message: "is wrong".to_owned() };
        let refusal = Refusal::Invalid(vec![problem("a"), problem("b")]);
        assert_eq!(
            refusal.message(),
            "Connector configuration is invalid and contains the following 2 error(s):\n\
             a is wrong\nb is wrong\nYou can also find the above list of errors at the endpoint \
             `/connector-plugins/{connectorType}/config/validate`"
        );
    }
}
