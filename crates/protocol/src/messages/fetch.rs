//! Reading records.

use crate::{ErrorCode, LeaderIdAndEpoch, Records};

schema! {
    /// Reads record batches.
    struct FetchRequest {
        /// The id of the cluster that is meant, or null.
        cluster_id: Option<String>, 12.., tag 0;
        /// -1 for a client, -2 for a debugging consumer, else the id of the follower that asks.
        replica_id: i32 = -1, 4..;
        /// How long to wait for `min_bytes`, in milliseconds.
        max_wait_ms: i32, 4..;
        /// How many bytes are worth an answer.
        min_bytes: i32, 4..;
        /// How many bytes to answer at most; a first batch that is larger comes whole.
        max_bytes: i32 = i32::MAX, 4..;
        /// 0 reads up to the high watermark, 1 up to the last stable offset.
        isolation_level: i8, 4..;
        /// The fetch session, or 0.
        session_id: i32, 7..;
        /// The session's epoch; -1 without a session.
        session_epoch: i32 = -1, 7..;
        /// The topics.
        topics: Vec<FetchTopic>, 4..;
        /// What the session is to leave out from now on.
        forgotten_topics_data: Vec<ForgottenTopic>, 7..;
        /// The client's rack, or empty.
        rack_id: String, 11..;
    }

    /// A topic in a [`FetchRequest`].
    struct FetchTopic {
        /// Its name.
        topic: String, 4..;
        /// Its partitions.
        partitions: Vec<FetchPartition>, 4..;
    }

    /// A partition in a [`FetchRequest`].
    struct FetchPartition {
        /// Its index.
        partition: i32, 4..;
        /// The leader epoch that the client knows, or -1.
        current_leader_epoch: i32 = -1, 9..;
        /// The offset to read from.
        fetch_offset: i64, 4..;
        /// The epoch of the last record that a follower has, or -1.
        last_fetched_epoch: i32 = -1, 12..;
        /// The follower's log start, or -1.
        log_start_offset: i64 = -1, 5..;
        /// How many bytes to answer at most for this partition.
        partition_max_bytes: i32, 4..;
    }

    /// What a fetch session is to leave out.
    struct ForgottenTopic {
        /// The topic.
        topic: String, 7..;
        /// The partitions.
        partitions: Vec<i32>, 7..;
    }

    /// Answers a [`FetchRequest`].
    struct FetchResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 4..;
        /// What went wrong with the whole.
        error_code: ErrorCode, 7..;
        /// The fetch session, or 0 if there is none.
        session_id: i32, 7..;
        /// The topics.
        responses: Vec<FetchableTopicResponse>, 4..;
    }

    /// A topic in a [`FetchResponse`].
    struct FetchableTopicResponse {
        /// Its name.
        topic: String, 4..;
        /// Its partitions.
        partitions: Vec<PartitionData>, 4..;
    }

    /// A partition in a [`FetchResponse`].
    struct PartitionData {
        /// Its index.
        partition_index: i32, 4..;
        /// What went wrong.
        error_code: ErrorCode, 4..;
        /// The first offset that is not safe yet.
        high_watermark: i64, 4..;
        /// The first offset of the oldest open transaction, else the high watermark; or -1.
        last_stable_offset: i64 = -1, 4..;
        /// The log's start, or -1.
        log_start_offset: i64 = -1, 5..;
        /// Where the follower's log and the leader's part.
        diverging_epoch: DivergingEpoch, 12.., tag 0;
        /// Who leads the partition, if the answer is that another does.
        current_leader: LeaderIdAndEpoch, 12.., tag 1;
        /// The snapshot that a follower has to fetch.
        snapshot_id: SnapshotId, 12.., tag 2;
        /// The aborted transactions among the records, for a read_committed reader.
        aborted_transactions: Option<Vec<AbortedTransaction>>, 4.., null 4..;
        /// The replica to read from, or -1 for the leader.
        preferred_read_replica: i32 = -1, 11..;
        /// The record batches, decoded a slice of the frame; the last may be cut.
        records: Option<Records>, 4.., null 4..;
    }

    /// The end of an epoch: Kafka's schema calls it `EpochEndOffset`, a name taken by
    /// [`EpochEndOffset`](crate::EpochEndOffset).
    struct DivergingEpoch {
        /// The epoch, or -1.
        epoch: i32 = -1, 12..;
        /// The first offset behind it, or -1.
        end_offset: i64 = -1, 12..;
    }

    /// A snapshot of a raft log.
    struct SnapshotId {
        /// The first offset behind it, or -1.
        end_offset: i64 = -1, 12..;
        /// Its epoch, or -1.
        epoch: i32 = -1, 12..;
    }

    /// An aborted transaction.
    struct AbortedTransaction {
        /// Whose.
        producer_id: i64, 4..;
        /// Its first offset.
        first_offset: i64, 4..;
    }
}
