//! How a transactional id stands, in `__transaction_state`.

schema! {
    /// Which transactional id.
    struct TransactionLogKey {
        /// The transactional id.
        transactional_id: String, 0..;
    }

    /// How it stands.
    struct TransactionLogValue {
        /// The producer's id.
        producer_id: i64, 0..;
        /// The producer id before, or -1.
        previous_producer_id: i64 = -1, 1.., tag 0;
        /// The producer id to come, or -1: the second transaction protocol alone has one.
        next_producer_id: i64 = -1, 1.., tag 1;
        /// The producer's epoch.
        producer_epoch: i16, 0..;
        /// After which time an open transaction is aborted, in milliseconds.
        transaction_timeout_ms: i32, 0..;
        /// The state, by Kafka's number of it.
        transaction_status: i8, 0..;
        /// The partitions of the transaction, by topic; or null.
        transaction_partitions: Option<Vec<TransactionLogPartitions>>, 0.., null 0..;
        /// When it changed last, in milliseconds since 1970.
        transaction_last_update_timestamp_ms: i64, 0..;
        /// When the transaction began, in milliseconds since 1970; or -1.
        transaction_start_timestamp_ms: i64, 0..;
        /// Which transaction protocol the client spoke.
        client_transaction_version: i16 = 0, 1.., tag 2;
    }

    /// A topic in a [`TransactionLogValue`].
    struct TransactionLogPartitions {
        /// Its name.
        topic: String, 0..;
        /// Its partitions.
        partition_ids: Vec<i32>, 0..;
    }
}
