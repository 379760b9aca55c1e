//! Configuration of connectors: flat string maps, checked against definitions.

use std::collections::BTreeMap;
use std::time::Duration;

/// How much a key matters to a newcomer; Kafka Connect's three grades.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Importance {
    /// Must be thought about.
    High,
    /// Often changed.
    Medium,
    /// Rarely changed.
    Low,
}

/// What a value must look like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeyType {
    /// Any text.
    String,
    /// Text that is never shown.
    Password,
    /// A whole number within these bounds.
    Int {
        /// Least value.
        min: i64,
        /// Greatest value.
        max: i64,
    },
    /// `true` or `false`.
    Boolean,
    /// One of these.
    Choice(&'static [&'static str]),
    /// Items separated by commas.
    List,
}

/// One key of a configuration.
#[derive(Clone, Debug)]
pub struct ConfigKey {
    /// Its name.
    pub name: &'static str,
    /// See [`KeyType`].
    pub key_type: KeyType,
    /// Value when absent; `None` means that it must be given.
    pub default: Option<&'static str>,
    /// See [`Importance`].
    pub importance: Importance,
    /// What it does, its unit, its bound.
    pub documentation: &'static str,
}

impl ConfigKey {
    /// A key, in the order of the reference's columns.
    pub const fn new(
        name: &'static str,
        key_type: KeyType,
        default: Option<&'static str>,
        importance: Importance,
        documentation: &'static str,
    ) -> Self {
        Self { name, key_type, default, importance, documentation }
    }

    /// The key with another importance.
    #[must_use]
    pub const fn of_importance(self, importance: Importance) -> Self {
        Self { importance, ..self }
    }
}

/// One thing wrong with a configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// The key at fault.
    pub key: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl Problem {
    /// What is wrong with a key.
    pub fn new(key: &str, message: impl Into<String>) -> Self {
        Self { key: key.to_owned(), message: message.into() }
    }
}

/// The keys that a connector takes.
#[derive(Clone, Debug)]
pub struct ConfigDef {
    keys: Vec<ConfigKey>,
}

impl ConfigDef {
    /// A definition of these keys.
    pub const fn new(keys: Vec<ConfigKey>) -> Self {
        Self { keys }
    }

    /// The keys, in the order of the reference.
    pub fn keys(&self) -> &[ConfigKey] {
        &self.keys
    }

    /// Checks a flat map. Keys of `also` are accepted unread: they belong to the worker.
    ///
    /// # Errors
    /// All problems at once: missing keys, wrong values, unknown keys with the nearest right one.
    pub fn parse(
        &self,
        values: &BTreeMap<String, String>,
        also: &[ConfigKey],
    ) -> Result<Config, Vec<Problem>> {
        let mut problems: Vec<Problem> = values
            .keys()
            .filter(|name| !self.keys.iter().chain(also).any(|key| key.name == name.as_str()))
            .map(|name| self.unknown(name, also))
            .collect();
        let mut config = BTreeMap::new();
        for key in &self.keys {
            match values.get(key.name).map(String::as_str).or(key.default) {
                None => problems.push(Problem::new(key.name, "is required and has no default")),
                Some(value) => match key.key_type.check(value) {
                    Ok(()) => drop(config.insert(key.name.to_owned(), value.to_owned())),
                    Err(message) => problems.push(Problem::new(key.name, message)),
                },
            }
        }
        if problems.is_empty() { Ok(Config { values: config }) } else { Err(problems) }
    }

    fn unknown(&self, name: &str, also: &[ConfigKey]) -> Problem {
        match nearest(name, self.keys.iter().chain(also).map(|key| key.name)) {
            Some(right) => Problem::new(name, format!("is not known; did you mean {right}?")),
            None => Problem::new(name, "is not known"),
        }
    }
}

/// How alike two names must be, from 0 to 1, for one to be offered in place of the other.
const ALIKE: f64 = 0.6;
/// No longer name is like any key.
const LONGEST: usize = 128;

