//! Captures the changes of a PostgreSQL database, in the order in which it commits them.
//!
//! A first start makes a publication and a replication slot, reads the captured tables in the
//! slot's exported snapshot, and then streams what was committed since. Every record carries the
//! position that holds once it is safe; the server is told of a position only after it is stored,
//! so what is stored and what the server keeps always fit each other, and where they do not the
//! start is refused with both numbers.
//!
//! The parts, along the flow of data:
//!
//! - `settings`, `filter`: the configuration, under Debezium's names.
//! - `opening`: a start. `start_decision` and `preflight` decide it without I/O.
//! - `transport`, `tls`, `channel_binding`: the way to the server.
//! - `session`, `frame`, `reader`: the replication connection.
//! - [`pgoutput`]: the decoder of the stream.
//! - `engine`, `tables`, `envelope`, `topic_names`: from messages to records, without I/O.
//! - `forms`, `table_form`, `column_form`: keys and values as Debezium writes them, where a pipeline
//!   was taken over from it.
//! - `snapshot`, `copy_text`, `progress`: the tables as they were at a point.
//! - `watch`, `holding`, `publication_change`: what the stream does not say of the server.
//! - `release`: letting go of a slot for good.
//! - [`PostgresConnector`]: what the worker sees of all this.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use highwater_connector::SourceConnector as _;
//! use highwater_postgres::PostgresConnector;
//!
//! let connector = PostgresConnector::new();
//! let values: BTreeMap<String, String> = [
//!     ("database.hostname", "localhost"),
//!     ("database.user", "capture"),
//!     ("database.dbname", "shop"),
//!     ("topic.prefix", "shop"),
//!     ("table.include.list", "public.orders,public.items"),
//! ]
//! .map(|(name, value)| (name.to_owned(), value.to_owned()))
//! .into();
//! let config = connector.config().parse(&values, &[]).unwrap();
//! assert_eq!(connector.topics(&config).schema.as_deref(), Some("shop.schema"));
//! ```

mod auth;
mod catalog;
mod channel_binding;
mod checkup;
mod column_default;
mod column_form;
mod connector;
mod copy_text;
mod cursor;
mod ddl;
mod debezium_offset;
mod decimal;
mod engine;
mod envelope;
mod error;
mod filter;
mod forms;
mod frame;
#[doc(hidden)]
pub mod fuzz;
mod holding;
mod instant;
mod interval;
mod java_number;
mod lsn;
mod membership;
mod name;
mod offset;
mod offset_change;
mod opening;
pub mod pgoutput;
mod preflight;
mod progress;
mod publication_change;
mod reader;
mod relation;
mod release;
mod session;
mod settings;
mod shape;
mod snapshot;
mod start_decision;
mod stream;
mod table_form;
mod tables;
mod task;
mod timeline;
mod tls;
mod topic_names;
mod transport;
mod watch;

pub use connector::PostgresConnector;
pub use cursor::DecodeError;
pub use error::code;
pub use lsn::{Lsn, LsnError};
pub use name::{NameError, TableName};
