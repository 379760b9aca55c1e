//! `topic.creation.*`: how the topics of a source are made where they are missing (KIP-158).
//!
//! A topic is made as the first group says whose expressions its name fits, else as the group
//! `default` says. Options of a topic are a group's own, each beside what this worker would set.

use std::collections::{BTreeMap, BTreeSet};

use highwater_connector::{Config, KeyType, Problem};
use regex::{RegexSet, RegexSetBuilder};

use crate::cluster::REQUEST_OVERHEAD;
use crate::pipeline::Properties;
use crate::topic_options;

/// Key of the groups' names.
pub(crate) const GROUPS: &str = "topic.creation.groups";
const PREFIX: &str = "topic.creation.";
const DEFAULT: &str = "default";
const PARTITIONS: &str = "partitions";
const REPLICATION: &str = "replication.factor";
const INCLUDE: &str = "include";
const EXCLUDE: &str = "exclude";
/// Options of a group that are no settings of its topics.
const OWN: [&str; 4] = [PARTITIONS, REPLICATION, INCLUDE, EXCLUDE];

/// Groups of one connector.
const MOST_GROUPS: usize = 64;
/// Memory of the compiled expressions of one key, in bytes.
const LARGEST_PATTERNS: usize = 1 << 20;

/// What a topic has that nothing else is said of. Age counts from the append: a snapshot of
/// ten-year-old rows must survive (rule L5).
const UNSAID: [(&str, &str); 4] = [
    ("cleanup.policy", "delete"),
    ("message.timestamp.type", "LogAppendTime"),
    ("retention.ms", "604800000"),
    ("retention.bytes", "-1"),
];

/// How a topic is made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TopicSettings {
    /// Number of partitions; -1 for what the cluster makes.
    pub(crate) partitions: i32,
    /// Number of replicas; -1 for what the cluster makes.
    pub(crate) replication: i16,
    /// Key that says so.
    pub(crate) replication_key: String,
    /// Topic configuration, such as `cleanup.policy`.
    pub(crate) configs: BTreeMap<String, String>,
}

/// See the module's text.
#[derive(Clone, Debug)]
pub(crate) struct TopicCreation {
    /// Whether the worker makes topics at all.
    enabled: bool,
    groups: Vec<Group>,
    default: TopicSettings,
}

#[derive(Clone, Debug)]
struct Group {
    include: RegexSet,
    exclude: RegexSet,
    settings: TopicSettings,
}

impl Group {
    fn takes(&self, topic: &str) -> bool {
        self.include.is_match(topic) && !self.exclude.is_match(topic)
    }
}

impl TopicCreation {
    /// Reads the keys of `properties`, those of the reference having been read into `config`.
    ///
    /// # Errors
    /// All problems at once.
    pub(crate) fn read(
        properties: &Properties,
        config: &Config,
        max_record_bytes: usize,
        enabled: bool,
    ) -> Result<Self, Vec<Problem>> {
        let mut names = config.list(GROUPS);
        let mut problems = misnamed(&names);
        names.truncate(MOST_GROUPS);
        let options = options(properties, &names, &mut problems);
        let unsaid = TopicSettings {
            partitions: 1,
            replication: -1,
            replication_key: key(DEFAULT, REPLICATION),
            configs: unsaid_configs(max_record_bytes),
        };
        let mut reader = Reader { options: &options, problems };
        let default = reader.settings(DEFAULT, &unsaid);
        let inherited = TopicSettings { configs: unsaid.configs, ..default.clone() };
        let others = names.iter().filter(|name| **name != DEFAULT);
        let groups = others.map(|name| reader.group(name, &inherited)).collect();
        if reader.problems.is_empty() {
            Ok(Self { enabled, groups, default })
        } else {
            Err(reader.problems)
        }
    }

    /// How this topic is made; `None` when others make topics.
    pub(crate) fn of(&self, topic: &str) -> Option<&TopicSettings> {
        let group = self.groups.iter().find(|group| group.takes(topic));
        let settings = group.map_or(&self.default, |group| &group.settings);
        self.enabled.then_some(settings)
    }
}

/// The key of a group's option.
fn key(group: &str, option: &str) -> String {
    format!("{PREFIX}{group}.{option}")
}

/// Whether a key is one of a group, so that its name is the connector's own.
pub(crate) fn is_of_a_group(key: &str) -> bool {
    key.starts_with(PREFIX) && key != GROUPS
}