/// The name among `known` that somebody who wrote `name` most likely meant.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // The comparison takes time and memory by the product of both lengths.
    if name.len() > LONGEST {
        return None;
    }
    let name = plain(name);
    let likeness = |known: &'a str| {
        let other = plain(known);
        // `port` stands for `database.port`.
        let tail = other.strip_suffix(name.as_str()).is_some_and(|head| head.ends_with('.'));
        if tail { 1.0 } else { strsim::normalized_damerau_levenshtein(&name, &other) }
    };
    known
        .map(|known| (likeness(known), known))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, known)| known)
}

/// A name as it is compared: other programs write `slot_name` or `Slot-Name`.
fn plain(name: &str) -> String {
    name.to_lowercase().replace(['_', '-'], ".")
}

impl KeyType {
    /// Checks one value.
    ///
    /// # Errors
    /// What was found and what would be right.
    pub fn check(&self, value: &str) -> Result<(), String> {
        let wanted = match self {
            Self::String | Self::Password | Self::List => return Ok(()),
            Self::Int { min, max } => match value.trim().parse::<i64>() {
                Ok(number) if (*min..=*max).contains(&number) => return Ok(()),
                _ if *max == i64::MAX => format!("a whole number of {min} or more"),
                _ => format!("a whole number from {min} to {max}"),
            },
            Self::Boolean if matches!(value, "true" | "false") => return Ok(()),
            Self::Boolean => "true or false".to_owned(),
            Self::Choice(choices) if choices.contains(&value) => return Ok(()),
            Self::Choice(choices) => format!("one of {}", choices.join(", ")),
        };
        Err(format!("is {}; it must be {wanted}", shown(value)))
    }
}

/// A refused value as it may be shown: short, on one line. Those of type [`KeyType::Password`] are
/// never refused here.
fn shown(value: &str) -> String {
    const LONGEST: usize = 40;
    if value.is_empty() {
        return "empty".to_owned();
    }
    let head: String = value.chars().take(LONGEST).collect();
    let dots = if head.len() < value.len() { "…" } else { "" };
    format!("{head:?}{dots}")
}

/// A checked configuration: every key of its definition has a value that fits.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Config {
    values: BTreeMap<String, String>,
}

/// The keys alone: there are passwords among the values.
impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}

impl Config {
    /// The text of a key; empty for a key that the definition lacks.
    pub fn text(&self, key: &str) -> &str {
        self.values.get(key).map_or("", String::as_str)
    }

    /// A key of type [`KeyType::Int`]; 0 for a key that the definition lacks.
    pub fn int(&self, key: &str) -> i64 {
        self.text(key).trim().parse().unwrap_or(0)
    }

    /// The value of a key that is a time in milliseconds, and not less than none.
    pub fn millis(&self, key: &str) -> Duration {
        Duration::from_millis(self.int(key).unsigned_abs())
    }

    /// A key of type [`KeyType::Boolean`].
    pub fn flag(&self, key: &str) -> bool {
        self.text(key) == "true"
    }

    /// The items of a key of type [`KeyType::List`], without white space and empty ones.
    pub fn list(&self, key: &str) -> Vec<&str> {
        self.text(key).split(',').map(str::trim).filter(|item| !item.is_empty()).collect()
    }
}

