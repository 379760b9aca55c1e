//! The server's REST API, as the command line calls it.

use std::time::Duration;

use reqwest::{Client, Method, Response, StatusCode};
use serde_json::Value;

use crate::failure::{Exit, Failure};

/// Code of a server that does not answer.
pub(crate) const UNREACHABLE: &str = "UNREACHABLE";

/// Calls one server.
pub(crate) struct Api {
    url: String,
    client: Client,
}

impl Api {
    pub(crate) fn new(url: &str) -> Result<Self, Failure> {
        let client = Client::builder()
            .connect_timeout(Duration::from_secs(5))
            .timeout(Duration::from_secs(90))
            .build()
            .map_err(|error| Failure::new(Exit::Failed, "CLIENT", error.to_string()))?;
        Ok(Self { url: base(url)?, client })
    }

    /// Where WebSockets are opened.
    pub(crate) fn websocket_url(&self) -> String {
        self.url.replacen("http", "ws", 1)
    }

    /// Sends a request; the answer's JSON, or null when it has no body.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let mut request = self.client.request(method, format!("{}{path}", self.url));
        if let Some(body) = body {
            request = request.json(body);
        }
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        self.read(response).await
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.call(Method::GET, path, None).await
    }

    async fn read(&self, response: Response) -> Result<Value, Failure> {
        let status = response.status();
        let text = response.text().await.map_err(|error| self.unreachable(&error))?;
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        if status.is_success() { Ok(body) } else { Err(refusal(status, &body, &text)) }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Failure {
        Failure::new(
            Exit::Unreachable,
            UNREACHABLE,
            format!("no Highwater server answers at {}: {}", self.url, root_cause(error)),
        )
        .kept("nothing was changed, as far as an answer can tell")
        .remedy("start one with `highwater server`, or name its address with --url; highwater doctor looks for the cause")
    }
}

/// The server's address as it stands in front of every path.
fn base(url: &str) -> Result<String, Failure> {
    let parsed = reqwest::Url::parse(url).ok();
    let is_http = |url: &reqwest::Url| matches!(url.scheme(), "http" | "https") && url.has_host();
    if parsed.as_ref().is_some_and(is_http) {
        return Ok(url.trim_end_matches('/').to_owned());
    }
    let failure = Failure::usage(format!("--url {url} is not the URL of a server"));
    let with_scheme = format!("http://{url}");
    let likely = reqwest::Url::parse(&with_scheme).is_ok_and(|url| url.port().is_some());
    Err(failure.remedy(format!(
        "write it with its scheme, such as {}",
        if likely { &with_scheme } else { "http://127.0.0.1:8083" }
    )))
}

fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The failure behind an answer that is no success.
pub(crate) fn refusal(status: StatusCode, body: &Value, text: &str) -> Failure {
    let part = |key: &str| body.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let what = [part("what"), part("message"), text.trim().to_owned()]
        .into_iter()
        .find(|text| !text.is_empty())
        .unwrap_or_else(|| status.to_string());
    let code = match part("code") {
        code if code.is_empty() => format!("HTTP_{}", status.as_u16()),
        code => code,
    };
    Failure::new(exit(status), &code, what).kept(part("kept")).remedy(part("do"))
}

fn exit(status: StatusCode) -> Exit {
    match status.as_u16() {
        401 | 403 => Exit::Denied,
        404 => Exit::NotFound,
        400..=499 => Exit::Refused,
        502..=504 => Exit::Unreachable,
        _ => Exit::Failed,
    }
}

/// A name as one segment of a path.
pub(crate) fn segment(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_keeps_connects_message_and_our_parts() {
        let connect = serde_json::json!({"error_code": 404, "message": "Connector x not found"});
        let failure = refusal(StatusCode::NOT_FOUND, &connect, "");
        assert_eq!(failure.exit, Exit::NotFound);
        assert_eq!(failure.what, "Connector x not found");

        let ours = serde_json::json!({"code": "GONE", "what": "w", "kept": "k", "do": "d"});
        let failure = refusal(StatusCode::GONE, &ours, "");
        assert_eq!((failure.exit, failure.code.as_str()), (Exit::Refused, "GONE"));
        assert_eq!((failure.kept.as_str(), failure.remedy.as_str()), ("k", "d"));
    }

    #[test]
    fn an_address_without_its_scheme_is_a_usage_error() {
        assert_eq!(base("http://127.0.0.1:8083/").unwrap(), "http://127.0.0.1:8083");
        for (url, remedy) in
            [("127.0.0.1:8083", "http://127.0.0.1:8083"), ("ftp://x", "http://"), ("", "http://")]
        {
            let failure = base(url).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.remedy.contains(remedy), "{}", failure.remedy);
        }
    }

    #[test]
    fn names_are_one_path_segment() {
        assert_eq!(segment("a/b c?é"), "a%2Fb%20c%3F%C3%A9");
    }
}
