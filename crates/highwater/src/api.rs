//! The server's REST API, as the command line calls it.

use std::net::IpAddr;

use axum::http::uri::Authority;
use axum::http::{Method, StatusCode, Uri};
use serde_json::Value;

use crate::cli::Cli;
use crate::failure::{Exit, Failure};
use crate::http_client::{Server, Unanswered};
use crate::output;

/// Code of an address where no server could be connected to.
pub(crate) const UNREACHABLE: &str = "UNREACHABLE";

/// Code of a server that was connected to and gave no answer.
const SERVER_SILENT: &str = "SERVER_SILENT";

/// Calls one server.
pub(crate) struct Api {
    url: String,
    server: Server,
}

impl Api {
    /// The server that a command line names, as who it says.
    pub(crate) fn of(cli: &Cli) -> Result<Self, Failure> {
        let (authorization, tls) = (cli.login.authorization()?, cli.login.tls()?);
        let (authority, prefix, secure) = parts(&cli.url)?;
        if authorization.is_some() && !secure && !is_loopback(&authority) {
            output::note("the login goes over the network in the clear: --url names http");
        }
        let tls = secure.then_some(tls);
        let url = cli.url.trim_end_matches('/').to_owned();
        Ok(Self { url, server: Server::new(authority, prefix, tls, authorization) })
    }

    /// The server, for what is no plain request.
    pub(crate) const fn server(&self) -> &Server {
        &self.server
    }

    /// Where it is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Sends a request; the answer's JSON, or null when it has no body.
    pub(crate) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Failure> {
        let asked = self.server.call(method, path, body.map(Value::to_string)).await;
        let (status, text) = asked.map_err(|unanswered| self.unanswered(unanswered))?;
        let body = serde_json::from_str(&text).unwrap_or(Value::Null);
        if status.is_success() { Ok(body) } else { Err(refusal(status, &body, &text)) }
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.call(Method::GET, path, None).await
    }

    /// The failure behind a request without an answer.
    pub(crate) fn unanswered(&self, unanswered: Unanswered) -> Failure {
        let url = &self.url;
        let failed = |code, what| Failure::new(Exit::Unreachable, code, what);
        match unanswered {
            Unanswered::Unreachable(cause) => {
                failed(UNREACHABLE, format!("no Highwater server answers at {url}: {cause}"))
                    .kept("nothing was changed: nothing was asked")
                    .remedy("start one with `highwater server`, or name its address with --url; highwater doctor looks for the cause")
            }
            Unanswered::Untrusted(cause) => {
                failed(UNREACHABLE, format!("{url} cannot be trusted: {cause}"))
                    .kept("nothing was changed: nothing was asked")
                    .remedy("name the file of the authority that signed its certificate with --ca-file, and the server in --url as its certificate does; http where it has no TLS")
            }
            Unanswered::Silent(cause) => {
                failed(SERVER_SILENT, format!("{url} was connected to and gave no answer: {cause}"))
                    .kept("what was asked for may be done or not; the server goes on with it")
                    .remedy("see that --url is a Highwater server, with https where it has TLS, and what its log says, look at the state with a command that shows it, then try again")
            }
        }
    }
}

/// Host and port of a server, what stands in front of every path, and whether it has TLS.
fn parts(url: &str) -> Result<(Authority, String, bool), Failure> {
    let parsed: Option<Uri> = url.parse().ok();
    let parsed = parsed.filter(|uri| uri.query().is_none()).and_then(|uri| {
        let authority = uri.authority()?.clone();
        // A name and a password would be seen by every user of the machine.
        (!authority.as_str().contains('@')).then_some(())?;
        Some((authority, uri.path().trim_end_matches('/').to_owned(), uri.scheme_str()?.to_owned()))
    });
    match parsed {
        Some((authority, prefix, scheme)) if scheme == "http" => {
            return Ok((authority, prefix, false));
        }
        Some((authority, prefix, scheme)) if scheme == "https" => {
            return Ok((authority, prefix, true));
        }
        _ => {}
    }
    // It is not quoted where a password may stand in it.
    let shown = if url.contains('@') { "that was given" } else { url };
    let failure = Failure::usage(format!("--url {shown} is not the URL of a server"));
    let with_scheme = format!("http://{shown}");
    let likely = with_scheme.parse::<Uri>().is_ok_and(|uri| uri.port().is_some());
    Err(failure.remedy(format!(
        "write it with its scheme and without a login, such as {}",
        if likely { &with_scheme } else { "http://127.0.0.1:8083" }
    )))
}

fn is_loopback(authority: &Authority) -> bool {
    let host = authority.host().trim_matches(['[', ']']);
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
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
    use clap::Parser as _;

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
        let (authority, prefix, secure) = parts("http://127.0.0.1:8083/").unwrap();
        assert_eq!((authority.as_str(), prefix.as_str(), secure), ("127.0.0.1:8083", "", false));
        let (authority, prefix, secure) = parts("https://hw.example/behind/").unwrap();
        assert_eq!((authority.as_str(), prefix.as_str(), secure), ("hw.example", "/behind", true));
        for (url, remedy) in [
            ("127.0.0.1:8083", "http://127.0.0.1:8083"),
            ("ftp://x", "http://"),
            ("", "http://"),
            ("http://ann:s3cret@127.0.0.1:8083", "without a login"),
        ] {
            let failure = parts(url).unwrap_err();
            assert_eq!(failure.exit, Exit::Usage);
            assert!(failure.remedy.contains(remedy), "{}", failure.remedy);
            assert!(!format!("{failure:?}").contains("s3cret"), "{failure:?}");
        }
    }

    #[tokio::test]
    async fn who_cannot_be_trusted_is_so_with_the_way_to_trust() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("https://{}", listener.local_addr().unwrap());
        let cli = Cli::parse_from(["highwater", "--url", &url, "doctor"]);
        let api = Api::of(&cli).unwrap();
        let speaks_no_tls = async {
            use tokio::io::AsyncWriteExt as _;
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        };
        let (asked, ()) = tokio::join!(api.get("/"), speaks_no_tls);
        let failure = asked.unwrap_err();
        assert_eq!((failure.exit, failure.code.as_str()), (Exit::Unreachable, UNREACHABLE));
        assert!(failure.remedy.contains("--ca-file"), "{failure:?}");
    }

    #[tokio::test]
    async fn who_connects_and_does_not_answer_is_not_taken_for_nobody() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let cli = Cli::parse_from(["highwater", "--url", &url, "doctor"]);
        let api = Api::of(&cli).unwrap();
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
