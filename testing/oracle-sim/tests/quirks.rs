//! Each quirk alone shows in the rows, and without it they are not there.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

#[path = "replay/miner.rs"]
mod miner;

mod quirk {
    mod control;
    mod rows;
    mod simulated;
}
