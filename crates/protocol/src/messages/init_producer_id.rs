//! Producer ids.

use crate::ErrorCode;

schema! {
    /// Asks for a producer id and epoch; with a transactional id it fences the producer before.
    struct InitProducerIdRequest {
        /// The transactional id, or null for a producer that is only idempotent.
        transactional_id: Option<String>, 0.., null 0..;
        /// After which time a silent transaction is aborted, in milliseconds.
        transaction_timeout_ms: i32, 0..;
        /// The producer id it has, or -1.
        producer_id: i64 = -1, 3..;
        /// The epoch it has, or -1.
        producer_epoch: i16 = -1, 3..;
    }

    /// Answers an [`InitProducerIdRequest`].
    struct InitProducerIdResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 0..;
        /// What went wrong.
        error_code: ErrorCode, 0..;
        /// The producer id.
        producer_id: i64 = -1, 0..;
        /// The epoch.
        producer_epoch: i16, 0..;
    }
}
