//! What a consumer tells its group.

use bytes::Bytes;

schema! {
    /// The fields with which a consumer's metadata begins.
    struct ConsumerSubscription {
        /// The topics it wants.
        topics: Vec<String>, 0..;
        /// Of no concern to the broker.
        user_data: Option<Bytes>, 0.., null 0..;
    }
}
