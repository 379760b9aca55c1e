//! Replacing configurations as a whole, as it was done before KIP-339.

use crate::ErrorCode;

schema! {
    /// Replaces configurations: what is not named goes back to its default.
    struct AlterConfigsRequest {
        /// Of what.
        resources: Vec<ReplacedConfigsResource>, 0..;
        /// Whether only to say if it could be done.
        validate_only: bool, 0..;
    }

    /// A resource in an [`AlterConfigsRequest`]. Kafka's schema calls it `AlterConfigsResource`, a name
    /// taken by [`AlterConfigsResource`](crate::AlterConfigsResource).
    struct ReplacedConfigsResource {
        /// 2 topic, 4 broker.
        resource_type: i8, 0..;
        /// The topic's name or the broker's id.
        resource_name: String, 0..;
        /// The entries.
        configs: Vec<ReplacedConfig>, 0..;
    }

    /// An entry that is to stand.
    struct ReplacedConfig {
        /// Its name.
        name: String, 0..;
        /// The value.
        value: Option<String>, 0.., null 0..;
    }

    /// Answers an [`AlterConfigsRequest`].
    struct AlterConfigsResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 0..;
        /// The resources.
        responses: Vec<ReplacedConfigsResourceResponse>, 0..;
    }

    /// A resource in an [`AlterConfigsResponse`].
    struct ReplacedConfigsResourceResponse {
        /// What went wrong.
        error_code: ErrorCode, 0..;
        /// What went wrong, in words.
        error_message: Option<String>, 0.., null 0..;
        /// 2 topic, 4 broker.
        resource_type: i8, 0..;
        /// The topic's name or the broker's id.
        resource_name: String, 0..;
    }
}
