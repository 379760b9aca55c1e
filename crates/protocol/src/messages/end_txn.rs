//! Committing or aborting a transaction.

use crate::ErrorCode;

schema! {
    /// Commits or aborts the producer's open transaction.
    struct EndTxnRequest {
        /// The transactional id.
        transactional_id: String, 0..;
        /// The producer's id.
        producer_id: i64, 0..;
        /// The producer's epoch.
        producer_epoch: i16, 0..;
        /// True commits, false aborts.
        committed: bool, 0..;
    }

    /// Answers an [`EndTxnRequest`].
    struct EndTxnResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 0..;
        /// What went wrong.
        error_code: ErrorCode, 0..;
    }
}
