//! Keys of configurations as Kafka Connect's API describes them.

use highwater_connector::{ConfigKey, Importance, KeyType, Problem};
use serde_json::{Value, json};

use crate::client_overrides;
use crate::keys;
use crate::pipeline::Properties;
use crate::plugin_kinds;
use crate::references::is_reference;
use crate::rest_places::{self as places, Place};
use crate::secrets::MASK;

/// A key at its place in a form.
pub(crate) struct Described {
    pub(crate) name: String,
    /// Kafka Connect's word for its type.
    kind: &'static str,
    required: bool,
    default: Option<String>,
    importance: Importance,
    documentation: String,
    group: Option<String>,
    order: i32,
    width: &'static str,
    title: String,
    /// What a form may offer; of a class, all that there are.
    recommended: Vec<String>,
    visible: bool,
    /// What it is where nobody gives it, though it has no default.
    implied: Option<String>,
}

impl Described {
    /// A key of connectors.
    pub(crate) fn of_connector(key: &ConfigKey) -> Self {
        let mut described = Self::of(key, places::of_connectors(key.name)).titled_bare();
        if key.name == keys::NAME {
            // Kafka Connect's key of the name has no default; ours is empty where a file has one connector.
            described = described.without_default(true);
        }
        described
    }

    /// A key of a converter, without its prefix.
    pub(crate) fn of_converter(key: &ConfigKey) -> Self {
        Self::of(key, places::of_converters(key.name))
    }

    /// A key of a transform or predicate, without its prefix.
    pub(crate) fn of_transform(key: &ConfigKey) -> Self {
        Self::of(key, None)
    }

    /// A setting of one of Kafka's clients, which is text to us.
    pub(crate) fn of_override(key: &str) -> Self {
        let secret = client_overrides::is_secret(key);
        let key_type = if secret { KeyType::Password } else { KeyType::String };
        let text = "A setting of Kafka's clients; see the reference of client overrides.";
        let unnamed = ConfigKey::new("", key_type, Some(""), Importance::Medium, text);
        Self { name: key.to_owned(), ..Self::of(&unnamed, None).without_default(false) }
            .titled_bare()
    }

    /// A setting of a client is called what it is there.
    fn titled_bare(self) -> Self {
        match client_overrides::setting(&self.name) {
            Some(setting) => Self { title: setting.to_owned(), ..self },
            None => self,
        }
    }

    fn of(key: &ConfigKey, place: Option<&Place>) -> Self {
        let described = Self {
            name: key.name.to_owned(),
            kind: type_of(key),
            required: key.default.is_none(),
            default: key.default.map(str::to_owned),
            importance: key.importance,
            documentation: key.documentation.to_owned(),
            group: place.and_then(|place| place.group).map(str::to_owned),
            order: place.map_or(-1, |place| place.order),
            width: place.map_or("NONE", |place| place.width),
            title: place.map_or(key.name, |place| place.title).to_owned(),
            recommended: Vec::new(),
            visible: true,
            implied: None,
        };
        if key.default.is_some() && places::is_without_default(key.name) {
            return described.without_default(false);
        }
        described
    }

    fn without_default(self, required: bool) -> Self {
        Self { default: None, required, ..self }
    }

    /// With another default.
    pub(crate) fn with_default(self, default: Option<String>) -> Self {
        Self { default, ..self }
    }

    /// With what a form may offer.
    pub(crate) fn recommending(self, recommended: Vec<String>) -> Self {
        Self { recommended, ..self }
    }

    /// Not to be shown in a form, for now.
    pub(crate) fn hidden(self) -> Self {
        Self { visible: false, ..self }
    }

    /// With a value that follows from its place.
    pub(crate) fn implying(self, value: String) -> Self {
        Self { implied: Some(value), ..self }
    }

    /// The key behind a prefix.
    pub(crate) fn behind(self, prefix: &str) -> Self {
        Self { name: format!("{prefix}{}", self.name), ..self }
    }

    /// In a group of its own.
    pub(crate) fn within(self, group: &str, order: i32) -> Self {
        Self { group: Some(group.to_owned()), order, ..self }
    }

    /// With a place like that of Kafka Connect's own keys.
    pub(crate) fn titled(self, title: String) -> Self {
        Self { title, width: "LONG", ..self }
    }

    /// Kafka Connect's order of keys that have no places: what must be given first, then by importance.
    pub(crate) fn rank(&self) -> (bool, u8, String) {
        let importance = match self.importance {
            Importance::High => 0,
            Importance::Medium => 1,
            Importance::Low => 2,
        };
        (!self.required, importance, self.name.clone())
    }

    /// Kafka Connect's `definition` of the key.
    pub(crate) fn definition(&self) -> Value {
        json!({
            "name": self.name,
            "type": self.kind,
            "required": self.required,
            "default_value": self.default,
            "importance": importance(self.importance),
            "documentation": self.documentation,
            "group": self.group,
            "order_in_group": self.order,
            "width": self.width,
            "display_name": self.title,
            "dependents": [],
        })
    }

    /// Kafka Connect's `value` of the key, with what is wrong about it.
    pub(crate) fn value(&self, given: &Properties, problems: &[Problem]) -> Value {
        let text = given.get(&self.name).or(self.implied.as_ref()).or(self.default.as_ref());
        json!({
            "name": self.name,
            "value": text.and_then(|text| self.shown(text)),
            "recommended_values": self.recommended,
            "errors": errors(&self.name, problems),
            "visible": self.visible,
        })
    }

