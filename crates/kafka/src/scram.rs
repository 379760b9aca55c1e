//! The client's side of SCRAM (RFC 5802, RFC 7677), as a pure state machine.
//!
//! As Kafka's own clients do, names and passwords are taken as the bytes of their UTF-8, without
//! SASLprep: brokers keep what was derived from those.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::{digest, hmac, pbkdf2};

use crate::Mechanism;
use crate::error::told;

/// Fewer rounds are refused by Kafka's clients too; more would keep a client busy for whoever
/// stands in for the broker.
const ROUNDS: std::ops::RangeInclusive<u32> = 4096..=1_000_000;

/// Why a broker's message is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ScramError {
    #[error("the broker's message is not one of SCRAM")]
    Malformed,
    #[error("the broker asks for {0} rounds; from 4096 to 1000000 are done here")]
    Rounds(u32),
    #[error("the broker answers another exchange than ours")]
    Nonce,
    #[error("the broker refuses: {0}")]
    Refused(String),
    #[error("the broker does not prove that it knows the password: it is not whom it claims to be")]
    Impostor,
}

/// Hashing of one mechanism.
#[derive(Clone, Copy)]
struct Hash {
    digest: &'static digest::Algorithm,
    hmac: hmac::Algorithm,
    pbkdf2: pbkdf2::Algorithm,
}

impl Hash {
    fn of(mechanism: Mechanism) -> Self {
        if mechanism == Mechanism::ScramSha512 {
            return Self {
                digest: &digest::SHA512,
                hmac: hmac::HMAC_SHA512,
                pbkdf2: pbkdf2::PBKDF2_HMAC_SHA512,
            };
        }
        Self {
            digest: &digest::SHA256,
            hmac: hmac::HMAC_SHA256,
            pbkdf2: pbkdf2::PBKDF2_HMAC_SHA256,
        }
    }

    fn sign(self, key: &[u8], text: &[u8]) -> hmac::Tag {
        hmac::sign(&hmac::Key::new(self.hmac, key), text)
    }
}

/// After the client's first message.
pub(crate) struct Begun {
    hash: Hash,
    nonce: String,
    /// The first message without what stands in front of the user.
    bare: String,
}

/// After the client's proof: only the broker's own is missing.
pub(crate) struct Proved {
    hash: Hash,
    server_key: hmac::Tag,
    signed: String,
}

/// The first message, with a nonce that nobody can guess.
pub(crate) fn begin(mechanism: Mechanism, username: &str, nonce: &str) -> (Begun, String) {
    let username = username.replace('=', "=3D").replace(',', "=2C");
    let bare = format!("n={username},r={nonce}");
    let first = format!("n,,{bare}");
    (Begun { hash: Hash::of(mechanism), nonce: nonce.to_owned(), bare }, first)
}

impl Begun {
    /// Takes the broker's first message and proves to know the password. Does its rounds here:
    /// milliseconds and more of work.
    pub(crate) fn prove(
        self,
        password: &str,
        server_first: &str,
    ) -> Result<(Proved, String), ScramError> {
        let Self { hash, nonce, bare } = self;
        let (server_nonce, salt, rounds) = read_first(server_first)?;
        if server_nonce.len() <= nonce.len() || !server_nonce.starts_with(&nonce) {
            return Err(ScramError::Nonce);
        }
        let mut salted = vec![0; hash.digest.output_len()];
        pbkdf2::derive(hash.pbkdf2, rounds, &salt, password.as_bytes(), &mut salted);
        let client_key = hash.sign(&salted, b"Client Key");
        let stored_key = digest::digest(hash.digest, client_key.as_ref());
        // No channel is bound: "n,," in base 64.
        let without_proof = format!("c=biws,r={server_nonce}");
        let signed = format!("{bare},{server_first},{without_proof}");
        let signature = hash.sign(stored_key.as_ref(), signed.as_bytes());
        let proof = client_key.as_ref().iter().zip(signature.as_ref());
        let proof: Vec<u8> = proof.map(|(key, signature)| key ^ signature).collect();
        let server_key = hash.sign(&salted, b"Server Key");
        let last = format!("{without_proof},p={}", BASE64.encode(proof));
        Ok((Proved { hash, server_key, signed }, last))
    }
}

