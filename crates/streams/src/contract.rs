//! The contract of a stream: everything that shapes its records.

use std::fmt;

use sha2::{Digest, Sha256};

use crate::encoding::Encoding;
use crate::fingerprint::first;

/// Hash of a contract. A position is bound to it: the same offset under another contract is
/// another record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ContractHash(pub(crate) [u8; 8]);

impl ContractHash {
    /// Of a stream without filters. Quality of service and buffer sizes take no part: they decide
    /// what is sent when, not what a record looks like.
    pub(crate) fn of(encoding: &Encoding) -> Self {
        // A tree of texts and flags always serialises.
        let text = serde_json::to_vec(encoding).unwrap_or_default();
        Self(first(&Sha256::new().chain_update(b"contract 1").chain_update(text).finalize()))
    }
}

impl fmt::Display for ContractHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
