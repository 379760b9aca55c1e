//! Changing configurations entry by entry.

use crate::ErrorCode;

schema! {
    /// Changes configurations and leaves the entries that it does not name.
    struct IncrementalAlterConfigsRequest {
        /// Of what.
        resources: Vec<AlterConfigsResource>, 0..;
        /// Whether only to say if it could be done.
        validate_only: bool, 0..;
    }

    /// A resource in an [`IncrementalAlterConfigsRequest`].
    struct AlterConfigsResource {
        /// 2 topic, 4 broker.
        resource_type: i8, 0..;
        /// The topic's name or the broker's id.
        resource_name: String, 0..;
        /// The entries.
        configs: Vec<AlterableConfig>, 0..;
    }

    /// An entry to change.
    struct AlterableConfig {
        /// Its name.
        name: String, 0..;
        /// 0 set, 1 delete, 2 append to the list, 3 take from the list.
        config_operation: i8, 0..;
        /// The value, null to delete.
        value: Option<String>, 0.., null 0..;
    }

    /// Answers an [`IncrementalAlterConfigsRequest`].
    struct IncrementalAlterConfigsResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 0..;
        /// The resources.
        responses: Vec<AlterConfigsResourceResponse>, 0..;
    }

    /// A resource in an [`IncrementalAlterConfigsResponse`].
    struct AlterConfigsResourceResponse {
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
