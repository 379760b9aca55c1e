//! Who may talk to the HTTP listener (rule A3): pure decisions on request headers.
//!
//! A browser sends a page's requests to loopback as readily as anywhere else. The `Host` check
//! defeats DNS rebinding; the `Origin` and `Sec-Fetch-Site` checks defeat cross-site requests and
//! cross-site WebSockets, which no preflight protects.

use axum::http::uri::Authority;
use axum::http::{HeaderMap, Method, StatusCode, header};

/// Why a request is refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refusal {
    /// `Host` is neither loopback nor configured.
    Host,
    /// The request comes from another site's page.
    Origin,
    /// The body is of a type that no endpoint takes.
    ContentType,
    /// The body is larger than any endpoint takes.
    BodyTooLarge,
    /// The body did not come in time.
    BodySlow,
    /// The body ended before its end, or its chunks are no chunks.
    BodyCut,
    /// Large bodies of others take all the memory there is for them.
    Busy,
}

impl Refusal {
    pub(crate) const fn status(self) -> StatusCode {
        match self {
            Self::Host => StatusCode::MISDIRECTED_REQUEST,
            Self::Origin => StatusCode::FORBIDDEN,
            Self::ContentType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::BodySlow => StatusCode::REQUEST_TIMEOUT,
            Self::BodyCut => StatusCode::BAD_REQUEST,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    pub(crate) const fn code(self) -> &'static str {
        match self {
            Self::Host => "HOST_NOT_ALLOWED",
            Self::Origin => "ORIGIN_NOT_ALLOWED",
            Self::ContentType => "MEDIA_TYPE_NOT_ALLOWED",
            Self::BodyTooLarge => "BODY_TOO_LARGE",
            Self::BodySlow => "BODY_TOO_SLOW",
            Self::BodyCut => "BODY_CUT",
            Self::Busy => "HTTP_BUSY",
        }
    }

    pub(crate) const fn what(self) -> &'static str {
        match self {
            Self::Host => "This server answers only requests whose Host is loopback or configured",
            Self::Origin => {
                "A request from another site's page may not change anything or open a stream"
            }
            Self::ContentType => "The body must be application/json",
            Self::BodyTooLarge => "The body is larger than 1 MiB",
            Self::BodySlow => "The body did not come whole within 30 seconds",
            Self::BodyCut => "The body ended before its end",
            Self::Busy => "Large requests of others take all the memory there is for them",
        }
    }

    pub(crate) const fn remedy(self) -> &'static str {
        match self {
            Self::Host => "add the name to http.allowed_hosts",
            Self::Origin => "call the API from a program or from a page of this server",
            Self::ContentType => "send Content-Type: application/json",
            Self::BodyTooLarge => "send a smaller one; no configuration needs as much",
            Self::BodySlow => "send the request again, over a faster connection",
            Self::BodyCut => "send the request again, whole",
            Self::Busy => "send the request again in a few seconds",
        }
    }
}

/// Decides on a request. `allowed` holds host names beside loopback, in lower case.
pub(crate) fn check(
    method: &Method,
    path: &str,
    headers: &HeaderMap,
    allowed: &[String],
) -> Result<(), Refusal> {
    let host = text(headers, header::HOST).and_then(host_name);
    if !host.is_some_and(|host| is_ours(&host, allowed)) {
        return Err(Refusal::Host);
    }
    let upgrade = headers.contains_key(header::UPGRADE);
    let safe = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    if (upgrade || !safe) && is_foreign(headers, allowed) {
        return Err(Refusal::Origin);
    }
    if !safe && has_body(headers) && !is_expected_type(path, headers) {
        return Err(Refusal::ContentType);
    }
    Ok(())
}

fn text(headers: &HeaderMap, name: header::HeaderName) -> Option<&str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// The host of `HOST[:PORT]`, in lower case and without the brackets of an IPv6 address.
pub(crate) fn host_name(authority: &str) -> Option<String> {
    let authority: Authority = authority.parse().ok()?;
    Some(authority.host().trim_matches(['[', ']']).to_ascii_lowercase())
}

fn is_ours(host: &str, allowed: &[String]) -> bool {
    let loopback = host == "localhost"
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback());
    loopback || allowed.iter().any(|name| name == host)
}

