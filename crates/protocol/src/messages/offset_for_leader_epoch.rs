//! Where a leader epoch ended.

use crate::ErrorCode;

schema! {
    /// Asks where leader epochs ended, to find out whether a log was cut.
    struct OffsetForLeaderEpochRequest {
        /// -1 for a client, -2 for a debugging consumer, else the id of the follower that asks.
        replica_id: i32 = -2, 3..;
        /// The topics.
        topics: Vec<OffsetForLeaderTopic>, 2..;
    }

    /// A topic in an [`OffsetForLeaderEpochRequest`].
    struct OffsetForLeaderTopic {
        /// Its name.
        topic: String, 2..;
        /// Its partitions.
        partitions: Vec<OffsetForLeaderPartition>, 2..;
    }

    /// A partition in an [`OffsetForLeaderEpochRequest`].
    struct OffsetForLeaderPartition {
        /// Its index.
        partition: i32, 2..;
        /// The leader epoch that the client knows, or -1.
        current_leader_epoch: i32 = -1, 2..;
        /// The epoch whose end is asked.
        leader_epoch: i32, 2..;
    }

    /// Answers an [`OffsetForLeaderEpochRequest`].
    struct OffsetForLeaderEpochResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 2..;
        /// The topics.
        topics: Vec<OffsetForLeaderTopicResult>, 2..;
    }

    /// A topic in an [`OffsetForLeaderEpochResponse`].
    struct OffsetForLeaderTopicResult {
        /// Its name.
        topic: String, 2..;
        /// Its partitions.
        partitions: Vec<EpochEndOffset>, 2..;
    }

    /// A partition in an [`OffsetForLeaderEpochResponse`].
    struct EpochEndOffset {
        /// What went wrong.
        error_code: ErrorCode, 2..;
        /// Its index.
        partition: i32, 2..;
        /// The greatest epoch at or below the one asked, or -1.
        leader_epoch: i32 = -1, 2..;
        /// The first offset behind that epoch, or -1.
        end_offset: i64 = -1, 2..;
    }
}
