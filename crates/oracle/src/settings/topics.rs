//! Topics of the engine's own records.

use std::collections::BTreeMap;

use highwater_connector::{Config, Problem, schema_topic};

use crate::delivery::OwnTopics;

/// Keys that name them, and what their names end with without.
const KEYS: [(&str, &str); 4] = [
    ("cdc.ops.topic", "ops"),
    ("cdc.heartbeat.topic", "heartbeat"),
    ("cdc.dlq.topic", "dlq"),
    ("cdc.txjournal.topic", "txjournal"),
];

/// The topics of a connector with this configuration.
pub fn own_topics(config: &Config) -> OwnTopics {
    let [ops, heartbeat, dead_letters, journal] =
        KEYS.map(|(key, end)| name(config, key, end).into());
    let schema = schema_topic(config.text("cdc.topic.prefix")).into();
    OwnTopics { ops, heartbeat, dead_letters, journal, schema }
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
        let dead_letters = "dead".into();
        let expected = OwnTopics { dead_letters, ..OwnTopics::of("shop") };
        assert_eq!(own_topics(&config(&[("cdc.dlq.topic", "dead")])), expected);
        assert_eq!(&*expected.ops, "shop.cdc.ops");
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
