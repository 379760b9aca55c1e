//! The broker over real connections. One binary, so that it is linked once.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs, reason = "tests")]

mod api_versions;
mod authorization;
mod certificates;
mod client;
mod clients;
mod configs;
mod epochs;
mod fetch;
mod groups;
mod hostile;
mod lifecycle;
mod list_offsets;
mod log_dirs;
mod logins;
mod metadata;
mod metrics;
mod produce;
mod rdkafka_client;
mod rdkafka_groups;
mod rdkafka_transactions;
mod read_committed;
mod server;
mod tls;
mod topics;
mod transactions;
mod users;
