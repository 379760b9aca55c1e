//! The Kafka protocol in front of the embedded log.
//!
//! A [`Broker`] is the one node of a cluster: it leads every partition and is its own controller.
//! Requests of a connection are begun in order and answered in order; what changes the log happens
//! when a request is begun, what waits (an fsync, a long poll) happens afterwards and holds nobody
//! else up. Whatever a stranger sends, memory and time stay within [`Limits`], and the worst that
//! happens is that this one connection is closed.
//!
//! ```no_run
//! use std::{path::Path, sync::Arc};
//!
//! use highwater_broker::{Broker, BrokerConfig};
//! use highwater_log::{Log, LogConfig, RealFileSystem};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let log = Log::open(Arc::new(RealFileSystem), Path::new("data"), LogConfig::default())?;
//! let broker = Broker::start(BrokerConfig::local(), log).await?;
//! println!("bootstrap.servers={}", broker.local_addr());
//! broker.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod alter_configs;
mod api_versions;
mod authorized;
mod authorized_groups;
mod authorized_records;
mod authorized_topics;
mod authorized_transactions;
mod blocking;
mod broker;
mod broker_settings;
mod budget;
mod config;
mod config_source;
mod connection;
mod counters;
mod create_topics;
mod creation;
mod delete_records;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod describe_log_dirs;
mod dispatch;
mod epoch_end;
mod error;
mod fault;
mod fetch;
mod frame;
mod gate;
mod list_offsets;
mod listener;
mod metadata;
mod node;
mod old_produce;
mod outcome;
mod pace;
mod places;
mod produce;
mod producer_id;
mod reading;
mod reply;
mod sasl;
mod session;
mod stream;
mod tls;

pub use broker::Broker;
pub use config::{AutoCreate, BrokerConfig, Endpoint, Limits, Reach};
pub use counters::describe_metrics;
pub use error::BrokerError;
pub use places::{Door, Loss, Place};
pub use sasl::SaslSettings;
pub use tls::{ClientCertificates, Tls, TlsError, TlsFiles};
