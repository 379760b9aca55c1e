//! Options that several transforms have, and what is asked of them.

use highwater_config::{Config, ConfigKey, Importance, KeyType, Problem};

/// What is wrong with a configuration.
pub(crate) type Problems = Vec<Problem>;

pub(crate) const REPLACE_NULL: &str = "replace.null.with.default";

/// The key [`REPLACE_NULL`].
pub(crate) const fn replace_null() -> ConfigKey {
    ConfigKey::new(
        REPLACE_NULL,
        KeyType::Boolean,
        Some("true"),
        Importance::Medium,
        "Whether a field that is null is taken for its default, where it has one.",
    )
}

/// A key that must be given. Those of Connect's that are of another importance say so: its forms have
/// their order from that.
pub(crate) const fn required(
    name: &'static str,
    key_type: KeyType,
    documentation: &'static str,
) -> ConfigKey {
    ConfigKey::new(name, key_type, None, Importance::High, documentation)
}

/// A key that may be left out.
pub(crate) const fn optional(
    name: &'static str,
    key_type: KeyType,
    default: &'static str,
    documentation: &'static str,
) -> ConfigKey {
    ConfigKey::new(name, key_type, Some(default), Importance::Medium, documentation)
}

/// One problem.
pub(crate) fn wrong(key: &str, message: impl Into<String>) -> Problems {
    vec![Problem::new(key, message)]
}

/// A list; of an item that stands there twice, as Connect has it, the first counts.
pub(crate) fn list(config: &Config, key: &str) -> Vec<String> {
    let mut items: Vec<String> = Vec::new();
    for item in config.list(key) {
        if !items.iter().any(|before| before == item) {
            items.push(item.to_owned());
        }
    }
    items
}

/// A list with an item at least.
pub(crate) fn some_list(config: &Config, key: &str) -> Result<Vec<String>, Problems> {
    let items = list(config, key);
    if items.is_empty() { Err(wrong(key, "must name one at least")) } else { Ok(items) }
}

/// A text that is not empty, as `None` where it is.
pub(crate) fn given(config: &Config, key: &str) -> Option<String> {
    let text = config.text(key);
    (!text.is_empty()).then(|| text.to_owned())
}
