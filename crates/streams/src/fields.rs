//! Reading the attributes of a resource, collecting everything that is wrong at once.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

/// One thing wrong with a configuration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Problem {
    /// Path of the attribute, such as `encoding.json.model`.
    pub(crate) attribute: String,
    /// What is wrong and what would be right.
    pub(crate) message: String,
    /// Whether it is right but not implemented yet.
    pub(crate) later: bool,
}

/// The attributes of one JSON object.
#[derive(Debug)]
pub(crate) struct Fields<'a> {
    path: String,
    values: Option<&'a Map<String, Value>>,
    known: Vec<&'static str>,
    problems: Vec<Problem>,
}

impl<'a> Fields<'a> {
    /// The attributes of `value`, which must be an object.
    pub(crate) fn of(path: &str, value: &'a Value) -> Self {
        let mut fields = Self {
            path: path.to_owned(),
            values: value.as_object(),
            known: Vec::new(),
            problems: Vec::new(),
        };
        if fields.values.is_none() {
            fields.problems.push(Problem {
                attribute: if path.is_empty() { "the body" } else { path }.to_owned(),
                message: "must be a JSON object".to_owned(),
                later: false,
            });
        }
        fields
    }

    /// The value of an attribute; `null` counts as absent, and so stands for the default.
    pub(crate) fn get(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.values?.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn flag(&mut self, name: &'static str, default: bool) -> bool {
        match self.get(name) {
            None => default,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => {
                self.wrong(name, "must be true or false");
                default
            }
        }
    }

    pub(crate) fn integer(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u64>,
        default: u64,
    ) -> u64 {
        let Some(value) = self.get(name) else { return default };
        match value.as_u64().filter(|number| range.contains(number)) {
            Some(number) => number,
            None => {
                let (least, greatest) = range.into_inner();
                self.wrong(name, &format!("must be a whole number from {least} to {greatest}"));
                default
            }
        }
    }

    /// A whole number that need not be given.
    pub(crate) fn optional_integer(
        &mut self,
        name: &'static str,
        range: RangeInclusive<u64>,
    ) -> Option<u64> {
        let given =
            self.values.is_some_and(|values| values.get(name).is_some_and(|v| !v.is_null()));
        let least = *range.start();
        let number = self.integer(name, range, least);
        given.then_some(number)
    }

    /// A text whose number of characters is in `length`.
    pub(crate) fn text(
        &mut self,
        name: &'static str,
        length: RangeInclusive<usize>,
    ) -> Option<String> {
        let value = self.get(name)?;
        let text = value.as_str().filter(|text| length.contains(&text.chars().count()));
        if text.is_none() {
            let (least, greatest) = length.into_inner();
            self.wrong(name, &format!("must be a text of {least} to {greatest} characters"));
        }
        text.map(str::to_owned)
    }

    /// A text that says one of a few things.
    pub(crate) fn choice<T>(
        &mut self,
        name: &'static str,
        names: &[&str],
        parse: impl Fn(&str) -> Option<T>,
        default: T,
    ) -> T {
        let Some(value) = self.get(name) else { return default };
        value.as_str().and_then(parse).unwrap_or_else(|| {
            self.wrong(name, &format!("must be one of {}", names.join(", ")));
            default
        })
    }

    /// A discriminator: absent or exactly this text.
    pub(crate) fn constant(&mut self, name: &'static str, text: &str) {
        if self.get(name).is_some_and(|value| value != text) {
            self.wrong(name, &format!("must be {text} or left out"));
        }
    }

    /// An attribute that this release takes only at its default, so that it is never ignored.
    pub(crate) fn later(&mut self, name: &'static str, default: &Value, instead: &str) {
        if self.get(name).is_some_and(|value| value != default) {
            self.not_yet(name, instead);
        }
    }

    pub(crate) fn wrong(&mut self, name: &str, message: &str) {
        self.problem(name, message, false);
    }

    pub(crate) fn not_yet(&mut self, name: &str, instead: &str) {
        self.problem(name, &format!("is not available in this release; {instead}"), true);
    }

    fn problem(&mut self, name: &str, message: &str, later: bool) {
        let attribute = self.path_of(name);
        self.problems.push(Problem { attribute, message: message.to_owned(), later });
    }

    /// Path of an attribute of this object.
    pub(crate) fn path_of(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Takes over the problems of an attribute's own attributes.
    pub(crate) fn absorb(&mut self, problems: Vec<Problem>) {
        self.problems.extend(problems);
    }

    /// All problems, those with attributes that nobody asked for among them.
    pub(crate) fn finish(mut self) -> Vec<Problem> {
        let names = self.values.into_iter().flat_map(Map::keys);
        let unknown: Vec<&String> =
            names.filter(|name| !self.known.contains(&name.as_str())).collect();
        let known = self.known.join(", ");
        for name in unknown {
            self.wrong(name, &format!("is not known here; known are {known}"));
        }
        self.problems
    }
}