/// The items of a list of regular expressions: split at commas that stand outside of brackets, braces
/// and parentheses and are not escaped, without white space around them and without empty ones.
pub fn patterns(list: &str) -> Vec<String> {
    let mut items = vec![String::new()];
    let (mut depth, mut escaped) = (0_u32, false);
    for letter in list.chars() {
        match letter {
            ',' if depth == 0 && !escaped => {
                items.push(String::new());
                continue;
            }
            '(' | '[' | '{' if !escaped => depth = depth.saturating_add(1),
            ')' | ']' | '}' if !escaped => depth = depth.saturating_sub(1),
            _ => {}
        }
        escaped = letter == '\\' && !escaped;
        if let Some(item) = items.last_mut() {
            item.push(letter);
        }
    }
    items.iter().map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn def() -> ConfigDef {
        let key = |name, key_type, default| ConfigKey {
            name,
            key_type,
            default,
            importance: Importance::High,
            documentation: "",
        };
        ConfigDef::new(vec![
            key("topic.prefix", KeyType::String, None),
            key("port", KeyType::Int { min: 1, max: 65_535 }, Some("5432")),
            key("strict", KeyType::Boolean, Some("true")),
            key("mode", KeyType::Choice(&["always", "never"]), Some("always")),
            key("tables", KeyType::List, Some("")),
        ])
    }

    fn parse(pairs: &[(&str, &str)]) -> Result<Config, Vec<Problem>> {
        let values = pairs.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        def().parse(&values, &[])
    }

    #[test]
    fn absent_keys_have_their_defaults() {
        let config = parse(&[("topic.prefix", "shop"), ("tables", " a, ,b ")]).unwrap();
        assert_eq!((config.text("topic.prefix"), config.int("port")), ("shop", 5432));
        assert!(config.flag("strict"));
        assert_eq!(config.list("tables"), ["a", "b"]);
    }

    #[test]
    fn commas_inside_an_expression_do_not_split_it() {
        assert_eq!(patterns(r"a{1,2}, (b,c) ,d\,e,,"), ["a{1,2}", "(b,c)", r"d\,e"]);
    }

    #[test]
    fn no_value_is_printed_for_debugging() {
        let config = parse(&[("topic.prefix", "secret")]).unwrap();
        let printed = format!("{config:?}");
        assert!(printed.contains("topic.prefix") && !printed.contains("secret"), "{printed}");
    }

    #[test]
    fn all_problems_are_named_at_once() {
        let problems =
            parse(&[("port", "70000"), ("strict", "yes"), ("mode", "often")]).unwrap_err();
        let keys: Vec<_> = problems.iter().map(|problem| problem.key.as_str()).collect();
        assert_eq!(keys, ["topic.prefix", "port", "strict", "mode"]);
        assert!(problems[1].message.contains("from 1 to 65535"));
        assert!(problems[3].message.contains("always, never"));
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_nearest_right_one() {
        let problems = parse(&[("topic.prefix", "a"), ("topic.prefx", "b")]).unwrap_err();
        assert_eq!(problems[0].message, "is not known; did you mean topic.prefix?");
    }

    #[test]
    fn the_nearest_name_is_the_one_meant() {
        let known = || ["topic.prefix", "database.port", "slot.name"].into_iter();
        for (name, meant) in [
            ("topic.prefx", Some("topic.prefix")),
            ("port", Some("database.port")),
            ("slot_name", Some("slot.name")),
            ("Slot.Name", Some("slot.name")),
            ("transforms", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, known()), meant, "{name}");
        }
    }

    #[test]
    fn a_refused_value_is_shown_on_one_short_line() {
        let wrong = KeyType::Boolean.check(&"\n".repeat(1000)).unwrap_err();
        assert!(wrong.len() < 140 && !wrong.contains('\n'), "{wrong}");
        assert_eq!(
            KeyType::Int { min: 1, max: 9 }.check("ten").unwrap_err(),
            "is \"ten\"; it must be a whole number from 1 to 9"
        );
    }

    #[test]
    fn keys_of_the_worker_are_accepted_unread() {
        let worker = ConfigKey {
            name: "tasks.max",
            key_type: KeyType::Int { min: 1, max: 1 },
            default: None,
            importance: Importance::Low,
            documentation: "",
        };
        let values = [("topic.prefix", "a"), ("tasks.max", "x")];
        let values = values.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        let config = def().parse(&values, &[worker]).unwrap();
        assert_eq!(config.text("tasks.max"), "");
    }

    proptest! {
        #[test]
        fn no_input_makes_it_panic(key in ".{0,20}", value in ".{0,20}") {
            let _ = def().parse(&[(key, value)].into(), &[]);
        }
    }
}
