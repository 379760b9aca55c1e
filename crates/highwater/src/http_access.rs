//! Who a request over HTTP comes from, and whether it may: the one check (rule A1) in front of all
//! handlers.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use highwater_access::{Access, Authorization, Principal, SubjectRules};
use highwater_worker::{Caller, ON_BEHALF_OF};
use metrics::{counter, describe_counter};
use serde_json::json;
use tokio::sync::Semaphore;

use crate::http_roles::{self, Asked};

/// How long the answer to a failed login waits, as with the Kafka listener's default.
const FAILURE_DELAY: Duration = Duration::from_millis(100);

/// Passwords that are hashed at once: each takes milliseconds of a core.
const HASHED_AT_ONCE: usize = 2;

const LOGINS: &str = "highwater_http_logins_total";

/// Tells the recorder what the numbers mean.
pub(crate) fn describe_metrics() {
    describe_counter!(
        LOGINS,
        "Requests over HTTP that said who they come from, by scheme (basic, bearer, certificate) and outcome: done, failed, or throttled because too many of the address failed"
    );
    // There from the start, so that the first of them is an increase.
    for scheme in ["basic", "bearer", "certificate"] {
        for outcome in ["done", "failed", "throttled"] {
            counter!(LOGINS, "scheme" => scheme, "outcome" => outcome).absolute(0);
        }
    }
}

/// The subject of the certificate that a connection came with, which TLS has checked.
#[derive(Clone, Debug)]
pub(crate) struct PeerSubject(pub(crate) Arc<str>);

/// Why a request is not let through.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Denial {
    /// It does not say who it comes from.
    NoLogin,
    /// What it says is wrong. What of it, it is not told.
    Failed,
    /// Too many of its address were wrong.
    Throttled,
    /// It says that it comes for somebody else, and its connection is not that of a server.
    MaySpeakForNobody,
    /// Who it is may not do that.
    NotAllowed(String),
}

impl Denial {
    const fn status(&self) -> StatusCode {
        match self {
            Self::NoLogin | Self::Failed => StatusCode::UNAUTHORIZED,
            Self::Throttled => StatusCode::TOO_MANY_REQUESTS,
            Self::MaySpeakForNobody | Self::NotAllowed(_) => StatusCode::FORBIDDEN,
        }
    }

    const fn code(&self) -> &'static str {
        match self {
            Self::NoLogin => "HTTP_LOGIN_REQUIRED",
            Self::Failed => "HTTP_LOGIN_FAILED",
            Self::Throttled => "HTTP_LOGIN_THROTTLED",
            Self::MaySpeakForNobody => "HTTP_MAY_SPEAK_FOR_NOBODY",
            Self::NotAllowed(_) => "HTTP_NOT_ALLOWED",
        }
    }

    fn what(&self) -> String {
        match self {
            Self::NoLogin => {
                "this server answers only requests that say who they come from".to_owned()
            }
            Self::Failed => "user, password or token is wrong".to_owned(),
            Self::Throttled => "too many logins from this address have failed".to_owned(),
            Self::MaySpeakForNobody => format!("only servers may send the header {ON_BEHALF_OF}"),
            Self::NotAllowed(what) => what.clone(),
        }
    }

    const fn remedy(&self) -> &'static str {
        match self {
            Self::NoLogin => {
                "send Authorization: Basic or Bearer, or a client certificate; commands take --token-file FILE, or --login NAME with --login-password-file FILE"
            }
            Self::Failed => {
                "highwater user list shows who is there; highwater user password and highwater user token give new ones"
            }
            Self::Throttled => "try again in a few seconds, with the right password or token",
            Self::MaySpeakForNobody => {
                "leave the header out; a server that brings requests of others is one of worker.forward_users, by its certificate"
            }
            Self::NotAllowed(_) => {
                "ask an administrator for the role or the grant: highwater user change NAME --role ROLE, or --grant"
            }
        }
    }
}

