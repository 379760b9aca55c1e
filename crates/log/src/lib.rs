//! The storage engine: Apache Kafka's log on one machine's disk, and what is true after a crash.
//!
//! A [`Log`] is a data directory; a topic is one folder a partition, in exactly Kafka's layout: segments
//! of v2 record batches, offset and time index, producer snapshots, the leader-epoch checkpoint. A
//! [`Partition`] takes batches as a client sends them, checks each once, gives it offsets and writes it.
//! Nothing is visible under `flush=durable` before it was fsynced (rule L1); writers share the fsync.
//!
//! The code is synchronous; only the wait for a watermark is a future.

mod error;
mod fs;
mod log;
mod offset_spec;
mod partition;
mod topic;
mod watermarks;

pub use error::LogError;
pub use fs::{Entry, File, FileSystem, Lock, OpenMode, RealFileSystem};
pub use log::{Log, LogConfig};
pub use offset_spec::{FoundOffset, Isolation, OffsetSpec};
pub use partition::{AppendOptions, Appended, Partition};
pub use topic::{
    Cleanup, ConfigEntry, Flush, MAX_PARTITIONS, Overrides, TimestampType, TopicConfig, TopicInfo,
};
pub use watermarks::{PartitionState, Visible, Watermarks};
