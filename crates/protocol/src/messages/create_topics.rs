//! Making topics.

use uuid::Uuid;

use crate::ErrorCode;

schema! {
    /// Makes topics.
    struct CreateTopicsRequest {
        /// The topics.
        topics: Vec<CreatableTopic>, 2..;
        /// How long the broker may take, in milliseconds.
        timeout_ms: i32 = 60_000, 2..;
        /// Whether only to say if it could be done.
        validate_only: bool, 2..;
    }

    /// A topic to make.
    struct CreatableTopic {
        /// Its name.
        name: String, 2..;
        /// How many partitions; -1 for the broker's default or where assignments are given.
        num_partitions: i32, 2..;
        /// How many replicas; -1 for the broker's default or where assignments are given.
        replication_factor: i16, 2..;
        /// Which brokers hold which partition, or empty.
        assignments: Vec<CreatableReplicaAssignment>, 2..;
        /// Its configuration.
        configs: Vec<CreatableTopicConfig>, 2..;
    }

    /// The brokers that are to hold a partition.
    struct CreatableReplicaAssignment {
        /// The partition.
        partition_index: i32, 2..;
        /// The brokers.
        broker_ids: Vec<i32>, 2..;
    }

    /// A configuration entry of a topic to make.
    struct CreatableTopicConfig {
        /// Its name.
        name: String, 2..;
        /// Its value.
        value: Option<String>, 2.., null 2..;
    }

    /// Answers a [`CreateTopicsRequest`].
    struct CreateTopicsResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 2..;
        /// The topics.
        topics: Vec<CreatableTopicResult>, 2..;
    }

    /// A topic that was made, or not.
    struct CreatableTopicResult {
        /// Its name.
        name: String, 2..;
        /// Its id.
        topic_id: Uuid, 7..;
        /// What went wrong.
        error_code: ErrorCode, 2..;
        /// What went wrong, in words.
        error_message: Option<String>, 2.., null 2..;
        /// Why `configs` is null.
        topic_config_error_code: ErrorCode, 5.., tag 0;
        /// How many partitions it has, or -1.
        num_partitions: i32 = -1, 5..;
        /// How many replicas it has, or -1.
        replication_factor: i16 = -1, 5..;
        /// Its configuration, if the client may see it.
        configs: Option<Vec<CreatableTopicConfigs>> = Some(Vec::new()), 5.., null 5..;
    }

    /// A configuration entry of a topic that was made.
    struct CreatableTopicConfigs {
        /// Its name.
        name: String, 5..;
        /// Its value.
        value: Option<String>, 5.., null 5..;
        /// Whether it cannot be changed.
        read_only: bool, 5..;
        /// Where the value comes from, as in [`DescribeConfigsResponse`](crate::DescribeConfigsResponse).
        config_source: i8 = -1, 5..;
        /// Whether the value is a secret.
        is_sensitive: bool, 5..;
    }
}
