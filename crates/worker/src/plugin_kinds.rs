//! What a connector can be made of besides connectors: converters, transforms and predicates.

use highwater_connector::{ConfigKey, Importance, KeyType};
use highwater_data::{Role, converter_keys, converters};
use highwater_transforms::{PREDICATES, TRANSFORMS, predicate_keys, transform_keys};

/// Version of what the worker brings with it.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A class that Kafka Connect has, too, and its kind in Kafka Connect's words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    pub(crate) class: String,
    pub(crate) kind: &'static str,
}

/// All of them; a converter of headers stands twice where it converts values, too.
pub(crate) fn all() -> Vec<Part> {
    let of = |kind| move |class: &str| Part { class: class.to_owned(), kind };
    let transforms = TRANSFORMS.iter().flat_map(|kind| kind.classes());
    let transforms = transforms.map(|class| Part { class, kind: "transformation" });
    let role = |role, kind| converters(role).into_iter().map(of(kind));
    transforms
        .chain(PREDICATES.iter().copied().map(of("predicate")))
        .chain(role(Role::Value, "converter"))
        .chain(role(Role::Header, "header_converter"))
        .collect()
}

/// The classes of a kind, in order.
pub(crate) fn classes(kind: &str) -> Vec<String> {
    let mut classes: Vec<_> =
        all().into_iter().filter(|part| part.kind == kind).map(|part| part.class).collect();
    classes.sort_unstable();
    classes
}

/// The full name among `classes` of the class that a configuration names: by that, or by its last part
/// with or without the word that converters end with.
pub(crate) fn resolved<'a>(classes: &'a [String], named: &str) -> Option<&'a str> {
    let is_meant = |full: &&String| {
        let simple = full.rsplit('.').next().unwrap_or_default();
        full.as_str() == named || simple == named || simple.strip_suffix("Converter") == Some(named)
    };
    classes.iter().find(is_meant).map(String::as_str)
}

/// The keys of a converter, without the prefix of its place; `None` for a class that is none.
pub(crate) fn keys_of_converter(class: &str) -> Option<Vec<ConfigKey>> {
    let keys = converter_keys(class)?;
    let place = (!class.ends_with("SimpleHeaderConverter")).then_some(CONVERTER_PLACE);
    Some(place.into_iter().chain(keys).collect())
}

/// The key by which Kafka Connect tells a converter its place; whatever it says, ours know theirs.
const CONVERTER_PLACE: ConfigKey = ConfigKey::new(
    "converter.type",
    KeyType::String,
    None,
    Importance::Low,
    "Whether it converts keys, values or headers: that follows from where it is named, and is not to be given.",
);

/// The keys of a transform or predicate, without the prefix that a configuration gives them.
pub(crate) fn keys_of_transform(class: &str) -> Option<Vec<ConfigKey>> {
    transform_keys(class).or_else(|| predicate_keys(class))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_keys_and_stands_once_in_a_kind() {
        let all = all();
        for plugin in &all {
            let has_keys = keys_of_transform(&plugin.class).is_some()
                || keys_of_converter(&plugin.class).is_some();
            assert!(has_keys, "{}", plugin.class);
            assert_eq!(all.iter().filter(|other| *other == plugin).count(), 1, "{}", plugin.class);
        }
        assert!(keys_of_converter("no.Such").is_none() && keys_of_transform("no.Such").is_none());
    }

    #[test]
    fn a_class_is_meant_by_its_last_part_too() {
        let classes = classes("header_converter");
        let full = "org.apache.kafka.connect.storage.SimpleHeaderConverter";
        for name in [full, "SimpleHeaderConverter", "SimpleHeader"] {
            assert_eq!(resolved(&classes, name), Some(full), "{name}");
        }
        assert_eq!(resolved(&classes, "Header"), None);
        assert_eq!(resolved(&classes, ""), None);
    }
}
