//! Adding partitions to topics.

use crate::ErrorCode;

schema! {
    /// Raises the number of partitions of topics.
    struct CreatePartitionsRequest {
        /// The topics.
        topics: Vec<CreatePartitionsTopic>, 0..;
        /// How long the broker may take, in milliseconds.
        timeout_ms: i32, 0..;
        /// Whether only to say if it could be done.
        validate_only: bool, 0..;
    }

    /// A topic that is to grow.
    struct CreatePartitionsTopic {
        /// Its name.
        name: String, 0..;
        /// How many partitions it is to have, those that stand among them.
        count: i32, 0..;
        /// Which brokers hold the new partitions, or null for the broker to choose.
        assignments: Option<Vec<CreatePartitionsAssignment>>, 0.., null 0..;
    }

    /// The brokers that are to hold a new partition.
    struct CreatePartitionsAssignment {
        /// The brokers.
        broker_ids: Vec<i32>, 0..;
    }

    /// Answers a [`CreatePartitionsRequest`].
    struct CreatePartitionsResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 0..;
        /// The topics.
        results: Vec<CreatePartitionsTopicResult>, 0..;
    }

    /// A topic that has grown, or not.
    struct CreatePartitionsTopicResult {
        /// Its name.
        name: String, 0..;
        /// What went wrong.
        error_code: ErrorCode, 0..;
        /// What went wrong, in words.
        error_message: Option<String>, 0.., null 0..;
    }
}
