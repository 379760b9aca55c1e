//! Who may address this server by a browser (rule A3): a name that is ours, and no page of
//! somebody else's.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::refusal::Refusal;
use crate::service::Service;

/// Refuses what rule A3 refuses.
pub(crate) async fn check(
    State(service): State<Arc<Service>>,
    request: Request,
    next: Next,
) -> Response {
    match judge(request.method(), request.headers(), &service.config.allowed_hosts) {
        Ok(()) => next.run(request).await,
        Err(refusal) => refusal.into_response(),
    }
}

fn judge(method: &Method, headers: &HeaderMap, allowed: &[String]) -> Result<(), Refusal> {
    let host = text(headers, header::HOST.as_str()).unwrap_or_default();
    let name = host_name(host);
    if !is_loopback(name) && !allowed.iter().any(|allowed| allowed.eq_ignore_ascii_case(name)) {
        return Err(forbidden(
            "host_not_allowed",
            format!("the request is addressed to {host:?}, which is no name of this server"),
            "use a loopback address, or start the server with --http-advertise",
        ));
    }
    let unsafe_method = !matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    if (unsafe_method || is_upgrade(headers)) && is_foreign(headers, host) {
        return Err(forbidden(
            "origin_not_allowed",
            "the request comes from a page of another site".to_owned(),
            "send it from outside a browser, or from a page that this server serves",
        ));
    }
    Ok(())
}

/// Whether the request asks for a WebSocket.
pub(crate) fn is_upgrade(headers: &HeaderMap) -> bool {
    text(headers, header::UPGRADE.as_str())
        .is_some_and(|upgrade| upgrade.to_ascii_lowercase().contains("websocket"))
}

fn is_foreign(headers: &HeaderMap, host: &str) -> bool {
    let origin = text(headers, header::ORIGIN.as_str());
    let foreign_origin = origin.is_some_and(|origin| {
        origin.split_once("://").is_none_or(|(_, there)| !there.eq_ignore_ascii_case(host))
    });
    let site = text(headers, "sec-fetch-site");
    foreign_origin || site.is_some_and(|site| !matches!(site, "same-origin" | "none"))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    // A header that is no text is no name of ours either.
    headers.get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// The host without its port.
fn host_name(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or_default();
    }
    host.split(':').next().unwrap_or_default()
}

fn is_loopback(name: &str) -> bool {
    name.eq_ignore_ascii_case("localhost")
        || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn forbidden(code: &'static str, what: String, remedy: &str) -> Refusal {
    Refusal::new(StatusCode::FORBIDDEN, code, what, remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(method: &Method, headers: &[(&'static str, &str)]) -> Option<&'static str> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        judge(method, &map, &["cdc.example".to_owned()]).err().map(|refusal| refusal.code)
    }

    #[test]
    fn only_loopback_and_configured_hosts() {
        for host in ["127.0.0.1:8083", "localhost", "[::1]:8083", "CDC.example:8083"] {
            assert_eq!(refused(&Method::GET, &[("host", host)]), None, "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "", "10.0.0.1:8083"] {
            assert_eq!(
                refused(&Method::GET, &[("host", host)]),
                Some("host_not_allowed"),
                "{host}"
            );
        }
    }

    #[test]
    fn a_foreign_page_can_neither_change_nor_upgrade() {
        let host = ("host", "localhost:8083");
        for foreign in [
            ("origin", "http://evil.example"),
            ("origin", "http://localhost:3000"),
            ("origin", "null"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            let code = Some("origin_not_allowed");
            assert_eq!(refused(&Method::POST, &[host, foreign]), code, "{foreign:?}");
            let upgrade = [host, foreign, ("upgrade", "WebSocket")];
            assert_eq!(refused(&Method::GET, &upgrade), code, "{foreign:?}");
            assert_eq!(refused(&Method::GET, &[host, foreign]), None, "{foreign:?}");
        }
        let own = [host, ("origin", "http://localhost:8083"), ("sec-fetch-site", "same-origin")];
        assert_eq!(refused(&Method::DELETE, &own), None);
        assert_eq!(refused(&Method::DELETE, &[host]), None);
    }
}
