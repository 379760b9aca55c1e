//! Groups over a real log: what was answered is there after a kill.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

mod kills;
mod offsets;
mod recovery;
mod rig;
mod transactions;
