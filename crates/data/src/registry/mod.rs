//! A schema registry, as Confluent's REST API has it: a schema's id under a subject, the schema of an
//! id. What is asked is remembered by the converter, so that a connection a request is cheap enough.

mod exchange;
mod server;

use std::time::Duration;

use hyper::{Method, StatusCode};
use serde_json::{Value as Json, json};

use crate::error::DataError;
use exchange::{Exchange, Tls};

pub(crate) use server::{Login, Server};

/// How long is waited, and how often.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) connect: Duration,
    pub(crate) answer: Duration,
    pub(crate) retries: u32,
    pub(crate) wait: Duration,
    pub(crate) longest_wait: Duration,
}

/// The servers of one registry.
#[derive(Debug)]
pub(crate) struct Registry {
    servers: Vec<Server>,
    patience: Patience,
    tls: Tls,
}

impl Registry {
    /// A registry; `trust` is a file with the authorities to trust, in place of the system's.
    pub(crate) fn new(
        servers: Vec<Server>,
        patience: Patience,
        trust: Option<&str>,
    ) -> Result<Self, String> {
        let secure = servers.iter().any(Server::is_secure);
        let tls = if secure { Tls::new(trust)? } else { Tls::none() };
        Ok(Self { servers, patience, tls })
    }

    /// The id of a schema under a subject; registered there, or looked up.
    pub(crate) async fn id_of(
        &self,
        subject: &str,
        schema: &str,
        register: bool,
    ) -> Result<u32, DataError> {
        let versions = if register { "/versions" } else { "" };
        let path = format!("/subjects/{}{versions}", escaped(subject));
        let body = json!({ "schema": schema });
        let answer = self.call(Method::POST, &path, Some(&body)).await?;
        let id = answer.get("id").and_then(Json::as_u64).and_then(|id| u32::try_from(id).ok());
        id.ok_or_else(|| strange(&path, "no id"))
    }

    /// The text of the schema of an id.
    pub(crate) async fn schema_of(&self, id: u32) -> Result<String, DataError> {
        let path = format!("/schemas/ids/{id}");
        let answer = self.call(Method::GET, &path, None).await?;
        match answer.get("schemaType").and_then(Json::as_str) {
            None | Some("AVRO") => {}
            Some(other) => return Err(strange(&path, &format!("a schema of type {other}"))),
        }
        if answer.get("references").and_then(Json::as_array).is_some_and(|all| !all.is_empty()) {
            return Err(strange(
                &path,
                "a schema with references to others, which are not followed here",
            ));
        }
        let text = answer.get("schema").and_then(Json::as_str);
        text.map(ToOwned::to_owned).ok_or_else(|| strange(&path, "no schema"))
    }

    /// The answer to a request: of one server after the other, and again, until one gives an answer.
    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Json>,
    ) -> Result<Json, DataError> {
        let mut wait = self.patience.wait;
        let mut why = String::new();
        for attempt in 0..=self.patience.retries {
            if attempt > 0 {
                tokio::time::sleep(wait.min(self.patience.longest_wait)).await;
                wait = wait.saturating_mul(2);
            }
            for server in &self.servers {
                let exchange = Exchange { server, patience: &self.patience, tls: &self.tls };
                let asked = format!("{method} {path}");
                why = match exchange.send(method.clone(), path, body).await {
                    Err(error) => {
                        format!("the schema registry {server} gives no answer to {asked}: {error}")
                    }
                    Ok((status, text)) if status.is_success() => {
                        return serde_json::from_slice(&text).map_err(|_| strange(path, "no JSON"));
                    }
                    Ok((status, text)) if passes(status) => {
                        format!(
                            "the schema registry {server} cannot answer {asked} now: {}",
                            said(status, &text)
                        )
                    }
                    Ok((status, text)) => {
                        let said = said(status, &text);
                        let what = format!("the schema registry refuses {asked} with {said}");
                        return Err(DataError::RegistryRefused(what));
                    }
                };
            }
        }
        Err(DataError::RegistryUnreachable(why))
    }
}

/// Whether asking again may help.
fn passes(status: StatusCode) -> bool {
    status.is_server_error()
        || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT)
}

/// What an answer that is no success says, on one line.
fn said(status: StatusCode, text: &[u8]) -> String {
    const LONGEST: usize = 300;
    let number = status.as_u16();
    let Ok(json) = serde_json::from_slice::<Json>(text) else { return number.to_string() };
    let code = json.get("error_code").and_then(Json::as_u64).unwrap_or_default();
    let message = json.get("message").and_then(Json::as_str).unwrap_or_default();
    let message: String =
        message.chars().take(LONGEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("{number} (code {code}): {message}")
}

fn strange(path: &str, what: &str) -> DataError {
    DataError::RegistryRefused(format!("the schema registry answers {path} with {what}"))
}

/// A part of a path, with what is no letter of one in percent form.
fn escaped(text: &str) -> String {
    let mut path = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                path.push(char::from(byte))
            }
            _ => path.push_str(&format!("%{byte:02X}")),
        }
    }
    path
}