    /// A value as it is read; what cannot be read has none.
    fn shown(&self, text: &str) -> Option<String> {
        let trimmed = text.trim();
        let number = |least: i64, most: i64| {
            let number = trimmed.parse::<i64>().ok()?;
            (least..=most).contains(&number).then(|| number.to_string())
        };
        match self.kind {
            "PASSWORD" if !text.is_empty() && !is_reference(text) => Some(MASK.to_owned()),
            "SHORT" => number(i16::MIN.into(), i16::MAX.into()),
            "INT" => number(i32::MIN.into(), i32::MAX.into()),
            "LONG" => number(i64::MIN, i64::MAX),
            "BOOLEAN" => {
                Some(trimmed.to_ascii_lowercase()).filter(|text| text == "true" || text == "false")
            }
            "LIST" => Some(trimmed.split(',').map(str::trim).collect::<Vec<_>>().join(",")),
            "CLASS" => plugin_kinds::resolved(&self.recommended, trimmed).map(str::to_owned),
            _ => Some(trimmed.to_owned()),
        }
    }
}

/// The groups of these keys, in order.
pub(crate) fn groups(keys: &[Described]) -> Vec<&str> {
    let mut groups: Vec<&str> = Vec::new();
    for group in keys.iter().filter_map(|key| key.group.as_deref()) {
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    groups
}

/// Classes are text to us.
fn type_of(key: &ConfigKey) -> &'static str {
    match key.key_type {
        _ if key.name.ends_with(".converter") => "CLASS",
        KeyType::String if key.name == "type" => "CLASS",
        KeyType::String if key.name == "schema.version" => "INT",
        KeyType::String | KeyType::Choice(_) => "STRING",
        KeyType::Password => "PASSWORD",
        KeyType::Int { max, .. } if max <= i64::from(i16::MAX) && is_short(key.name) => "SHORT",
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

/// And its numbers of replicas short ones.
fn is_short(key: &str) -> bool {
    key.ends_with(".replication.factor")
}

const fn importance(importance: Importance) -> &'static str {
    match importance {
        Importance::High => "HIGH",
        Importance::Medium => "MEDIUM",
        Importance::Low => "LOW",
    }
}

fn errors(key: &str, problems: &[Problem]) -> Vec<String> {
    let of_key = problems.iter().filter(|problem| problem.key == key);
    of_key.map(|problem| format!("{} {}", problem.key, problem.message)).collect()
}

/// A problem whose key no definition has, as an entry of its own.
pub(crate) fn stray(problem: &Problem, given: &Properties) -> Value {
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

    fn key(name: &'static str, key_type: KeyType) -> ConfigKey {
        ConfigKey::new(name, key_type, Some("1"), Importance::Low, "")
    }

    fn number(name: &'static str, max: i64) -> Described {
        Described::of_connector(&key(name, KeyType::Int { min: 0, max }))
    }

    #[test]
    fn keys_of_the_worker_have_connects_place_and_those_of_connectors_none() {
        let known = number("tasks.max", 10).definition();
        assert_eq!((&known["group"], &known["order_in_group"]), (&json!("Common"), &json!(4)));
        assert_eq!(
            (&known["width"], &known["display_name"]),
            (&json!("SHORT"), &json!("Tasks max"))
        );
        assert_eq!((&known["type"], &known["required"]), (&json!("INT"), &json!(false)));
        let own = number("batch.size", 10).definition();
        assert_eq!((&own["group"], &own["order_in_group"]), (&Value::Null, &json!(-1)));
        assert_eq!((&own["width"], &own["display_name"]), (&json!("NONE"), &json!("batch.size")));
        assert_eq!(number("errors.retry.delay.max.ms", 10).definition()["type"], "LONG");
    }

    #[test]
    fn a_secret_is_never_shown_back() {
        let pin = Described::of_connector(&key("pin", KeyType::Password));
        let given = Properties::from([("pin".to_owned(), "1234".to_owned())]);
        assert_eq!(pin.value(&given, &[])["value"], MASK);
        let mistyped = Problem { key: "pin".to_owned(), message: "is not known".to_owned() };
        let stray = stray(&mistyped, &given);
        assert!(!stray.to_string().contains("1234"), "{stray}");
    }

    #[test]
    fn a_wrong_value_has_its_errors_and_what_is_no_number_no_value() {
        let given = Properties::from([("tasks.max".to_owned(), "x".to_owned())]);
        let problem = Problem { key: "tasks.max".to_owned(), message: "is odd".to_owned() };
        let value = number("tasks.max", 10).value(&given, &[problem]);
        assert_eq!(value["value"], Value::Null);
        assert_eq!(value["errors"], json!(["tasks.max is odd"]));
    }

    #[test]
    fn a_value_is_shown_as_it_is_read() {
        let shown =
            |name, key_type, text| Described::of_connector(&key(name, key_type)).shown(text);
        let read = |text: &str| Some(text.to_owned());
        assert_eq!(shown("a", KeyType::String, "  shop "), read("shop"));
        assert_eq!(shown("a", KeyType::List, " b ,c"), read("b,c"));
        assert_eq!(shown("a", KeyType::Boolean, "True"), read("true"));
        assert_eq!(shown("a", KeyType::Boolean, "maybe"), None);
        let replicas = KeyType::Int { min: -1, max: 32_767 };
        assert_eq!(shown("topic.replication.factor", replicas, "40000"), None);
        let classes = ["org.example.JsonConverter".to_owned()].to_vec();
        let converter = Described::of_connector(&key("key.converter", KeyType::String));
        let converter = converter.recommending(classes);
        assert_eq!(converter.shown("JsonConverter"), read("org.example.JsonConverter"));
        assert_eq!(converter.shown("Nope"), None);
    }
}
