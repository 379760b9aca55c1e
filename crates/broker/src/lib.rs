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
//! use highwater_broker::{Broker, BrokerConfig, Coordinator, CoordinatorConfig};
//! use highwater_log::{Log, LogConfig, RealFileSystem};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let log = Log::open(Arc::new(RealFileSystem), Path::new("data"), LogConfig::default())?;
//! let coordinator = Coordinator::start(&log, CoordinatorConfig::default());
//! let broker = Broker::start(BrokerConfig::local(), log, coordinator).await?;
//! println!("bootstrap.servers={}", broker.local_addr());
//! broker.shutdown().await;
//! # Ok(())
//! # }
//! ```

mod add_offsets_to_txn;
mod add_partitions_to_txn;
mod alter_configs;
mod api_versions;
mod authorized;
mod authorized_groups;
mod authorized_records;
mod authorized_topics;
mod authorized_transactions;
mod awaited;
mod broker;
mod broker_settings;
mod budget;
mod config;
mod config_source;
mod connection;
mod counters;
mod create_partitions;
mod create_topics;
mod creation;
mod delete_groups;
mod delete_records;
mod delete_topics;
mod describe_cluster;
mod describe_configs;
mod describe_groups;
mod describe_log_dirs;
mod describe_producers;
mod describe_transactions;
mod dispatch;
mod end_txn;
mod epoch_end;
mod error;
mod fault;
mod fetch;
mod find_coordinator;
mod frame;
mod gate;
mod heartbeat;
mod incremental_alter_configs;
mod init_producer_id;
mod internal_topic;
mod join_group;
mod leave_group;
mod list_groups;
mod list_offsets;
mod list_partition_reassignments;
mod list_transactions;
mod listener;
mod metadata;
mod node;
mod offset_commit;
mod offset_delete;
mod offset_fetch;
mod old_produce;
mod once;
mod outcome;
mod outlet;
mod pace;
mod places;
mod produce;
mod produced;
mod producer_fenced;
mod reading;
mod reply;
mod sasl;
mod session;
mod stream;
mod sync_group;
mod tls;
mod txn_offset_commit;
mod verification;
mod write_txn_markers;

pub use broker::Broker;
pub use config::{AutoCreate, BrokerConfig, Endpoint, Limits, Reach};
pub use highwater_coordinator::{
    Coordinator, CoordinatorConfig, GroupSettings, TransactionsConfig,
};

pub use counters::describe_metrics;
pub use error::BrokerError;
pub use places::{Door, Loss, Place};
pub use sasl::SaslSettings;
pub use tls::{ClientCertificates, Tls, TlsError, TlsFiles};
