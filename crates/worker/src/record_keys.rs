//! Configuration keys of what becomes of a record between a connector and the log: its converters,
//! its transforms, and what is done about one that they cannot handle. Kafka Connect's names.

use std::collections::BTreeMap;

use highwater_connector::{Config, ConfigKey, Importance, KeyType};
use highwater_data::{Role, converter_keys, converters, idle_options};

use crate::pipeline::Properties;

pub(crate) const TRANSFORMS: &str = "transforms";
/// Key of the predicates' aliases.
pub(crate) const PREDICATES: &str = "predicates";
const TOLERANCE: &str = "errors.tolerance";
const LOG: &str = "errors.log.enable";
const LOG_RECORDS: &str = "errors.log.include.messages";

/// The key that names the converter of a place.
pub(crate) const fn converter_key(role: Role) -> &'static str {
    match role {
        Role::Key => "key.converter",
        Role::Value => "value.converter",
        Role::Header => "header.converter",
    }
}

/// The keys that every sink may carry, and every source that yields values, beside its own and
/// [`crate::worker_keys`], in the order of the reference.
pub fn record_keys() -> Vec<ConfigKey> {
    let (text, low) = (KeyType::String, Importance::Low);
    vec![
        ConfigKey::new(
            converter_key(Role::Key),
            text,
            Some(""),
            low,
            "Converter of keys; its options follow behind `key.converter.`. Empty: that of the \
             server's `worker.key_converter`, with the options there.",
        ),
        ConfigKey::new(
            "key.converter.plugin.version",
            text,
            Some(""),
            low,
            "Version that the converter of keys must have; that of this server is the one choice.",
        ),
        ConfigKey::new(
            converter_key(Role::Value),
            text,
            Some(""),
            low,
            "Converter of values; empty: that of the server's `worker.value_converter`.",
        ),
        ConfigKey::new(
            "value.converter.plugin.version",
            text,
            Some(""),
            low,
            "Version that the converter of values must have; that of this server is the one choice.",
        ),
        ConfigKey::new(
            converter_key(Role::Header),
            text,
            Some(""),
            low,
            "Converter of headers; empty: that of the server's `worker.header_converter`.",
        ),
        ConfigKey::new(
            "header.converter.plugin.version",
            text,
            Some(""),
            low,
            "Version that the converter of headers must have; that of this server is the one choice.",
        ),
        ConfigKey::new(
            TRANSFORMS,
            KeyType::List,
            Some(""),
            low,
            "Names of transforms, at most 100, in the order in which they work; `transforms.NAME.type` is the class \
             of each, and its options follow behind `transforms.NAME.`.",
        ),
        ConfigKey::new(
            PREDICATES,
            KeyType::List,
            Some(""),
            low,
            "Names of predicates, at most 100, which `transforms.NAME.predicate` refers to; their keys begin with \
             `predicates.NAME.`.",
        ),
    ]
}

/// What is done about records that cannot be handled.
pub(crate) fn error_keys() -> Vec<ConfigKey> {
    vec![
        ConfigKey::new(
            TOLERANCE,
            KeyType::Choice(&["none", "all"]),
            Some("none"),
            Importance::Medium,
            "`none`: the task fails at a record that cannot be converted or transformed, or that a \
             sink reports as bad. `all`: it goes on without it.",
        ),
        ConfigKey::new(
            LOG,
            KeyType::Boolean,
            Some("false"),
            Importance::Medium,
            "Whether each record that cannot be handled has a line in the server's log.",
        ),
        ConfigKey::new(
            LOG_RECORDS,
            KeyType::Boolean,
            Some("false"),
            Importance::Medium,
            "Whether that line says where the record lies (of a source: where it was to go). What it \
             holds is never logged.",
        ),
    ]
}

/// What the [`error_keys`] say.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ErrorSettings {
    pub(crate) skips: bool,
    pub(crate) logs: bool,
    pub(crate) logs_records: bool,
}

impl ErrorSettings {
    pub(crate) fn of(config: &Config) -> Self {
        Self {
            skips: config.text(TOLERANCE) == "all",
            logs: config.flag(LOG),
            logs_records: config.flag(LOG_RECORDS),
        }
    }
}

