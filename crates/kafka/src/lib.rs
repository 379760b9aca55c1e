//! A client for any Kafka: the embedded log or Apache Kafka, through the protocol alone.
//!
//! Three parts: [`Admin`] (topics, configurations, offset lookups), [`Reader`] (many readers over
//! few connections, read_committed from the first day, rule L8) and [`Writer`] (begin, send,
//! offsets, commit, abort; at-least-once first).

mod admin;
mod backoff;
mod cluster;
mod committed;
mod connection;
mod delivery;
mod error;
mod fetch;
mod ledger;
mod offsets;
mod pool;
mod reader;
mod watch;
mod writer;

pub use admin::{Admin, NewTopic, TopicDescription};
pub use error::KafkaError;
pub use reader::{
    EpochEnd, Fetched, ListedOffset, OffsetSpec, ReadRecord, Reader, ReaderSettings, Watermarks,
};
pub use writer::{Acknowledgement, OutgoingRecord, Writer, WriterSettings, at_least_once};
