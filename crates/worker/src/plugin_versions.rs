//! Versions of plugins that a configuration may name (KIP-891): there is one of each here.

use highwater_connector::Problem;

use crate::keys;
use crate::pipeline::Properties;
use crate::plugin_kinds::VERSION;

const SUFFIX: &str = ".plugin.version";

/// What is wrong with the version of a connector's class.
pub(crate) fn of_connector(properties: &Properties, version: &str) -> Vec<Problem> {
    problems(properties, keys::PLUGIN_VERSION, keys::CLASS, version)
}

/// What is wrong with those of its converters, transforms and predicates.
pub(crate) fn of_parts(properties: &Properties) -> Vec<Problem> {
    let part = |key: &String| {
        let part = key.strip_suffix(SUFFIX).filter(|_| key != keys::PLUGIN_VERSION)?;
        let class = if part.ends_with(".converter") {
            part.to_owned()
        } else if part.starts_with("transforms.") || part.starts_with("predicates.") {
            format!("{part}.type")
        } else {
            return None;
        };
        Some(problems(properties, key, &class, VERSION))
    };
    properties.keys().filter_map(part).flatten().collect()
}

/// A version that is not here is wrong about the class, too.
fn problems(properties: &Properties, key: &str, class: &str, version: &str) -> Vec<Problem> {
    let wanted = properties.get(key).map_or("", |wanted| wanted.trim());
    if wanted.is_empty() || wanted == version {
        return Vec::new();
    }
    let message = format!("asks for version {wanted:?}; the one version here is {version}");
    [class, key].map(|key| Problem { key: key.to_owned(), message: message.clone() }).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_that_is_not_here_is_wrong_about_its_class_too() {
        let wrong = |key: &str| {
            let properties = [(key.to_owned(), "9".to_owned())].into();
            let found: Vec<_> =
                of_parts(&properties).into_iter().chain(of_connector(&properties, "1")).collect();
            found.into_iter().map(|problem| problem.key).collect::<Vec<_>>()
        };
        for (key, class) in [
            ("connector.plugin.version", "connector.class"),
            ("key.converter.plugin.version", "key.converter"),
            ("transforms.a.plugin.version", "transforms.a.type"),
            ("predicates.a.plugin.version", "predicates.a.type"),
        ] {
            assert_eq!(wrong(key), [class, key]);
        }
        assert!(wrong("other.plugin.version").is_empty());
    }

    #[test]
    fn the_one_version_and_none_are_right() {
        for version in ["", VERSION] {
            let key = "value.converter.plugin.version".to_owned();
            assert_eq!(of_parts(&[(key, version.to_owned())].into()), []);
        }
    }
}
