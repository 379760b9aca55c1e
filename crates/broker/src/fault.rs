//! What Kafka calls the log's errors.

use highwater_log::LogError;
use highwater_protocol::ErrorCode;

/// An error for a client: Kafka's code and a text, where the API carries one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fault {
    pub(crate) code: ErrorCode,
    pub(crate) text: String,
}

impl Fault {
    pub(crate) fn new(code: ErrorCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into() }
    }

    /// A topic or partition that does not exist.
    pub(crate) fn unknown_partition(topic: &str, index: i32) -> Self {
        let text = format!("there is no partition {index} of a topic {topic}");
        Self::new(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION, text)
    }
}

impl From<LogError> for Fault {
    fn from(error: LogError) -> Self {
        let code = error_code(&error);
        if code == ErrorCode::KAFKA_STORAGE_ERROR || code == ErrorCode::UNKNOWN_SERVER_ERROR {
            tracing::warn!(code = error.code(), %error, "the log failed");
        }
        Self::new(code, format!("{}: {error}", error.code()))
    }
}

/// The code under which Kafka's clients know an error of the log.
pub(crate) fn error_code(error: &LogError) -> ErrorCode {
    match error {
        LogError::UnknownPartition { .. } => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        LogError::TopicExists { .. } => ErrorCode::TOPIC_ALREADY_EXISTS,
        LogError::InvalidTopic { .. } => ErrorCode::INVALID_TOPIC_EXCEPTION,
        LogError::InvalidPartitions { .. } => ErrorCode::INVALID_PARTITIONS,
        LogError::InvalidConfig { .. } => ErrorCode::INVALID_CONFIG,
        LogError::OffsetOutOfRange { .. } => ErrorCode::OFFSET_OUT_OF_RANGE,
        LogError::CorruptBatch { .. } => ErrorCode::CORRUPT_MESSAGE,
        LogError::InvalidRecord { .. } => ErrorCode::INVALID_RECORD,
        LogError::RecordTooLarge { .. } => ErrorCode::MESSAGE_TOO_LARGE,
        LogError::OutOfOrderSequence { .. } => ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
        LogError::InvalidProducerEpoch { .. } => ErrorCode::INVALID_PRODUCER_EPOCH,
        LogError::TransactionsUnsupported => ErrorCode::INVALID_TXN_STATE,
        LogError::FencedLeaderEpoch { .. } => ErrorCode::FENCED_LEADER_EPOCH,
        LogError::UnknownLeaderEpoch { .. } => ErrorCode::UNKNOWN_LEADER_EPOCH,
        // Whoever tries again finds the next process.
        LogError::Closed => ErrorCode::NOT_LEADER_OR_FOLLOWER,
        // All of the disk: clients try again.
        _ => ErrorCode::KAFKA_STORAGE_ERROR,
    }
}
