//! The connector against a real PostgreSQL, through its real task, with a worker of a few lines.
//!
//! One server serves all tests; each has a database, a slot and a publication of its own. Names
//! such as P13 are those of the field's known cases.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "these are tests")]

mod changes;
mod crashes;
mod debezium;
mod faults;
mod names;
mod offsets;
mod preflight;
mod publication;
mod rig;
mod server;
mod sessions;
mod shapes;
mod snapshot;
mod starts;
mod table_topics;
mod timelines;
mod tls;
mod values;
