//! How transactions stand.

use crate::ErrorCode;

schema! {
    /// Asks how the transactions of transactional ids stand.
    struct DescribeTransactionsRequest {
        /// The transactional ids.
        transactional_ids: Vec<String>, 0..;
    }

    /// Answers a [`DescribeTransactionsRequest`].
    struct DescribeTransactionsResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 0..;
        /// A transactional id each.
        transaction_states: Vec<DescribedTransaction>, 0..;
    }

    /// A transactional id in a [`DescribeTransactionsResponse`].
    struct DescribedTransaction {
        /// What went wrong.
        error_code: ErrorCode, 0..;
        /// The transactional id.
        transactional_id: String, 0..;
        /// The state, by Kafka's name of it.
        transaction_state: String, 0..;
        /// After which time a silent transaction is aborted, in milliseconds.
        transaction_timeout_ms: i32, 0..;
        /// When the transaction began, in milliseconds since 1970, or -1.
        transaction_start_time_ms: i64, 0..;
        /// The producer's id.
        producer_id: i64, 0..;
        /// The producer's epoch.
        producer_epoch: i16, 0..;
        /// The partitions of the open transaction, by topic.
        topics: Vec<TransactionTopic>, 0..;
    }

    /// A topic in a [`DescribedTransaction`].
    struct TransactionTopic {
        /// Its name.
        topic: String, 0..;
        /// Its partitions.
        partitions: Vec<i32>, 0..;
    }
}