fn is_foreign(headers: &HeaderMap, allowed: &[String]) -> bool {
    let site = headers.get("sec-fetch-site").map(|value| value.as_bytes());
    if site.is_some_and(|site| !matches!(site, b"same-origin" | b"none")) {
        return true;
    }
    match headers.get(header::ORIGIN) {
        None => false,
        Some(origin) => {
            !origin.to_str().is_ok_and(|origin| is_our_origin(origin, headers, allowed))
        }
    }
}

/// An origin is ours when it is exactly the host and port that the request itself names.
fn is_our_origin(origin: &str, headers: &HeaderMap, allowed: &[String]) -> bool {
    let Some((_, authority)) = origin.split_once("://") else { return false };
    let same = text(headers, header::HOST).is_some_and(|host| host.eq_ignore_ascii_case(authority));
    same && host_name(authority).is_some_and(|host| is_ours(&host, allowed))
}

fn has_body(headers: &HeaderMap) -> bool {
    headers.contains_key(header::TRANSFER_ENCODING)
        || text(headers, header::CONTENT_LENGTH).is_some_and(|length| length != "0")
}

fn is_expected_type(path: &str, headers: &HeaderMap) -> bool {
    let given = text(headers, header::CONTENT_TYPE).unwrap_or_default();
    let media = given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let mergeable = path.starts_with("/services/v2/stream/");
    media == "application/json" || (mergeable && media == "application/merge-patch+json")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.insert(*name, value.parse().unwrap());
        }
        map
    }

    fn decide(method: Method, pairs: &[(&'static str, &'static str)]) -> Result<(), Refusal> {
        check(&method, "/connectors", &headers(pairs), &["cdc.example".to_owned()])
    }

    #[test]
    fn only_loopback_and_configured_hosts_are_answered() {
        for host in ["127.0.0.1:8083", "localhost", "[::1]:8083", "CDC.example:80"] {
            assert_eq!(decide(Method::GET, &[("host", host)]), Ok(()), "{host}");
        }
        for host in ["evil.example", "127.0.0.1.evil.example", "10.0.0.1", ""] {
            assert_eq!(decide(Method::GET, &[("host", host)]), Err(Refusal::Host), "{host}");
        }
        assert_eq!(decide(Method::GET, &[]), Err(Refusal::Host));
    }

    #[test]
    fn another_sites_page_changes_nothing_and_opens_no_stream() {
        let host = ("host", "127.0.0.1:8083");
        let foreign = ("origin", "http://evil.example");
        assert_eq!(decide(Method::GET, &[host, foreign]), Ok(()));
        assert_eq!(decide(Method::POST, &[host, foreign]), Err(Refusal::Origin));
        let upgrade = ("upgrade", "websocket");
        assert_eq!(decide(Method::GET, &[host, foreign, upgrade]), Err(Refusal::Origin));
        let site = ("sec-fetch-site", "cross-site");
        assert_eq!(decide(Method::DELETE, &[host, site]), Err(Refusal::Origin));
        let other_port = ("origin", "http://127.0.0.1:9999");
        assert_eq!(decide(Method::PUT, &[host, other_port]), Err(Refusal::Origin));
        let null = ("origin", "null");
        assert_eq!(decide(Method::PUT, &[host, null]), Err(Refusal::Origin));
        let own = ("origin", "http://127.0.0.1:8083");
        assert_eq!(decide(Method::PUT, &[host, own]), Ok(()));
    }

    #[test]
    fn a_stream_takes_a_merge_patch() {
        let patch = [
            ("host", "localhost"),
            ("content-length", "2"),
            ("content-type", "application/merge-patch+json"),
        ];
        let stream = "/services/v2/stream/shop";
        assert_eq!(check(&Method::PATCH, stream, &headers(&patch), &[]), Ok(()));
        assert_eq!(decide(Method::PATCH, &patch), Err(Refusal::ContentType));
    }

    #[test]
    fn a_body_is_json() {
        let host = ("host", "localhost");
        let length = ("content-length", "2");
        let json = ("content-type", "application/json; charset=utf-8");
        assert_eq!(decide(Method::POST, &[host, length, json]), Ok(()));
        let form = ("content-type", "text/plain");
        assert_eq!(decide(Method::POST, &[host, length, form]), Err(Refusal::ContentType));
        assert_eq!(decide(Method::POST, &[host, length]), Err(Refusal::ContentType));
        assert_eq!(decide(Method::PUT, &[host, ("content-length", "0")]), Ok(()));
        assert_eq!(decide(Method::PUT, &[host]), Ok(()));
    }
}
