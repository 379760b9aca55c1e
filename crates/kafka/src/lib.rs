//! A client for any Kafka: the embedded log or Apache Kafka, through the protocol alone.
//!
//! Four parts: [`Admin`] (topics, configurations, groups), [`Reader`] (many readers over few
//! connections, read_committed from the first day, rule L8), [`Consumer`] (a member of a group, over
//! a reader) and [`Writer`] (begin, send, offsets, commit, abort; at least once, or in transactions). Readers and
//! admins ride over lost connections, restarts and moved leaders for a while; a writer that cannot
//! keep its contract breaks and says so.
//!
//! ```no_run
//! use highwater_kafka::{OffsetSpec, Reader};
//!
//! # async fn example() -> Result<(), highwater_kafka::KafkaError> {
//! let reader = Reader::new("127.0.0.1:9092");
//! let latest = reader.list_offset("orders", 0, OffsetSpec::Latest).await?;
//! let mut offset = latest.map_or(0, |latest| latest.offset);
//! let mut edges = reader.watch("orders", 0).await?;
//! loop {
//!     let fetched = reader.fetch("orders", 0, offset, 1 << 20).await?;
//!     for record in &fetched.records {
//!         println!("{} {:?}", record.offset, record.value);
//!     }
//!     offset = fetched.next_offset;
//!     if edges.wait_for(|edges| edges.last_stable > offset).await.is_err() {
//!         return Ok(());
//!     }
//! }
//! # }
//! ```

mod accumulator;
mod admin;
mod alter_topic;
mod assignor;
mod at_least_once;
mod backoff;
mod client_config;
mod cluster;
mod committed;
mod connection;
mod consumer;
mod consumer_settings;
mod coordinator;
mod counters;
mod delivery;
mod error;
mod fencing;
mod fetch;
pub mod fuzz;
mod group_admin;
mod group_offsets;
mod jaas;
mod journal;
mod lease;
mod ledger;
mod log_dirs;
mod member;
mod membership;
mod offsets;
mod partitioner;
mod places;
mod pool;
pub mod properties;
mod queue;
mod reader;
mod sasl;
mod scram;
mod security;
mod sender;
mod subscription;
mod tls;
mod topic_name;
mod transaction_coordinator;
mod transactional;
mod watch;
mod writer;

pub use admin::{Admin, NewTopic, PartitionDescription, TopicDescription, TopicSetting};
pub use alter_topic::SettingChange;
pub use client_config::SecurityError;
pub use consumer::{Consumer, Polled};
pub use consumer_settings::{ConsumerSettings, OffsetReset};
pub use counters::describe_metrics;
pub use error::KafkaError;
pub use group_admin::{GroupDescription, GroupMemberDescription};
pub use group_offsets::{Commit, GroupOffsets};
pub use highwater_protocol::{ErrorCode, TopicPartition};
pub use journal::Journal;
pub use lease::Lease;
pub use log_dirs::Volume;
pub use member::{Assigned, GroupEvent, GroupMember, GroupProtocol, Member, MemberSettings};
pub use membership::Identity;
pub use partitioner::partition_of;
pub use reader::{
    EpochEnd, Fetched, ListedOffset, OffsetSpec, ReadRecord, Reader, ReaderSettings, Watermarks,
};
pub use security::{Bootstrap, Mechanism, Password, Pem, PemPlace, Sasl, Security, Tls};
pub use subscription::{Awaited, Subscription};
pub use tls::encrypt;
pub use topic_name::{TOPIC_NAME_RULE, is_topic_name};
pub use writer::{
    Acknowledgement, OutgoingRecord, TransactionSettings, Writer, WriterSettings, at_least_once,
    writer,
};
