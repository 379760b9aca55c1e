//! Which transactional ids there are.

use crate::ErrorCode;

schema! {
    /// Asks for transactional ids.
    struct ListTransactionsRequest {
        /// Only those in one of these states; any, if there is none.
        state_filters: Vec<String>, 0..;
        /// Only those of one of these producers; any, if there is none.
        producer_id_filters: Vec<i64>, 0..;
        /// Only those whose transaction runs longer than this, in milliseconds; any, if negative.
        duration_filter: i64 = -1, 1..;
    }

    /// Answers a [`ListTransactionsRequest`].
    struct ListTransactionsResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 0..;
        /// What went wrong.
        error_code: ErrorCode, 0..;
        /// States that were asked for and do not exist.
        unknown_state_filters: Vec<String>, 0..;
        /// The transactional ids.
        transaction_states: Vec<ListedTransaction>, 0..;
    }

    /// A transactional id in a [`ListTransactionsResponse`].
    struct ListedTransaction {
        /// The transactional id.
        transactional_id: String, 0..;
        /// The producer's id.
        producer_id: i64, 0..;
        /// The state, by Kafka's name of it.
        transaction_state: String, 0..;
    }
}
