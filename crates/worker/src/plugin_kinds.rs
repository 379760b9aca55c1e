//! What a connector can be made of besides connectors: converters, transforms and predicates.

use highwater_connector::ConfigKey;
use highwater_data::{Role, converter_keys, converters};
use highwater_transforms::{PREDICATES, TRANSFORMS, predicate_keys, transform_keys};

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

/// The keys of a class, without the prefix that a configuration gives them; `None` for one that is none.
pub(crate) fn keys(class: &str) -> Option<Vec<ConfigKey>> {
    transform_keys(class).or_else(|| predicate_keys(class)).or_else(|| converter_keys(class))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_keys_and_stands_once_in_a_kind() {
        let all = all();
        for plugin in &all {
            assert!(keys(&plugin.class).is_some(), "{}", plugin.class);
            assert_eq!(all.iter().filter(|other| *other == plugin).count(), 1, "{}", plugin.class);
        }
        assert!(keys("no.Such").is_none());
    }
}
