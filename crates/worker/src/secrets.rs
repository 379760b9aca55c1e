//! Passwords in configurations: shown as a mask, kept when the mask comes back (rule A4).

use std::collections::BTreeMap;

use highwater_connector::{KeyType, Problem};

use crate::client_overrides;
use crate::plugins::Plugin;
use crate::record_keys::{is_password_of_converter, option_of_part};
use crate::references::is_reference;

/// What is shown in place of a password.
pub(crate) const MASK: &str = "********";

/// Parts of key names that are taken for passwords where the key is not known: that of a class which is
/// not here, or a mistyped one.
const SUSPECT: [&str; 8] = [
    "password",
    "passphrase",
    "secret",
    "token",
    "credential",
    "private.key",
    "jaas.config",
    "user.info",
];

/// Whether the value of `key` must never be shown.
fn is_secret(plugin: Option<&Plugin>, key: &str) -> bool {
    if let Some(option) = option_of_part(key) {
        return is_password_of_converter(option).unwrap_or_else(|| is_suspect(option));
    }
    if client_overrides::is_override(key) {
        return client_overrides::is_secret(key);
    }
    let own = plugin.map(|plugin| plugin.config().keys()).unwrap_or_default();
    match own.iter().find(|own| own.name == key) {
        Some(own) => own.key_type == KeyType::Password,
        None => is_suspect(key),
    }
}

fn is_suspect(name: &str) -> bool {
    SUSPECT.iter().any(|part| name.to_ascii_lowercase().contains(part))
}

/// Whether the value of `key` is a secret that is written out.
fn is_literal(plugin: Option<&Plugin>, key: &str, value: &str) -> bool {
    is_secret(plugin, key) && !value.is_empty() && !is_reference(value)
}

/// Keys of secrets that are written out.
pub(crate) fn literal<'a>(
    plugin: Option<&Plugin>,
    properties: &'a BTreeMap<String, String>,
) -> Vec<&'a str> {
    let literal = |(key, value): &(&String, &String)| is_literal(plugin, key, value);
    properties.iter().filter(literal).map(|(key, _)| key.as_str()).collect()
}

/// The configuration as it may be shown.
pub(crate) fn masked(
    plugin: Option<&Plugin>,
    properties: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    properties
        .iter()
        .map(|(key, value)| {
            let shown = if is_literal(plugin, key, value) { MASK } else { value };
            (key.clone(), shown.to_owned())
        })
        .collect()
}

/// Puts the stored secrets where the mask came back unchanged.
///
/// # Errors
/// A mask where no secret is stored: nobody's password is eight asterisks by intention.
pub(crate) fn unmask(
    plugin: Option<&Plugin>,
    given: &mut BTreeMap<String, String>,
    stored: Option<&BTreeMap<String, String>>,
) -> Result<(), Vec<Problem>> {
    let mut problems = Vec::new();
    for (key, value) in given.iter_mut() {
        if value == MASK && is_secret(plugin, key) {
            match stored.and_then(|stored| stored.get(key)) {
                Some(secret) => value.clone_from(secret),
                None => problems.push(Problem {
                    key: key.clone(),
                    message: "is masked, but no secret is stored for it; give the secret itself"
                        .to_owned(),
                }),
            }
        }
    }
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn a_mask_sent_back_keeps_the_stored_secret() {
        let stored = map(&[("database.password", "s3cret"), ("host", "a")]);
        let mut given = masked(None, &stored);
        assert_eq!(given["database.password"], MASK);
        given.insert("host".to_owned(), "b".to_owned());
        unmask(None, &mut given, Some(&stored)).unwrap();
        assert_eq!(given, map(&[("database.password", "s3cret"), ("host", "b")]));
    }

    #[test]
    fn a_mask_without_a_stored_secret_is_refused() {
        let mut given = map(&[("database.password", MASK)]);
        let problems = unmask(None, &mut given, None).unwrap_err();
        assert_eq!(problems[0].key, "database.password");
    }

    #[test]
    fn a_reference_is_shown_and_no_literal() {
        let stored = map(&[
            ("database.password", "${env:PGPASSWORD}"),
            ("api.token", "${vault:a:b}"),
            ("a.secret", "s3cret${env:A}"),
        ]);
        let shown = masked(None, &stored);
        assert_eq!(shown["database.password"], "${env:PGPASSWORD}");
        assert_eq!((shown["api.token"].as_str(), shown["a.secret"].as_str()), (MASK, MASK));
        assert_eq!(literal(None, &stored), ["a.secret", "api.token"]);
    }

    #[test]
    fn what_may_be_a_secret_is_not_shown_wherever_it_stands() {
        for key in [
            "consumer.override.sasl.jaas.config",
            "producer.override.sasl.jas.config",
            "producer.overide.sasl.jaas.config",
            "value.converter.basic.auth.user.info",
            "value.converter.schema.registry.ssl.keystore.password",
            "transforms.a.vault.token",
        ] {
            assert_eq!(masked(None, &map(&[(key, "s3cret")]))[key], MASK, "{key}");
        }
        for key in [
            "producer.override.acks",
            "consumer.override.group.id",
            "transforms.token.type",
            "value.converter.basic.auth.credentials.source",
        ] {
            assert_eq!(masked(None, &map(&[(key, "shown")]))[key], "shown", "{key}");
        }
    }

    #[test]
    fn a_new_secret_replaces_the_stored_one() {
        let stored = map(&[("api.token", "old")]);
        let mut given = map(&[("api.token", "new")]);
        unmask(None, &mut given, Some(&stored)).unwrap();
        assert_eq!(given["api.token"], "new");
    }
}
