//! The log on a file system that forgets what was not synced (rule L4): random histories with kills, power
//! losses, full disks and failed syncs, compared with a model that knows what must be true.
//!
//! `HW_CASES` is the number of histories, `HW_SEED` runs a single one.
#![allow(
    missing_docs,
    unreachable_pub,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests"
)]

mod client;
mod compacted;
mod copies;
mod dice;
mod entry;
mod faults;
mod fs;
mod growth;
mod life;
mod naive;
mod node;
mod partition;
mod swaps;
mod syncs;
mod transactions;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn history(seed: u64) {
    let steps = 50 + seed % 200;
    world::World::new(seed).run(steps);
}

#[test]
fn no_history_loses_what_was_shown() {
    if let Some(seed) = number("HW_SEED") {
        return history(seed);
    }
    let cases = number("HW_CASES").unwrap_or(1000);
    let next = AtomicU64::new(0);
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= cases {
                        return;
                    }
                    if catch_unwind(AssertUnwindSafe(|| history(seed))).is_err() {
                        failed.lock().unwrap().push(seed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "run one alone with HW_SEED={failed:?}");
}
