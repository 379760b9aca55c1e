//! Topics of the engine's own records.

use std::collections::BTreeMap;
use std::sync::Arc;

use highwater_connector::{Config, Problem};

use crate::delivery::OwnTopics;

/// The topics of a connector with this configuration.
pub fn own_topics(config: &Config) -> OwnTopics {
    let mut own = OwnTopics::of(config.text("cdc.topic.prefix"));
    for (key, topic) in keyed(&mut own) {
        if !config.text(key).is_empty() {
            *topic = config.text(key).into();
        }
    }
    own
}

/// Those that a key may name.
fn keyed(own: &mut OwnTopics) -> [(&'static str, &mut Arc<str>); 4] {
    [
        ("cdc.ops.topic", &mut own.ops),
        ("cdc.heartbeat.topic", &mut own.heartbeat),
        ("cdc.dlq.topic", &mut own.dead_letters),
        ("cdc.txjournal.topic", &mut own.journal),
    ]
}

/// Records of two kinds must not meet in one topic.
pub(super) fn problem(config: &Config) -> Option<Problem> {
    let prefix = config.text("cdc.topic.prefix");
    let mut own = own_topics(config);
    let mut taken = BTreeMap::from([
        (Arc::from(prefix), "the trail"),
        (Arc::clone(&own.schema), "table descriptions"),
    ]);
    keyed(&mut own).into_iter().find_map(|(key, name)| {
        let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        // Without a name of its own the prefix is at fault.
        let is_given = !config.text(key).is_empty();
        if is_given && (name.len() > 249 || !name.bytes().all(fits)) {
            return Some(Problem::new(key, format!("is {name:?}, no topic name")));
        }
        let of = taken.insert(Arc::clone(name), key)?;
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
