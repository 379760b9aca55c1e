//! The storage engine: Apache Kafka's log on one machine's disk, and what is true after a crash.
//!
//! A [`Log`] is a data directory; a topic is one folder a partition, in exactly Kafka's layout: segments
//! of v2 record batches, offset, time and transaction index, producer snapshots, the leader-epoch
//! checkpoint. A
//! [`Partition`] takes batches as a client sends them, checks each once, gives it offsets and writes it.
//! Nothing is visible under `flush=durable` before it was fsynced (rule L1); writers share the fsync.
//!
//! The code is synchronous; only the wait for a watermark is a future.
//!
//! ```
//! use std::sync::Arc;
//!
//! use highwater_log::{
//!     AppendOptions, Isolation, Log, LogConfig, OffsetSpec, RealFileSystem, TopicConfig, Visible,
//! };
//! use highwater_protocol::records::{BatchBuilder, Compression};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let dir = tempfile::tempdir()?;
//! let log = Log::open(Arc::new(RealFileSystem), dir.path(), LogConfig::default())?;
//! log.create_topic("orders", 1, TopicConfig::default())?;
//! let partition = log.partition("orders", 0).ok_or("no such partition")?;
//!
//! let mut batch = BatchBuilder::new(Compression::Lz4);
//! batch.push(1_700_000_000_000, Some(b"7"), Some(b"paid"), &[]);
//! let appended =
//!     partition.append(batch.build()?, AppendOptions::client(1_700_000_000_005))?;
//! partition.durable(&appended).await?;
//!
//! let bytes = partition.read(0, 1 << 20, true, Visible::HighWatermark)?;
//! assert!(!bytes.is_empty());
//! let newest = partition.list_offset(OffsetSpec::MaxTimestamp, Isolation::ReadCommitted)?;
//! assert_eq!(newest.map(|found| found.offset), Some(0));
//! log.close()?;
//! # Ok(())
//! # }
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(example())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#[macro_use]
mod mutants;

mod append;
mod archive;
mod archiver;
mod background;
mod backup;
mod batch_reader;
mod broken_holds;
mod catalog;
mod checkpoint;
mod cleanable;
mod cleaned_transactions;
mod cleaner;
mod cleaning;
mod compaction_point;
mod copies;
mod copy_error;
mod counters;
mod cut;
mod directory;
mod durable_file;
mod end_marker;
mod entry_file;
mod epochs;
mod error;
mod file_name;
mod flush;
mod fs;
#[doc(hidden)]
pub mod fuzz;
mod growth;
mod hold;
mod housekeeper;
mod keeper;
mod log;
mod lookup;
mod manifest;
mod marks;
mod offset_index;
mod offset_map;
mod offset_spec;
mod opening;
mod partition;
mod producer;
mod producer_snapshot;
mod producers;
mod read;
mod rebuild;
mod record_check;
mod recovery;
mod recovery_point;
mod reopen;
mod replay;
mod restore;
mod retention;
mod retry;
mod roll;
mod scan;
mod segment;
mod segment_copy;
mod sequence;
mod settle;
mod slice;
mod space;
mod swap;
mod throttle;
mod time_index;
mod tip;
mod topic;
mod topic_config;
mod topic_setting;
mod transaction_index;
mod transactions;
mod unsettled;
mod unverified;
mod wall_clock;
mod watermarks;

pub use highwater_protocol::records::TimestampType;

pub use append::{AppendOptions, Appended, Origin};
pub use archive::ArchiveConfig;
pub use backup::BackupSummary;
pub use cleaner::CompactionConfig;
pub use copy_error::CopyError;
pub use counters::describe_metrics;
pub use directory::{Occupancy, look};
pub use end_marker::{EndMarker, MarkerKind};
pub use error::LogError;
pub use fs::{Entry, File, FileSystem, Lock, OpenMode, RealFileSystem, Volume};
pub use hold::{HOLD_PREFIX, HeldFrom, Hold};
pub use log::{Log, LogConfig};
pub use offset_spec::{FoundOffset, Isolation, OffsetSpec};
pub use opening::Opening;
pub use partition::Partition;
pub use producers::ProducerState;
pub use restore::{Restored, restore};
pub use segment_copy::CopyProgress;
pub use slice::Slice;
pub use topic::{MAX_PARTITIONS, TopicInfo, check_name};
pub use topic_config::{
    Cleanup, Compaction, ConfigEntry, Flush, FlushBound, Overrides, Roll, StoredAs, TimestampBound,
    TopicConfig,
};
pub use topic_setting::{ConfigKind, TOPIC_SETTINGS, TopicSetting};
pub use transaction_index::Aborted;
pub use unsettled::OpenTransaction;
pub use wall_clock::now_ms;
pub use watermarks::{PartitionState, Visible, Watermarks};