/// How the options of converters, transforms and predicates begin.
const PARTS: [&str; 5] =
    ["key.converter.", "value.converter.", "header.converter.", "transforms.", "predicates."];

/// What is behind the prefix of a part's option.
fn part_option(key: &str) -> Option<&str> {
    PARTS.iter().find_map(|prefix| key.strip_prefix(prefix))
}

/// The properties without the options of converters, transforms and predicates, which check those
/// themselves.
pub(crate) fn without_parts(properties: &Properties) -> Properties {
    let others = properties.iter().filter(|(key, _)| part_option(key).is_none());
    others.map(|(key, value)| (key.clone(), value.clone())).collect()
}

/// The keys of converters, transforms and predicates among the properties, of which `known` says
/// that they are the connector's own.
pub(crate) fn of_parts(properties: &Properties, known: impl Fn(&str) -> bool) -> Vec<String> {
    let named = record_keys();
    let is_part = |key: &str| part_option(key).is_some() || named.iter().any(|own| own.name == key);
    properties.keys().filter(|key| is_part(key) && !known(key)).cloned().collect()
}

/// The name of an option of a converter, a transform or a predicate, without its place and what that is
/// called.
pub(crate) fn option_of_part(key: &str) -> Option<&str> {
    let option = part_option(key)?;
    if key.contains(".converter.") { Some(option) } else { Some(option.split_once('.')?.1) }
}

/// Whether an option is a converter's password; none of one that no converter has.
pub(crate) fn is_password_of_converter(option: &str) -> Option<bool> {
    let classes = converters(Role::Value);
    let mut keys = classes.iter().filter_map(|class| converter_keys(class)).flatten();
    keys.find(|key| key.name == option).map(|key| key.key_type == KeyType::Password)
}

/// The options of converters that change nothing, and why: a configuration keeps them when its converter is changed.
pub(crate) fn idle(properties: &Properties) -> Vec<(String, &'static str)> {
    [Role::Key, Role::Value, Role::Header]
        .into_iter()
        .flat_map(|role| idle_of(role, properties))
        .collect()
}

fn idle_of(role: Role, properties: &Properties) -> Vec<(String, &'static str)> {
    let (key, options) = (converter_key(role), converter_options(role, properties));
    let class = properties.get(key).map_or("", |class| class.trim());
    let (names, reason): (Vec<_>, _) = if class.is_empty() {
        let names = options.keys().map(String::as_str).filter(|name| *name != "plugin.version");
        (
            names.collect(),
            "the connector names no converter, and that of the server has its own options",
        )
    } else if converter_keys(class).is_none() {
        return Vec::new();
    } else {
        // That one is met by every converter that has no schemas.
        let is_met = |name: &str| name == "schemas.enable" && options[name].trim() == "false";
        let mut names = idle_options(class, &options);
        names.retain(|name| !is_met(name));
        (names, "its converter has no such option")
    };
    names.into_iter().map(|name| (format!("{key}.{name}"), reason)).collect()
}

/// The options behind the prefix of a converter, without it.
pub(crate) fn converter_options(role: Role, properties: &Properties) -> BTreeMap<String, String> {
    let prefix = format!("{}.", converter_key(role));
    properties
        .range(prefix.clone()..)
        .map_while(|(key, value)| Some((key.strip_prefix(&prefix)?.to_owned(), value.clone())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle_keys(pairs: &[(&str, &str)]) -> Vec<String> {
        let pair = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let properties = pairs.iter().map(pair).collect();
        idle(&properties).into_iter().map(|(key, _)| key).collect()
    }

    #[test]
    fn options_of_another_converter_or_without_one_are_idle() {
        let (schemas, size) =
            ("value.converter.schemas.enable", "value.converter.schemas.cache.size");
        assert_eq!(idle_keys(&[(schemas, "false")]), [schemas]);
        let of = |class| idle_keys(&[("value.converter", class), (schemas, "false"), (size, "7")]);
        assert_eq!((of("JsonConverter"), of("StringConverter")), (vec![], vec![size.to_owned()]));
        assert_eq!(of("${env:CONVERTER}"), [""; 0]);
        assert_eq!(idle_keys(&[("key.converter.plugin.version", "")]), [""; 0]);
    }
}
