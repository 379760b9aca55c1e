//! Keys of configurations as Kafka Connect's API describes them.

use std::collections::BTreeMap;

use highwater_connector::{ConfigKey, Importance, KeyType, Problem};
use serde_json::{Value, json};

use crate::keys;
use crate::references::is_reference;
use crate::secrets::MASK;

/// Where a key of the worker stands in a form.
struct Place {
    key: &'static str,
    group: &'static str,
    order: i32,
    width: &'static str,
    title: &'static str,
}

const fn place(
    key: &'static str,
    group: &'static str,
    order: i32,
    width: &'static str,
    title: &'static str,
) -> Place {
    Place { key, group, order, width, title }
}

const COMMON: &str = "Common";
const ERRORS: &str = "Error Handling";
const TOPICS: &str = "Topic Creation";
const ONCE: &str = "Exactly Once Support";

/// Kafka Connect's own keys, with its groups and titles. Keys of connectors have no place there.
const PLACES: &[Place] = &[
    place(keys::NAME, COMMON, 1, "MEDIUM", "Connector name"),
    place(keys::CLASS, COMMON, 2, "LONG", "Connector class"),
    place("connector.plugin.version", COMMON, 3, "MEDIUM", "Connector version"),
    place("tasks.max", COMMON, 4, "SHORT", "Tasks max"),
    place("tasks.max.enforce", COMMON, 5, "SHORT", "Enforce tasks max"),
    place("key.converter", COMMON, 6, "SHORT", "Key converter class"),
    place("key.converter.plugin.version", COMMON, 7, "SHORT", "Key converter version"),
    place("value.converter", COMMON, 8, "SHORT", "Value converter class"),
    place("value.converter.plugin.version", COMMON, 9, "SHORT", "Value converter version"),
    place("header.converter", COMMON, 10, "SHORT", "Header converter class"),
    place("header.converter.plugin.version", COMMON, 11, "SHORT", "Header converter version"),
    place("transforms", "Transforms", 12, "LONG", "Transforms"),
    place("predicates", "Predicates", 13, "LONG", "Predicates"),
    place("config.action.reload", COMMON, 14, "MEDIUM", "Reload Action"),
    place("errors.retry.timeout", ERRORS, 1, "MEDIUM", "Retry Timeout for Errors"),
    place(
        "errors.retry.delay.max.ms",
        ERRORS,
        2,
        "MEDIUM",
        "Maximum Delay Between Retries for Errors",
    ),
    place("errors.tolerance", ERRORS, 3, "SHORT", "Error Tolerance"),
    place("errors.log.enable", ERRORS, 4, "SHORT", "Log Errors"),
    place("errors.log.include.messages", ERRORS, 5, "SHORT", "Log Error Details"),
    place("topics", COMMON, 4, "LONG", "Topics"),
    place("topics.regex", COMMON, 4, "LONG", "Topics regex"),
    place("topic.creation.groups", TOPICS, 1, "LONG", "Topic Creation Groups"),
    place("exactly.once.support", ONCE, 2, "SHORT", "Exactly once support"),
    place("transaction.boundary", ONCE, 3, "SHORT", "Transaction Boundary"),
    place("transaction.boundary.interval.ms", ONCE, 4, "SHORT", "Transaction boundary interval"),
    place("offsets.storage.topic", "offsets.topic", 1, "LONG", "Offsets topic"),
];

fn place_of(key: &str) -> Option<&'static Place> {
    PLACES.iter().find(|place| place.key == key)
}

/// Kafka Connect's `definition` of a key.
pub(crate) fn definition(key: &ConfigKey) -> Value {
    let place = place_of(key.name);
    // Kafka Connect's key of the name has no default; ours is empty where a file has one connector.
    let default = key.default.filter(|_| key.name != keys::NAME);
    json!({
        "name": key.name,
        "type": type_of(key),
        "required": default.is_none(),
        "default_value": default,
        "importance": importance(key.importance),
        "documentation": key.documentation,
        "group": place.map(|place| place.group),
        "order_in_group": place.map_or(-1, |place| place.order),
        "width": place.map_or("NONE", |place| place.width),
        "display_name": place.map_or(key.name, |place| place.title),
        "dependents": [],
    })
}

/// The groups of these keys, in order.
pub(crate) fn groups(keys: &[ConfigKey]) -> Vec<&'static str> {
    let mut groups = Vec::new();
    for place in keys.iter().filter_map(|key| place_of(key.name)) {
        if !groups.contains(&place.group) {
            groups.push(place.group);
        }
    }
    groups
}

