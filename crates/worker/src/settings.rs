//! Settings of a worker.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use highwater_connector::{AllowedPaths, Problem};
use highwater_data::{Converter, Role, SIMPLE_HEADER_CONVERTER, unknown_options};
use highwater_kafka::{Bootstrap, KafkaError, Tls, Writer, WriterSettings};

use crate::checks::Checks;
use crate::loggers::{Loggers, NoLoggers};
use crate::secret_providers::SecretProviders;

/// Makes the writer of a task, under the delivery contract that its settings name.
pub type WriterFactory =
    Arc<dyn Fn(&WriterSettings) -> Result<Box<dyn Writer>, KafkaError> + Send + Sync>;

/// Whether source connectors write in transactions: Kafka Connect's
/// `exactly.once.source.support`, and one value more.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ExactlyOnceSupport {
    /// At least once.
    #[default]
    Disabled,
    /// At least once, and tasks before are fenced for workers of the group that are enabled already.
    Preparing,
    /// Records and offsets in one transaction.
    Enabled,
    /// As enabled, and a connector that cannot go on exactly where it stopped is refused.
    Required,
}

impl ExactlyOnceSupport {
    /// Its names, as a setting has them.
    pub const NAMES: [&str; 4] = ["disabled", "preparing", "enabled", "required"];
    const ALL: [Self; 4] = [Self::Disabled, Self::Preparing, Self::Enabled, Self::Required];

    /// The one of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|support| support.name() == name)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        let [disabled, preparing, enabled, required] = Self::NAMES;
        match self {
            Self::Disabled => disabled,
            Self::Preparing => preparing,
            Self::Enabled => enabled,
            Self::Required => required,
        }
    }

    pub(crate) const fn is_enabled(self) -> bool {
        matches!(self, Self::Enabled | Self::Required)
    }

    /// Whether some worker of the group may write in transactions.
    pub(crate) const fn passes_fences(self) -> bool {
        !matches!(self, Self::Disabled)
    }
}

/// Whether the topics that a connector uses are known, and may be forgotten (KIP-558).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum TopicTracking {
    /// They are, and may be.
    #[default]
    On,
    /// They are, until the connector is deleted.
    WithoutReset,
    /// They are not.
    Off,
}

/// A converter that is set.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ConverterSetting {
    /// Its class, in full or short.
    pub class: String,
    /// Its options, without the prefix of a place.
    pub options: BTreeMap<String, String>,
}

impl ConverterSetting {
    /// The converter of this class with these options.
    ///
    /// # Errors
    /// There is none for this place, or an option does not fit.
    pub fn new(
        class: &str,
        options: BTreeMap<String, String>,
        role: Role,
    ) -> Result<Self, Vec<Problem>> {
        let unknown = unknown_options(&options, "");
        if !unknown.is_empty() {
            return Err(unknown);
        }
        Converter::new(class, &options, role)?;
        Ok(Self { class: class.to_owned(), options })
    }

    fn plain(class: &str) -> Self {
        Self { class: class.to_owned(), options: BTreeMap::new() }
    }
}

/// What converts the records of a connector that names no converter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DefaultConverters {
    /// Keys.
    pub key: ConverterSetting,
    /// Values.
    pub value: ConverterSetting,
    /// Headers.
    pub header: ConverterSetting,
}

impl DefaultConverters {
    /// That of a place.
    pub(crate) const fn of(&self, role: Role) -> &ConverterSetting {
        match role {
            Role::Key => &self.key,
            Role::Value => &self.value,
            Role::Header => &self.header,
        }
    }
}

impl Default for DefaultConverters {
    /// As the file has it that Kafka Connect's workers start with.
    fn default() -> Self {
        const JSON: &str = "org.apache.kafka.connect.json.JsonConverter";
        Self {
            key: ConverterSetting::plain(JSON),
            value: ConverterSetting::plain(JSON),
            header: ConverterSetting::plain(SIMPLE_HEADER_CONVERTER),
        }
    }
}

/// How a worker shares its work with the others of its group.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sharing {
    /// Where the others reach its REST API, such as `http://host:8083`.
    pub url: String,
    /// Whom this one trusts that calls them, and who it is to them.
    pub tls: Tls,
    /// After how long a silence the others take over what it has: Kafka Connect's
    /// `session.timeout.ms`. It stops by itself after two thirds of it.
    pub session_timeout: Duration,
    /// How often it says that it lives: `heartbeat.interval.ms`.
    pub heartbeat_interval: Duration,
    /// How long the others wait for it when the work is shared out anew: `rebalance.timeout.ms`.
    pub rebalance_timeout: Duration,
}

