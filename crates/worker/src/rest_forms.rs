//! The keys that a connector takes: its own, the worker's, and those of the converters, transforms and
//! predicates that a configuration names.

use highwater_connector::{ConfigKey, Importance, KeyType};
use highwater_data::Role;

use crate::client_overrides;
use crate::keys;
use crate::pipeline::Properties;
use crate::plugin_kinds::{self, VERSION};
use crate::plugins::Plugin;
use crate::record_keys::{converter_key, record_keys};
use crate::rest_definitions::Described;
use crate::settings::DefaultConverters;
use crate::sink_keys::sink_keys;

/// Where converters are named, and the kind of them.
const CONVERTERS: [(Role, &str); 3] =
    [(Role::Key, "converter"), (Role::Value, "converter"), (Role::Header, "header_converter")];

const PLUGIN_VERSION: &str = "plugin.version";

/// The keys of connectors of this plugin, whatever their configuration.
pub(crate) fn of_plugin(plugin: &Plugin) -> Vec<Described> {
    let is_sink = matches!(plugin, Plugin::Sink(_));
    let mut all = plugin.config().keys().to_vec();
    all.extend(keys::worker_keys());
    if plugin.has_values() {
        all.extend(record_keys());
    }
    if is_sink {
        all.retain(|key| !keys::is_of_sources(key.name));
        all.extend(sink_keys());
    }
    all.iter().map(|key| of_version(Described::of_connector(key), plugin.version())).collect()
}

fn of_version(key: Described, version: &str) -> Described {
    if key.name != keys::PLUGIN_VERSION {
        return key;
    }
    key.with_default(Some(version.to_owned())).recommending(vec![version.to_owned()])
}

/// The keys of a connector of this plugin with this configuration.
pub(crate) fn of_config(
    plugin: &Plugin,
    given: &Properties,
    defaults: &DefaultConverters,
) -> Vec<Described> {
    let mut all = of_plugin(plugin);
    let known = |key: &str| all.iter().any(|known| known.name == key);
    let overrides = given.keys().filter(|key| client_overrides::is_override(key) && !known(key));
    let overrides: Vec<_> = overrides.map(|key| Described::of_override(key)).collect();
    all.extend(overrides);
    if !plugin.has_values() {
        return all;
    }
    for (role, kind) in CONVERTERS {
        let (at, default) = (converter_key(role), &defaults.of(role).class);
        let place =
            ConverterPlace { at, classes: plugin_kinds::classes(kind), default: default.clone() };
        all = all.into_iter().map(|key| place.refined(key, given)).collect();
        all.extend(place.keys(given));
    }
    let transforms = Links { list: "transforms", kind: "transformation", title: "Transformation" };
    let predicates = Links { list: "predicates", kind: "predicate", title: "Predicate" };
    all.extend(transforms.keys(given));
    all.extend(predicates.keys(given));
    all
}

/// A key that names a converter.
struct ConverterPlace {
    at: &'static str,
    classes: Vec<String>,
    default: String,
}

impl ConverterPlace {
    fn class<'a>(&'a self, given: &Properties) -> Option<&'a str> {
        let named = given.get(self.at).unwrap_or(&self.default);
        plugin_kinds::resolved(&self.classes, named.trim())
    }

    fn version_key(&self) -> String {
        format!("{}.{PLUGIN_VERSION}", self.at)
    }

    /// The key itself, and that of its version.
    fn refined(&self, key: Described, given: &Properties) -> Described {
        if key.name == self.at {
            key.with_default(Some(self.default.clone())).recommending(self.classes.clone())
        } else if key.name != self.version_key() {
            key
        } else if self.class(given).is_some() {
            key.with_default(Some(VERSION.to_owned())).recommending(vec![VERSION.to_owned()])
        } else {
            key.hidden()
        }
    }

    /// The keys of the converter that is named; those of the default are the worker's to set.
    fn keys(&self, given: &Properties) -> Vec<Described> {
        let version = given.get(&self.version_key()).map_or(VERSION, |version| version.trim());
        if !given.contains_key(self.at) || version != VERSION {
            return Vec::new();
        }
        let keys = self.class(given).and_then(plugin_kinds::keys_of_converter).unwrap_or_default();
        let place = self.at.split('.').next().unwrap_or_default();
        let prefix = format!("{}.", self.at);
        let described = |key: &ConfigKey| {
            let described = Described::of_converter(key).behind(&prefix);
            let is_place = key.name == "converter.type";
            if is_place { described.implying(place.to_owned()) } else { described }
        };
        keys.iter().map(described).collect()
    }
}

/// A key that lists transforms or predicates by names of their own.
struct Links {
    list: &'static str,
    kind: &'static str,
    title: &'static str,
}

