//! Configuration keys of the worker that sinks alone may carry, under Kafka Connect's names.

use std::collections::BTreeMap;

use highwater_connector::{Config, ConfigDef, ConfigKey, Importance, KeyType, Problem};
use highwater_kafka::{ConsumerSettings, OffsetReset, Subscription};

use crate::pipeline::Properties;
use crate::tolerance::DeadLetterSettings;
use crate::topics::{RESERVED, misnamed};

const TOPICS: &str = "topics";
const TOPICS_REGEX: &str = "topics.regex";
const DEAD_LETTERS: &str = "errors.deadletterqueue.topic.name";
pub(crate) const DEAD_LETTER_REPLICAS: &str = "errors.deadletterqueue.topic.replication.factor";
const DEAD_LETTER_HEADERS: &str = "errors.deadletterqueue.context.headers.enable";
const GROUP: &str = "consumer.override.group.id";
const INSTANCE: &str = "consumer.override.group.instance.id";
const RESET: &str = "consumer.override.auto.offset.reset";
const ISOLATION: &str = "consumer.override.isolation.level";
const MAX_POLL_RECORDS: &str = "consumer.override.max.poll.records";
const MAX_POLL_INTERVAL: &str = "consumer.override.max.poll.interval.ms";
const FETCH_BYTES: &str = "consumer.override.fetch.max.bytes";
const PARTITION_BYTES: &str = "consumer.override.max.partition.fetch.bytes";
const SESSION: &str = "consumer.override.session.timeout.ms";
const HEARTBEAT: &str = "consumer.override.heartbeat.interval.ms";
const METADATA_AGE: &str = "consumer.override.metadata.max.age.ms";

/// The keys that every sink may carry beside its own and [`crate::worker_keys`], in the order of the
/// reference.
pub fn sink_keys() -> Vec<ConfigKey> {
    let mut keys = topic_keys();
    keys.extend(dead_letter_keys());
    keys.extend(group_keys());
    keys.extend(fetch_keys());
    keys
}

const fn number(min: i64, max: i64) -> KeyType {
    KeyType::Int { min, max }
}

fn topic_keys() -> Vec<ConfigKey> {
    vec![
        ConfigKey::new(
            TOPICS,
            KeyType::List,
            Some(""),
            Importance::High,
            "Topics that are read, separated by commas. Either this or `topics.regex` must be given.",
        ),
        ConfigKey::new(
            TOPICS_REGEX,
            KeyType::String,
            Some(""),
            Importance::High,
            "Regular expression for the whole names of the topics that are read, also of those that \
             are made later. The server's own topics never are. Look-around and back references are \
             not known.",
        ),
    ]
}

fn dead_letter_keys() -> Vec<ConfigKey> {
    vec![
        ConfigKey::new(
            DEAD_LETTERS,
            KeyType::String,
            Some(""),
            Importance::Medium,
            "Topic that gets the records that cannot be handled; empty: none does. Made with one \
             partition where it is missing. With `errors.tolerance=all` alone.",
        ),
        ConfigKey::new(
            DEAD_LETTER_REPLICAS,
            number(-1, 32_767),
            Some("-1"),
            Importance::Medium,
            "Replicas of the topic of dead letters where it is made; -1: the cluster's own default.",
        ),
        ConfigKey::new(
            DEAD_LETTER_HEADERS,
            KeyType::Boolean,
            Some("false"),
            Importance::Medium,
            "Whether its records say in `__connect.errors.` headers where they come from and why.",
        ),
    ]
}

fn group_keys() -> Vec<ConfigKey> {
    vec![
        ConfigKey::new(
            GROUP,
            KeyType::String,
            Some(""),
            Importance::Medium,
            "Consumer group; empty: `connect-` and the connector's name.",
        ),
        ConfigKey::new(
            INSTANCE,
            KeyType::String,
            Some(""),
            Importance::Low,
            "Name of a static member, to which `-` and the task's id are added; empty: none. A task \
             that is back within its session time-out finds its partitions again; until it is over, \
             the offsets of a connector that is stopped cannot be changed.",
        ),
        ConfigKey::new(
            RESET,
            KeyType::Choice(&["earliest", "latest", "none"]),
            Some("earliest"),
            Importance::Medium,
            "Where a partition is read whose group has no offset, or one that the log lacks; `none`: \
             the task fails.",
        ),
        ConfigKey::new(
            ISOLATION,
            KeyType::Choice(&["read_committed", "read_uncommitted"]),
            Some("read_committed"),
            Importance::Low,
            "Records of open and aborted transactions are never read, whatever it says.",
        ),
        ConfigKey::new(
            SESSION,
            number(1_000, 1_800_000),
            Some("45000"),
            Importance::Low,
            "After how long a silence, in milliseconds, others get a task's partitions. The brokers' \
             `group.min.session.timeout.ms` (6000) is the least, else the task fails.",
        ),
        ConfigKey::new(
            HEARTBEAT,
            number(100, 600_000),
            Some("3000"),
            Importance::Low,
            "How often a task says that it lives, in milliseconds; at most a third of \
             `session.timeout.ms`.",
        ),
        ConfigKey::new(
            METADATA_AGE,
            number(100, 86_400_000),
            Some("300000"),
            Importance::Low,
            "How often it is looked for new topics and partitions, in milliseconds.",
        ),
    ]
}

