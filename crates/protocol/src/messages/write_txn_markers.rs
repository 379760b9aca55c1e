//! Markers written by hand: how an operator ends a transaction that hangs.

use crate::ErrorCode;

schema! {
    /// Writes markers to partitions.
    struct WriteTxnMarkersRequest {
        /// The markers.
        markers: Vec<WritableTxnMarker>, 1..;
    }

    /// A marker in a [`WriteTxnMarkersRequest`].
    struct WritableTxnMarker {
        /// The producer's id.
        producer_id: i64, 1..;
        /// The producer's epoch.
        producer_epoch: i16, 1..;
        /// True commits, false aborts.
        transaction_result: bool, 1..;
        /// The topics.
        topics: Vec<WritableTxnMarkerTopic>, 1..;
        /// The epoch of the coordinator in whose name the marker is written.
        coordinator_epoch: i32, 1..;
    }

    /// A topic in a [`WriteTxnMarkersRequest`].
    struct WritableTxnMarkerTopic {
        /// Its name.
        name: String, 1..;
        /// Its partitions.
        partition_indexes: Vec<i32>, 1..;
    }

    /// Answers a [`WriteTxnMarkersRequest`].
    struct WriteTxnMarkersResponse {
        /// A producer each.
        markers: Vec<WritableTxnMarkerResult>, 1..;
    }

    /// A producer in a [`WriteTxnMarkersResponse`].
    struct WritableTxnMarkerResult {
        /// Its id.
        producer_id: i64, 1..;
        /// The topics.
        topics: Vec<WritableTxnMarkerTopicResult>, 1..;
    }

    /// A topic in a [`WriteTxnMarkersResponse`].
    struct WritableTxnMarkerTopicResult {
        /// Its name.
        name: String, 1..;
        /// Its partitions.
        partitions: Vec<WritableTxnMarkerPartitionResult>, 1..;
    }

    /// A partition in a [`WriteTxnMarkersResponse`].
    struct WritableTxnMarkerPartitionResult {
        /// Its index.
        partition_index: i32, 1..;
        /// What went wrong.
        error_code: ErrorCode, 1..;
    }
}
