//! A password, which is never printed and does not stay in memory.

use std::fmt;

use zeroize::Zeroizing;

/// The shortest password that is taken.
const SHORTEST: usize = 8;
/// The longest: a login has to fit a small frame.
const LONGEST: usize = 1024;

/// A password.
#[derive(Clone)]
pub struct Password(Zeroizing<Vec<u8>>);

impl Password {
    /// Any bytes, as somebody sent them.
    pub fn new(bytes: &[u8]) -> Self {
        Self(Zeroizing::new(bytes.to_vec()))
    }

    /// Says what is wrong with it as a new password.
    pub fn weakness(&self) -> Option<String> {
        let text = std::str::from_utf8(&self.0).ok();
        let signs = text.map(|text| text.chars().count());
        match signs {
            None => Some("is not UTF-8".to_owned()),
            Some(signs) if signs < SHORTEST => {
                Some(format!("has {signs} characters, at least {SHORTEST} are wanted"))
            }
            Some(_) if self.0.len() > LONGEST => {
                Some(format!("has {} bytes, at most {LONGEST} are taken", self.0.len()))
            }
            // PLAIN ends a password with a zero byte (RFC 4616).
            Some(_) if self.0.contains(&0) => Some("holds a zero byte".to_owned()),
            Some(_) => None,
        }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Password")
    }
}
