//! Generations (rule P4): a random number that tells one delivery history from the next.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Header of every offset record: the generation and the fingerprint of the captured set.
pub const GENERATION_HEADER: &str = "hw.generation";

/// A random 64-bit number, compared for equality only; there is no older or newer generation.
///
/// Its text form is sixteen hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Generation(u64);

impl Generation {
    /// A new random generation.
    pub fn mint() -> Self {
        Self(rand::random())
    }

    /// The generation with these bits: for tests and for decoding.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// The number behind it.
    pub const fn bits(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for Generation {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        u64::from_str_radix(text, 16).map(Self)
    }
}

impl Serialize for Generation {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Generation {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// What the header [`GENERATION_HEADER`] says, as JSON.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GenerationMark {
    /// The generation that records behind this offset bear.
    pub generation: Generation,
    /// Fingerprint of the captured set that counted the event index of the offset.
    pub fingerprint: String,
}

impl GenerationMark {
    /// The header's bytes.
    pub fn encode(&self) -> Vec<u8> {
        // Strings always serialise into a vector.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads the header; `None` when it is not such JSON.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_mark_is_read_back_as_it_was_written(bits in any::<u64>(), fingerprint in ".{0,40}") {
            let generation = Generation::from_bits(bits);
            let mark = GenerationMark { generation, fingerprint };
            prop_assert_eq!(GenerationMark::decode(&mark.encode()), Some(mark));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = GenerationMark::decode(&bytes);
        }
    }

    #[test]
    fn two_minted_generations_differ() {
        assert_ne!(Generation::mint(), Generation::mint());
    }

    #[test]
    fn what_is_no_mark_is_none() {
        assert_eq!(GenerationMark::decode(b"{}"), None);
        assert_eq!(GenerationMark::decode(br#"{"generation":"xyz","fingerprint":""}"#), None);
    }
}
