//! Topics of the engine's own records.

use std::collections::BTreeMap;

use highwater_connector::{Config, Problem, schema_topic};

/// Names of the topics of the engine's own records.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnTopicNames {
    /// What happened to the connector.
    pub ops: String,
    /// Positions of a quiet database.
    pub heartbeat: String,
    /// Rows that could not be delivered.
    pub dead_letters: String,
    /// Open transactions.
    pub journal: String,
    /// Table descriptions; named as that of every source with tables.
    pub schema: String,
}

/// Keys that name them, and what their names end with without.
const KEYS: [(&str, &str); 4] = [
    ("cdc.ops.topic", "ops"),
    ("cdc.heartbeat.topic", "heartbeat"),
    ("cdc.dlq.topic", "dlq"),
    ("cdc.txjournal.topic", "txjournal"),
];

impl OwnTopicNames {
    /// The topics of a connector with this configuration.
    pub fn read(config: &Config) -> Self {
        let [ops, heartbeat, dead_letters, journal] = KEYS.map(|(key, end)| name(config, key, end));
        let schema = schema_topic(config.text("cdc.topic.prefix"));
        Self { ops, heartbeat, dead_letters, journal, schema }
    }
}

fn name(config: &Config, key: &str, end: &str) -> String {
    match config.text(key) {
        "" => format!("{}.cdc.{end}", config.text("cdc.topic.prefix")),
        name => name.to_owned(),
    }
}

/// Records of two kinds must not meet in one topic.
pub(super) fn problem(config: &Config) -> Option<Problem> {
    let prefix = config.text("cdc.topic.prefix");
    let mut taken = BTreeMap::from([
        (prefix.to_owned(), "the trail"),
        (schema_topic(prefix), "table descriptions"),
    ]);
    KEYS.iter().find_map(|&(key, end)| {
        let name = name(config, key, end);
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        // Without a name of its own the prefix is at fault.
        let is_given = !config.text(key).is_empty();
        if is_given && (name.len() > 249 || !name.bytes().all(fits)) {
            return Some(Problem::new(key, format!("is {name:?}, no topic name")));
        }
        let of = taken.insert(name.clone(), key)?;
        Some(Problem::new(key, format!("is {name:?}, which is the topic of {of}")))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::sample::config;

    #[test]
    fn each_has_its_name_or_one_below_the_prefix() {
        let names = OwnTopicNames::read(&config(&[("cdc.dlq.topic", "dead")]));
        assert_eq!((names.ops.as_str(), names.dead_letters.as_str()), ("shop.cdc.ops", "dead"));
        assert_eq!(names.heartbeat, "shop.cdc.heartbeat");
        assert_eq!(names.journal, "shop.cdc.txjournal");
        assert_eq!(names.schema, "shop.schema");
    }

    #[test]
    fn two_kinds_of_records_never_share_a_topic() {
        for (key, name) in [
            ("cdc.ops.topic", "shop"),
            ("cdc.ops.topic", "shop.schema"),
            ("cdc.dlq.topic", "shop.cdc.ops"),
            ("cdc.txjournal.topic", "shop.cdc.dlq"),
            ("cdc.dlq.topic", "a b"),
        ] {
            assert_eq!(problem(&config(&[(key, name)])).unwrap().key, key, "{name}");
        }
        assert_eq!(problem(&config(&[])), None);
    }
}
