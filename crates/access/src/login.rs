//! A login by SASL, step by step, without I/O.

use crate::access::Access;
use crate::mechanism::{Hash, Mechanism};
use crate::plain;
use crate::principal::Principal;
use crate::refusal::Refusal;
use crate::scram::{self, Challenge, ClientFirst};

/// A login under way.
pub struct Login(State);

enum State {
    Plain,
    Scram(Hash),
    Challenged(Box<Challenge>),
    Over,
}

/// What a message led to.
#[derive(Debug)]
pub enum Step {
    /// The client is asked this.
    Asked(Vec<u8>),
    /// It is who it says, and is told this.
    LoggedIn(Principal, Vec<u8>),
}

impl Login {
    /// Begins with a mechanism.
    pub const fn begin(mechanism: Mechanism) -> Self {
        Self(match mechanism {
            Mechanism::Plain => State::Plain,
            Mechanism::Scram(hash) => State::Scram(hash),
        })
    }

    /// Whether the next message costs milliseconds of computing: it belongs where that holds
    /// nobody up.
    pub const fn is_slow(&self) -> bool {
        matches!(self.0, State::Plain)
    }

    /// Takes the client's next message. After a refusal there is no next one.
    ///
    /// # Errors
    /// When the login failed.
    pub fn step(&mut self, access: &Access, message: &[u8]) -> Result<Step, Refusal> {
        match std::mem::replace(&mut self.0, State::Over) {
            State::Plain => {
                let (user, password) = plain::parse(message)?;
                let principal = access.check(user, &password).ok_or(Refusal::Credentials)?;
                Ok(Step::LoggedIn(principal, Vec::new()))
            }
            State::Scram(hash) => {
                let first = ClientFirst::parse(message)?;
                let (verifier, principal) = access.verifier(&first.user, hash);
                let challenge = first.challenge(verifier, principal, &scram::server_nonce());
                let asked = challenge.message();
                self.0 = State::Challenged(Box::new(challenge));
                Ok(Step::Asked(asked))
            }
            State::Challenged(challenge) => {
                let (principal, last) = challenge.answer(message)?;
                Ok(Step::LoggedIn(principal, last))
            }
            State::Over => Err(Refusal::Malformed("the login is over")),
        }
    }
}
