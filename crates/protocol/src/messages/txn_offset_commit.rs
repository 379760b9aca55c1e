//! Committing a group's offsets with a transaction.

use crate::ErrorCode;

schema! {
    /// Commits offsets that count once the producer's transaction is committed.
    struct TxnOffsetCommitRequest {
        /// The transactional id.
        transactional_id: String, 0..;
        /// The group.
        group_id: String, 0..;
        /// The producer's id.
        producer_id: i64, 0..;
        /// The producer's epoch.
        producer_epoch: i16, 0..;
        /// The consumer's generation, or -1.
        generation_id: i32 = -1, 3..;
        /// The consumer's id in the group, or empty.
        member_id: String, 3..;
        /// The consumer's own name in the group, or null.
        group_instance_id: Option<String>, 3.., null 3..;
        /// The topics.
        topics: Vec<TxnOffsetCommitRequestTopic>, 0..;
    }

    /// A topic in a [`TxnOffsetCommitRequest`].
    struct TxnOffsetCommitRequestTopic {
        /// Its name.
        name: String, 0..;
        /// Its partitions.
        partitions: Vec<TxnOffsetCommitRequestPartition>, 0..;
    }

    /// A partition in a [`TxnOffsetCommitRequest`].
    struct TxnOffsetCommitRequestPartition {
        /// Its index.
        partition_index: i32, 0..;
        /// The next offset to read.
        committed_offset: i64, 0..;
        /// The leader epoch of the last record that was read, or -1.
        committed_leader_epoch: i32 = -1, 2..;
        /// The client's own text, or null.
        committed_metadata: Option<String>, 0.., null 0..;
    }

    /// Answers a [`TxnOffsetCommitRequest`].
    struct TxnOffsetCommitResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 0..;
        /// The topics.
        topics: Vec<TxnOffsetCommitResponseTopic>, 0..;
    }

    /// A topic in a [`TxnOffsetCommitResponse`].
    struct TxnOffsetCommitResponseTopic {
        /// Its name.
        name: String, 0..;
        /// Its partitions.
        partitions: Vec<TxnOffsetCommitResponsePartition>, 0..;
    }

    /// A partition in a [`TxnOffsetCommitResponse`].
    struct TxnOffsetCommitResponsePartition {
        /// Its index.
        partition_index: i32, 0..;
        /// What went wrong.
        error_code: ErrorCode, 0..;
    }
}
