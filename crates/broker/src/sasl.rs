//! SaslHandshake and SaslAuthenticate: how a client logs in, once or again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes, BytesMut};
use highwater_access::{Login, Mechanism, Principal, Refusal, Step};
use highwater_coordinator::blocking;
use highwater_protocol::{
    ApiKey, ErrorCode, SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest,
    SaslHandshakeResponse, Secret,
};
use tokio::sync::SemaphorePermit;

use crate::counters;
use crate::dispatch::{self, Call, Refused};
use crate::gate::Gate;
use crate::node::Node;
use crate::reply::{Answer, Reply};
use crate::session::{Origin, Session};

/// How clients log in at a listener.
#[derive(Clone, Debug)]
pub struct SaslSettings {
    /// The mechanisms that are offered.
    pub mechanisms: Vec<Mechanism>,
    /// Whether PLAIN, which shows the password to whoever listens in, is offered without TLS to
    /// peers beyond loopback, too.
    pub plain_in_clear: bool,
    /// After which time a client has to log in again. Kafka's `connections.max.reauth.ms`.
    pub lifetime: Option<Duration>,
    /// How long a refusal waits. Kafka's `connection.failed.authentication.delay.ms`.
    pub failure_delay: Duration,
}

impl Default for SaslSettings {
    fn default() -> Self {
        Self {
            mechanisms: Mechanism::ALL.to_vec(),
            plain_in_clear: false,
            lifetime: None,
            failure_delay: Duration::from_millis(100),
        }
    }
}

/// Letters of a mechanism's name that the log shows.
const LONGEST_SHOWN: usize = 40;

/// Why a login failed, for the log of the server.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum LoginError {
    #[error("a login with {0} failed: {1}")]
    Refused(Mechanism, Refusal),
    #[error("the mechanism {0:?} is not offered")]
    Mechanism(String),
    #[error("a login again is for another user than before")]
    OtherUser,
    #[error("too many logins from this address have failed")]
    TooMany,
}

/// What a message of a login led to.
pub(crate) enum Taken {
    /// The client is answered, and the login goes on.
    Answered(Answer),
    /// The client is answered, and this is who it is.
    LoggedIn(Answer, Session),
    /// The client is told, if anything, and the connection ends.
    Failed(Option<Answer>, LoginError),
}

/// The logins of one connection.
pub(crate) struct Entrance {
    gate: Gate,
    is_tls: bool,
    exchange: Option<Exchange>,
}

struct Exchange {
    mechanism: Mechanism,
    login: Login,
    /// Messages come without headers (SaslHandshake 0).
    raw: bool,
}

impl Entrance {
    pub(crate) const fn new(gate: Gate, is_tls: bool) -> Self {
        Self { gate, is_tls, exchange: None }
    }

    /// Whether the next frame is a bare message.
    pub(crate) fn takes_raw(&self) -> bool {
        self.exchange.as_ref().is_some_and(|exchange| exchange.raw)
    }

    /// Whether a frame of a connection that is open already belongs to a login again.
    pub(crate) fn takes_again(&self, session: &Session, frame: &[u8]) -> bool {
        let may = session.origin == Origin::Certificate || self.lifetime().is_some();
        may && session.origin != Origin::Unlocked
            && Call::read(frame).is_ok_and(|call| {
                matches!(call.api, ApiKey::SaslHandshake | ApiKey::SaslAuthenticate)
            })
    }

    /// Takes a frame of a login; anything else ends the connection.
    pub(crate) async fn take(&mut self, frame: Bytes) -> Result<Taken, Refused> {
        if self.takes_raw() {
            return Ok(self.message(None, frame).await);
        }
        let call = Call::read(&frame)?;
        match (call.api, self.exchange.is_some()) {
            (ApiKey::ApiVersions, false) => match dispatch::begin(&self.gate, frame).await? {
                Reply::Ready(answer) => Ok(Taken::Answered(answer)),
                Reply::Later(_) | Reply::Fetch(_) | Reply::Silent => {
                    Err(Refused::BeforeLogin(call.api))
                }
            },
            (ApiKey::SaslHandshake, false) => self.handshake(call, frame),
            (ApiKey::SaslAuthenticate, true) => {
                let request: SaslAuthenticateRequest = call.request(frame)?;
                Ok(self.message(Some(call), request.auth_bytes.0).await)
            }
            (api, _) => Err(Refused::BeforeLogin(api)),
        }
    }

    fn handshake(&mut self, call: Call, frame: Bytes) -> Result<Taken, Refused> {
        let request: SaslHandshakeRequest = call.request(frame)?;
        let offered = self.offered();
        let chosen = offered.iter().find(|mechanism| mechanism.name() == request.mechanism);
        let again = self.gate.session.origin == Origin::Login;
        let error_code = match chosen {
            None => ErrorCode::UNSUPPORTED_SASL_MECHANISM,
            // A login again needs the headers, among which it is told from others.
            Some(_) if again && call.version == 0 => ErrorCode::ILLEGAL_SASL_STATE,
            Some(_) => ErrorCode::NONE,
        };
        let mechanisms = offered.iter().map(|mechanism| mechanism.name().to_owned()).collect();
        let answer = call.answer(&SaslHandshakeResponse { error_code, mechanisms });
        match chosen.filter(|_| error_code.is_ok()) {
            Some(mechanism) => {
                let (mechanism, raw) = (*mechanism, call.version == 0);
                self.exchange = Some(Exchange { mechanism, login: Login::begin(mechanism), raw });
                Ok(Taken::Answered(answer))
            }
            None => {
                // It is a stranger's text, and goes to the log.
                let named = request.mechanism.chars().take(LONGEST_SHOWN).collect();
                Ok(Taken::Failed(Some(answer), LoginError::Mechanism(named)))
            }
        }
    }

