//! Asking for committed offsets.

use crate::ErrorCode;

schema! {
    /// Asks for committed offsets: of one group up to version 7, of several from version 8.
    struct OffsetFetchRequest {
        /// The group, up to version 7.
        group_id: String, 1..=7;
        /// The partitions, null for all that the group has offsets of; up to version 7.
        topics: Option<Vec<OffsetFetchRequestTopic>> = Some(Vec::new()), 1..=7, null 2..=7;
        /// The groups, from version 8.
        groups: Vec<OffsetFetchRequestGroup>, 8..;
        /// Whether an offset that an open transaction may change is withheld.
        require_stable: bool, 7..;
    }

    /// The partitions of a topic that are asked for.
    struct OffsetFetchRequestTopic {
        /// Its name.
        name: String, 1..;
        /// The partitions.
        partition_indexes: Vec<i32>, 1..;
    }

    /// A group in an [`OffsetFetchRequest`].
    struct OffsetFetchRequestGroup {
        /// The group.
        group_id: String, 8..;
        /// The member id, from a member of a group of the new protocol (KIP-848).
        member_id: Option<String>, 9.., null 9..;
        /// Its epoch, or -1.
        member_epoch: i32 = -1, 9..;
        /// The partitions, null for all that the group has offsets of.
        topics: Option<Vec<OffsetFetchRequestTopic>> = Some(Vec::new()), 8.., null 8..;
    }

    /// Answers an [`OffsetFetchRequest`].
    struct OffsetFetchResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 3..;
        /// The offsets, up to version 7.
        topics: Vec<OffsetFetchResponseTopic>, 1..=7;
        /// What went wrong with all of it, up to version 7.
        error_code: ErrorCode, 2..=7;
        /// The groups, from version 8.
        groups: Vec<OffsetFetchResponseGroup>, 8..;
    }

    /// A topic in an [`OffsetFetchResponse`].
    struct OffsetFetchResponseTopic {
        /// Its name.
        name: String, 1..;
        /// Its partitions.
        partitions: Vec<OffsetFetchResponsePartition>, 1..;
    }

    /// A committed offset.
    struct OffsetFetchResponsePartition {
        /// The partition.
        partition_index: i32, 1..;
        /// The offset, or -1.
        committed_offset: i64, 1..;
        /// The leader epoch of the last record read, or -1.
        committed_leader_epoch: i32 = -1, 5..;
        /// What the consumer wanted to remember with it.
        metadata: Option<String>, 1.., null 1..;
        /// What went wrong.
        error_code: ErrorCode, 1..;
    }

    /// A group in an [`OffsetFetchResponse`].
    struct OffsetFetchResponseGroup {
        /// The group.
        group_id: String, 8..;
        /// Its offsets.
        topics: Vec<OffsetFetchResponseTopic>, 8..;
        /// What went wrong with all of it.
        error_code: ErrorCode, 8..;
    }
}
