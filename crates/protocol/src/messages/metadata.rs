//! Brokers, topics and partitions.

use uuid::Uuid;

use crate::ErrorCode;

/// The value of an `authorized_operations` field that says nothing.
const NO_OPERATIONS: i32 = i32::MIN;

schema! {
    /// Asks for the brokers and for topics.
    struct MetadataRequest {
        /// The topics; null asks for all. In version 0, which has no null, empty asks for all.
        topics: Option<Vec<MetadataRequestTopic>>, 0.., null 1..;
        /// Whether the broker may create a topic that does not exist.
        allow_auto_topic_creation: bool = true, 4..;
        /// Whether to say what the client may do with the cluster.
        include_cluster_authorized_operations: bool, 8..=10;
        /// Whether to say what the client may do with each topic.
        include_topic_authorized_operations: bool, 8..;
    }

    /// A topic in a [`MetadataRequest`].
    struct MetadataRequestTopic {
        /// Its id, or zero if it is asked by name.
        topic_id: Uuid, 10..;
        /// Its name, or null if it is asked by id.
        name: Option<String>, 0.., null 10..;
    }

    /// Answers a [`MetadataRequest`].
    struct MetadataResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 3..;
        /// The brokers.
        brokers: Vec<MetadataResponseBroker>, 0..;
        /// The cluster's id.
        cluster_id: Option<String>, 2.., null 2..;
        /// The controller's broker id, or -1.
        controller_id: i32 = -1, 1..;
        /// The topics.
        topics: Vec<MetadataResponseTopic>, 0..;
        /// What the client may do with the cluster, a bit an operation.
        cluster_authorized_operations: i32 = NO_OPERATIONS, 8..=10;
    }

    /// A broker in a [`MetadataResponse`].
    struct MetadataResponseBroker {
        /// Its id.
        node_id: i32, 0..;
        /// Its host name or address.
        host: String, 0..;
        /// Its port.
        port: i32, 0..;
        /// Its rack.
        rack: Option<String>, 1.., null 1..;
    }

    /// A topic in a [`MetadataResponse`].
    struct MetadataResponseTopic {
        /// What went wrong.
        error_code: ErrorCode, 0..;
        /// Its name; null if it was asked by an id that does not exist.
        name: Option<String>, 0.., null 12..;
        /// Its id.
        topic_id: Uuid, 10..;
        /// Whether it is the broker's own.
        is_internal: bool, 1..;
        /// Its partitions.
        partitions: Vec<MetadataResponsePartition>, 0..;
        /// What the client may do with it, a bit an operation.
        topic_authorized_operations: i32 = NO_OPERATIONS, 8..;
    }

    /// A partition in a [`MetadataResponse`].
    struct MetadataResponsePartition {
        /// What went wrong.
        error_code: ErrorCode, 0..;
        /// Its index.
        partition_index: i32, 0..;
        /// The broker that leads it, or -1.
        leader_id: i32, 0..;
        /// The leader's epoch, or -1.
        leader_epoch: i32 = -1, 7..;
        /// The brokers that hold it.
        replica_nodes: Vec<i32>, 0..;
        /// Those that are in sync.
        isr_nodes: Vec<i32>, 0..;
        /// Those that are offline.
        offline_replicas: Vec<i32>, 5..;
    }
}