impl Proved {
    /// Takes the broker's last message: its proof, or why it refuses.
    pub(crate) fn check(self, server_last: &str) -> Result<(), ScramError> {
        if let Some(refusal) = attribute(server_last, "e") {
            return Err(ScramError::Refused(told(refusal)));
        }
        let proof = attribute(server_last, "v").ok_or(ScramError::Malformed)?;
        let proof = BASE64.decode(proof).map_err(|_| ScramError::Malformed)?;
        let key = hmac::Key::new(self.hash.hmac, self.server_key.as_ref());
        hmac::verify(&key, self.signed.as_bytes(), &proof).map_err(|_| ScramError::Impostor)
    }
}

/// Nonce, salt and rounds of the broker's first message.
fn read_first(message: &str) -> Result<(&str, Vec<u8>, NonZeroU32), ScramError> {
    if let Some(refusal) = attribute(message, "e") {
        return Err(ScramError::Refused(told(refusal)));
    }
    // An extension that has to be understood comes first (RFC 5802, 5.1); none is.
    let mut parts = message.split(',');
    let mut next = |name| {
        let part = parts.next()?.split_once('=')?;
        (part.0 == name).then_some(part.1)
    };
    let read = (|| Some((next("r")?, next("s")?, next("i")?)))();
    let (nonce, salt, rounds) = read.ok_or(ScramError::Malformed)?;
    let salt = BASE64.decode(salt).map_err(|_| ScramError::Malformed)?;
    let rounds: u32 = rounds.parse().map_err(|_| ScramError::Malformed)?;
    let counted = NonZeroU32::new(rounds).filter(|_| ROUNDS.contains(&rounds));
    Ok((nonce, salt, counted.ok_or(ScramError::Rounds(rounds))?))
}

/// How many rounds a broker's first message asks for, where it can be read.
pub(crate) fn rounds(message: &str) -> Option<u32> {
    read_first(message).ok().map(|(_, _, rounds)| rounds.get())
}

fn attribute<'a>(message: &'a str, name: &str) -> Option<&'a str> {
    message.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, section 3.
    const NONCE: &str = "rOprNGfwEbeRWgbNEkqO";
    const SERVER_FIRST: &str =
        "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
    const CLIENT_LAST: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
    const SERVER_LAST: &str = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";

    fn begun() -> Begun {
        begin(Mechanism::ScramSha256, "user", NONCE).0
    }

    #[test]
    fn the_example_of_the_rfc() {
        let (begun, first) = begin(Mechanism::ScramSha256, "user", NONCE);
        assert_eq!(first, "n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let (proved, last) = begun.prove("pencil", SERVER_FIRST).unwrap();
        assert_eq!(last, CLIENT_LAST);
        proved.check(SERVER_LAST).unwrap();
    }

    #[test]
    fn a_broker_that_does_not_know_the_password_is_found_out() {
        for last in ["v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G5=", "v=", "v=AAAA"] {
            let (proved, _) = begun().prove("pencil", SERVER_FIRST).unwrap();
            assert!(proved.check(last).is_err(), "{last}");
        }
        let (proved, _) = begun().prove("pencils", SERVER_FIRST).unwrap();
        assert_eq!(proved.check(SERVER_LAST), Err(ScramError::Impostor));
        let (proved, _) = begun().prove("pencil", SERVER_FIRST).unwrap();
        let refused = proved.check("e=invalid-proof").unwrap_err();
        assert_eq!(refused, ScramError::Refused("invalid-proof".to_owned()));
    }

    #[test]
    fn the_first_answer_must_go_on_from_our_nonce_with_rounds_in_bounds() {
        let prove = |first: &str| begun().prove("pencil", first).err();
        let with =
            |nonce: &str, rounds: &str| format!("r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i={rounds}");
        assert_eq!(prove(&with("other", "4096")), Some(ScramError::Nonce));
        assert_eq!(prove(&with(NONCE, "4096")), Some(ScramError::Nonce));
        let longer = format!("{NONCE}x");
        for rounds in ["0", "1", "4095", "4294967295"] {
            let refused = prove(&with(&longer, rounds));
            assert!(matches!(refused, Some(ScramError::Rounds(_))), "{rounds}: {refused:?}");
        }
        for first in ["", "r=", "m=x,r=y,s=z,i=4096", "r=a,s=!,i=4096", "r=a,s=,i=x"] {
            assert_eq!(prove(first), Some(ScramError::Malformed), "{first}");
        }
    }

    #[test]
    fn a_name_cannot_add_attributes() {
        let (_, first) = begin(Mechanism::ScramSha512, "a,r=b", "n0nce");
        assert_eq!(first, "n,,n=a=2Cr=3Db,r=n0nce");
    }
}
