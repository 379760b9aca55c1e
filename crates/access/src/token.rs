//! Tokens: what programs show in place of a name and a password (RFC 6750).
//!
//! A token is 256 random bits, so a plain hash of it can be kept: nobody finds it by trying. As text
//! `LABEL$SHA-256$DIGEST`, the last in base64.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD as BASE64, URL_SAFE_NO_PAD};
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};
use subtle::{Choice, ConstantTimeEq as _};
use zeroize::Zeroizing;

use crate::error::AccessError;
use crate::random;

/// What tokens begin with, so that one that went astray is found by those who look for secrets.
const PREFIX: &str = "hwt_";
/// The longest label, in bytes.
const LONGEST_LABEL: usize = 64;
/// The longest text that is taken for a token.
const LONGEST: usize = 512;

/// What is kept of a token: enough to know it again, not enough to show it.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    label: String,
    digest: [u8; SHA256_OUTPUT_LEN],
}

/// A token that was made just now, to be told once.
pub struct NewToken(Zeroizing<String>);

impl NewToken {
    /// The token itself.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for NewToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewToken")
    }
}

/// The hash of a token that somebody shows.
pub(crate) struct Shown([u8; SHA256_OUTPUT_LEN]);

impl Shown {
    /// None where it can be no token.
    pub(crate) fn new(secret: &str) -> Option<Self> {
        (secret.len() <= LONGEST).then(|| Self(hashed(secret)))
    }
}

fn hashed(secret: &str) -> [u8; SHA256_OUTPUT_LEN] {
    let mut bytes = [0; SHA256_OUTPUT_LEN];
    bytes.copy_from_slice(digest(&SHA256, secret.as_bytes()).as_ref());
    bytes
}

impl Token {
    /// A new one, and what is told of it.
    ///
    /// # Errors
    /// When the label cannot be one.
    pub fn mint(label: &str) -> Result<(Self, NewToken), AccessError> {
        check_label(label)?;
        let secret = format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(random::bytes::<32>()));
        let digest = hashed(&secret);
        Ok((Self { label: label.to_owned(), digest }, NewToken(Zeroizing::new(secret))))
    }

    /// What its owner calls it.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Whether this is it. Takes as long whatever the answer.
    pub(crate) fn is(&self, shown: &Shown) -> Choice {
        self.digest.ct_eq(&shown.0)
    }

    /// Reads the text; none where it is no token.
    pub fn parse(text: &str) -> Option<Self> {
        let (label, rest) = text.split_once('$')?;
        check_label(label).ok()?;
        let digest = BASE64.decode(rest.strip_prefix("SHA-256$")?).ok()?;
        Some(Self { label: label.to_owned(), digest: digest.try_into().ok()? })
    }

    /// The text.
    pub fn to_text(&self) -> String {
        format!("{}$SHA-256${}", self.label, BASE64.encode(self.digest))
    }
}

/// Nothing of the hash.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({})", self.label)
    }
}

fn check_label(label: &str) -> Result<(), AccessError> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if !label.is_empty() && label.len() <= LONGEST_LABEL && label.bytes().all(fits) {
        return Ok(());
    }
    Err(AccessError::TokenLabel { label: label.to_owned() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_known_again_from_what_is_kept_and_nothing_else_is() {
        let (token, new) = Token::mint("ci").unwrap();
        let (other, _) = Token::mint("ci").unwrap();
        let kept = Token::parse(&token.to_text()).unwrap();
        let shown = Shown::new(new.reveal()).unwrap();
        assert_eq!(kept, token);
        assert!(bool::from(kept.is(&shown)) && !bool::from(other.is(&shown)));
        for wrong in ["", PREFIX, &new.reveal()[1..], &format!("{} ", new.reveal())] {
            assert!(!bool::from(kept.is(&Shown::new(wrong).unwrap())), "{wrong}");
        }
        assert!(Shown::new(&"a".repeat(LONGEST + 1)).is_none());
    }

    #[test]
    fn no_token_is_printed_or_kept() {
        let (token, new) = Token::mint("ci").unwrap();
        let printed = format!("{token:?} {new:?} {}", token.to_text());
        assert!(!printed.contains(&new.reveal()[PREFIX.len()..]), "{printed}");
    }

    #[test]
    fn what_is_no_token_is_not_read() {
        for text in
            ["", "ci", "ci$SHA-256$", "ci$SHA-256$AAAA", "$SHA-256$AAAA", "a b$SHA-256$AA=="]
        {
            assert_eq!(Token::parse(text), None, "{text}");
        }
        for label in ["", "a b", "a$b", &"a".repeat(LONGEST_LABEL + 1)] {
            assert_eq!(Token::mint(label).unwrap_err().code(), "TOKEN_LABEL_INVALID", "{label}");
        }
    }
}
