//! Making a group's offsets part of a transaction.

use crate::ErrorCode;

schema! {
    /// Announces that a group's offsets will be committed with the producer's transaction, and begins
    /// one if none is open.
    struct AddOffsetsToTxnRequest {
        /// The transactional id.
        transactional_id: String, 0..;
        /// The producer's id.
        producer_id: i64, 0..;
        /// The producer's epoch.
        producer_epoch: i16, 0..;
        /// The group.
        group_id: String, 0..;
    }

    /// Answers an [`AddOffsetsToTxnRequest`].
    struct AddOffsetsToTxnResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 0..;
        /// What went wrong.
        error_code: ErrorCode, 0..;
    }
}
