//! The client against brokers: a scripted one, librdkafka's mock of three, and our own.

#![allow(
    clippy::unwrap_used,
    reason = "the lint knows tests by their attribute, not their helpers"
)]

mod contract;
mod embedded;
mod fake;
mod fetching;
mod mocked;
mod proxy;
mod server;
mod watching;
mod wide;
mod writing;
