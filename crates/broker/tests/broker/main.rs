//! The broker over real connections. One binary, so that it is linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

mod api_versions;
mod client;
mod clients;
mod configs;
mod epochs;
mod fetch;
mod hostile;
mod lifecycle;
mod list_offsets;
mod metadata;
mod metrics;
mod produce;
mod rdkafka_client;
mod server;
mod topics;
