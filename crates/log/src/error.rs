//! The error of the log: what happened, to what, what to do; with a stable code.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use highwater_protocol::ErrorCode;
use thiserror::Error;

/// An error of the log. [`LogError::code`] is stable; the text is for people.
#[derive(Clone, Debug, Error)]
pub enum LogError {
    /// The operating system refused.
    #[error("could not {action} {}: {source}; check the disk and the permissions", path.display())]
    Io {
        /// What was tried, such as `sync`.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's own error.
        source: Arc<io::Error>,
    },
    /// The disk is full. Nothing was written; the partition stays readable and takes records again
    /// once there is space.
    #[error("no space left for {}; free some space or lower retention, then try again", path.display())]
    NoSpace {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// The log holds as much as it may. Nothing was written; the partition stays readable and takes
    /// records again once something went.
    #[error(
        "the log holds {held} bytes and log.total_max_bytes allows {most}; lower retention or delete a topic, or raise the limit"
    )]
    TotalLimit {
        /// Bytes held by all partitions.
        held: u64,
        /// Bytes allowed.
        most: u64,
    },
    /// Another process holds the data directory.
    #[error("{} is in use by another process{}; stop that one or choose another --data-dir", path.display(), numbered(*process))]
    Locked {
        /// The data directory.
        path: PathBuf,
        /// The number of that process, as far as it is known.
        process: Option<u32>,
    },
    /// The data directory was written in a format that this program does not know.
    #[error("{} has format {found}, this program reads format {known}; start the program that wrote it", path.display())]
    OtherVersion {
        /// The data directory.
        path: PathBuf,
        /// The format found.
        found: String,
        /// The format this program writes.
        known: u32,
    },
    /// A stored file is broken where recovery may not cut.
    #[error("{} is broken at position {position}: {reason}; nothing was changed, restore the file from a backup or delete the topic", path.display())]
    Damaged {
        /// The broken file.
        path: PathBuf,
        /// Where in the file, in bytes.
        position: u64,
        /// What is wrong there.
        reason: String,
    },
    /// A partition could not be opened; others go on.
    #[error("partition {partition} is offline: {reason}")]
    Offline {
        /// Topic and number, as its folder is named.
        partition: String,
        /// Why, with what to do.
        reason: String,
    },
    /// An fsync failed. The partition reopens by itself; what was not acknowledged is to be sent again.
    #[error(
        "partition {partition} could not be synced ({reason}); it reopens by itself, send again what was not acknowledged"
    )]
    Poisoned {
        /// Topic and number, as its folder is named.
        partition: String,
        /// The system's error.
        reason: String,
    },
    /// The log was closed.
    #[error("the log is closed; start the server again")]
    Closed,
    /// No topic or partition of this name.
    #[error("there is no topic or partition {name}; create it or correct the name")]
    UnknownPartition {
        /// What was asked for.
        name: String,
    },
    /// The topic is there already.
    #[error("topic {name} exists already")]
    TopicExists {
        /// Its name.
        name: String,
    },
    /// Not a name that Kafka allows.
    #[error(
        "{name:?} is no topic name: use 1 to 249 letters, digits, dots, underscores or hyphens, and not . or .."
    )]
    InvalidTopic {
        /// The name refused.
        name: String,
    },
    /// Not a number of partitions.
    #[error("a topic has 1 to {most} partitions, not {asked}")]
    InvalidPartitions {
        /// The number refused.
        asked: i32,
        /// The greatest number.
        most: i32,
    },
    /// A topic setting that is unknown or out of range.
    #[error("setting {name}={value}: {reason}")]
    InvalidConfig {
        /// The setting.
        name: String,
        /// The value refused.
        value: String,
        /// What it may be.
        reason: String,
    },
    /// The offset is below the log start or above the log end.
    #[error("offset {offset} is outside {log_start} to {log_end}")]
    OffsetOutOfRange {
        /// The offset asked for.
        offset: i64,
        /// The first offset kept.
        log_start: i64,
        /// The next offset to be given.
        log_end: i64,
    },
    /// A data directory into which a backup was restored in part.
    #[error("{} was restored in part; remove it and restore again", path.display())]
    RestoreUnfinished {
        /// The data directory.
        path: PathBuf,
    },
    /// Records that must be archived before they are removed, and could not be.
    #[error(
        "partition {partition} keeps records until they are archived: {reason}; see to the archive, then try again"
    )]
    ArchiveWaits {
        /// Topic and number, as its folder is named.
        partition: String,
        /// Why they could not be archived.
        reason: String,
    },
    /// Records that a hold keeps (rule L7).
    #[error(
        "partition {partition} is held from offset {from} by {hold}; release it with `highwater topic release` or keep what it holds"
    )]
    Held {
        /// Topic and number, as its folder is named.
        partition: String,
        /// The name of the hold that reaches furthest back.
        hold: String,
        /// The first offset it holds.
        from: i64,
    },
    /// Bytes that are no whole batch, or whose checksum is wrong: damaged on the way, send again.
    #[error("the batch came damaged: {reason}; send it again")]
    CorruptBatch {
        /// What is wrong.
        reason: String,
    },
    /// A batch that must not be in the log.
    #[error("the batch is refused: {reason}")]
    InvalidRecord {
        /// What is wrong.
        reason: String,
        /// The records to blame, by their place in the batch, the first hundred; none if it is the batch.
        records: Vec<i32>,
    },
    /// The batch is larger than `max.message.bytes`.
    #[error(
        "the batch has {size} bytes, max.message.bytes allows {most}; raise it or send smaller batches"
    )]
    RecordTooLarge {
        /// Bytes of the batch.
        size: usize,
        /// Bytes allowed.
        most: usize,
    },
    /// A record's time lies further from now than the topic allows.
    #[error(
        "a record bears the time {timestamp}, which is outside {least} to {most}; correct the clock, or set message.timestamp.{which}.max.ms"
    )]
    InvalidTimestamp {
        /// The record's time, in milliseconds since 1970.
        timestamp: i64,
        /// The least time allowed now.
        least: i64,
        /// The greatest time allowed now.
        most: i64,
        /// `before` or `after`, as the setting is named.
        which: &'static str,
        /// The records to blame, by their place in the batch, the first hundred.
        records: Vec<i32>,
    },
    /// A batch says that its times are the log's, where only the log says that.
    #[error(
        "a batch says that the log gave its records their times (LogAppendTime): only the log says that"
    )]
    ClaimedTimestamp {
        /// The records to blame, by their place in the batch, the first hundred.
        records: Vec<i32>,
    },
    /// A gap in a producer's sequence.
    #[error("producer {producer_id} sent sequence {found} where {expected} was due")]
    OutOfOrderSequence {
        /// The producer.
        producer_id: i64,
        /// The sequence number that was due.
        expected: i32,
        /// The sequence number that came.
        found: i32,
    },
    /// A producer with an epoch that a newer one has replaced.
    #[error(
        "producer {producer_id} sent epoch {found}, the current one is {current}; another instance replaced it"
    )]
    InvalidProducerEpoch {
        /// The producer.
        producer_id: i64,
        /// The newest epoch seen.
        current: i16,
        /// The epoch that came.
        found: i16,
    },
    /// A batch that does not belong to the transaction its producer has open, or to none that is.
    #[error(
        "a batch of producer {producer_id} is refused: {reason}; abort the transaction and begin again"
    )]
    InvalidTxnState {
        /// The producer.
        producer_id: i64,
        /// What is wrong.
        reason: String,
    },
    /// A marker of a transaction coordinator that a newer one has replaced.
    #[error(
        "a marker for producer {producer_id} bears coordinator epoch {found}, the current one is {current}; another coordinator replaced it"
    )]
    CoordinatorFenced {
        /// The producer.
        producer_id: i64,
        /// The newest epoch seen.
        current: i32,
        /// The epoch that came.
        found: i32,
    },
    /// The client's leader epoch is older than the partition's.
    #[error("leader epoch {asked} is older than the current {current}; refresh the metadata")]
    FencedLeaderEpoch {
        /// The client's.
        asked: i32,
        /// The partition's.
        current: i32,
    },
    /// The client's leader epoch is newer than the partition's.
    #[error("leader epoch {asked} is newer than the current {current}; refresh the metadata")]
    UnknownLeaderEpoch {
        /// The client's.
        asked: i32,
        /// The partition's.
        current: i32,
    },
}

