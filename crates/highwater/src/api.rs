//! The server's REST API, as the command line calls it.

use std::time::Duration;

use reqwest::{Client, Method, Response, StatusCode};
use serde_json::Value;

use crate::failure::{Exit, Failure};

/// Code of an address where no server could be connected to.
pub(crate) const UNREACHABLE: &str = "UNREACHABLE";

/// Code of a server that was connected to and gave no answer.
const SERVER_SILENT: &str = "SERVER_SILENT";

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
        let response = request.send().await.map_err(|error| self.unanswered(&error))?;
        self.read(response).await
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.call(Method::GET, path, None).await
    }

    async fn read(&self, response: Response) -> Result<Value, Failure> {
        let status = response.status();
        let text = response.text().await.map_err(|error| self.unanswered(&error))?;
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        if status.is_success() { Ok(body) } else { Err(refusal(status, &body, &text)) }
    }

    fn unanswered(&self, error: &reqwest::Error) -> Failure {
        let (url, cause) = (&self.url, root_cause(error));
        let failed = |code, what| Failure::new(Exit::Unreachable, code, what);
        if error.is_connect() {
            failed(UNREACHABLE, format!("no Highwater server answers at {url}: {cause}"))
                .kept("nothing was changed: nothing was asked")
                .remedy("start one with `highwater server`, or name its address with --url; highwater doctor looks for the cause")
        } else {
            failed(SERVER_SILENT, format!("{url} was connected to and gave no answer: {cause}"))
                .kept("what was asked for may be done or not; the server goes on with it")
                .remedy("see that --url is a Highwater server and what its log says, look at the state with a command that shows it, then try again")
        }
    }
}

/// The server's address as it stands in front of every path.
fn base(url: &str) -> Result<String, Failure> {
    let parsed = reqwest::Url::parse(url).ok();
    match parsed.as_ref().filter(|parsed| parsed.has_host()).map(reqwest::Url::scheme) {
        Some("http") => return Ok(url.trim_end_matches('/').to_owned()),
        // Built without TLS: a connection would fail as if nobody answered.
        Some("https") => {
            let failure = "commands speak http only in this release, and --url names https";
            return Err(Failure::usage(failure).remedy(
                "run the command where the server listens, with --url http://127.0.0.1:8083, or through a tunnel: ssh -L 8083:127.0.0.1:8083 HOST",
            ));
        }
        _ => {}
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
        for (url, remedy) in [
            ("127.0.0.1:8083", "http://127.0.0.1:8083"),
            ("ftp://x", "http://"),
            ("", "http://"),
            ("https://hw.example", "ssh -L"),
        ] {
            let failure = base(url).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.remedy.contains(remedy), "{}", failure.remedy);
        }
    }

    #[tokio::test]
    async fn who_connects_and_does_not_answer_is_not_taken_for_nobody() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let api = Api::new(&url).unwrap();
        let hangs_up = async { drop(listener.accept().await) };
        let (asked, ()) = tokio::join!(api.get("/"), hangs_up);
        assert_eq!(asked.unwrap_err().code, SERVER_SILENT);
        drop(listener);
        assert_eq!(api.get("/").await.unwrap_err().code, UNREACHABLE);
    }

    #[test]
    fn names_are_one_path_segment() {
        assert_eq!(segment("a/b c?é"), "a%2Fb%20c%3F%C3%A9");
    }
}
