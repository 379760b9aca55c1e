//! What is the same of every request, whatever it asks for: each runs to its end in a task of its
//! own and within a bound, `OPTIONS` names the methods, only JSON is answered, and a slash at the
//! end of a path says nothing.

use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tower_service::Service as _;

use crate::rest_error::Refusal;

/// Answers within `limit`. What a request began is not left half done by a client that goes away,
/// and a panic is the request's alone.
pub(crate) async fn bounded(limit: Duration, request: Request, next: Next) -> Response {
    let asked = format!("{} {}", request.method(), request.uri().path());
    let working = tokio::spawn(next.run(request));
    match tokio::time::timeout(limit, working).await {
        Ok(Ok(response)) => response,
        Ok(Err(error)) => {
            tracing::error!(asked, %error, "a request ended in the middle");
            Refusal::Broken(format!("{asked} ended in the middle: a part of the worker is broken"))
                .into_response()
        }
        Err(_) => Refusal::Broken(format!(
            "Request timed out: {asked} was not done within {} s; it goes on",
            limit.as_secs_f64()
        ))
        .into_response(),
    }
}

/// Refuses who takes no JSON.
pub(crate) async fn negotiated(request: Request, next: Next) -> Response {
    if request.method() != Method::OPTIONS && !takes_json(request.headers()) {
        let text = "HTTP 406 Not Acceptable".to_owned();
        return Refusal::Http(StatusCode::NOT_ACCEPTABLE, text).into_response();
    }
    next.run(request).await
}

/// Answers `OPTIONS`.
pub(crate) fn options(methods: &str) -> Response {
    match HeaderValue::from_str(methods) {
        Ok(allow) => ([(header::ALLOW, allow)], methods.to_owned()).into_response(),
        Err(_) => StatusCode::OK.into_response(),
    }
}

/// Whether `Accept` has a range that JSON is in. Its weight is not looked at.
fn takes_json(headers: &HeaderMap) -> bool {
    let mut given = headers.get_all(header::ACCEPT).iter().peekable();
    given.peek().is_none() || given.any(|value| value.to_str().is_ok_and(has_json))
}

fn has_json(accept: &str) -> bool {
    accept.split(',').any(|range| {
        let media = range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        matches!(media.as_str(), "application/json" | "application/*" | "*/*")
    })
}

/// Asks `routes` again for a path without the slash at its end.
pub(crate) async fn without_slash(mut routes: Router, mut request: Request) -> Response {
    if let Some(uri) = shorter(request.uri()) {
        *request.uri_mut() = uri;
    }
    let answered: Result<Response, Infallible> = routes.call(request).await;
    answered.unwrap_or_else(|never| match never {})
}

fn shorter(uri: &Uri) -> Option<Uri> {
    let path = uri.path().strip_suffix('/').filter(|path| !path.is_empty())?;
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(format!("{path}{query}")).ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_at_the_end_goes_and_the_query_stays() {
        let shorter = |text: &str| shorter(&text.parse().unwrap()).map(|uri| uri.to_string());
        assert_eq!(shorter("/connectors/?expand=info").unwrap(), "/connectors?expand=info");
        assert_eq!(shorter("/connectors"), None);
        assert_eq!(shorter("/"), None);
    }

    #[test]
    fn json_is_taken_where_a_range_has_it() {
        let takes = |accept: &str| {
            let value = HeaderValue::from_str(accept).unwrap();
            takes_json(&HeaderMap::from_iter([(header::ACCEPT, value)]))
        };
        for accept in ["*/*", "application/*", "text/html, Application/JSON;q=0.5"] {
            assert!(takes(accept), "{accept}");
        }
        for accept in ["text/plain", "application/xml", "garbage", ""] {
            assert!(!takes(accept), "{accept}");
        }
        assert!(takes_json(&HeaderMap::new()));
    }

    async fn asked(path: &str) -> (StatusCode, String) {
        use axum::middleware::from_fn;
        use axum::routing::get;

        let limit = Duration::from_millis(50);
        let mut routes = Router::new()
            .route("/hangs", get(std::future::pending::<String>))
            .route("/breaks", get(|| async { panic!("no luck") as String }))
            .route("/works", get(|| async { "done" }))
            .route_layer(from_fn(move |request: Request, next: Next| {
                bounded(limit, request, next)
            }));
        let request = Request::get(path).body(axum::body::Body::empty()).unwrap();
        let Ok(response) = routes.call(request).await;
        let status = response.status();
        let body = axum::body::to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_request_that_hangs_or_breaks_is_answered_and_others_too() {
        let (status, body) = asked("/hangs").await;
        assert!(status == 500 && body.contains("timed out: GET /hangs"), "{body}");
        let (status, body) = asked("/breaks").await;
        assert!(status == 500 && body.contains("GET /breaks"), "{body}");
        assert_eq!(asked("/works").await, (StatusCode::OK, "done".to_owned()));
    }
}
