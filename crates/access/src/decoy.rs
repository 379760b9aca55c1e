//! What a stranger is asked who names a user that is not there: the same at each try, so that it
//! cannot be told from a user that is.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use zeroize::Zeroizing;

use crate::mechanism::Hash;
use crate::random;
use crate::verifier::{ITERATIONS, SALT, Verifier};

/// The key that made-up salts come from. It lies with the users, so that they stay the same over
/// restarts and restores.
#[derive(Clone)]
pub(crate) struct Decoy(Zeroizing<[u8; 32]>);

impl Decoy {
    /// Of a key's text.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let bytes = Zeroizing::new(BASE64.decode(text).ok()?);
        Some(Self(Zeroizing::new(bytes.as_slice().try_into().ok()?)))
    }

    pub(crate) fn key(&self) -> &[u8] {
        self.0.as_slice()
    }

    /// A verifier that no password fits.
    pub(crate) fn verifier(&self, hash: Hash, name: &str) -> Verifier {
        let made_up = |what: &str| {
            let said =
                [hash.mechanism().as_bytes(), b"\0", what.as_bytes(), b"\0", name.as_bytes()];
            hash.hmac(self.key(), &said.concat())
        };
        let mut salt = made_up("salt");
        salt.truncate(SALT);
        Verifier {
            hash,
            iterations: ITERATIONS,
            salt,
            stored_key: made_up("stored"),
            server_key: made_up("server"),
        }
    }
}

impl Default for Decoy {
    fn default() -> Self {
        Self(Zeroizing::new(random::bytes()))
    }
}

impl fmt::Debug for Decoy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Decoy")
    }
}