impl LogError {
    /// The stable code, to be used in scripts and in the documentation.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } => "LOG_IO",
            Self::NoSpace { .. } | Self::TotalLimit { .. } => "LOG_NO_SPACE",
            Self::Locked { .. } => "LOG_LOCKED",
            Self::OtherVersion { .. } => "LOG_OTHER_VERSION",
            Self::Damaged { .. } => "LOG_DAMAGED",
            Self::Offline { .. } => "LOG_PARTITION_OFFLINE",
            Self::Poisoned { .. } => "LOG_PARTITION_POISONED",
            Self::Closed => "LOG_CLOSED",
            Self::UnknownPartition { .. } => "LOG_UNKNOWN_PARTITION",
            Self::TopicExists { .. } => "LOG_TOPIC_EXISTS",
            Self::InvalidTopic { .. } => "LOG_INVALID_TOPIC",
            Self::InvalidPartitions { .. } => "LOG_INVALID_PARTITIONS",
            Self::InvalidConfig { .. } => "LOG_INVALID_CONFIG",
            Self::OffsetOutOfRange { .. } => "LOG_OFFSET_OUT_OF_RANGE",
            Self::RestoreUnfinished { .. } => "LOG_RESTORE_UNFINISHED",
            Self::ArchiveWaits { .. } => "LOG_ARCHIVE_WAITS",
            Self::Held { .. } => "LOG_HELD",
            Self::CorruptBatch { .. } => "LOG_CORRUPT_BATCH",
            Self::InvalidRecord { .. } => "LOG_INVALID_RECORD",
            Self::RecordTooLarge { .. } => "LOG_RECORD_TOO_LARGE",
            Self::InvalidTimestamp { .. } | Self::ClaimedTimestamp { .. } => {
                "LOG_INVALID_TIMESTAMP"
            }
            Self::OutOfOrderSequence { .. } => "LOG_OUT_OF_ORDER_SEQUENCE",
            Self::InvalidProducerEpoch { .. } => "LOG_INVALID_PRODUCER_EPOCH",
            Self::InvalidTxnState { .. } => "LOG_INVALID_TXN_STATE",
            Self::CoordinatorFenced { .. } => "LOG_COORDINATOR_FENCED",
            Self::FencedLeaderEpoch { .. } => "LOG_FENCED_LEADER_EPOCH",
            Self::UnknownLeaderEpoch { .. } => "LOG_UNKNOWN_LEADER_EPOCH",
        }
    }

    /// What a Kafka client is told.
    pub fn kafka_code(&self) -> ErrorCode {
        match self {
            // The one storage error that clients try again after.
            Self::Io { .. }
            | Self::NoSpace { .. }
            | Self::TotalLimit { .. }
            | Self::Damaged { .. }
            | Self::Offline { .. }
            | Self::Poisoned { .. }
            | Self::Closed => ErrorCode::KAFKA_STORAGE_ERROR,
            Self::Locked { .. } | Self::OtherVersion { .. } | Self::RestoreUnfinished { .. } => {
                ErrorCode::UNKNOWN_SERVER_ERROR
            }
            Self::UnknownPartition { .. } => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
            Self::TopicExists { .. } => ErrorCode::TOPIC_ALREADY_EXISTS,
            Self::InvalidTopic { .. } => ErrorCode::INVALID_TOPIC_EXCEPTION,
            Self::InvalidPartitions { .. } => ErrorCode::INVALID_PARTITIONS,
            Self::InvalidConfig { .. } => ErrorCode::INVALID_CONFIG,
            Self::OffsetOutOfRange { .. } => ErrorCode::OFFSET_OUT_OF_RANGE,
            // Clients try again after it.
            Self::ArchiveWaits { .. } => ErrorCode::REQUEST_TIMED_OUT,
            Self::Held { .. } => ErrorCode::POLICY_VIOLATION,
            Self::CorruptBatch { .. } => ErrorCode::CORRUPT_MESSAGE,
            Self::InvalidRecord { .. } => ErrorCode::INVALID_RECORD,
            Self::RecordTooLarge { .. } => ErrorCode::MESSAGE_TOO_LARGE,
            Self::InvalidTimestamp { .. } | Self::ClaimedTimestamp { .. } => {
                ErrorCode::INVALID_TIMESTAMP
            }
            Self::OutOfOrderSequence { .. } => ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
            Self::InvalidProducerEpoch { .. } => ErrorCode::INVALID_PRODUCER_EPOCH,
            Self::InvalidTxnState { .. } => ErrorCode::INVALID_TXN_STATE,
            Self::CoordinatorFenced { .. } => ErrorCode::TRANSACTION_COORDINATOR_FENCED,
            Self::FencedLeaderEpoch { .. } => ErrorCode::FENCED_LEADER_EPOCH,
            Self::UnknownLeaderEpoch { .. } => ErrorCode::UNKNOWN_LEADER_EPOCH,
        }
    }

    /// True where the same request may succeed later without anybody changing it.
    pub fn is_retriable(&self) -> bool {
        matches!(
            self,
            Self::Io { .. }
                | Self::NoSpace { .. }
                | Self::TotalLimit { .. }
                | Self::Poisoned { .. }
                | Self::ArchiveWaits { .. }
                | Self::CorruptBatch { .. }
                | Self::FencedLeaderEpoch { .. }
                | Self::UnknownLeaderEpoch { .. }
        )
    }

    /// The records to blame, by their place in the batch that was refused.
    pub fn records(&self) -> &[i32] {
        match self {
            Self::InvalidRecord { records, .. }
            | Self::InvalidTimestamp { records, .. }
            | Self::ClaimedTimestamp { records } => records,
            _ => &[],
        }
    }

    /// What went wrong below, without what to do about it.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Io { action, path, source } => format!("{action} {}: {source}", path.display()),
            other => other.to_string(),
        }
    }

    /// Gives a system error its place; a full disk becomes [`LogError::NoSpace`].
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::NoSpace { path },
            _ => Self::Io { action, path, source: Arc::new(source) },
        }
    }
}

fn numbered(process: Option<u32>) -> String {
    process.map_or_else(String::new, |process| format!(", number {process}"))
}
