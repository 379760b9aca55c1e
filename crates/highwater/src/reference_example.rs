//! The example of a configuration file: every key of the server with its default.

use std::path::Path;

use highwater_connector::{ConfigKey, KeyType};

use crate::reference::holds;

const HEAD: &str = "\
# Settings of `highwater server`: every key with its default. Take the # away to change one.
# A flag wins over this file. `highwater server --config FILE --check` tries it.
";

/// The default as TOML.
fn value(key: &ConfigKey) -> String {
    let default = key.default.unwrap_or_default();
    match key.key_type {
        KeyType::Int { .. } | KeyType::Boolean => default.to_owned(),
        KeyType::List => {
            let entries = default.split(',').filter(|entry| !entry.is_empty());
            format!(
                "[{}]",
                entries.map(|entry| format!("\"{entry}\"")).collect::<Vec<_>>().join(", ")
            )
        }
        _ => format!("\"{default}\""),
    }
}

/// The words of a key's documentation, as a comment.
fn comment(text: &str) -> String {
    let mut lines = vec!["#".to_owned()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < 100 => line.push_str(&format!(" {word}")),
            _ => lines.push(format!("# {word}")),
        }
    }
    lines.join("\n")
}

fn example(keys: &[ConfigKey]) -> String {
    let table = |key: &ConfigKey| key.name.split_once('.').map(|(table, _)| table.to_owned());
    let mut keys: Vec<&ConfigKey> = keys.iter().collect();
    // Keys without a table come first in TOML; the others stay in their order.
    let mut order: Vec<Option<String>> = vec![None];
    order.extend(keys.iter().map(|key| table(key)));
    keys.sort_by_key(|key| order.iter().position(|found| *found == table(key)));
    let mut text = HEAD.to_owned();
    let mut current = None;
    for key in keys {
        if table(key) != current {
            current = table(key);
            text.push_str(&format!("\n[{}]\n", current.as_deref().unwrap_or_default()));
        }
        let name = key.name.split_once('.').map_or(key.name, |(_, name)| name);
        text.push_str(&format!("\n{}\n#{name} = {}\n", comment(key.documentation), value(key)));
    }
    text
}

/// Whoever takes a # away has a key that the server knows.
#[test]
fn every_key_of_the_example_is_one() {
    let definition = crate::settings::definition();
    let text = example(definition.keys());
    let open = |line: &str| match line.strip_prefix('#') {
        Some(key) if !key.starts_with(' ') => format!("{key}\n"),
        _ => format!("{line}\n"),
    };
    let toml: toml::Table = text.lines().map(open).collect::<String>().parse().unwrap();
    let mut left = vec![(String::new(), toml)];
    let mut found = Vec::new();
    while let Some((prefix, table)) = left.pop() {
        for (key, value) in table {
            let name = format!("{prefix}{key}");
            match value {
                toml::Value::Table(table) => left.push((format!("{name}."), table)),
                _ => found.push(name),
            }
        }
    }
    found.sort();
    let mut known: Vec<_> = definition.keys().iter().map(|key| key.name.to_owned()).collect();
    known.sort();
    assert_eq!(found, known);
}

#[test]
fn the_example_in_packaging_has_every_key_of_the_reference() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/highwater.toml");
    holds(&path, &example(crate::settings::definition().keys()));
}
