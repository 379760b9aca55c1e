//! What is kept of a password: enough to check it, not enough to log in with it.
//!
//! As text the form that PostgreSQL gives it: `SCRAM-SHA-256$ITERATIONS:SALT$STORED:SERVER`, the
//! last three in base64 (RFC 5803 has the same parts in another order).

use std::fmt;
use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use subtle::ConstantTimeEq as _;

use crate::mechanism::{Hash, Mechanism};
use crate::password::Password;
use crate::random;

/// The fewest iterations that are taken (RFC 7677; Kafka's least).
const FEWEST: u32 = 4_096;
/// The most: each login with PLAIN costs as many.
const MOST: u32 = 1_000_000;
/// What new verifiers get: the most that Apache Kafka takes (`ScramMechanism`), so that a verifier
/// can be carried over.
pub(crate) const ITERATIONS: NonZeroU32 = NonZeroU32::new(16_384).unwrap();
/// Bytes of a new salt.
pub(crate) const SALT: usize = 16;

/// Salted keys of SCRAM, which PLAIN is checked against, too.
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    pub(crate) hash: Hash,
    pub(crate) iterations: NonZeroU32,
    pub(crate) salt: Vec<u8>,
    pub(crate) stored_key: Vec<u8>,
    pub(crate) server_key: Vec<u8>,
}

impl Verifier {
    /// Of a new password, under a new salt.
    pub fn new(hash: Hash, password: &Password) -> Self {
        Self::with_salt(hash, password, random::bytes::<SALT>().to_vec(), ITERATIONS)
    }

    pub(crate) fn with_salt(
        hash: Hash,
        password: &Password,
        salt: Vec<u8>,
        iterations: NonZeroU32,
    ) -> Self {
        let (stored_key, server_key) = keys(hash, password, &salt, iterations);
        Self { hash, iterations, salt, stored_key, server_key }
    }

    /// Which hash it is made with.
    pub fn hash(&self) -> Hash {
        self.hash
    }

    /// How often the password was hashed.
    pub fn iterations(&self) -> u32 {
        self.iterations.get()
    }

    /// Whether it was made of this password. Takes as long whatever the answer.
    pub(crate) fn accepts(&self, password: &Password) -> bool {
        let (stored_key, _) = keys(self.hash, password, &self.salt, self.iterations);
        stored_key.ct_eq(&self.stored_key).into()
    }

    /// Reads the text; none where it is no verifier.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('$');
        let (Some(mechanism), Some(salted), Some(keys), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return None;
        };
        let Mechanism::Scram(hash) = Mechanism::named(mechanism)? else { return None };
        let (iterations, salt) = salted.split_once(':')?;
        let (stored_key, server_key) = keys.split_once(':')?;
        let iterations: u32 = iterations.parse().ok()?;
        let iterations = NonZeroU32::new(iterations).filter(|n| (FEWEST..=MOST).contains(&n.get()));
        let bytes = |text: &str| BASE64.decode(text).ok();
        let key = |text: &str| bytes(text).filter(|key| key.len() == hash.len());
        Some(Self {
            hash,
            iterations: iterations?,
            salt: bytes(salt).filter(|salt| !salt.is_empty())?,
            stored_key: key(stored_key)?,
            server_key: key(server_key)?,
        })
    }

    /// The text that [`parse`](Self::parse) reads, for the file. It is no password, but who has it
    /// can try passwords against it.
    pub(crate) fn to_text(&self) -> String {
        let [salt, stored, server] =
            [&self.salt, &self.stored_key, &self.server_key].map(|part| BASE64.encode(part));
        format!("{}${}:{salt}${stored}:{server}", self.hash.mechanism(), self.iterations)
    }
}

/// `StoredKey` and `ServerKey` of RFC 5802.
fn keys(
    hash: Hash,
    password: &Password,
    salt: &[u8],
    iterations: NonZeroU32,
) -> (Vec<u8>, Vec<u8>) {
    let salted = hash.stretch(password.bytes(), salt, iterations);
    let client_key = zeroize::Zeroizing::new(hash.hmac(&salted, b"Client Key"));
    (hash.digest(&client_key), hash.hmac(&salted, b"Server Key"))
}

impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}${}:…", self.hash.mechanism(), self.iterations)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_verifier_is_its_text_and_accepts_its_password_alone() {
        let password = Password::new(b"correct horse");
        for hash in Hash::ALL {
            let verifier = Verifier::new(hash, &password);
            assert_eq!(Verifier::parse(&verifier.to_text()), Some(verifier.clone()));
            assert!(verifier.accepts(&password));
            assert!(!verifier.accepts(&Password::new(b"correct horsf")));
            assert!(!verifier.accepts(&Password::new(b"")));
            assert_ne!(Verifier::new(hash, &password), verifier, "each has a salt of its own");
        }
    }

    #[test]
    fn what_is_weak_or_broken_is_no_verifier() {
        let good = Verifier::new(Hash::Sha256, &Password::new(b"secret")).to_text();
        assert!(Verifier::parse(&good).is_some());
        for bad in [
            "",
            "secret",
            &good.replace("16384", "4095"),
            &good.replace("16384", "1000001"),
            &good.replace("16384", "-1"),
            &good.replace("SHA-256", "SHA-512"),
            &good.replace("SCRAM-SHA-256", "PLAIN"),
            &good[..good.len() - 4],
            &format!("{good}$"),
        ] {
            assert_eq!(Verifier::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn printing_shows_no_key() {
        let verifier = Verifier::new(Hash::Sha256, &Password::new(b"secret"));
        assert_eq!(format!("{verifier:?}"), "SCRAM-SHA-256$16384:…");
    }
}
