//! The server's side of SCRAM (RFC 5802, RFC 7677), without channel binding, as Kafka has it.
//!
//! Own code, as the other brokers of the field have: `scram-2` knows SHA-256 alone, `scram-rs` asks
//! for a store of passwords and is not open source in its own words, `rsasl` brings every mechanism
//! there is. The hashes, PBKDF2 and the comparison are `ring`'s and `subtle`'s.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use subtle::ConstantTimeEq as _;

use crate::mechanism::Hash;
use crate::principal::Principal;
use crate::random;
use crate::refusal::Refusal;
use crate::verifier::Verifier;

/// Random bytes of a nonce, before base64.
const NONCE: usize = 18;

/// The client's first message.
pub(crate) struct ClientFirst<'a> {
    /// What the last message has to repeat.
    gs2_header: &'a str,
    bare: &'a str,
    pub(crate) user: String,
    nonce: &'a str,
}

/// A login between the server's first message and the client's last one.
pub(crate) struct Challenge {
    verifier: Verifier,
    /// Who it is, if the proof is right; none for a user that is not there.
    principal: Option<Principal>,
    gs2_header: String,
    client_first_bare: String,
    server_first: String,
    nonce: String,
}

impl<'a> ClientFirst<'a> {
    pub(crate) fn parse(message: &'a [u8]) -> Result<Self, Refusal> {
        let text = utf8(message)?;
        let malformed = Refusal::Malformed("it is no first message of SCRAM");
        let mut commas = text.match_indices(',').map(|(at, _)| at);
        let (Some(flag_end), Some(header_end)) = (commas.next(), commas.next()) else {
            return Err(malformed);
        };
        let (gs2_header, bare) = text.split_at(header_end + 1);
        let authzid = &text[flag_end + 1..header_end];
        match &text[..flag_end] {
            "n" | "y" => {}
            _ => return Err(Refusal::Malformed("channel binding is not offered")),
        }
        let mut parts = bare.split(',');
        let user = parts.next().and_then(|part| part.strip_prefix("n=")).ok_or(malformed)?;
        let nonce = parts.next().and_then(|part| part.strip_prefix("r=")).ok_or(malformed)?;
        let user = name(user).filter(|user| !user.is_empty()).ok_or(malformed)?;
        if nonce.is_empty() || !nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(malformed);
        }
        // Such as `tokenauth=true`: it would mean something that we do not do.
        if parts.any(|extension| extension.starts_with("tokenauth=")) {
            return Err(Refusal::Malformed("delegation tokens are not offered"));
        }
        if !authzid.is_empty() && authzid.strip_prefix("a=").and_then(name) != Some(user.clone()) {
            return Err(Refusal::Malformed("a login for another user is not offered"));
        }
        Ok(Self { gs2_header, bare, user, nonce })
    }

    /// The challenge for this message.
    pub(crate) fn challenge(
        &self,
        verifier: Verifier,
        principal: Option<Principal>,
        server_nonce: &str,
    ) -> Challenge {
        let nonce = format!("{}{server_nonce}", self.nonce);
        let server_first =
            format!("r={nonce},s={},i={}", BASE64.encode(&verifier.salt), verifier.iterations);
        Challenge {
            verifier,
            principal,
            gs2_header: self.gs2_header.to_owned(),
            client_first_bare: self.bare.to_owned(),
            server_first,
            nonce,
        }
    }
}

/// The server's part of a nonce.
pub(crate) fn server_nonce() -> String {
    BASE64.encode(random::bytes::<NONCE>())
}

impl Challenge {
    /// The server's first message.
    pub(crate) fn message(&self) -> Vec<u8> {
        self.server_first.clone().into_bytes()
    }

    /// Who it is, and the server's last message, which proves to the client that the server has
    /// the verifier.
    pub(crate) fn answer(self, message: &[u8]) -> Result<(Principal, Vec<u8>), Refusal> {
        let text = utf8(message)?;
        let malformed = Refusal::Malformed("it is no last message of SCRAM");
        let (without_proof, proof) = text.rsplit_once(",p=").ok_or(malformed)?;
        let proof = BASE64.decode(proof).map_err(|_| malformed)?;
        let mut parts = without_proof.split(',');
        let binding = parts.next().and_then(|part| part.strip_prefix("c=")).ok_or(malformed)?;
        let nonce = parts.next().and_then(|part| part.strip_prefix("r=")).ok_or(malformed)?;
        if binding != BASE64.encode(&self.gs2_header) {
            return Err(malformed);
        }
        // The whole of it, as RFC 5802 (5.1) asks and Apache Kafka does since CVE-2024-56128.
        if nonce != self.nonce {
            return Err(Refusal::Malformed(
                "its nonce is not the one it was told; librdkafka before 2.6.1 doubles its own part",
            ));
        }
        let said = format!("{},{},{without_proof}", self.client_first_bare, self.server_first);
        let hash = self.verifier.hash;
        let right = proves(hash, &self.verifier.stored_key, said.as_bytes(), &proof);
        match self.principal.filter(|_| right) {
            Some(principal) => {
                let signature = hash.hmac(&self.verifier.server_key, said.as_bytes());
                Ok((principal, format!("v={}", BASE64.encode(signature)).into_bytes()))
            }
            None => Err(Refusal::Credentials),
        }
    }
}

/// Whether a proof could only be made by who has the password.
fn proves(hash: Hash, stored_key: &[u8], said: &[u8], proof: &[u8]) -> bool {
    let signature = hash.hmac(stored_key, said);
    if proof.len() != signature.len() {
        return false;
    }
    let client_key: zeroize::Zeroizing<Vec<u8>> =
        zeroize::Zeroizing::new(proof.iter().zip(&signature).map(|(a, b)| a ^ b).collect());
    hash.digest(&client_key).ct_eq(stored_key).into()
}

