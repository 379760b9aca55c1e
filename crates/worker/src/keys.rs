//! Configuration keys of the worker, which every connector may carry.

use highwater_connector::{ConfigKey, Importance, KeyType};

use crate::record_keys;
use crate::topic_creation;

/// Key of the connector's name.
pub(crate) const NAME: &str = "name";
/// Key of the connector's class.
pub(crate) const CLASS: &str = "connector.class";
/// Key of the version that the class must have (KIP-891).
pub(crate) const PLUGIN_VERSION: &str = "connector.plugin.version";
const RELOAD: &str = "config.action.reload";
/// Key of the greatest number of tasks.
pub(crate) const TASKS_MAX: &str = "tasks.max";
pub(crate) const TASKS_MAX_ENFORCE: &str = "tasks.max.enforce";
/// Key of rule P7's bound.
pub(crate) const FLUSH_INTERVAL: &str = "offset.flush.interval.ms";
pub(crate) const DRAIN_TIMEOUT: &str = "task.shutdown.graceful.timeout.ms";
pub(crate) const RETRY_TIMEOUT: &str = "errors.retry.timeout";
pub(crate) const RETRY_DELAY_MAX: &str = "errors.retry.delay.max.ms";
/// Key of the topic of a connector's own offsets.
pub(crate) const OFFSETS_TOPIC: &str = "offsets.storage.topic";
/// Key of what is asked of the worker's transactions.
pub(crate) const EXACTLY_ONCE: &str = "exactly.once.support";
/// Key of where they end.
pub(crate) const TRANSACTION_BOUNDARY: &str = "transaction.boundary";
pub(crate) const TRANSACTION_INTERVAL: &str = "transaction.boundary.interval.ms";
pub(crate) const TRANSACTION_TIMEOUT: &str = "producer.override.transaction.timeout.ms";
/// Key of the largest record.
pub(crate) const MAX_RECORD: &str = "producer.override.max.request.size";
pub(crate) const LINGER: &str = "producer.override.linger.ms";
pub(crate) const DELIVERY_TIMEOUT: &str = "producer.override.delivery.timeout.ms";
pub(crate) const RETENTION_MS: &str = "trail.retention.ms";
pub(crate) const RETENTION_BYTES: &str = "trail.retention.bytes";
/// Keys of the group that takes what no other does; see `topic_creation`.
const TABLE_PARTITIONS: &str = "topic.creation.default.partitions";
const TABLE_REPLICATION: &str = "topic.creation.default.replication.factor";
const TABLE_CLEANUP: &str = "topic.creation.default.cleanup.policy";
const TABLE_RETENTION_MS: &str = "topic.creation.default.retention.ms";
const TABLE_RETENTION_BYTES: &str = "topic.creation.default.retention.bytes";

/// The keys that every connector may carry beside its own, in the order of the reference.
pub fn worker_keys() -> Vec<ConfigKey> {
    let mut keys = run_keys();
    keys.extend(sending_keys());
    keys.extend(record_keys::error_keys());
    keys.extend(transaction_keys());
    keys.extend(topic_keys());
    keys
}

/// How the names of keys begin that sinks have no use for.
const OF_SOURCES: [&str; 6] = [
    EXACTLY_ONCE,
    "transaction.boundary",
    OFFSETS_TOPIC,
    "producer.override.",
    "trail.",
    "topic.creation.",
];

/// Whether a key is of use to sources alone. A sink may carry it all the same.
pub(crate) fn is_of_sources(key: &str) -> bool {
    OF_SOURCES.iter().any(|head| key.starts_with(head))
}

const fn number(min: i64, max: i64) -> KeyType {
    KeyType::Int { min, max }
}

fn run_keys() -> Vec<ConfigKey> {
    let text = KeyType::String;
    let times = number;
    vec![
        ConfigKey::new(NAME, text, Some(""), Importance::High, "Name of the connector."),
        ConfigKey::new(
            CLASS,
            text,
            None,
            Importance::High,
            "Class of the connector, or a short name of it.",
        ),
        ConfigKey::new(
            PLUGIN_VERSION,
            text,
            Some(""),
            Importance::Medium,
            "Version that the class must have; empty: that of this server, which is the one choice.",
        ),
        ConfigKey::new(
            RELOAD,
            KeyType::Choice(&["none", "restart"]),
            Some("restart"),
            Importance::Low,
            "Accepted for Kafka Connect's sake: what a configuration refers to outside of it is read when \
             a task starts, and not watched.",
        ),
        ConfigKey::new(
            TASKS_MAX,
            times(1, 1000),
            Some("1"),
            Importance::High,
            "Greatest number of tasks. A sink has as many; a source has as many as it can divide its \
             work among.",
        ),
        ConfigKey::new(
            TASKS_MAX_ENFORCE,
            KeyType::Boolean,
            Some("true"),
            Importance::Low,
            "Whether a source that asks for more than `tasks.max` tasks is refused.",
        ),
        ConfigKey::new(
            FLUSH_INTERVAL,
            times(10, 3_600_000),
            Some("1000"),
            Importance::Medium,
            "Longest time in milliseconds between an acknowledgement and the offset record that \
             covers it: what a crash delivers again.",
        ),
        ConfigKey::new(
            OFFSETS_TOPIC,
            text,
            Some(""),
            Importance::Low,
            "Topic of the connector's offsets alone; empty for that of the server. It is made where it is \
             missing, and an offset that it does not have is taken from the server's.",
        ),
        ConfigKey::new(
            DRAIN_TIMEOUT,
            times(0, 600_000),
            Some("5000"),
            Importance::Low,
            "Time in milliseconds that a task has to reach the end of a transaction when it stops.",
        ),
        ConfigKey::new(
            RETRY_TIMEOUT,
            times(-1, i64::MAX),
            Some("-1"),
            Importance::Medium,
            "Time in milliseconds during which a task is started again after an error that may pass by \
             itself; -1: for ever. An error that a person must act on stops it at once.",
        ),
        ConfigKey::new(
            RETRY_DELAY_MAX,
            times(1, 86_400_000),
            Some("60000"),
            Importance::Medium,
            "Greatest time in milliseconds between two attempts; the first is 300, then doubled.",
        ),
    ]
}

