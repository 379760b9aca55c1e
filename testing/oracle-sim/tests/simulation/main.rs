//! The simulation against a reader of its rows that is as plain as can be, and each quirk by what it
//! does to the rows.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

mod lob;
mod miner;
mod quirk;
mod reader;
mod redo;
mod sql;
mod truth;
