//! Deleting committed offsets.

use crate::ErrorCode;

schema! {
    /// Deletes offsets of a group.
    struct OffsetDeleteRequest {
        /// The group.
        group_id: String, 0..;
        /// The offsets.
        topics: Vec<OffsetDeleteRequestTopic>, 0..;
    }

    /// A topic in an [`OffsetDeleteRequest`].
    struct OffsetDeleteRequestTopic {
        /// Its name.
        name: String, 0..;
        /// Its partitions.
        partitions: Vec<OffsetDeleteRequestPartition>, 0..;
    }

    /// An offset to delete.
    struct OffsetDeleteRequestPartition {
        /// The partition.
        partition_index: i32, 0..;
    }

    /// Answers an [`OffsetDeleteRequest`].
    struct OffsetDeleteResponse {
        /// What went wrong with all of it.
        error_code: ErrorCode, 0..;
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 0..;
        /// The topics.
        topics: Vec<OffsetDeleteResponseTopic>, 0..;
    }

    /// A topic in an [`OffsetDeleteResponse`].
    struct OffsetDeleteResponseTopic {
        /// Its name.
        name: String, 0..;
        /// Its partitions.
        partitions: Vec<OffsetDeleteResponsePartition>, 0..;
    }

    /// What became of an offset.
    struct OffsetDeleteResponsePartition {
        /// The partition.
        partition_index: i32, 0..;
        /// What went wrong.
        error_code: ErrorCode, 0..;
    }
}
