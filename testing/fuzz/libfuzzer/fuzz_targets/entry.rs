#![no_main]

use std::sync::LazyLock;

use highwater_fuzz::entries;
use libfuzzer_sys::fuzz_target;

/// The entry that is fuzzed.
static RUN: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("HIGHWATER_FUZZ_ENTRY").expect("HIGHWATER_FUZZ_ENTRY names an entry");
    let entry = entries().into_iter().find(|entry| entry.name == name);
    entry.unwrap_or_else(|| panic!("there is no entry {name}")).run
});

fuzz_target!(|input: &[u8]| RUN(input));
