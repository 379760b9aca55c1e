//! Proving who we are: SCRAM-SHA-256 (bound to the TLS connection where there is one), MD5, clear text, or nothing, as the server asks.

use bytes::{Bytes, BytesMut};
use highwater_connector::{ConnectorError, ErrorKind};
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{
    ChannelBinding, SCRAM_SHA_256, SCRAM_SHA_256_PLUS, ScramSha256,
};
use postgres_protocol::message::frontend;

use crate::cursor::Cursor;
use crate::error::{LOGIN_REMEDY, code, unreadable};
use crate::settings::Login;

/// Hashing is our work, and its amount the server's choice: `scram_iterations` is 4,096 unless
/// somebody raises it, and could be two billion, which takes an hour.
const MOST_ITERATIONS: u64 = 1_000_000;

/// The dialogue so far.
pub(crate) struct Authentication<'a> {
    login: &'a Login,
    /// What the TLS connection gives to bind a login to.
    binding: Option<Vec<u8>>,
    scram: Option<ScramSha256>,
    /// Whether the server proved in SCRAM that it knows the password too.
    server_proved: bool,
}

/// What follows a message of the server.
pub(crate) enum Step {
    /// Send these bytes.
    Answer(BytesMut),
    /// Wait for the next message.
    Wait,
    /// Done.
    Authenticated,
}

impl<'a> Authentication<'a> {
    pub(crate) const fn new(login: &'a Login, binding: Option<Vec<u8>>) -> Self {
        Self { login, binding, scram: None, server_proved: false }
    }

    /// Takes the body of an authentication message (`R`).
    ///
    /// # Errors
    /// When the server asks for what is not spoken here, or does not prove itself.
    pub(crate) fn step(&mut self, body: Bytes) -> Result<Step, ConnectorError> {
        let mut cursor = Cursor::new(body);
        match cursor.u32("authentication kind")? {
            0 if self.scram.is_some() && !self.server_proved => {
                Err(refused("the server skipped its proof in SCRAM-SHA-256"))
            }
            0 => Ok(Step::Authenticated),
            3 => self.password(self.login.password.as_bytes()),
            5 => {
                let salt = cursor.take(4, "salt")?;
                let salt = salt.first_chunk().copied().unwrap_or_default();
                let Login { user, password, .. } = self.login;
                let hash = md5_hash(user.as_bytes(), password.as_bytes(), salt);
                self.password(hash.as_bytes())
            }
            10 => self.begin_scram(cursor),
            11 => self.continue_scram(&cursor.rest()),
            12 => self.finish_scram(&cursor.rest()),
            other => Err(refused(&format!(
                "the server asks for authentication method {other}; SCRAM-SHA-256, MD5 and clear \
                 text are spoken here"
            ))),
        }
    }

    fn password(&self, password: &[u8]) -> Result<Step, ConnectorError> {
        if self.login.password.is_empty() {
            return Err(refused("the server asks for a password and database.password is empty"));
        }
        answer(|out| frontend::password_message(password, out))
    }

    fn begin_scram(&mut self, mut cursor: Cursor) -> Result<Step, ConnectorError> {
        let mut offered = Vec::new();
        while cursor.left() > 1 {
            offered.push(cursor.text("SASL mechanism")?);
        }
        let offers = |name| offered.iter().any(|mechanism| mechanism == name);
        let plus = offers(SCRAM_SHA_256_PLUS) && self.binding.is_some();
        if !plus && !offers(SCRAM_SHA_256) {
            return Err(refused(&format!("the server offers {offered:?} and not {SCRAM_SHA_256}")));
        }
        if self.login.password.is_empty() {
            return Err(refused("the server asks for a password and database.password is empty"));
        }
        let password = self.login.password.as_bytes();
        let (mechanism, binding) = match self.binding.take() {
            Some(binding) if plus => {
                (SCRAM_SHA_256_PLUS, ChannelBinding::tls_server_end_point(binding))
            }
            // Said so that the server notices when somebody took its offer away.
            Some(_) => (SCRAM_SHA_256, ChannelBinding::unrequested()),
            None => (SCRAM_SHA_256, ChannelBinding::unsupported()),
        };
        let scram = self.scram.insert(ScramSha256::new(password, binding));
        answer(|out| frontend::sasl_initial_response(mechanism, scram.message(), out))
    }

    fn continue_scram(&mut self, message: &[u8]) -> Result<Step, ConnectorError> {
        let scram = self.scram.as_mut().ok_or_else(|| unreadable("SASL goes on unbegun"))?;
        if iterations(message).is_some_and(|asked| asked > MOST_ITERATIONS) {
            let most = MOST_ITERATIONS;
            return Err(refused(&format!("the server asks for more than {most} SCRAM iterations")));
        }
        scram
            .update(message)
            .map_err(|error| refused(&format!("SCRAM-SHA-256 failed: {error}")))?;
        answer(|out| frontend::sasl_response(scram.message(), out))
    }

    fn finish_scram(&mut self, message: &[u8]) -> Result<Step, ConnectorError> {
        let scram = self.scram.as_mut().ok_or_else(|| unreadable("SASL ends unbegun"))?;
        scram.finish(message).map_err(|error| {
            refused(&format!("the server does not know the password it checks: {error}"))
        })?;
        self.server_proved = true;
        Ok(Step::Wait)
    }
}

/// How often the server wants the password hashed: the part `i=` of its first message (RFC 5802).
fn iterations(message: &[u8]) -> Option<u64> {
    let text = std::str::from_utf8(message).ok()?;
    text.split(',').find_map(|part| part.strip_prefix("i="))?.parse().ok()
}

fn answer(
    write: impl FnOnce(&mut BytesMut) -> std::io::Result<()>,
) -> Result<Step, ConnectorError> {
    let mut out = BytesMut::new();
    write(&mut out).map_err(|error| refused(&format!("no answer can be made: {error}")))?;
    Ok(Step::Answer(out))
}

fn refused(what: &str) -> ConnectorError {
    ConnectorError::stop(code::LOGIN, ErrorKind::Source, what, LOGIN_REMEDY)
}
