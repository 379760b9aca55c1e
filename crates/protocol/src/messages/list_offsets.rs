//! Offsets by timestamp.

use crate::ErrorCode;

schema! {
    /// Asks for offsets by timestamp, or by one of the special timestamps below zero.
    struct ListOffsetsRequest {
        /// -1 for a client, -2 for a debugging consumer, else the id of the follower that asks.
        replica_id: i32 = -1, 1..;
        /// 0 reads up to the high watermark, 1 up to the last stable offset.
        isolation_level: i8, 2..;
        /// The topics.
        topics: Vec<ListOffsetsTopic>, 1..;
        /// How long the broker may look into remote storage, in milliseconds.
        timeout_ms: i32, 10..;
    }

    /// A topic in a [`ListOffsetsRequest`].
    struct ListOffsetsTopic {
        /// Its name.
        name: String, 1..;
        /// Its partitions.
        partitions: Vec<ListOffsetsPartition>, 1..;
    }

    /// A partition in a [`ListOffsetsRequest`].
    struct ListOffsetsPartition {
        /// Its index.
        partition_index: i32, 1..;
        /// The leader epoch that the client knows, or -1.
        current_leader_epoch: i32 = -1, 4..;
        /// Milliseconds since 1970, or -1 latest, -2 earliest, -3 greatest timestamp (from version
        /// 7), -4 earliest local (8), -5 latest tiered (9), -6 earliest pending upload (11).
        timestamp: i64, 1..;
    }

    /// Answers a [`ListOffsetsRequest`].
    struct ListOffsetsResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 2..;
        /// The topics.
        topics: Vec<ListOffsetsTopicResponse>, 1..;
    }

    /// A topic in a [`ListOffsetsResponse`].
    struct ListOffsetsTopicResponse {
        /// Its name.
        name: String, 1..;
        /// Its partitions.
        partitions: Vec<ListOffsetsPartitionResponse>, 1..;
    }

    /// A partition in a [`ListOffsetsResponse`].
    struct ListOffsetsPartitionResponse {
        /// Its index.
        partition_index: i32, 1..;
        /// What went wrong.
        error_code: ErrorCode, 1..;
        /// The timestamp of the record found, or -1.
        timestamp: i64 = -1, 1..;
        /// The offset found, or -1.
        offset: i64 = -1, 1..;
        /// The leader epoch of the record found, or -1.
        leader_epoch: i32 = -1, 4..;
    }
}
