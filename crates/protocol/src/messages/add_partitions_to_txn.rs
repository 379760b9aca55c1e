//! Making partitions part of a transaction.

use crate::ErrorCode;

schema! {
    /// Adds partitions to the producer's transaction, and begins one if none is open.
    struct AddPartitionsToTxnRequest {
        /// The transactional id.
        v3_and_below_transactional_id: String, 0..=3;
        /// The producer's id.
        v3_and_below_producer_id: i64, 0..=3;
        /// The producer's epoch.
        v3_and_below_producer_epoch: i16, 0..=3;
        /// The topics.
        v3_and_below_topics: Vec<AddPartitionsToTxnTopic>, 0..=3;
    }

    /// A topic in an [`AddPartitionsToTxnRequest`].
    struct AddPartitionsToTxnTopic {
        /// Its name.
        name: String, 0..;
        /// Its partitions.
        partitions: Vec<i32>, 0..;
    }

    /// Answers an [`AddPartitionsToTxnRequest`]. All partitions are added, or none is.
    struct AddPartitionsToTxnResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 0..;
        /// The topics.
        results_by_topic_v3_and_below: Vec<AddPartitionsToTxnTopicResult>, 0..=3;
    }

    /// A topic in an [`AddPartitionsToTxnResponse`].
    struct AddPartitionsToTxnTopicResult {
        /// Its name.
        name: String, 0..;
        /// Its partitions.
        results_by_partition: Vec<AddPartitionsToTxnPartitionResult>, 0..;
    }

    /// A partition in an [`AddPartitionsToTxnResponse`].
    struct AddPartitionsToTxnPartitionResult {
        /// Its index.
        partition_index: i32, 0..;
        /// What went wrong.
        partition_error_code: ErrorCode, 0..;
    }
}
