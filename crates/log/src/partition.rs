//! One partition: what its users call.

use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::watch;

use crate::{FoundOffset, Isolation, LogError, OffsetSpec, TopicConfig, Visible, Watermarks};

/// How an append is to be taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AppendOptions {
    /// Now, in milliseconds since 1970.
    pub now_ms: i64,
}

/// What an append was given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Appended {
    /// Offset of the first record.
    pub base_offset: i64,
    /// Offset of the last record.
    pub last_offset: i64,
    /// The time the records bear, if the topic stamps them.
    pub log_append_time_ms: Option<i64>,
    /// The first offset kept.
    pub log_start_offset: i64,
    /// The leader epoch of the append; [`Partition::durable`] needs it.
    pub leader_epoch: i32,
}

/// One partition of a topic. All calls may be made from many threads at once; those that say so block
/// on the disk.
#[derive(Debug)]
pub struct Partition {
    watermarks: watch::Sender<Watermarks>,
}

impl Partition {
    /// Appends whole batches, as a client sends them: checks them, gives them offsets, writes them to
    /// the page cache. They are visible and safe later, see [`Partition::durable`]. May block on the
    /// disk when a segment ends.
    ///
    /// # Errors
    /// Nothing is written then; see [`LogError`] for the kinds.
    pub fn append(&self, batches: Bytes, options: AppendOptions) -> Result<Appended, LogError> {
        let _ = (batches, options);
        Err(LogError::Closed)
    }

    /// Waits until an append is visible: fsynced under `flush=durable`, at once otherwise.
    ///
    /// # Errors
    /// [`LogError::Poisoned`] if the append was lost to a failed fsync: send it again.
    pub async fn durable(&self, appended: &Appended) -> Result<(), LogError> {
        let _ = appended;
        Err(LogError::Closed)
    }

    /// A view of the watermarks; woken when anything but the log end moves.
    pub fn watermarks(&self) -> watch::Receiver<Watermarks> {
        self.watermarks.subscribe()
    }

    /// The watermarks now.
    pub fn watermarks_now(&self) -> Watermarks {
        *self.watermarks.borrow()
    }

    /// The settings now.
    pub fn config(&self) -> Arc<TopicConfig> {
        Arc::new(TopicConfig::default())
    }

    /// Whole batches from the one that holds `offset` (its base offset may be lower) to at most
    /// `max_bytes`; with `min_one` the first batch comes even if it is larger. Empty at the end of
    /// what is visible. Blocks on the disk.
    ///
    /// # Errors
    /// [`LogError::OffsetOutOfRange`] below the log start or above the log end.
    pub fn read(
        &self,
        offset: i64,
        max_bytes: usize,
        min_one: bool,
        visible: Visible,
    ) -> Result<Bytes, LogError> {
        let _ = (offset, max_bytes, min_one, visible);
        Err(LogError::Closed)
    }

    /// Answers ListOffsets as Kafka 3.8 and later do. None is "no answer". Blocks on the disk.
    ///
    /// # Errors
    /// Of the disk.
    pub fn list_offset(
        &self,
        spec: OffsetSpec,
        isolation: Isolation,
    ) -> Result<Option<FoundOffset>, LogError> {
        let _ = (spec, isolation);
        Err(LogError::Closed)
    }

    /// Compares a client's leader epoch with the current one; -1 asks for no check.
    ///
    /// # Errors
    /// [`LogError::FencedLeaderEpoch`] or [`LogError::UnknownLeaderEpoch`].
    pub fn check_leader_epoch(&self, asked: i32) -> Result<(), LogError> {
        let _ = asked;
        Err(LogError::Closed)
    }

    /// OffsetForLeaderEpoch: the greatest epoch at or below the one asked for and where it ended
    /// (exclusive); (-1, -1) if unknown.
    pub fn epoch_end(&self, epoch: i32) -> (i32, i64) {
        let _ = epoch;
        (-1, -1)
    }

    /// DeleteRecords: moves the log start up to `before` (-1: to the high watermark) and returns it.
    /// Blocks on the disk.
    ///
    /// # Errors
    /// [`LogError::OffsetOutOfRange`] above the high watermark.
    pub fn delete_records(&self, before: i64) -> Result<i64, LogError> {
        let _ = before;
        Err(LogError::Closed)
    }

    /// Cuts everything from `offset` on and begins a new leader epoch. Blocks on the disk.
    ///
    /// # Errors
    /// [`LogError::OffsetOutOfRange`] below the log start or above the log end.
    pub fn truncate(&self, offset: i64) -> Result<(), LogError> {
        let _ = offset;
        Err(LogError::Closed)
    }

    /// Closes the active segment and begins a new one. Blocks on the disk.
    ///
    /// # Errors
    /// Of the disk.
    pub fn roll(&self) -> Result<(), LogError> {
        Err(LogError::Closed)
    }

    /// Syncs what was appended so far. Blocks on the disk.
    ///
    /// # Errors
    /// [`LogError::Poisoned`] if the disk refuses.
    pub fn flush(&self) -> Result<(), LogError> {
        Err(LogError::Closed)
    }
}
