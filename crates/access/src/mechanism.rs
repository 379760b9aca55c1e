//! The SASL mechanisms that are taken, and their hashes.

use std::fmt;

use ring::{digest, hmac, pbkdf2};

/// A SASL mechanism.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mechanism {
    /// The password as it is (RFC 4616).
    Plain,
    /// A proof of the password (RFC 5802, RFC 7677).
    Scram(self::Hash),
}

/// A hash of SCRAM.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Hash {
    /// SHA-256.
    Sha256,
    /// SHA-512.
    Sha512,
}

impl Mechanism {
    /// All of them, the strongest first.
    pub const ALL: [Self; 3] =
        [Self::Scram(self::Hash::Sha512), Self::Scram(self::Hash::Sha256), Self::Plain];

    /// The mechanism of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mechanism| mechanism.name() == name)
    }

    /// Its name, as clients say it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::Scram(hash) => hash.mechanism(),
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl self::Hash {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Sha256, Self::Sha512];

    pub(crate) const fn mechanism(self) -> &'static str {
        match self {
            Self::Sha256 => "SCRAM-SHA-256",
            Self::Sha512 => "SCRAM-SHA-512",
        }
    }

    /// Bytes of a digest.
    pub(crate) const fn len(self) -> usize {
        match self {
            Self::Sha256 => 32,
            Self::Sha512 => 64,
        }
    }

    /// `H` of RFC 5802.
    pub(crate) fn digest(self, bytes: &[u8]) -> Vec<u8> {
        let algorithm = match self {
            Self::Sha256 => &digest::SHA256,
            Self::Sha512 => &digest::SHA512,
        };
        digest::digest(algorithm, bytes).as_ref().to_vec()
    }

    /// `HMAC` of RFC 5802.
    pub(crate) fn hmac(self, key: &[u8], bytes: &[u8]) -> Vec<u8> {
        let algorithm = match self {
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha512 => hmac::HMAC_SHA512,
        };
        hmac::sign(&hmac::Key::new(algorithm, key), bytes).as_ref().to_vec()
    }

    /// `Hi` of RFC 5802, which is PBKDF2.
    pub(crate) fn stretch(
        self,
        password: &[u8],
        salt: &[u8],
        iterations: std::num::NonZeroU32,
    ) -> zeroize::Zeroizing<Vec<u8>> {
        let algorithm = match self {
            Self::Sha256 => pbkdf2::PBKDF2_HMAC_SHA256,
            Self::Sha512 => pbkdf2::PBKDF2_HMAC_SHA512,
        };
        let mut out = zeroize::Zeroizing::new(vec![0; self.len()]);
        pbkdf2::derive(algorithm, iterations, salt, password, &mut out);
        out
    }
}
