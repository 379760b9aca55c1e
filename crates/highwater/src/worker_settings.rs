//! The settings of the worker's REST API, and of what converts records.

use std::path::PathBuf;
use std::time::Duration;

use highwater_connector::{AllowedPaths, Config, ConfigKey, Importance, KeyType, Problem};
use highwater_worker::{
    ConverterSetting, DefaultConverters, Role, SecretProviders, TopicTracking, WorkerConfig,
};

use crate::copy_settings;
use crate::settings::ALLOWED_PATHS;

const REQUEST_TIMEOUT: &str = "How long a request for connectors may take, in milliseconds. One that takes longer is answered with REQUEST_NOT_DONE, and goes on.";
const HEALTH_TIMEOUT: &str = "How long the worker may take to show that it is well, in milliseconds: that a change of a connector could begin, and that the log answers. Longer makes GET /health answer 500.";
const ALLOWED_ENV: &str = "worker.allowed_env";
const ALLOWED_ENV_TEXT: &str = "Environment variables of the server that configurations of connectors may refer to, as ${env:NAME}. Whoever may make connectors can read them. Empty: none.";
const CREATION: &str = "Whether the topics that a source connector writes are made where they are missing, as its topic.creation keys say; else it stops with TOPIC_MISSING. A trail and its schema topic are always made. Kafka Connect's topic.creation.enable.";
const CONNECTORS_DIR: &str = "worker.connectors_dir";
const CONNECTORS_DIR_TEXT: &str = "Folder whose files are the connectors that shall be: NAME.json or NAME.properties, one a connector. They are made, changed and deleted with their files, and not over REST. Apart from worker.allowed_paths and the data folder. Empty: none.";
const CONNECTORS_INTERVAL: &str = "How often that folder is looked at, in milliseconds. A file is taken that has not changed between two looks, or for 2 s.";
const TRACKING: &str = "Whether the topics that each connector uses are known, for GET /connectors/NAME/topics. Kafka Connect's topic.tracking.enable.";
const RESET: &str = "Whether they may be forgotten, with PUT /connectors/NAME/topics/reset. Kafka Connect's topic.tracking.allow.reset.";

/// A place in a record: its role, the key of its converter, that of the converter's options, and the
/// default.
struct Place {
    role: Role,
    class: &'static str,
    options: &'static str,
}

const KEY: Place = Place {
    role: Role::Key,
    class: "worker.key_converter",
    options: "worker.key_converter_options",
};
const VALUE: Place = Place {
    role: Role::Value,
    class: "worker.value_converter",
    options: "worker.value_converter_options",
};
const HEADER: Place = Place {
    role: Role::Header,
    class: "worker.header_converter",
    options: "worker.header_converter_options",
};

const JSON: &str = "org.apache.kafka.connect.json.JsonConverter";
const SIMPLE: &str = "org.apache.kafka.connect.storage.SimpleHeaderConverter";

fn converter_keys() -> Vec<ConfigKey> {
    let text = KeyType::String;
    let key = |name, key_type, default, documentation| {
        ConfigKey::new(name, key_type, Some(default), Importance::Medium, documentation)
    };
    let of_key = "Converter of keys for connectors that name none. Kafka Connect's key.converter.";
    let of_value =
        "Converter of values for connectors that name none. Kafka Connect's value.converter.";
    let of_header =
        "Converter of headers for connectors that name none. Kafka Connect's header.converter.";
    let options = "Its options, such as [\"schemas.enable=false\"]. A connector that names a converter has that one's own alone.";
    vec![
        key(KEY.class, text, JSON, of_key),
        key(KEY.options, KeyType::List, "", options),
        key(VALUE.class, text, JSON, of_value),
        key(VALUE.options, KeyType::List, "", options),
        key(HEADER.class, text, SIMPLE, of_header),
        key(HEADER.options, KeyType::List, "", options),
    ]
}

impl Place {
    fn read(&self, config: &Config) -> Result<ConverterSetting, Vec<Problem>> {
        let mut options = std::collections::BTreeMap::new();
        for option in config.list(self.options) {
            let Some((key, value)) = option.split_once('=') else {
                let message = "has an option that is not NAME=VALUE".to_owned();
                return Err(vec![Problem { key: self.options.to_owned(), message }]);
            };
            options.insert(key.trim().to_owned(), value.trim().to_owned());
        }
        let named = |problem: Problem| match problem.key.as_str() {
            "" => Problem { key: self.class.to_owned(), ..problem },
            option => Problem {
                key: self.options.to_owned(),
                message: format!("{option} {}", problem.message),
            },
        };
        ConverterSetting::new(config.text(self.class).trim(), options, self.role)
            .map_err(|problems| problems.into_iter().map(named).collect())
    }
}

fn converters(config: &Config) -> Result<DefaultConverters, Vec<Problem>> {
    let (key, value) = (KEY.read(config)?, VALUE.read(config)?);
    Ok(DefaultConverters { key, value, header: HEADER.read(config)? })
}

