//! The settings of groups, their offsets and transactions: those that operators of Kafka set.

use highwater_broker::CoordinatorConfig;
use highwater_connector::{Config, ConfigKey, Importance, KeyType, Problem};

const LEAST_SESSION: &str = "kafka.groups.min_session_timeout_ms";
const LONGEST_SESSION: &str = "kafka.groups.max_session_timeout_ms";
const DELAY: &str = "kafka.groups.initial_rebalance_delay_ms";
const SIZE: &str = "kafka.groups.max_size";
const RETENTION: &str = "kafka.offsets.retention_minutes";
const METADATA: &str = "kafka.offsets.metadata_max_bytes";
const LONGEST_TRANSACTION: &str = "kafka.transactions.max_timeout_ms";
const ID_EXPIRATION: &str = "kafka.transactions.id_expiration_ms";

/// The longest time that Kafka's protocol can say.
const MOST: i64 = i32::MAX as i64;

/// A text in the coordinators' topics has at most so many bytes.
const LONGEST_TEXT: i64 = i16::MAX as i64;

/// Their keys.
pub(crate) fn keys() -> Vec<ConfigKey> {
    let key = |name, min, max, default, what| {
        ConfigKey::new(name, KeyType::Int { min, max }, Some(default), Importance::Low, what)
    };
    vec![
        key(
            LEAST_SESSION,
            1,
            MOST,
            "6000",
            "The shortest session time-out that a member of a group may ask for, in milliseconds. Kafka's group.min.session.timeout.ms.",
        ),
        key(
            LONGEST_SESSION,
            1,
            MOST,
            "1800000",
            "The longest one. Kafka's group.max.session.timeout.ms.",
        ),
        key(
            DELAY,
            0,
            MOST,
            "0",
            "How long the first members of an empty group wait for others, in milliseconds. Kafka's group.initial.rebalance.delay.ms, which is 3000 there.",
        ),
        key(SIZE, 1, 1_000_000, "10000", "Members that a group may have. Kafka's group.max.size."),
        key(
            RETENTION,
            1,
            MOST,
            "10080",
            "How long the offsets of a group are kept that has no members any more, or reads their topic no more, in minutes. Kafka's offsets.retention.minutes.",
        ),
        key(
            METADATA,
            0,
            LONGEST_TEXT,
            "4096",
            "Bytes of the text that a client may store with an offset. Kafka's offset.metadata.max.bytes.",
        ),
        key(
            LONGEST_TRANSACTION,
            1,
            MOST,
            "900000",
            "The longest transaction.timeout.ms that a producer may ask for, in milliseconds. Kafka's transaction.max.timeout.ms.",
        ),
        key(
            ID_EXPIRATION,
            1,
            i64::MAX,
            "604800000",
            "After which time without a change a transactional id is forgotten, in milliseconds. Kafka's transactional.id.expiration.ms.",
        ),
    ]
}

/// No session fits between bounds that have changed places.
pub(crate) fn config(config: &Config) -> Result<CoordinatorConfig, Problem> {
    // The definition bounds the numbers.
    let number = |key| i32::try_from(config.int(key)).unwrap_or(i32::MAX);
    let count = |key| usize::try_from(config.int(key)).unwrap_or(usize::MAX);
    let mut coordinators = CoordinatorConfig::default();
    let groups = &mut coordinators.groups;
    groups.min_session_timeout_ms = number(LEAST_SESSION);
    groups.max_session_timeout_ms = number(LONGEST_SESSION);
    if groups.min_session_timeout_ms > groups.max_session_timeout_ms {
        let message = format!("is above {LONGEST_SESSION}");
        return Err(Problem { key: LEAST_SESSION.to_owned(), message });
    }
    groups.initial_rebalance_delay_ms = number(DELAY);
    groups.max_size = count(SIZE);
    groups.offsets_retention_ms = config.int(RETENTION).saturating_mul(60_000);
    groups.offset_metadata_max_bytes = count(METADATA);
    coordinators.transactions.max_timeout = config.millis(LONGEST_TRANSACTION);
    coordinators.transactions.id_expiration = config.millis(ID_EXPIRATION);
    Ok(coordinators)
}
