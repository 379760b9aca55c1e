//! Committing offsets.

use crate::ErrorCode;

schema! {
    /// Commits offsets of a group.
    struct OffsetCommitRequest {
        /// The group.
        group_id: String, 2..;
        /// The generation; -1 from who is no member.
        generation_id_or_member_epoch: i32 = -1, 2..;
        /// The member id, empty from who is no member.
        member_id: String, 2..;
        /// The name of a static member.
        group_instance_id: Option<String>, 7.., null 7..;
        /// How long the offsets are to be kept, in milliseconds; -1 leaves it to the broker.
        retention_time_ms: i64 = -1, 2..=4;
        /// The offsets.
        topics: Vec<OffsetCommitRequestTopic>, 2..;
    }

    /// A topic in an [`OffsetCommitRequest`].
    struct OffsetCommitRequestTopic {
        /// Its name.
        name: String, 2..;
        /// Its partitions.
        partitions: Vec<OffsetCommitRequestPartition>, 2..;
    }

    /// An offset to commit.
    struct OffsetCommitRequestPartition {
        /// The partition.
        partition_index: i32, 2..;
        /// The offset of the next record to read.
        committed_offset: i64, 2..;
        /// The leader epoch of the last record read, or -1.
        committed_leader_epoch: i32 = -1, 6..;
        /// What the consumer wants to remember with it.
        committed_metadata: Option<String>, 2.., null 2..;
    }

    /// Answers an [`OffsetCommitRequest`].
    struct OffsetCommitResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 3..;
        /// The topics.
        topics: Vec<OffsetCommitResponseTopic>, 2..;
    }

    /// A topic in an [`OffsetCommitResponse`].
    struct OffsetCommitResponseTopic {
        /// Its name.
        name: String, 2..;
        /// Its partitions.
        partitions: Vec<OffsetCommitResponsePartition>, 2..;
    }

    /// What became of an offset.
    struct OffsetCommitResponsePartition {
        /// The partition.
        partition_index: i32, 2..;
        /// What went wrong.
        error_code: ErrorCode, 2..;
    }
}