fn fetch_keys() -> Vec<ConfigKey> {
    vec![
        ConfigKey::new(
            MAX_POLL_RECORDS,
            number(1, 1_000_000),
            Some("500"),
            Importance::Medium,
            "Most records that the sink is given at once.",
        ),
        ConfigKey::new(
            MAX_POLL_INTERVAL,
            number(1_000, 86_400_000),
            Some("300000"),
            Importance::Low,
            "How long, in milliseconds, the sink may be busy with what it was given before others get \
             its partitions, and how long they wait for it to let go.",
        ),
        ConfigKey::new(
            FETCH_BYTES,
            number(1_024, 1 << 30),
            Some("52428800"),
            Importance::Low,
            "About how many bytes of records a task holds that the sink has not been given, and how \
             many it is given at once.",
        ),
        ConfigKey::new(
            PARTITION_BYTES,
            number(1_024, 1 << 30),
            Some("1048576"),
            Importance::Low,
            "Bytes of one fetch. A larger batch of records comes whole all the same.",
        ),
    ]
}

/// What a sink's configuration says to the worker.
pub(crate) struct SinkSettings {
    pub(crate) consumer: ConsumerSettings,
    /// Where records go that cannot be handled, if they are not only left out.
    pub(crate) dead_letters: Option<DeadLetterSettings>,
}