fn utf8(message: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(message).map_err(|_| Refusal::Malformed("it is not UTF-8"))
}

/// A name in which `=2C` stands for a comma and `=3D` for an equals sign.
fn name(text: &str) -> Option<String> {
    let mut parts = text.split('=');
    let mut name = parts.next()?.to_owned();
    for part in parts {
        let (sign, rest) = [("2C", ','), ("3D", '=')]
            .into_iter()
            .find_map(|(code, sign)| Some((sign, part.strip_prefix(code)?)))?;
        name.push(sign);
        name.push_str(rest);
    }
    Some(name)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::num::NonZeroU32;

    use proptest::prelude::*;

    use super::*;
    use crate::password::Password;

    /// A whole login with what the client says given.
    fn login(
        verifier: &Verifier,
        server_nonce: &str,
        first: &str,
        last: &str,
    ) -> Result<(String, String), Refusal> {
        let first = ClientFirst::parse(first.as_bytes())?;
        let principal = Some(Principal::user(&first.user));
        let challenge = first.challenge(verifier.clone(), principal, server_nonce);
        let server_first = String::from_utf8(challenge.message()).unwrap();
        let (_, server_last) = challenge.answer(last.as_bytes())?;
        Ok((server_first, String::from_utf8(server_last).unwrap()))
    }

    fn verifier(hash: Hash, password: &str, salt: &str) -> Verifier {
        let salt = BASE64.decode(salt).unwrap();
        let iterations = NonZeroU32::new(4096).unwrap();
        Verifier::with_salt(hash, &Password::new(password.as_bytes()), salt, iterations)
    }

    /// RFC 7677, section 3.
    #[test]
    fn the_example_of_the_standard() {
        let verifier = verifier(Hash::Sha256, "pencil", "W22ZaJ0SNY7soEsUEjb6gQ==");
        let first = "n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
        let nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                    p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let (server_first, server_last) = login(&verifier, nonce, first, last).unwrap();
        assert_eq!(
            server_first,
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        assert_eq!(server_last, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
        let other = last.replace("p=dH", "p=dI");
        assert_eq!(login(&verifier, nonce, first, &other), Err(Refusal::Credentials));
        for broken in [
            last.replace("c=biws", "c=eSws"),
            last.replace("r=rOpr", "r=rOps"),
            // What librdkafka said before 2.6.1.
            last.replace("r=rOpr", "r=rOprNGfwEbeRWgbNEkqOrOpr"),
            last.replace(",p=", ",q="),
            "c=biws".to_owned(),
            String::new(),
        ] {
            assert!(matches!(login(&verifier, nonce, first, &broken), Err(Refusal::Malformed(_))));
        }
    }

    /// A client's last message.
    fn proof(
        hash: Hash,
        password: &str,
        salt: &[u8],
        first_bare: &str,
        server_first: &str,
        nonce: &str,
    ) -> String {
        let salted = hash.stretch(password.as_bytes(), salt, NonZeroU32::new(4096).unwrap());
        let client_key = hash.hmac(&salted, b"Client Key");
        let without = format!("c=biws,r={nonce}");
        let said = format!("{first_bare},{server_first},{without}");
        let signature = hash.hmac(&hash.digest(&client_key), said.as_bytes());
        let proof: Vec<u8> = client_key.iter().zip(signature).map(|(a, b)| a ^ b).collect();
        format!("{without},p={}", BASE64.encode(proof))
    }

    #[test]
    fn a_user_that_is_not_there_fails_even_with_a_right_proof() {
        let salt = b"0123456789abcdef";
        for hash in Hash::ALL {
            let verifier = verifier(hash, "secret", &BASE64.encode(salt));
            let first = ClientFirst::parse(b"n,,n=ann,r=abc").unwrap();
            for principal in [Some(Principal::user("ann")), None] {
                let challenge = first.challenge(verifier.clone(), principal.clone(), "def");
                let server_first = String::from_utf8(challenge.message()).unwrap();
                let last = proof(hash, "secret", salt, "n=ann,r=abc", &server_first, "abcdef");
                let answer = challenge.answer(last.as_bytes()).map(|(who, _)| who);
                assert_eq!(answer, principal.ok_or(Refusal::Credentials));
            }
        }
    }

    #[test]
    fn names_bear_their_signs() {
        let user = |text: &str| ClientFirst::parse(text.as_bytes()).map(|first| first.user).ok();
        assert_eq!(user("n,,n=a=2Cb=3Dc,r=x").as_deref(), Some("a,b=c"));
        assert_eq!(user("y,a=ann,n=ann,r=x").as_deref(), Some("ann"));
        for bad in [
            "n,,n=a=2,r=x",
            "n,,n=,r=x",
            "n,,n=a,r=",
            "p=tls-unique,,n=a,r=x",
            "n,a=bob,n=ann,r=x",
            "n,,m=x,n=a,r=x",
            "n,,n=a,r=x,tokenauth=true",
            "n,,n=a",
            "",
        ] {
            assert_eq!(user(bad), None, "{bad}");
        }
    }

    proptest! {
        /// Whatever comes, it is an answer or a refusal.
        #[test]
        fn noise_is_refused(first in "[n,y=ra-cp2]{0,20}", last in prop::collection::vec(any::<u8>(), 0..40)) {
            let verifier = verifier(Hash::Sha256, "secret", "AAAA");
            if let Ok(first) = ClientFirst::parse(first.as_bytes()) {
                let challenge = first.challenge(verifier, Some(Principal::user("a")), "x");
                prop_assert!(challenge.answer(&last).is_err());
            }
        }
    }
}
