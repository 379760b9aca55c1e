//! The settings of the worker's REST API.

use std::time::Duration;

use highwater_connector::{AllowedPaths, Config, ConfigKey, Importance, KeyType};
use highwater_worker::{SecretProviders, TopicTracking, WorkerConfig};

const REQUEST_TIMEOUT: &str = "How long a request for connectors may take, in milliseconds. One that takes longer is answered with REQUEST_NOT_DONE, and goes on.";
const HEALTH_TIMEOUT: &str = "How long the worker may take to show that it is well, in milliseconds: that a change of a connector could begin, and that the log answers. Longer makes GET /health answer 500.";
const ALLOWED_ENV: &str = "worker.allowed_env";
const ALLOWED_ENV_TEXT: &str = "Environment variables of the server that configurations of connectors may refer to, as ${env:NAME}. Whoever may make connectors can read them. Empty: none.";
const CREATION: &str = "Whether the topics that a source connector writes are made where they are missing, as its topic.creation keys say; else it stops with TOPIC_MISSING. A trail and its schema topic are always made. Kafka Connect's topic.creation.enable.";
const TRACKING: &str = "Whether the topics that each connector uses are known, for GET /connectors/NAME/topics. Kafka Connect's topic.tracking.enable.";
const RESET: &str = "Whether they may be forgotten, with PUT /connectors/NAME/topics/reset. Kafka Connect's topic.tracking.allow.reset.";

/// The keys of the configuration file.
pub(crate) fn keys() -> Vec<ConfigKey> {
    let millis = KeyType::Int { min: 100, max: 3_600_000 };
    let key = |name, key_type, default, text| {
        ConfigKey::new(name, key_type, Some(default), Importance::Low, text)
    };
    vec![
        key(ALLOWED_ENV, KeyType::List, "", ALLOWED_ENV_TEXT),
        key("worker.request_timeout_ms", millis, "90000", REQUEST_TIMEOUT),
        key("worker.health_timeout_ms", millis, "10000", HEALTH_TIMEOUT),
        key("worker.topic_creation_enable", KeyType::Boolean, "true", CREATION),
        key("worker.topic_tracking_enable", KeyType::Boolean, "true", TRACKING),
        key("worker.topic_tracking_allow_reset", KeyType::Boolean, "true", RESET),
    ]
}

/// What is set of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct WorkerSettings {
    request_timeout: Duration,
    health_timeout: Duration,
    creates_topics: bool,
    topic_tracking: TopicTracking,
    /// Environment variables that configurations may refer to.
    allowed_env: Vec<String>,
}

impl WorkerSettings {
    /// Reads a checked configuration.
    pub(crate) fn of(config: &Config) -> Self {
        let millis = |key| Duration::from_millis(config.int(key).unsigned_abs());
        let enabled = config.flag("worker.topic_tracking_enable");
        let topic_tracking = match (enabled, config.flag("worker.topic_tracking_allow_reset")) {
            (true, true) => TopicTracking::On,
            (true, false) => TopicTracking::WithoutReset,
            (false, _) => TopicTracking::Off,
        };
        let allowed_env = config.list(ALLOWED_ENV).into_iter().map(str::to_owned).collect();
        Self {
            allowed_env,
            request_timeout: millis("worker.request_timeout_ms"),
            health_timeout: millis("worker.health_timeout_ms"),
            creates_topics: config.flag("worker.topic_creation_enable"),
            topic_tracking,
        }
    }

    /// Tells the worker, whose connectors may open files below `paths`.
    pub(crate) fn apply(&self, paths: AllowedPaths, config: &mut WorkerConfig) {
        config.secrets = SecretProviders::new(paths, ALLOWED_ENV, self.allowed_env.clone());
        config.request_timeout = self.request_timeout;
        config.health_timeout = self.health_timeout;
        config.creates_topics = self.creates_topics;
        config.topic_tracking = self.topic_tracking;
    }
}
