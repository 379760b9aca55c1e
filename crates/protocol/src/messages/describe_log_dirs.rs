//! The sizes of partitions on disk.

use crate::ErrorCode;

schema! {
    /// Asks what the folders of the log hold.
    struct DescribeLogDirsRequest {
        /// The topics; null for all.
        topics: Option<Vec<DescribableLogDirTopic>>, 0.., null 0..;
    }

    /// A topic in a [`DescribeLogDirsRequest`].
    struct DescribableLogDirTopic {
        /// Its name.
        topic: String, 0..;
        /// Its partitions.
        partitions: Vec<i32>, 0..;
    }

    /// Answers a [`DescribeLogDirsRequest`].
    struct DescribeLogDirsResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 0..;
        /// What went wrong with the whole request.
        error_code: ErrorCode, 3..;
        /// The folders.
        results: Vec<DescribeLogDirsResult>, 0..;
    }

    /// A folder of the log.
    struct DescribeLogDirsResult {
        /// What is wrong with it.
        error_code: ErrorCode, 0..;
        /// Its path.
        log_dir: String, 0..;
        /// The topics in it.
        topics: Vec<DescribeLogDirsTopic>, 0..;
        /// Bytes of the volume on which it lies; -1 unknown.
        total_bytes: i64 = -1, 4..;
        /// Bytes of the volume that are free; -1 unknown.
        usable_bytes: i64 = -1, 4..;
    }

    /// A topic in a [`DescribeLogDirsResult`].
    struct DescribeLogDirsTopic {
        /// Its name.
        name: String, 0..;
        /// Its partitions.
        partitions: Vec<DescribeLogDirsPartition>, 0..;
    }

    /// A partition in a [`DescribeLogDirsTopic`].
    struct DescribeLogDirsPartition {
        /// Its index.
        partition_index: i32, 0..;
        /// Bytes of its segments.
        partition_size: i64, 0..;
        /// How far it lies behind, in offsets.
        offset_lag: i64, 0..;
        /// Whether it is to take the place of the one that is there.
        is_future_key: bool, 0..;
    }
}