impl SinkSettings {
    /// Reads the sink's keys of the properties of task `task` of connector `name`.
    ///
    /// # Errors
    /// All problems at once.
    pub(crate) fn read(
        name: &str,
        task: u32,
        properties: &Properties,
    ) -> Result<Self, Vec<Problem>> {
        let keys = sink_keys();
        let own: BTreeMap<String, String> = properties
            .iter()
            .filter(|(name, _)| keys.iter().any(|key| key.name == name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let config = ConfigDef::new(keys).parse(&own, &[])?;
        let subscription = subscription(&config)?;
        let dead_letters = dead_letters(&config).map_err(|problem| vec![problem])?;
        let consumer = consumer(name, task, &config, subscription);
        if consumer.heartbeat_interval * 3 > consumer.session_timeout {
            return Err(vec![Problem::new(
                HEARTBEAT,
                "is more than a third of session.timeout.ms",
            )]);
        }
        Ok(Self { consumer, dead_letters })
    }
}

/// What is wrong with both keys is said of both, as Kafka Connect does.
fn subscription(config: &Config) -> Result<Subscription, Vec<Problem>> {
    let (names, pattern) = (config.list(TOPICS), config.text(TOPICS_REGEX));
    let both = |ours: &str, theirs: &str| {
        Err(vec![Problem::new(TOPICS, ours), Problem::new(TOPICS_REGEX, theirs)])
    };
    match (names.is_empty(), pattern.is_empty()) {
        (true, true) => {
            both("is required, unless topics.regex is given", "is required, unless topics is given")
        }
        (false, false) => {
            both("and topics.regex exclude each other", "and topics exclude each other")
        }
        (true, false) => Subscription::pattern(pattern, RESERVED).map_err(|error| {
            vec![Problem::new(TOPICS_REGEX, format!("is no regular expression: {error}"))]
        }),
        (false, true) => match names.iter().find_map(|name| misnamed(name)) {
            Some(message) => Err(vec![Problem::new(TOPICS, message)]),
            None => Ok(Subscription::Topics(names.into_iter().map(str::to_owned).collect())),
        },
    }
}

fn dead_letters(config: &Config) -> Result<Option<DeadLetterSettings>, Problem> {
    let topic = config.text(DEAD_LETTERS);
    if let Some(message) = misnamed(topic).filter(|_| !topic.is_empty()) {
        return Err(Problem::new(DEAD_LETTERS, message));
    }
    if config.list(TOPICS).contains(&topic) {
        return Err(Problem::new(
            TOPICS,
            "has the topic that records go to which cannot be handled",
        ));
    }
    let headers = config.flag(DEAD_LETTER_HEADERS);
    Ok((!topic.is_empty()).then(|| DeadLetterSettings {
        topic: topic.to_owned(),
        replication: i16::try_from(config.int(DEAD_LETTER_REPLICAS)).unwrap_or(-1),
        headers,
    }))
}

fn consumer(
    name: &str,
    task: u32,
    config: &Config,
    subscription: Subscription,
) -> ConsumerSettings {
    let size = |key| usize::try_from(config.int(key)).unwrap_or(usize::MAX);
    let given = |key| Some(config.text(key)).filter(|text| !text.is_empty());
    let group = given(GROUP).map_or_else(|| sink_group(name), str::to_owned);
    ConsumerSettings {
        instance_id: given(INSTANCE).map(|instance| format!("{instance}-{task}")),
        reset: match config.text(RESET) {
            "latest" => OffsetReset::Latest,
            "none" => OffsetReset::None,
            _ => OffsetReset::Earliest,
        },
        session_timeout: config.millis(SESSION),
        heartbeat_interval: config.millis(HEARTBEAT),
        max_poll_interval: config.millis(MAX_POLL_INTERVAL),
        metadata_max_age: config.millis(METADATA_AGE),
        max_poll_records: size(MAX_POLL_RECORDS),
        max_poll_bytes: size(FETCH_BYTES),
        max_fetch_bytes: u32::try_from(config.int(PARTITION_BYTES)).unwrap_or(u32::MAX),
        ..ConsumerSettings::new(&group, subscription)
    }
}

/// The consumer group of a sink connector that names none.
pub(crate) fn sink_group(connector: &str) -> String {
    format!("connect-{connector}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<SinkSettings, Vec<Problem>> {
        let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        SinkSettings::read("s", 2, &pairs.iter().map(pair).collect())
    }

    #[test]
    fn the_defaults_are_those_of_kafka_connect() {
        let settings = read(&[(TOPICS, "a, b")]).unwrap();
        let consumer = settings.consumer;
        assert_eq!((consumer.group.as_str(), consumer.reset), ("connect-s", OffsetReset::Earliest));
        assert_eq!((consumer.max_poll_records, consumer.instance_id), (500, None));
        assert!(settings.dead_letters.is_none());
    }

    #[test]
    fn overrides_count_and_a_static_member_bears_its_task() {
        let settings = read(&[
            (TOPICS_REGEX, "shop\\..*"),
            (GROUP, "g"),
            (INSTANCE, "node"),
            (RESET, "none"),
            (MAX_POLL_RECORDS, "7"),
            (DEAD_LETTERS, "dead"),
            (DEAD_LETTER_REPLICAS, "3"),
        ]);
        let SinkSettings { consumer, dead_letters } = settings.unwrap();
        assert_eq!((consumer.group.as_str(), consumer.reset), ("g", OffsetReset::None));
        assert_eq!(consumer.instance_id.as_deref(), Some("node-2"));
        assert_eq!(consumer.max_poll_records, 7);
        let letters =
            DeadLetterSettings { topic: "dead".to_owned(), replication: 3, headers: false };
        assert_eq!(dead_letters, Some(letters));
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_key() {
        for (pairs, key) in [
            (&[][..], TOPICS),
            (&[(TOPICS, "a"), (TOPICS_REGEX, "b")], TOPICS),
            (&[(TOPICS, "a,highwater.configs")], TOPICS),
            (&[(TOPICS, "__consumer_offsets")], TOPICS),
            (&[(TOPICS, "a,b/c")], TOPICS),
            (&[(TOPICS, "..")], TOPICS),
            (&[(TOPICS, "a"), (DEAD_LETTERS, "a/b")], DEAD_LETTERS),
            (&[(TOPICS_REGEX, "(")], TOPICS_REGEX),
            (&[(TOPICS_REGEX, "a(?=b)")], TOPICS_REGEX),
            (&[(TOPICS, "a"), (DEAD_LETTERS, "a")], TOPICS),
            (&[(TOPICS, "a"), (DEAD_LETTERS, "highwater.offsets")], DEAD_LETTERS),
            (&[(TOPICS, "a"), (SESSION, "6000"), (HEARTBEAT, "2001")], HEARTBEAT),
            (&[(TOPICS, "a"), (ISOLATION, "read_some")], ISOLATION),
        ] {
            let problems = read(pairs).err().unwrap();
            assert_eq!(problems[0].key, key, "{pairs:?}");
        }
    }
}
