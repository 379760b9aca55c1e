//! Which APIs and versions a broker speaks.

use crate::ErrorCode;

schema! {
    /// Asks which APIs the broker speaks, at which versions.
    struct ApiVersionsRequest {
        /// Name of the client's library.
        client_software_name: String, 3..;
        /// Version of the client's library.
        client_software_version: String, 3..;
    }

    /// Answers an [`ApiVersionsRequest`].
    struct ApiVersionsResponse {
        /// What went wrong.
        error_code: ErrorCode, 0..;
        /// The APIs.
        api_keys: Vec<ApiVersion>, 0..;
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 1..;
        /// The features that the broker could have.
        supported_features: Vec<SupportedFeatureKey>, 3.., tag 0;
        /// How often the finalized features have changed, or -1.
        finalized_features_epoch: i64 = -1, 3.., tag 1;
        /// The features that the cluster has.
        finalized_features: Vec<FinalizedFeatureKey>, 3.., tag 2;
        /// Whether the cluster is ready to be moved off ZooKeeper.
        zk_migration_ready: bool, 3.., tag 3;
    }

    /// An API in an [`ApiVersionsResponse`]. The key is a plain number: a broker may speak more
    /// than we do.
    struct ApiVersion {
        /// Its key.
        api_key: i16, 0..;
        /// Lowest version.
        min_version: i16, 0..;
        /// Highest version.
        max_version: i16, 0..;
    }

    /// A feature that the broker could have.
    struct SupportedFeatureKey {
        /// Its name.
        name: String, 3..;
        /// Lowest level.
        min_version: i16, 3..;
        /// Highest level.
        max_version: i16, 3..;
    }

    /// A feature that the cluster has.
    struct FinalizedFeatureKey {
        /// Its name.
        name: String, 3..;
        /// Highest level in use.
        max_version_level: i16, 3..;
        /// Lowest level in use.
        min_version_level: i16, 3..;
    }
}
