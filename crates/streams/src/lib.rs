//! Data streams: a change feed that an application can trust, over one topic partition, knowing
//! no database.
//!
//! A *stream* is a named resource over a trail. A client opens it as a WebSocket and receives
//! JSON arrays of records, each with an opaque `pos`. It stores the `pos` of the last record whose
//! effect is durable and gives it back as `begin`; delivery goes on with the next record. What can
//! be refused is refused before the upgrade, with a typed answer (rule S2), duplicates of a
//! re-append are suppressed (rules P4 to P6), and a gap is never silent (rule S3).
//!
//! The way of a record through the files: `cursor` reads it from the log, `change` decodes it,
//! `marks` decides whether it is new, `position` seals its `pos`, `format` writes its JSON, `batch`
//! joins it with others, `pump` sends it, `session` ends the connection. `rest` keeps the resources, `opening` and `resume`
//! decide where a connection begins.
//!
//! ```no_run
//! use highwater_streams::{Streams, StreamsConfig};
//!
//! # async fn serve() -> Result<(), Box<dyn std::error::Error>> {
//! let streams = Streams::start(StreamsConfig::new("127.0.0.1:9092")).await?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8083").await?;
//! axum::serve(listener, streams.router()).await?;
//! streams.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod batch;
mod begin;
mod bounds;
mod change;
mod checkup;
mod closing;
mod config;
mod contract;
mod counters;
mod cursor;
mod encoding;
mod error;
mod feed;
mod fields;
mod fingerprint;
mod format;
#[doc(hidden)]
pub mod fuzz;
mod gap;
mod image;
mod kafka_log;
mod key_change;
mod marks;
mod metadata;
mod metafields;
mod object;
mod opening;
mod peer;
mod position;
mod pump;
mod qos;
mod refusal;
mod registry;
mod resource;
mod rest;
mod resume;
mod schema;
mod service;
mod session;
mod state;
mod status;
mod tables;
mod time;
mod trail;
mod vetting;

#[cfg(test)]
mod tests;

pub use config::{Limits, StreamsConfig};
pub use counters::describe_metrics;
pub use error::StreamsError;
pub use service::Streams;
