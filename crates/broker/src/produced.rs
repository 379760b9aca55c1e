//! What Apache Kafka's broker asks of produced batches before its log sees them: one batch a partition,
//! of format 2, by a codec that the version knows.

use bytes::Bytes;
use highwater_log::LogError;
use highwater_protocol::ErrorCode;
use highwater_protocol::records::{BatchError, Compression, batches};

use crate::fault::Fault;

/// The first version at which a batch may be compressed with zstd (KIP-110).
const ZSTD_SINCE: i16 = 7;

pub(crate) fn check(version: i16, records: &Bytes) -> Result<(), Fault> {
    let mut walk = batches(records.clone());
    let header = match walk.next() {
        Some(Ok(batch)) => batch.header,
        Some(Err(BatchError::Magic { magic })) => {
            return refused(&format!("batches have format 2 since version 3, not {magic}"));
        }
        // The log says what is wrong.
        Some(Err(_)) => return Ok(()),
        None => return refused("there is no whole batch"),
    };
    if header.compression() == Ok(Compression::Zstd) && version < ZSTD_SINCE {
        let text = format!("zstd needs Produce version {ZSTD_SINCE}, this is {version}");
        return Err(Fault::new(ErrorCode::UNSUPPORTED_COMPRESSION_TYPE, text));
    }
    if walk.next().is_some() {
        return refused("a partition takes one batch of a request");
    }
    Ok(())
}

fn refused<T>(text: &str) -> Result<T, Fault> {
    Err(Fault::new(ErrorCode::INVALID_RECORD, text))
}

/// Whether an answer tells the log start beside a refusal. Apache Kafka does so where the batch was looked
/// into, and not where the partition could not take it.
pub(crate) fn tells_log_start(error: &LogError) -> bool {
    !matches!(
        error.kafka_code(),
        ErrorCode::CORRUPT_MESSAGE
            | ErrorCode::KAFKA_STORAGE_ERROR
            | ErrorCode::MESSAGE_TOO_LARGE
            | ErrorCode::RECORD_LIST_TOO_LARGE
            | ErrorCode::UNKNOWN_TOPIC_OR_PARTITION
    )
}