fn unsaid_configs(max_record_bytes: usize) -> BTreeMap<String, String> {
    let max_bytes = max_record_bytes.saturating_add(REQUEST_OVERHEAD).to_string();
    let configs = UNSAID.into_iter().chain([("max.message.bytes", max_bytes.as_str())]);
    configs.map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

fn misnamed(names: &[&str]) -> Vec<Problem> {
    let mut seen = BTreeSet::new();
    let twice = names.iter().filter(|name| !seen.insert(**name));
    let mut problems: Vec<_> =
        twice.map(|name| Problem::new(GROUPS, format!("names {name} twice"))).collect();
    if names.len() > MOST_GROUPS {
        problems.push(Problem::new(GROUPS, format!("names more than {MOST_GROUPS} groups")));
    }
    problems
}

/// What the properties say, by group and option.
type Options<'a> = BTreeMap<&'a str, BTreeMap<&'a str, &'a str>>;

fn options<'a>(
    properties: &'a Properties,
    names: &[&'a str],
    problems: &mut Vec<Problem>,
) -> Options<'a> {
    let mut options = Options::new();
    for (key, value) in properties.iter().filter(|(key, _)| is_of_a_group(key)) {
        match split(key, names) {
            Some((group, option)) => {
                options.entry(group).or_default().insert(option, value.trim());
            }
            None => {
                let message = format!("belongs to no group that {GROUPS} names");
                problems.push(Problem::new(key, message));
            }
        }
    }
    options
}

/// The group and the option of a key. A group may have a dot in its name, and then another's name
/// before it: the longest counts.
fn split<'a>(key: &'a str, names: &[&'a str]) -> Option<(&'a str, &'a str)> {
    let rest = key.strip_prefix(PREFIX)?;
    let option = |name: &&'a str| {
        let option = rest.strip_prefix(*name)?.strip_prefix('.')?;
        (!option.is_empty()).then_some((*name, option))
    };
    let found = names.iter().chain([&DEFAULT]).filter_map(option);
    found.max_by_key(|(name, _)| name.len())
}

/// Reads groups, and keeps what is wrong with them.
struct Reader<'a> {
    options: &'a Options<'a>,
    problems: Vec<Problem>,
}

impl Reader<'_> {
    fn group(&mut self, name: &str, inherited: &TopicSettings) -> Group {
        let settings = self.settings(name, inherited);
        let (include, exclude) = (self.patterns(name, INCLUDE), self.patterns(name, EXCLUDE));
        if !self.says(name, INCLUDE) {
            self.refuse(name, INCLUDE, "is required and has no default".to_owned());
        }
        Group { include, exclude, settings }
    }

    fn settings(&mut self, name: &str, unsaid: &TopicSettings) -> TopicSettings {
        let mut settings = unsaid.clone();
        for (option, value) in self.options.get(name).into_iter().flatten() {
            match *option {
                PARTITIONS => {
                    settings.partitions = self.number(name, option, value, 10_000);
                }
                REPLICATION => {
                    settings.replication = self.number(name, option, value, 100);
                    settings.replication_key = key(name, option);
                }
                INCLUDE | EXCLUDE if name != DEFAULT => {}
                INCLUDE | EXCLUDE => {
                    let why = "is not for this group, which takes what is left";
                    self.refuse(name, option, why.to_owned());
                }
                "message.timestamp.type" if *value != "LogAppendTime" => {
                    let why = "must be LogAppendTime: retention would take old rows at once";
                    self.refuse(name, option, why.to_owned());
                }
                option => match topic_options::misspelt(option, &OWN) {
                    Some(why) => self.refuse(name, option, why),
                    None => drop(settings.configs.insert(option.to_owned(), (*value).to_owned())),
                },
            }
        }
        settings
    }

    fn number<T: TryFrom<i64> + Default>(
        &mut self,
        name: &str,
        option: &str,
        value: &str,
        max: i64,
    ) -> T {
        let read = match value.parse::<i64>() {
            Ok(number) if number == -1 || (1..=max).contains(&number) => T::try_from(number).ok(),
            _ => None,
        };
        read.unwrap_or_else(|| {
            let why =
                format!("must be a whole number from 1 to {max}, or -1 for the cluster's own");
            self.refuse(name, option, why);
            T::default()
        })
    }

    fn says(&self, name: &str, option: &str) -> bool {
        self.options.get(name).is_some_and(|options| options.contains_key(option))
    }

    fn patterns(&mut self, name: &str, option: &str) -> RegexSet {
        let text = self.options.get(name).and_then(|options| options.get(option)).copied();
        let items = text.unwrap_or_default().split(',').map(str::trim);
        whole(items.filter(|item| !item.is_empty())).unwrap_or_else(|error| {
            self.refuse(name, option, format!("has what is no regular expression: {error}"));
            RegexSet::empty()
        })
    }

    fn refuse(&mut self, name: &str, option: &str, message: String) {
        self.problems.push(Problem::new(&key(name, option), message));
    }
}

/// Expressions, one of which all of a name must fit.
fn whole<'a>(patterns: impl Iterator<Item = &'a str>) -> Result<RegexSet, regex::Error> {
    let whole = patterns.map(|pattern| format!("\\A(?:{pattern})\\z"));
    RegexSetBuilder::new(whole).size_limit(LARGEST_PATTERNS).build()
}

