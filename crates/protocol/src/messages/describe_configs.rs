//! Reading configurations.

use crate::ErrorCode;

schema! {
    /// Asks for configurations.
    struct DescribeConfigsRequest {
        /// Of what.
        resources: Vec<DescribeConfigsResource>, 1..;
        /// Whether to name every place a value could come from.
        include_synonyms: bool, 1..;
        /// Whether to explain each entry.
        include_documentation: bool, 3..;
    }

    /// A resource in a [`DescribeConfigsRequest`].
    struct DescribeConfigsResource {
        /// 2 topic, 4 broker.
        resource_type: i8, 1..;
        /// The topic's name or the broker's id.
        resource_name: String, 1..;
        /// The entries to tell, null for all.
        configuration_keys: Option<Vec<String>>, 1.., null 1..;
    }

    /// Answers a [`DescribeConfigsRequest`].
    struct DescribeConfigsResponse {
        /// How long the client is held back by a quota, in milliseconds.
        throttle_time_ms: i32, 1..;
        /// The resources.
        results: Vec<DescribeConfigsResult>, 1..;
    }

    /// A resource in a [`DescribeConfigsResponse`].
    struct DescribeConfigsResult {
        /// What went wrong.
        error_code: ErrorCode, 1..;
        /// What went wrong, in words.
        error_message: Option<String>, 1.., null 1..;
        /// 2 topic, 4 broker.
        resource_type: i8, 1..;
        /// The topic's name or the broker's id.
        resource_name: String, 1..;
        /// The entries.
        configs: Vec<DescribeConfigsResourceResult>, 1..;
    }

    /// A configuration entry.
    struct DescribeConfigsResourceResult {
        /// Its name.
        name: String, 1..;
        /// Its value; null if it is a secret.
        value: Option<String>, 1.., null 1..;
        /// Whether it cannot be changed.
        read_only: bool, 1..;
        /// Where the value comes from: 1 the topic, 2 the broker, 3 the default of all brokers,
        /// 4 the broker's file, 5 the default; -1 unknown.
        config_source: i8 = -1, 1..;
        /// Whether the value is a secret.
        is_sensitive: bool, 1..;
        /// The places that the value could come from.
        synonyms: Vec<DescribeConfigsSynonym>, 1..;
        /// 1 boolean, 2 string, 3 int, 4 short, 5 long, 6 double, 7 list, 8 class, 9 password;
        /// 0 unknown.
        config_type: i8, 3..;
        /// What it means.
        documentation: Option<String>, 3.., null 3..;
    }

    /// A place that a value could come from.
    struct DescribeConfigsSynonym {
        /// The entry's name there.
        name: String, 1..;
        /// The value there.
        value: Option<String>, 1.., null 1..;
        /// As `config_source`.
        source: i8, 1..;
    }
}