/// The keys of the configuration file.
pub(crate) fn keys() -> Vec<ConfigKey> {
    let millis = KeyType::Int { min: 100, max: 3_600_000 };
    let key = |name, key_type, default, text| {
        ConfigKey::new(name, key_type, Some(default), Importance::Low, text)
    };
    let mut keys = converter_keys();
    keys.extend([
        key(ALLOWED_ENV, KeyType::List, "", ALLOWED_ENV_TEXT),
        key(CONNECTORS_DIR, KeyType::String, "", CONNECTORS_DIR_TEXT),
        key("worker.connectors_interval_ms", millis, "5000", CONNECTORS_INTERVAL),
        key("worker.request_timeout_ms", millis, "90000", REQUEST_TIMEOUT),
        key("worker.health_timeout_ms", millis, "10000", HEALTH_TIMEOUT),
        key("worker.topic_creation_enable", KeyType::Boolean, "true", CREATION),
        key("worker.topic_tracking_enable", KeyType::Boolean, "true", TRACKING),
        key("worker.topic_tracking_allow_reset", KeyType::Boolean, "true", RESET),
    ]);
    keys
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
    converters: DefaultConverters,
    /// Folder of connector files.
    connectors_dir: Option<PathBuf>,
    connectors_interval: Duration,
}

impl WorkerSettings {
    /// The folder whose files are connectors.
    pub(crate) const fn connectors_dir(&self) -> Option<&PathBuf> {
        self.connectors_dir.as_ref()
    }

    /// Reads a checked configuration.
    ///
    /// # Errors
    /// What is wrong with a converter, and a folder of connector files where connectors may write.
    pub(crate) fn of(config: &Config) -> Result<Self, Vec<Problem>> {
        let enabled = config.flag("worker.topic_tracking_enable");
        let topic_tracking = match (enabled, config.flag("worker.topic_tracking_allow_reset")) {
            (true, true) => TopicTracking::On,
            (true, false) => TopicTracking::WithoutReset,
            (false, _) => TopicTracking::Off,
        };
        let allowed_env = config.list(ALLOWED_ENV).into_iter().map(str::to_owned).collect();
        Ok(Self {
            connectors_dir: connectors_dir(config).map_err(|problem| vec![problem])?,
            connectors_interval: config.millis("worker.connectors_interval_ms"),
            allowed_env,
            request_timeout: config.millis("worker.request_timeout_ms"),
            health_timeout: config.millis("worker.health_timeout_ms"),
            creates_topics: config.flag("worker.topic_creation_enable"),
            topic_tracking,
            converters: converters(config)?,
        })
    }

    /// Tells the worker, whose connectors may open files below `paths`.
    pub(crate) fn apply(&self, paths: AllowedPaths, config: &mut WorkerConfig) {
        config.secrets = SecretProviders::new(paths, ALLOWED_ENV, self.allowed_env.clone());
        config.connectors_dir.clone_from(&self.connectors_dir);
        config.connectors_interval = self.connectors_interval;
        config.request_timeout = self.request_timeout;
        config.health_timeout = self.health_timeout;
        config.creates_topics = self.creates_topics;
        config.topic_tracking = self.topic_tracking;
        config.converters = self.converters.clone();
    }
}

/// Files of connectors may hold passwords, which a file source would read; and what a file sink writes
/// must not become a connector.
fn connectors_dir(config: &Config) -> Result<Option<PathBuf>, Problem> {
    let text = config.text(CONNECTORS_DIR).trim();
    if text.is_empty() {
        return Ok(None);
    }
    copy_settings::apart(CONNECTORS_DIR, text, config)?;
    for allowed in config.list(ALLOWED_PATHS) {
        copy_settings::apart_from(CONNECTORS_DIR, text, allowed, ALLOWED_PATHS)?;
    }
    Ok(Some(PathBuf::from(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater_connector::ConfigDef;

    fn read(pairs: &[(&str, &str)]) -> Result<DefaultConverters, Vec<Problem>> {
        let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let config = ConfigDef::new(keys()).parse(&pairs.iter().map(pair).collect(), &[]).unwrap();
        converters(&config)
    }

    #[test]
    fn converters_are_those_of_kafka_connect_unless_others_are_set() {
        assert_eq!(read(&[]), Ok(DefaultConverters::default()));
        let set = read(&[(VALUE.class, "Json"), (VALUE.options, "schemas.enable=false")]).unwrap();
        assert_eq!(
            (set.value.class.as_str(), &set.value.options["schemas.enable"][..]),
            ("Json", "false")
        );
        assert_eq!(set.key, DefaultConverters::default().key);
    }

    #[test]
    fn what_is_wrong_with_a_converter_is_named_by_its_key() {
        for (pairs, key) in [
            (&[(KEY.class, "no.Such")][..], KEY.class),
            (&[(KEY.options, "schemas.enable")], KEY.options),
            (&[(VALUE.options, "schemas.enable=perhaps")], VALUE.options),
            (&[(HEADER.class, "Avro")], HEADER.class),
        ] {
            assert_eq!(read(pairs).unwrap_err()[0].key, key, "{pairs:?}");
        }
    }
}
