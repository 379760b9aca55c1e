//! The `Authorization` header of a request: who somebody says to be (RFC 7617, RFC 6750).

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use zeroize::Zeroizing;

use crate::password::Password;
use crate::refusal::Refusal;

/// What a header says.
pub enum Authorization {
    /// A user's name and password.
    Basic(String, Password),
    /// A token.
    Bearer(Zeroizing<String>),
}

/// Nothing of the secrets.
impl fmt::Debug for Authorization {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scheme())
    }
}

impl Authorization {
    /// Reads the header's value.
    ///
    /// # Errors
    /// When it is neither; its text is not quoted.
    pub fn parse(value: &[u8]) -> Result<Self, Refusal> {
        let wrong = Refusal::Malformed("Authorization is `Basic …` or `Bearer …`");
        let value = std::str::from_utf8(value).map_err(|_| wrong)?.trim();
        let (scheme, rest) = value.split_once(' ').ok_or(wrong)?;
        let rest = rest.trim_start();
        if scheme.eq_ignore_ascii_case("bearer") && !rest.is_empty() {
            return Ok(Self::Bearer(Zeroizing::new(rest.to_owned())));
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return Err(wrong);
        }
        let pair = Zeroizing::new(BASE64.decode(rest).map_err(|_| wrong)?);
        let colon = pair.iter().position(|byte| *byte == b':').ok_or(wrong)?;
        let (name, password) = (&pair[..colon], &pair[colon + 1..]);
        let name = std::str::from_utf8(name).map_err(|_| wrong)?;
        if name.is_empty() || password.is_empty() {
            return Err(wrong);
        }
        Ok(Self::Basic(name.to_owned(), Password::new(password)))
    }

    /// The header's value.
    pub fn to_header(&self) -> Zeroizing<String> {
        Zeroizing::new(match self {
            Self::Basic(name, password) => {
                let pair = Zeroizing::new([name.as_bytes(), b":", password.bytes()].concat());
                format!("Basic {}", BASE64.encode(&*pair))
            }
            Self::Bearer(token) => format!("Bearer {}", **token),
        })
    }

    /// Its scheme, in lower case.
    pub const fn scheme(&self) -> &'static str {
        match self {
            Self::Basic(..) => "basic",
            Self::Bearer(_) => "bearer",
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn both_schemes_are_read() {
        let basic = format!("bAsIc {}", BASE64.encode("ann:s:cret"));
        match Authorization::parse(basic.as_bytes()).unwrap() {
            Authorization::Basic(name, password) => {
                assert_eq!((name.as_str(), password.bytes()), ("ann", &b"s:cret"[..]));
            }
            Authorization::Bearer(_) => panic!("it is Basic"),
        }
        match Authorization::parse(b"Bearer  abc ").unwrap() {
            Authorization::Bearer(token) => assert_eq!(token.as_str(), "abc"),
            Authorization::Basic(..) => panic!("it is Bearer"),
        }
    }

    #[test]
    fn what_is_written_is_read_as_the_same() {
        for said in [
            Authorization::Basic("ann".to_owned(), Password::new(b"s:cret")),
            Authorization::Bearer(Zeroizing::new("abc".to_owned())),
        ] {
            let read = Authorization::parse(said.to_header().as_bytes()).unwrap();
            assert_eq!(*read.to_header(), *said.to_header());
        }
    }

    #[test]
    fn anything_else_is_refused_and_not_quoted() {
        let encoded = |text: &str| format!("Basic {}", BASE64.encode(text));
        for value in [
            "",
            "Basic",
            "Basic ",
            "Bearer ",
            "Basic %%%",
            "Digest s3cret",
            "s3cret",
            &encoded("s3cret"),
            &encoded(":s3cret"),
            &encoded("ann:"),
        ] {
            let refused = Authorization::parse(value.as_bytes()).unwrap_err();
            assert!(!refused.to_string().contains("s3cret"), "{value}");
        }
        assert!(Authorization::parse(b"Basic \xff").is_err());
    }

    #[test]
    fn no_secret_is_printed() {
        let basic = Authorization::parse(format!("Basic {}", BASE64.encode("a:s3cret")).as_bytes());
        let bearer = Authorization::parse(b"Bearer s3cret");
        assert_eq!(format!("{basic:?} {bearer:?}"), "Ok(basic) Ok(bearer)");
    }
}
