//! The log: a data directory with topics.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::{FileSystem, LogError, Overrides, Partition, TopicConfig, TopicInfo};

/// How a log works inside.
#[derive(Clone, Debug)]
pub struct LogConfig {
    /// Threads that sync partitions. With 0 nothing is synced until [`Partition::flush`] is called.
    pub flush_threads: usize,
    /// How often partitions are looked at for interval flush, reopening and time roll. None: only when
    /// [`Log::housekeep`] is called.
    pub housekeeping: Option<Duration>,
    /// How often retention runs (within housekeeping).
    pub retention_interval: Duration,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            flush_threads: 4,
            housekeeping: Some(Duration::from_millis(200)),
            retention_interval: Duration::from_secs(300),
        }
    }
}

/// The log of one data directory. Clones share it.
#[derive(Clone, Debug)]
pub struct Log {}

impl Log {
    /// Opens a data directory, making it if it is not there, and recovers what a crash left. The
    /// directory is ours until the log is dropped.
    ///
    /// # Errors
    /// [`LogError::Locked`], [`LogError::OtherVersion`], or of the disk. A partition that cannot be
    /// opened is no error here: it is offline and says why.
    pub fn open(fs: Arc<dyn FileSystem>, dir: &Path, config: LogConfig) -> Result<Self, LogError> {
        let _ = (fs, dir, config);
        Err(LogError::Closed)
    }

    /// The cluster id: 22 characters, made at first start.
    pub fn cluster_id(&self) -> &str {
        ""
    }

    /// Makes a topic; safe on disk when this returns.
    ///
    /// # Errors
    /// [`LogError::TopicExists`], [`LogError::InvalidTopic`], [`LogError::InvalidPartitions`], or of
    /// the disk.
    pub fn create_topic(
        &self,
        name: &str,
        partitions: i32,
        config: TopicConfig,
    ) -> Result<TopicInfo, LogError> {
        let _ = (name, partitions, config);
        Err(LogError::Closed)
    }

    /// Deletes a topic with its records.
    ///
    /// # Errors
    /// [`LogError::UnknownPartition`], or of the disk.
    pub fn delete_topic(&self, name: &str) -> Result<(), LogError> {
        let _ = name;
        Err(LogError::Closed)
    }

    /// Replaces a topic's settings.
    ///
    /// # Errors
    /// [`LogError::UnknownPartition`], [`LogError::InvalidConfig`], or of the disk.
    pub fn set_config(&self, name: &str, overrides: Overrides) -> Result<TopicInfo, LogError> {
        let _ = (name, overrides);
        Err(LogError::Closed)
    }

    /// All topics, by name.
    pub fn topics(&self) -> Vec<TopicInfo> {
        Vec::new()
    }

    /// One topic.
    pub fn topic(&self, name: &str) -> Option<TopicInfo> {
        let _ = name;
        None
    }

    /// One partition, also if it is offline.
    pub fn partition(&self, topic: &str, index: i32) -> Option<Arc<Partition>> {
        let _ = (topic, index);
        None
    }

    /// A producer id that was never given before, also across crashes.
    ///
    /// # Errors
    /// Of the disk.
    pub fn next_producer_id(&self) -> Result<i64, LogError> {
        Err(LogError::Closed)
    }

    /// Interval flush, reopening of poisoned partitions, time roll.
    pub fn housekeep(&self, now_ms: i64) {
        let _ = now_ms;
    }

    /// Removes closed segments by time and size; returns how many.
    pub fn run_retention(&self, now_ms: i64) -> usize {
        let _ = now_ms;
        0
    }

    /// Syncs everything and marks the directory as closed cleanly. Later calls fail.
    ///
    /// # Errors
    /// Of the disk; the next start then recovers as after a kill.
    pub fn close(&self) -> Result<(), LogError> {
        Ok(())
    }
}
