//! Every fuzz entry of the workspace (rule T5), run in one of two ways: `cargo test -p
//! highwater-fuzz` runs the corpus and seeded mutations of it on the stable toolchain; `make fuzz`
//! runs cargo-fuzz, whose coverage finds what chance does not.
//!
//! An entry is a plain function in the crate of its parser, listed in that crate's `fuzz::ENTRIES`.
//! Its corpus is the folder of its name under `corpus`; an input that once failed is put there.

pub mod chance;
pub mod corpus;
pub mod trial;

/// A parser that takes any bytes; a panic is a fault.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name, and that of its corpus.
    pub name: &'static str,
    /// The function.
    pub run: fn(&[u8]),
}

/// All entries of the libraries.
pub fn entries() -> Vec<Entry> {
    [
        highwater_protocol::fuzz::ENTRIES,
        highwater_log::fuzz::ENTRIES,
        highwater_access::fuzz::ENTRIES,
        highwater_connector::fuzz::ENTRIES,
        highwater_data::fuzz::ENTRIES,
        highwater_kafka::fuzz::ENTRIES,
        highwater_oracle::fuzz::ENTRIES,
        highwater_postgres::fuzz::ENTRIES,
        highwater_transforms::fuzz::ENTRIES,
        highwater_worker::fuzz::ENTRIES,
        highwater_streams::fuzz::ENTRIES,
    ]
    .iter()
    .flat_map(|entries| entries.iter())
    .map(|(name, run)| Entry { name, run: *run })
    .collect()
}
