//! The client against brokers: a scripted one, librdkafka's mock of three, our own, and Apache Kafka.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "the lint knows tests by their attribute, not their helpers"
)]

mod apache;
mod contract;
mod counting;
mod embedded;
mod fake;
mod fetching;
mod grouping;
mod mocked;
mod proxy;
mod securing;
mod server;
mod transacting;
mod watching;
mod wide;
mod writing;
