//! A client for any Kafka: the embedded log or Apache Kafka, through the protocol alone.
//!
//! Three parts: [`Admin`] (topics, configurations, offset lookups), [`Reader`] (many readers over
//! few connections, read_committed from the first day, rule L8) and [`Writer`] (begin, send,
//! offsets, commit, abort; at-least-once first).

mod admin;
mod delivery;
mod error;
mod ledger;
mod reader;
mod writer;

pub use admin::{Admin, NewTopic, TopicDescription};
pub use error::KafkaError;
pub use reader::{EpochEnd, Fetched, ListedOffset, OffsetSpec, ReadRecord, Reader, Watermarks};
pub use writer::{Acknowledgement, OutgoingRecord, Writer, WriterSettings, at_least_once};