impl Links {
    fn keys(&self, given: &Properties) -> Vec<Described> {
        let listed = given.get(self.list).map(String::as_str).unwrap_or_default();
        let mut names: Vec<&str> = Vec::new();
        for name in listed.split(',').map(str::trim).filter(|name| !name.is_empty()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.into_iter().flat_map(|name| self.keys_of(name, given)).collect()
    }

    fn keys_of(&self, name: &str, given: &Properties) -> Vec<Described> {
        let prefix = format!("{}.{name}.", self.list);
        let classes = plugin_kinds::classes(self.kind);
        let class = given.get(&format!("{prefix}type"));
        let class = class.and_then(|named| plugin_kinds::resolved(&classes, named.trim()));
        let class = class.map(str::to_owned);
        let version = class.is_some().then(|| VERSION.to_owned());
        let title = |what| format!("{} {what} for {name}", self.title);
        let mut keys = vec![
            Described::of_transform(&TYPE).titled(title("type")).recommending(classes),
            Described::of_transform(&VERSION_KEY)
                .titled(title("version"))
                .recommending(version.iter().cloned().collect())
                .with_default(version),
        ];
        keys.extend(class.map(|class| self.options(&class)).unwrap_or_default());
        let group = format!("{}{}: {name}", self.list[..1].to_uppercase(), &self.list[1..]);
        let placed = |(order, key): (i32, Described)| key.behind(&prefix).within(&group, order);
        (0..).zip(keys).map(placed).collect()
    }

    /// The options of a class, in the order of a form.
    fn options(&self, class: &str) -> Vec<Described> {
        let mut keys = plugin_kinds::keys_of_transform(class).unwrap_or_default();
        if self.kind == "transformation" {
            keys.extend([PREDICATE, NEGATE]);
        }
        let mut options: Vec<_> = keys.iter().map(Described::of_transform).collect();
        options.sort_by_cached_key(Described::rank);
        options
    }
}

const TYPE: ConfigKey =
    ConfigKey::new("type", KeyType::String, None, Importance::High, "Class of this link.");

const VERSION_KEY: ConfigKey = ConfigKey::new(
    PLUGIN_VERSION,
    KeyType::String,
    Some(""),
    Importance::High,
    "Version of the class; that of this server is the one choice.",
);

const PREDICATE: ConfigKey = ConfigKey::new(
    "predicate",
    KeyType::String,
    Some(""),
    Importance::Medium,
    "Name of the predicate that must hold of a record for the transform to work on it.",
);

const NEGATE: ConfigKey = ConfigKey::new(
    "negate",
    KeyType::Boolean,
    Some("false"),
    Importance::Medium,
    "Whether the predicate must not hold instead.",
);

#[cfg(test)]
mod tests {
    use super::*;

    fn links(pairs: &[(&str, &str)]) -> Vec<(String, serde_json::Value)> {
        let text = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        let given: Properties = pairs.iter().map(text).collect();
        let links = Links { list: "transforms", kind: "transformation", title: "Transformation" };
        let keys = links.keys(&given).into_iter();
        keys.map(|key| (key.name.clone(), key.definition())).collect()
    }

    #[test]
    fn a_transform_has_a_group_of_its_own_with_what_must_be_given_first() {
        let class = "org.apache.kafka.connect.transforms.Cast$Value";
        let keys = links(&[("transforms", "a, a"), ("transforms.a.type", class)]);
        let names: Vec<_> = keys.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "transforms.a.type",
                "transforms.a.plugin.version",
                "transforms.a.spec",
                "transforms.a.negate",
                "transforms.a.predicate",
                "transforms.a.replace.null.with.default",
            ]
        );
        let orders: Vec<_> = keys.iter().map(|(_, key)| key["order_in_group"].clone()).collect();
        assert_eq!(orders, [0, 1, 2, 3, 4, 5]);
        assert!(keys.iter().all(|(_, key)| key["group"] == "Transforms: a"));
        assert_eq!(keys[0].1["display_name"], "Transformation type for a");
        assert_eq!(keys[1].1["default_value"], VERSION);
    }

    #[test]
    fn a_class_that_is_none_has_no_options() {
        let keys = links(&[("transforms", "a"), ("transforms.a.type", "Nope")]);
        assert_eq!(keys.len(), 2);
        assert_eq!(keys[1].1["default_value"], serde_json::Value::Null);
    }

    #[test]
    fn a_converter_that_is_named_brings_its_keys() {
        let given: Properties = [("key.converter".to_owned(), "StringConverter".to_owned())].into();
        let place = ConverterPlace {
            at: "key.converter",
            classes: plugin_kinds::classes("converter"),
            default: "JsonConverter".to_owned(),
        };
        let keys = place.keys(&given);
        let names: Vec<_> = keys.iter().map(|key| key.name.as_str()).collect();
        assert_eq!(names, ["key.converter.converter.type", "key.converter.converter.encoding"]);
        assert_eq!(keys[0].value(&given, &[])["value"], "key");
        assert!(place.keys(&Properties::new()).is_empty());
    }
}
