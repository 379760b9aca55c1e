//! Moving the start of a log forward.

use crate::ErrorCode;

schema! {
    /// Deletes the records below an offset.
    struct DeleteRecordsRequest {
        /// The topics.
        topics: Vec<DeleteRecordsTopic>, 0..;
        /// How long the broker may take, in milliseconds.
        timeout_ms: i32, 0..;
    }

    /// A topic in a [`DeleteRecordsRequest`].
    struct DeleteRecordsTopic {
        /// Its name.
        name: String, 0..;
        /// Its partitions.
        partitions: Vec<DeleteRecordsPartition>, 0..;
    }

    /// A partition in a [`DeleteRecordsRequest`].
    struct DeleteRecordsPartition {
        /// Its index.
        partition_index: i32, 0..;
        /// The first offset to keep; -1 keeps none below the high watermark.
        offset: i64, 0..;
    }

    /// Answers a [`DeleteRecordsRequest`].
    struct DeleteRecordsResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 0..;
        /// The topics.
        topics: Vec<DeleteRecordsTopicResult>, 0..;
    }

    /// A topic in a [`DeleteRecordsResponse`].
    struct DeleteRecordsTopicResult {
        /// Its name.
        name: String, 0..;
        /// Its partitions.
        partitions: Vec<DeleteRecordsPartitionResult>, 0..;
    }

    /// A partition in a [`DeleteRecordsResponse`].
    struct DeleteRecordsPartitionResult {
        /// Its index.
        partition_index: i32, 0..;
        /// The log's start now.
        low_watermark: i64, 0..;
        /// What went wrong.
        error_code: ErrorCode, 0..;
    }
}
