//! Partitions on their way from broker to broker.

use crate::ErrorCode;

schema! {
    /// Asks which partitions are being moved.
    struct ListPartitionReassignmentsRequest {
        /// How long the broker may take, in milliseconds.
        timeout_ms: i32 = 60_000, 0..;
        /// The topics, or null for all.
        topics: Option<Vec<ListPartitionReassignmentsTopics>>, 0.., null 0..;
    }

    /// A topic in a [`ListPartitionReassignmentsRequest`].
    struct ListPartitionReassignmentsTopics {
        /// Its name.
        name: String, 0..;
        /// Its partitions.
        partition_indexes: Vec<i32>, 0..;
    }

    /// Answers a [`ListPartitionReassignmentsRequest`].
    struct ListPartitionReassignmentsResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 0..;
        /// What went wrong.
        error_code: ErrorCode, 0..;
        /// What went wrong, in words.
        error_message: Option<String>, 0.., null 0..;
        /// The topics that have partitions on their way.
        topics: Vec<OngoingTopicReassignment>, 0..;
    }

    /// A topic in a [`ListPartitionReassignmentsResponse`].
    struct OngoingTopicReassignment {
        /// Its name.
        name: String, 0..;
        /// Its partitions on their way.
        partitions: Vec<OngoingPartitionReassignment>, 0..;
    }

    /// A partition on its way.
    struct OngoingPartitionReassignment {
        /// Its index.
        partition_index: i32, 0..;
        /// The brokers that hold it.
        replicas: Vec<i32>, 0..;
        /// The brokers that are to hold it, too.
        adding_replicas: Vec<i32>, 0..;
        /// The brokers that are to hold it no longer.
        removing_replicas: Vec<i32>, 0..;
    }
}
