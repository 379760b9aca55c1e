//! The truth of the simulation against a reader of its rows that is as plain as can be: rows by address,
//! an undo takes the newest change of its ROW_ID back, a commit keeps what is left.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

mod miner;
mod reader;
mod sql;
mod truth;