/// What a worker runs with.
#[derive(Clone)]
pub struct WorkerConfig {
    /// Where the log is, and how it is spoken to.
    pub bootstrap: Bootstrap,
    /// Name of this worker in statuses; Kafka Connect uses the address of its REST listener.
    pub worker_id: String,
    /// Name of the group of workers: transactional ids begin with it (Kafka Connect's `group.id`).
    pub group_id: String,
    /// See [`ExactlyOnceSupport`].
    pub exactly_once: ExactlyOnceSupport,
    /// How it shares its work with others; without it has all of it.
    pub sharing: Option<Sharing>,
    /// Compacted topic of connector configurations and target states.
    pub configs_topic: String,
    /// Compacted topic of source offsets.
    pub offsets_topic: String,
    /// Compacted topic of statuses.
    pub status_topic: String,
    /// Longest time between an acknowledgement and the offset record that covers it, unless a
    /// connector says otherwise (rule P7).
    pub offset_flush_interval: Duration,
    /// How long a task may take to reach the end of a transaction when it shall stop, unless a
    /// connector says otherwise.
    pub drain_timeout: Duration,
    /// How long a source may take to answer whether an offset may be changed, and what it keeps.
    pub source_timeout: Duration,
    /// How long a request of the REST API may take.
    pub request_timeout: Duration,
    /// How long the worker may take to show that it is well.
    pub health_timeout: Duration,
    /// Whether the topics that a source writes are made where they are missing. A trail always is.
    pub creates_topics: bool,
    /// See [`TopicTracking`].
    pub topic_tracking: TopicTracking,
    /// How often a source is asked what it keeps for a connector that does not run.
    pub hold_interval: Duration,
    /// How long the log may be unreachable when the worker starts.
    pub start_timeout: Duration,
    /// Largest record that a task sends, in bytes, unless a connector says otherwise.
    pub max_record_bytes: usize,
    /// Folder of connector files that are followed.
    pub connectors_dir: Option<PathBuf>,
    /// How often it is looked at.
    pub connectors_interval: Duration,
    /// Where configurations may take secrets from.
    pub secrets: SecretProviders,
    /// See [`DefaultConverters`].
    pub converters: DefaultConverters,
    /// Levels of log lines, for who may change them over REST.
    pub loggers: Arc<dyn Loggers>,
    /// Threads for code of connectors that checks a configuration.
    pub checks: Checks,
    /// See [`WriterFactory`].
    pub writers: WriterFactory,
}

impl WorkerConfig {
    /// The defaults for the log at `bootstrap`.
    pub fn new(bootstrap: impl Into<Bootstrap>, worker_id: &str) -> Self {
        Self {
            bootstrap: bootstrap.into(),
            worker_id: worker_id.to_owned(),
            group_id: "highwater".to_owned(),
            exactly_once: ExactlyOnceSupport::Disabled,
            sharing: None,
            configs_topic: "highwater.configs".to_owned(),
            offsets_topic: "highwater.offsets".to_owned(),
            status_topic: "highwater.status".to_owned(),
            offset_flush_interval: Duration::from_secs(1),
            drain_timeout: Duration::from_secs(5),
            source_timeout: Duration::from_secs(30),
            request_timeout: Duration::from_secs(90),
            health_timeout: Duration::from_secs(10),
            creates_topics: true,
            topic_tracking: TopicTracking::default(),
            hold_interval: Duration::from_secs(60),
            start_timeout: Duration::from_secs(30),
            max_record_bytes: 10 << 20,
            connectors_dir: None,
            connectors_interval: Duration::from_secs(5),
            secrets: SecretProviders::new(AllowedPaths::new("none", []), "none", []),
            converters: DefaultConverters::default(),
            loggers: Arc::new(NoLoggers),
            checks: Checks::default(),
            writers: Arc::new(highwater_kafka::writer),
        }
    }
}

impl fmt::Debug for WorkerConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerConfig")
            .field("bootstrap", &self.bootstrap)
            .field("worker_id", &self.worker_id)
            .finish_non_exhaustive()
    }
}
