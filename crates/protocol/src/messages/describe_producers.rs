//! Who writes to a partition with sequence numbers.

use crate::ErrorCode;

schema! {
    /// Asks for the producers that partitions remember.
    struct DescribeProducersRequest {
        /// The topics.
        topics: Vec<DescribeProducersTopic>, 0..;
    }

    /// A topic in a [`DescribeProducersRequest`].
    struct DescribeProducersTopic {
        /// Its name.
        name: String, 0..;
        /// Its partitions.
        partition_indexes: Vec<i32>, 0..;
    }

    /// Answers a [`DescribeProducersRequest`].
    struct DescribeProducersResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 0..;
        /// The topics.
        topics: Vec<DescribedProducersTopic>, 0..;
    }

    /// A topic in a [`DescribeProducersResponse`].
    struct DescribedProducersTopic {
        /// Its name.
        name: String, 0..;
        /// Its partitions.
        partitions: Vec<DescribedProducersPartition>, 0..;
    }

    /// A partition in a [`DescribeProducersResponse`].
    struct DescribedProducersPartition {
        /// Its index.
        partition_index: i32, 0..;
        /// What went wrong.
        error_code: ErrorCode, 0..;
        /// What went wrong, in words.
        error_message: Option<String>, 0.., null 0..;
        /// The producers.
        active_producers: Vec<ActiveProducer>, 0..;
    }

    /// A producer in a [`DescribeProducersResponse`].
    struct ActiveProducer {
        /// Its id.
        producer_id: i64, 0..;
        /// Its epoch.
        producer_epoch: i32, 0..;
        /// The last sequence number, or -1.
        last_sequence: i32 = -1, 0..;
        /// When it was last heard of, in milliseconds since 1970, or -1.
        last_timestamp: i64 = -1, 0..;
        /// The epoch of the coordinator that wrote its last marker, or -1.
        coordinator_epoch: i32, 0..;
        /// The first offset of its open transaction, or -1.
        current_txn_start_offset: i64 = -1, 0..;
    }
}