/// The type of a number of partitions or replicas in the reference; 0 is refused when it is read.
pub(crate) const fn count(max: i64) -> KeyType {
    KeyType::Int { min: -1, max }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WorkerConfig;
    use crate::task_settings::TaskSettings;

    fn read(pairs: &[(&str, &str)]) -> Result<TopicCreation, Vec<Problem>> {
        let worker = WorkerConfig::new("127.0.0.1:9092", "w");
        let class = [("connector.class", "fake")];
        let properties = class.iter().chain(pairs);
        let properties =
            properties.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        TaskSettings::read(&properties, &worker).map(|settings| settings.creation)
    }

    fn keys_at_fault(pairs: &[(&str, &str)]) -> Vec<String> {
        read(pairs).unwrap_err().into_iter().map(|problem| problem.key).collect()
    }

    #[test]
    fn where_nothing_is_said_age_counts_from_the_append() {
        let creation = read(&[]).unwrap();
        let made = creation.of("t").unwrap();
        assert_eq!((made.partitions, made.replication), (1, -1));
        let value = |key: &str| made.configs.get(key).map(String::as_str);
        assert_eq!(value("message.timestamp.type"), Some("LogAppendTime"));
        assert_eq!(value("cleanup.policy"), Some("delete"));
        assert_eq!(value("retention.ms"), Some("604800000"));
        let largest: usize = value("max.message.bytes").unwrap().parse().unwrap();
        assert!(largest > 10_485_760, "{largest}");
    }

    #[test]
    fn the_first_group_that_fits_makes_the_topic_and_the_default_what_is_left() {
        let creation = read(&[
            (GROUPS, "audit, wide"),
            ("topic.creation.default.partitions", "3"),
            ("topic.creation.default.compression.type", "zstd"),
            ("topic.creation.audit.include", "shop\\.audit.*, .*_log"),
            ("topic.creation.audit.exclude", ".*\\.audit_off"),
            ("topic.creation.audit.cleanup.policy", "compact"),
            ("topic.creation.audit.replication.factor", "2"),
            ("topic.creation.wide.include", "shop.*"),
            ("topic.creation.wide.partitions", "-1"),
        ])
        .unwrap();
        let partitions = |topic| creation.of(topic).unwrap().partitions;
        let policy = |topic| creation.of(topic).unwrap().configs["cleanup.policy"].as_str();
        assert_eq!((policy("shop.audit"), partitions("shop.audit")), ("compact", 3));
        assert_eq!(creation.of("shop.audit").unwrap().replication, 2);
        let key = "topic.creation.audit.replication.factor";
        assert_eq!(creation.of("shop.audit").unwrap().replication_key, key);
        assert_eq!((policy("shop.audit_off"), partitions("shop.audit_off")), ("delete", -1));
        assert_eq!((policy("crm"), partitions("crm")), ("delete", 3));
        assert_eq!(creation.of("crm").unwrap().configs["compression.type"], "zstd");
        // An expression is for the whole name, and options are a group's own, as in Kafka Connect.
        assert_eq!(policy("my.shop.audit"), "delete");
        assert!(!creation.of("shop.audit").unwrap().configs.contains_key("compression.type"));
    }

    #[test]
    fn the_group_of_the_longest_name_has_a_key_with_a_dot() {
        let creation = read(&[
            (GROUPS, "a,a.b"),
            ("topic.creation.a.include", "x"),
            ("topic.creation.a.b.include", "y"),
            ("topic.creation.a.b.partitions", "7"),
        ])
        .unwrap();
        let partitions = |topic| creation.of(topic).unwrap().partitions;
        assert_eq!((partitions("x"), partitions("y")), (1, 7));
    }

    #[test]
    fn each_mistake_is_named_by_its_key() {
        let fault = |pairs: &[(&str, &str)], keys: &[&str]| {
            assert_eq!(keys_at_fault(pairs), keys, "{pairs:?}");
        };
        fault(&[(GROUPS, "g")], &["topic.creation.g.include"]);
        fault(&[("topic.creation.g.include", "x")], &["topic.creation.g.include"]);
        fault(&[("topic.creation.default.include", "x")], &["topic.creation.default.include"]);
        let include = ("topic.creation.g.include", "x");
        fault(&[(GROUPS, "g,g"), include], &[GROUPS]);
        for (key, value) in [
            ("topic.creation.g.partitions", "0"),
            ("topic.creation.g.partitions", "10001"),
            ("topic.creation.g.replication.factor", "many"),
            ("topic.creation.g.exclude", "("),
            ("topic.creation.g.exclude", "x,(?:(?:\\w{100}){100}){100}"),
            ("topic.creation.g.message.timestamp.type", "CreateTime"),
            ("topic.creation.g.partitons", "3"),
            ("topic.creation.g.retention.mss", "3"),
        ] {
            fault(&[(GROUPS, "g"), include, (key, value)], &[key]);
        }
        fault(
            &[("topic.creation.default.partitions", "0")],
            &["topic.creation.default.partitions"],
        );
    }
}