    /// PLAIN shows the password: without TLS it is for loopback alone, unless somebody said so.
    fn offered(&self) -> Vec<Mechanism> {
        let sasl = &self.gate.node.config.sasl;
        let safe = self.is_tls || sasl.plain_in_clear || self.gate.session.peer.ip().is_loopback();
        let mut mechanisms = sasl.mechanisms.clone();
        mechanisms.retain(|mechanism| safe || *mechanism != Mechanism::Plain);
        mechanisms
    }

    fn lifetime(&self) -> Option<Duration> {
        self.gate.node.config.sasl.lifetime
    }

    /// Takes a message of the mechanism; with a call where it came with a header.
    async fn message(&mut self, call: Option<Call>, message: Bytes) -> Taken {
        let Some(Exchange { mechanism, login, raw }) = self.exchange.take() else {
            return Taken::Failed(None, LoginError::TooMany);
        };
        let node = Arc::clone(&self.gate.node);
        // Looked at within the turn: who sends many passwords at once has them counted one by one.
        let _turn = turn(&node, &login).await;
        let attempts = node.config.access.attempts();
        let peer = self.gate.session.peer.ip();
        if !attempts.may_try(peer, Instant::now()) {
            counters::login(mechanism.name(), "throttled");
            return Taken::Failed(None, LoginError::TooMany);
        }
        let (login, step) = step(&node, login, message).await;
        let failed = |error: LoginError| {
            attempts.failed(peer, Instant::now());
            counters::login(mechanism.name(), "failed");
            Taken::Failed(call.map(|call| refusal(call, mechanism)), error)
        };
        match step {
            Ok(Step::Asked(bytes)) => {
                self.exchange = Some(Exchange { mechanism, login, raw });
                Taken::Answered(said(call, bytes, Duration::ZERO))
            }
            Ok(Step::LoggedIn(principal, _)) if self.is_another(&principal) => {
                failed(LoginError::OtherUser)
            }
            Ok(Step::LoggedIn(principal, last)) => {
                counters::login(mechanism.name(), "done");
                self.let_in(call, principal, last)
            }
            Err(refusal) => failed(LoginError::Refused(mechanism, refusal)),
        }
    }

    /// A connection stays its user's (KIP-368); with a certificate the login decides.
    fn is_another(&self, principal: &Principal) -> bool {
        let session = &self.gate.session;
        session.origin == Origin::Login && session.principal != *principal
    }

    fn let_in(&mut self, call: Option<Call>, principal: Principal, last: Vec<u8>) -> Taken {
        let lifetime = self.lifetime();
        let mut session = Session::new(principal, self.gate.session.peer, Origin::Login);
        session.ends = lifetime.and_then(|lifetime| Instant::now().checked_add(lifetime));
        self.gate.session = Arc::new(session.clone());
        Taken::LoggedIn(said(call, last, lifetime.unwrap_or_default()), session)
    }
}

/// Hashing a password takes milliseconds: only so many are hashed at once.
async fn turn<'a>(node: &'a Node, login: &Login) -> Option<SemaphorePermit<'a>> {
    match login.is_slow() {
        // Closed by nobody.
        true => node.hashing.acquire().await.ok(),
        false => None,
    }
}

/// One step, where it holds nobody up.
async fn step(
    node: &Arc<Node>,
    mut login: Login,
    message: Bytes,
) -> (Login, Result<Step, Refusal>) {
    if !login.is_slow() {
        let step = login.step(&node.config.access, &message);
        return (login, step);
    }
    let node = Arc::clone(node);
    blocking(move || {
        let step = login.step(&node.config.access, &message);
        (login, step)
    })
    .await
}

/// What the server says in a login.
fn said(call: Option<Call>, bytes: Vec<u8>, lifetime: Duration) -> Answer {
    let Some(call) = call else { return raw(&bytes) };
    call.answer(&SaslAuthenticateResponse {
        auth_bytes: Secret(bytes.into()),
        session_lifetime_ms: i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX),
        ..Default::default()
    })
}

fn raw(bytes: &[u8]) -> Answer {
    let mut out = BytesMut::with_capacity(4 + bytes.len());
    out.put_u32(u32::try_from(bytes.len()).unwrap_or(0));
    out.put_slice(bytes);
    out.freeze().into()
}

/// What a client is told, which does not say whether the user is there.
fn refusal(call: Call, mechanism: Mechanism) -> Answer {
    call.answer(&SaslAuthenticateResponse {
        error_code: ErrorCode::SASL_AUTHENTICATION_FAILED,
        error_message: Some(format!(
            "Authentication failed: invalid credentials with SASL mechanism {mechanism}"
        )),
        ..Default::default()
    })
}

/// The answer to a login where none is under way.
pub(crate) fn handshake_out_of_place() -> SaslHandshakeResponse {
    SaslHandshakeResponse { error_code: ErrorCode::ILLEGAL_SASL_STATE, mechanisms: Vec::new() }
}

/// The same.
pub(crate) fn authenticate_out_of_place() -> SaslAuthenticateResponse {
    SaslAuthenticateResponse {
        error_code: ErrorCode::ILLEGAL_SASL_STATE,
        error_message: Some("there is no login under way".to_owned()),
        ..Default::default()
    }
}
