//! What changes which events a transaction has.

use highwater_connector::Config;
use sha2::{Digest as _, Sha256};

/// Keys that change which changes of a transaction are captured, or how many there are.
const COUNTED: [&str; 8] = [
    "cdc.database.pdbs",
    "cdc.tables.include",
    "cdc.tables.exclude",
    "cdc.tables.case.sensitive",
    "cdc.users.exclude",
    "cdc.lob.mode",
    "cdc.on.decode.error",
    // On topics of tables a DDL is no event.
    "topic.routing",
];

/// Fingerprint of the captured set: of everything that changes which events a transaction has.
pub fn fingerprint(config: &Config) -> String {
    let mut hash = Sha256::new();
    for value in COUNTED.map(|name| config.text(name)) {
        hash.update(value.len().to_le_bytes());
        hash.update(value);
    }
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::sample::config;

    #[test]
    fn it_follows_the_captured_set_alone() {
        let base = fingerprint(&config(&[]));
        for (name, value) in [
            ("cdc.tables.include", "A.B"),
            ("cdc.users.exclude", "LOADER"),
            ("cdc.lob.mode", "inline"),
            ("topic.routing", "table"),
        ] {
            assert_ne!(base, fingerprint(&config(&[(name, value)])), "{name}");
        }
        for (name, value) in [("cdc.database.host", "other"), ("cdc.mining.fetch.size", "500")] {
            assert_eq!(base, fingerprint(&config(&[(name, value)])), "{name}");
        }
    }

    /// Else its texts would run together with empty ones.
    #[test]
    fn each_key_is_one_that_the_connector_takes() {
        let definition = crate::settings::definition();
        for name in COUNTED {
            assert!(definition.keys().iter().any(|key| key.name == name), "{name}");
        }
    }
}