/// How a writer sends; see `client_overrides`.
fn sending_keys() -> Vec<ConfigKey> {
    vec![
        ConfigKey::new(
            MAX_RECORD,
            number(1024, 1 << 30),
            Some("10485760"),
            Importance::Medium,
            "Largest record in bytes, with key and headers. The task stops at a larger one.",
        ),
        ConfigKey::new(
            LINGER,
            number(0, 60_000),
            Some("5"),
            Importance::Low,
            "How long a batch of records waits to grow, in milliseconds.",
        ),
        ConfigKey::new(
            DELIVERY_TIMEOUT,
            number(1_000, i64::from(i32::MAX)),
            Some("120000"),
            Importance::Low,
            "How long a record may stay unacknowledged, in milliseconds, before the task fails and is \
             started again.",
        ),
    ]
}

/// They count where the worker's own setting enables transactions.
fn transaction_keys() -> Vec<ConfigKey> {
    vec![
        ConfigKey::new(
            EXACTLY_ONCE,
            KeyType::Choice(&["requested", "required"]),
            Some("requested"),
            Importance::Medium,
            "Whether the connector is refused where it would not be exactly-once: required, or requested \
             for where it can be. The server's worker.exactly_once_source_support turns it on.",
        ),
        ConfigKey::new(
            TRANSACTION_BOUNDARY,
            KeyType::Choice(&["poll", "interval", "connector"]),
            Some("poll"),
            Importance::Medium,
            "Where a transaction of the log ends, exactly-once: after what was read at once (poll), at \
             the first such place after transaction.boundary.interval.ms (interval), or with each \
             transaction of the source (connector). Poll and interval do not tear a transaction of the \
             source, unless it takes longer than half of producer.override.transaction.timeout.ms.",
        ),
        ConfigKey::new(
            TRANSACTION_INTERVAL,
            number(1, 3_600_000),
            Some("1000"),
            Importance::Low,
            "Time in milliseconds between two ends of a transaction where the boundary is interval; by \
             default that of offset.flush.interval.ms.",
        ),
        ConfigKey::new(
            TRANSACTION_TIMEOUT,
            number(1000, 900_000),
            Some("60000"),
            Importance::Low,
            "Time in milliseconds after which the log aborts a transaction that is open, exactly-once. \
             Readers of committed records wait for as long after a crash, unless the task starts again.",
        ),
    ]
}

fn topic_keys() -> Vec<ConfigKey> {
    vec![
        ConfigKey::new(
            RETENTION_MS,
            number(-1, i64::MAX),
            Some("604800000"),
            Importance::High,
            "How long the trail keeps records, in milliseconds since they were appended; -1: for \
             ever. Used when the trail is made.",
        ),
        ConfigKey::new(
            RETENTION_BYTES,
            number(-1, i64::MAX),
            Some("-1"),
            Importance::Medium,
            "How many bytes the trail keeps; -1: no bound. Used when the trail is made.",
        ),
        ConfigKey::new(
            topic_creation::GROUPS,
            KeyType::List,
            Some(""),
            Importance::Low,
            "Groups of topics beside default, at most 64, separated by commas. Each has keys \
             topic.creation.GROUP.include and .exclude, regular expressions for whole names of topics, \
             and those of the group default; the first that fits makes the topic.",
        ),
        ConfigKey::new(
            TABLE_PARTITIONS,
            topic_creation::count(10_000),
            Some("1"),
            Importance::Medium,
            "Partitions of the topic of a table, 1 to 10000; -1: the cluster's own default. Used when the \
             topic is made, as are the other topic.creation keys, which may name any option of a topic; a \
             topic that exists is written as it is.",
        ),
        ConfigKey::new(
            TABLE_REPLICATION,
            topic_creation::count(100),
            Some("-1"),
            Importance::Low,
            "Replicas of the topic of a table; -1: the cluster's own default.",
        ),
        ConfigKey::new(
            TABLE_CLEANUP,
            KeyType::Choice(&["delete", "compact", "compact,delete", "delete,compact"]),
            Some("delete"),
            Importance::Medium,
            "cleanup.policy of the topic of a table. A compacted topic takes no record without a key: \
             the connector stops at a TRUNCATE and at a table without key.",
        ),
        ConfigKey::new(
            TABLE_RETENTION_MS,
            number(-1, i64::MAX),
            Some("604800000"),
            Importance::Medium,
            "How long the topic of a table keeps records, in milliseconds since they were appended; \
             -1: for ever.",
        ),
        ConfigKey::new(
            TABLE_RETENTION_BYTES,
            number(-1, i64::MAX),
            Some("-1"),
            Importance::Low,
            "How many bytes a partition of the topic of a table keeps; -1: no bound.",
        ),
    ]
}
