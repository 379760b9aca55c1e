//! Runs connectors on any Kafka, with Kafka Connect's vocabulary.
//!
//! A worker reads and writes the log through `highwater-kafka` alone, so what is tested on the
//! embedded log is what runs on Apache Kafka. All its state lives in three compacted topics in
//! Kafka Connect's own formats: connector configurations and target states (`configs`), source
//! offsets (`offsets`) and statuses (`statuses`). A restart restores everything from them.
//!
//! The promise in the middle is rule P1: a position is stored only once every record up to it was
//! acknowledged, and the source is told only once it is stored. One pure state machine, the
//! `ledger`, decides both; everything around it is transport.
//!
//! A `plan` divides a connector's configuration among its tasks; `connector_runner` keeps them as
//! their operator wants it. The flow of a task, file by file: `runner` runs and restarts it,
//! `opening` reads what is stored and checks it against the log (`tail`, `origin`), `task` polls
//! and sends through an `outbox`, whose `ledger` says what may be stored and whose `task_topics`
//! are made as they come; values go by way of `source_values`. A sink's task is `sink_task`, and
//! `sink_delivery` what it does with what it has read. What converts and transforms, for both, is
//! the `record_path`. `herder` changes what operators want, `runners` has the connectors' runners
//! and knows which part of the work is this worker's, `rest` is Kafka Connect's REST API in front
//! of it.
//!
//! ```no_run
//! use std::sync::Arc;
//! use highwater_worker::{Plugin, Worker, WorkerConfig};
//!
//! # async fn run(postgres: Arc<dyn highwater_connector::SourceConnector>)
//! # -> Result<(), Box<dyn std::error::Error>> {
//! let config = WorkerConfig::new("127.0.0.1:9092", "127.0.0.1:8083");
//! let worker = Worker::start(config, vec![Plugin::Source(postgres)]).await?;
//! let listener = tokio::net::TcpListener::bind("127.0.0.1:8083").await?;
//! axum::serve(listener, worker.router()).await?;
//! worker.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod active_topics;
mod admission;
mod applier;
mod assignment;
mod backoff;
mod boundary;
mod checks;
mod checkup;
mod client_overrides;
mod client_settings;
mod cluster;
mod config_records;
mod configs;
mod connector_changes;
mod connector_files;
mod connector_runner;
mod counters;
mod dead_letters;
mod declared;
mod elsewhere;
mod exactly_once;
mod fencing;
mod following;
mod fresh;
#[doc(hidden)]
pub mod fuzz;
mod group;
mod group_texts;
mod health;
mod herder;
mod isolation;
mod journal;
mod keys;
mod ledger;
mod log_checkup;
mod loggers;
mod looking;
mod meter;
mod meters;
mod offset_changes;
mod offset_topics;
mod offsets;
mod opening;
mod origin;
mod outbox;
mod outgoing;
mod ownership;
mod pipeline;
mod plan;
mod plans;
mod plugin_kinds;
mod plugin_versions;
mod plugins;
mod pulse;
mod record_keys;
mod record_path;
mod references;
mod replay;
mod rest;
mod rest_connectors;
mod rest_definitions;
mod rest_error;
mod rest_exchange;
mod rest_forms;
mod rest_forward;
mod rest_loggers;
mod rest_offsets;
mod rest_openapi;
mod rest_places;
mod rest_plugins;
mod rest_request;
mod rest_schemas;
mod rest_topics;
mod restore;
mod runner;
mod runners;
#[cfg(test)]
mod scripted;
mod scrub;
mod scrubbed;
mod secret_providers;
mod secrets;
mod settings;
mod sink_batch;
mod sink_delivery;
mod sink_desk;
mod sink_keys;
mod sink_ledger;
mod sink_offsets;
mod sink_opening;
#[cfg(test)]
mod sink_scripted;
mod sink_task;
mod source_values;
mod standing;
mod status;
mod statuses;
mod tail;
mod target_state;
mod task;
mod task_configs;
mod task_settings;
mod task_topics;
mod tolerance;
mod topic_creation;
mod topic_options;
mod topics;
mod trace;
mod undone;
mod worker;

pub use checks::Checks;
pub use client_settings::{CLIENT_SETTINGS, Client, ClientSettings, Fate};
pub use connector_files::{Declaration, check_connector_files};
pub use counters::describe_metrics;
pub use highwater_data::Role;
pub use keys::worker_keys;
pub use loggers::{LogLevel, Logger, Loggers, NoLoggers, ROOT};
pub use plugins::Plugin;
pub use record_keys::record_keys;
pub use rest_forward::{Caller, ON_BEHALF_OF};
pub use secret_providers::SecretProviders;
pub use settings::{
    ConverterSetting, DefaultConverters, ExactlyOnceSupport, Sharing, TopicTracking, WorkerConfig,
    WriterFactory,
};
pub use sink_keys::sink_keys;
pub use worker::{Worker, WorkerError};
