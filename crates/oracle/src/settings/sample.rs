//! Configurations of tests.

use std::collections::BTreeMap;

use highwater_connector::Config;

use super::definition;

/// The least that a configuration has, with other values for some keys.
pub(crate) fn config(pairs: &[(&str, &str)]) -> Config {
    let least = [
        ("cdc.database.host", "db"),
        ("cdc.database.service", "ORCL"),
        ("cdc.database.user", "c##highwater"),
        ("cdc.database.password", "secret"),
        ("cdc.tables.include", r"HR\..*"),
        ("cdc.topic.prefix", "shop"),
    ];
    let values: BTreeMap<String, String> = least
        .iter()
        .chain(pairs)
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    definition().parse(&values, &[]).unwrap()
}
