//! The brokers of a cluster.

use crate::ErrorCode;

schema! {
    /// Asks for the brokers.
    struct DescribeClusterRequest {
        /// Whether to say what the client may do with the cluster.
        include_cluster_authorized_operations: bool, 0..;
        /// 1 brokers, 2 controllers.
        endpoint_type: i8 = 1, 1..;
    }

    /// Answers a [`DescribeClusterRequest`].
    struct DescribeClusterResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 0..;
        /// What went wrong.
        error_code: ErrorCode, 0..;
        /// What went wrong, in words.
        error_message: Option<String>, 0.., null 0..;
        /// 1 brokers, 2 controllers.
        endpoint_type: i8 = 1, 1..;
        /// The cluster's id.
        cluster_id: String, 0..;
        /// The controller's broker id, or -1.
        controller_id: i32 = -1, 0..;
        /// The brokers.
        brokers: Vec<DescribeClusterBroker>, 0..;
        /// What the client may do with the cluster, a bit an operation.
        cluster_authorized_operations: i32 = i32::MIN, 0..;
    }

    /// A broker in a [`DescribeClusterResponse`].
    struct DescribeClusterBroker {
        /// Its id.
        broker_id: i32, 0..;
        /// Its host name or address.
        host: String, 0..;
        /// Its port.
        port: i32, 0..;
        /// Its rack.
        rack: Option<String>, 0.., null 0..;
    }
}