impl IntoResponse for Denial {
    fn into_response(self) -> Response {
        let status = self.status();
        // Kafka Connect's two members, and the parts of rule U3.
        let body = json!({
            "error_code": status.as_u16(),
            "message": self.what(),
            "code": self.code(),
            "what": self.what(),
            "kept": "everything: nothing was changed",
            "do": self.remedy(),
        });
        let mut response = (status, Json(body)).into_response();
        let headers = response.headers_mut();
        match status {
            StatusCode::UNAUTHORIZED => {
                let ways =
                    ["Basic realm=\"highwater\", charset=\"UTF-8\"", "Bearer realm=\"highwater\""];
                for way in ways {
                    headers.append(header::WWW_AUTHENTICATE, HeaderValue::from_static(way));
                }
            }
            StatusCode::TOO_MANY_REQUESTS => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

/// What is looked at of a request.
pub(crate) struct Asking {
    method: Method,
    path: String,
    asked: Asked,
    authorization: Option<HeaderValue>,
    /// For whom it comes, where it is another server's.
    behalf: Option<HeaderValue>,
    peer: SocketAddr,
    subject: Option<PeerSubject>,
}

impl Asking {
    pub(crate) fn of(request: &Request<Body>) -> Self {
        let (method, path) = (request.method(), request.uri().path());
        let upgrade = request.headers().contains_key(header::UPGRADE);
        let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
        Self {
            method: method.clone(),
            path: path.to_owned(),
            asked: http_roles::asked(method, path, upgrade),
            authorization: only(request.headers(), &header::AUTHORIZATION),
            behalf: only(request.headers(), &ON_BEHALF_OF),
            // None where no socket is: a test.
            peer: peer.map_or_else(|| SocketAddr::from(([127, 0, 0, 1], 0)), |peer| peer.0),
            subject: request.extensions().get::<PeerSubject>().cloned(),
        }
    }
}

/// See the module's text.
pub(crate) struct HttpAccess {
    access: Arc<Access>,
    /// Whom a client certificate stands for.
    subjects: SubjectRules,
    /// Users that are servers, which speak for others.
    servers: Vec<String>,
    hashing: Semaphore,
}

impl HttpAccess {
    pub(crate) fn new(access: Arc<Access>, subjects: SubjectRules, servers: Vec<String>) -> Self {
        Self { access, subjects, servers, hashing: Semaphore::new(HASHED_AT_ONCE) }
    }

    /// Lets a request through, or says why not; with who it comes from where no header of its own says so.
    pub(crate) async fn admit(&self, request: Asking) -> Result<Option<Caller>, Denial> {
        let Asked::Right(operation, target) = &request.asked else { return Ok(None) };
        let who = self.who(&request).await?;
        if !self.access.allow(&who, *operation, target.resource()) {
            tracing::warn!(%who, %operation, target = target.text(), "a request was refused");
            return Err(Denial::NotAllowed(format!(
                "{who} may not do this: it takes {operation} on {}",
                target.text()
            )));
        }
        if !request.method.is_safe() && self.access.everybody().is_none() {
            tracing::info!(%who, method = %request.method, path = request.path, "a request of a user");
        }
        Ok(caller(who, &request))
    }

    /// Who it comes from. What the header says counts before the connection's certificate: a worker
    /// hands on the requests of others.
    async fn who(&self, request: &Asking) -> Result<Principal, Denial> {
        if let Some(everybody) = self.access.everybody() {
            return Ok(everybody);
        }
        match (&request.behalf, &request.authorization) {
            (Some(name), None) => self.spoken_for(name, request.subject.as_ref()),
            (Some(_), Some(_)) => Err(Denial::MaySpeakForNobody),
            (None, Some(value)) => self.logged_in(value.as_bytes(), request.peer).await,
            (None, None) => self.certified(request.subject.as_ref()),
        }
    }

    /// For whom another server speaks. Who is a server its certificate says, and nothing else.
    fn spoken_for(
        &self,
        name: &HeaderValue,
        subject: Option<&PeerSubject>,
    ) -> Result<Principal, Denial> {
        let server = subject.and_then(|PeerSubject(subject)| self.subjects.user(subject));
        let is_one = |server: &String| {
            self.servers.contains(server) && !self.access.is_gone(&Principal::user(server))
        };
        if !server.as_ref().is_some_and(is_one) {
            count("certificate", "failed");
            tracing::warn!(server, "somebody spoke for another and is no server");
            return Err(Denial::MaySpeakForNobody);
        }
        let name = name.to_str().map(http_roles::decoded).unwrap_or_default();
        let user = Principal::user(&name);
        if self.access.is_gone(&user) {
            count("certificate", "failed");
            tracing::warn!(server, name, "a server spoke for nobody who is a user here");
            return Err(Denial::Failed);
        }
        count("certificate", "done");
        Ok(user)
    }

    fn certified(&self, subject: Option<&PeerSubject>) -> Result<Principal, Denial> {
        let PeerSubject(subject) = subject.ok_or(Denial::NoLogin)?;
        let user = self.subjects.user(subject).map(|name| Principal::user(&name));
        match user.filter(|user| !self.access.is_gone(user)) {
            Some(user) => {
                count("certificate", "done");
                Ok(user)
            }
            None => {
                count("certificate", "failed");
                tracing::warn!(%subject, "a certificate stands for no user");
                Err(Denial::Failed)
            }
        }
    }

    async fn logged_in(&self, header: &[u8], peer: SocketAddr) -> Result<Principal, Denial> {
        let said = Authorization::parse(header);
        let scheme = said.as_ref().map_or("basic", Authorization::scheme);
        // Looked at within the turn: who sends many at once has them counted one by one.
        let turn = self.hashing.acquire().await;
        let attempts = self.access.attempts();
        if !attempts.may_try(peer.ip(), Instant::now()) {
            count(scheme, "throttled");
            return Err(Denial::Throttled);
        }
        let who = match said {
            Ok(Authorization::Bearer(token)) => self.access.bearer(&token),
            Ok(Authorization::Basic(name, password)) => {
                let access = Arc::clone(&self.access);
                let checking = move || access.check(&name, &password);
                tokio::task::spawn_blocking(checking).await.ok().flatten()
            }
            Err(_) => None,
        };
        if let Some(who) = who {
            count(scheme, "done");
            return Ok(who);
        }
        attempts.failed(peer.ip(), Instant::now());
        drop(turn);
        count(scheme, "failed");
        tracing::warn!(%peer, scheme, "a login over HTTP failed");
        tokio::time::sleep(FAILURE_DELAY).await;
        Err(Denial::Failed)
    }
}

/// Who a request comes from where its connection has said so: whoever brings the request to another
/// server cannot pass that on.
fn caller(who: Principal, request: &Asking) -> Option<Caller> {
    match who {
        Principal::User(name) if request.authorization.is_none() => Some(Caller(name.to_string())),
        _ => None,
    }
}

/// The header, where there is one; of several none counts, since each may name another.
fn only(headers: &HeaderMap, name: &HeaderName) -> Option<HeaderValue> {
    let mut all = headers.get_all(name).iter();
    let first = all.next()?;
    Some(if all.next().is_none() { first.clone() } else { HeaderValue::from_static("") })
}

fn count(scheme: &'static str, outcome: &'static str) {
    counter!(LOGINS, "scheme" => scheme, "outcome" => outcome).increment(1);
}

#[cfg(test)]
#[path = "http_access_tests.rs"]
mod tests;