/// Classes are text to us.
fn type_of(key: &ConfigKey) -> &'static str {
    match key.key_type {
        _ if key.name.ends_with(".converter") => "CLASS",
        KeyType::String | KeyType::Choice(_) => "STRING",
        KeyType::Password => "PASSWORD",
        KeyType::Int { max, .. } if max <= i64::from(i32::MAX) && !is_time(key.name) => "INT",
        KeyType::Int { .. } => "LONG",
        KeyType::Boolean => "BOOLEAN",
        KeyType::List => "LIST",
    }
}

/// Kafka Connect's milliseconds are long numbers, whatever their bound.
fn is_time(key: &str) -> bool {
    key.ends_with(".ms")
}

const fn importance(importance: Importance) -> &'static str {
    match importance {
        Importance::High => "HIGH",
        Importance::Medium => "MEDIUM",
        Importance::Low => "LOW",
    }
}

/// Kafka Connect's `value` of a key, with what is wrong about it.
pub(crate) fn value(
    key: &ConfigKey,
    given: &BTreeMap<String, String>,
    problems: &[Problem],
) -> Value {
    let default = key.default.filter(|_| key.name != keys::NAME);
    let text = given.get(key.name).map(String::as_str).or(default);
    let shown = match (key.key_type, text) {
        (KeyType::Password, Some(text)) if !text.is_empty() && !is_reference(text) => Some(MASK),
        // What is no number has no value.
        (KeyType::Int { .. }, Some(text)) if text.trim().parse::<i64>().is_err() => None,
        (KeyType::Boolean, Some(text)) if !matches!(text, "true" | "false") => None,
        _ => text,
    };
    json!({
        "name": key.name,
        "value": shown,
        "recommended_values": [],
        "errors": errors(key.name, problems),
        "visible": true,
    })
}

fn errors(key: &str, problems: &[Problem]) -> Vec<String> {
    let of_key = problems.iter().filter(|problem| problem.key == key);
    of_key.map(|problem| format!("{} {}", problem.key, problem.message)).collect()
}

/// A problem whose key no definition has, as an entry of its own.
pub(crate) fn stray(problem: &Problem, given: &BTreeMap<String, String>) -> Value {
    let name = problem.key.as_str();
    json!({
        "definition": {
            "name": name,
            "type": "STRING",
            "required": false,
            "default_value": null,
            "importance": "LOW",
            "documentation": "Not a key of this connector.",
            "group": null,
            "order_in_group": -1,
            "width": "NONE",
            "display_name": name,
            "dependents": [],
        },
        "value": {
            "name": name,
            // It may be a secret under a mistyped name.
            "value": given.contains_key(name).then_some(MASK),
            "recommended_values": [],
            "errors": errors(name, std::slice::from_ref(problem)),
            "visible": true,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(name: &'static str, max: i64) -> ConfigKey {
        let documentation = "";
        ConfigKey::new(
            name,
            KeyType::Int { min: 0, max },
            Some("1"),
            Importance::Low,
            documentation,
        )
    }

    #[test]
    fn keys_of_the_worker_have_connects_place_and_those_of_connectors_none() {
        let known = definition(&number("tasks.max", 10));
        assert_eq!((&known["group"], &known["order_in_group"]), (&json!("Common"), &json!(4)));
        assert_eq!(
            (&known["width"], &known["display_name"]),
            (&json!("SHORT"), &json!("Tasks max"))
        );
        assert_eq!((&known["type"], &known["required"]), (&json!("INT"), &json!(false)));
        let own = definition(&number("batch.size", 10));
        assert_eq!((&own["group"], &own["order_in_group"]), (&Value::Null, &json!(-1)));
        assert_eq!((&own["width"], &own["display_name"]), (&json!("NONE"), &json!("batch.size")));
        assert_eq!(definition(&number("errors.retry.delay.max.ms", 10))["type"], "LONG");
    }

    #[test]
    fn a_secret_is_never_shown_back() {
        let key = ConfigKey::new("pin", KeyType::Password, Some(""), Importance::High, "");
        let given = BTreeMap::from([("pin".to_owned(), "1234".to_owned())]);
        assert_eq!(value(&key, &given, &[])["value"], MASK);
        let mistyped = Problem { key: "pin".to_owned(), message: "is not known".to_owned() };
        let stray = stray(&mistyped, &given);
        assert!(!stray.to_string().contains("1234"), "{stray}");
    }

    #[test]
    fn a_wrong_value_has_its_errors_and_what_is_no_number_no_value() {
        let given = BTreeMap::from([("tasks.max".to_owned(), "x".to_owned())]);
        let problem = Problem { key: "tasks.max".to_owned(), message: "is odd".to_owned() };
        let value = value(&number("tasks.max", 10), &given, &[problem]);
        assert_eq!(value["value"], Value::Null);
        assert_eq!(value["errors"], json!(["tasks.max is odd"]));
    }
}
