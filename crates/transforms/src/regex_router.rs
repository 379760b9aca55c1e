//! RegexRouter: sends records to another topic, whose name is made of the topic's.

use std::sync::Arc;

use highwater_config::{Config, ConfigKey, KeyType};

use crate::options::{Problems, required, wrong};
use crate::pattern::Pattern;
use crate::place::Place;
use crate::record::Record;
use crate::transform::{Applied, Transform};

const REGEX: &str = "regex";
const REPLACEMENT: &str = "replacement";

pub(crate) fn keys() -> Vec<ConfigKey> {
    vec![
        required(
            REGEX,
            KeyType::String,
            "Regular expression that all of the topic's name must fit; other topics stay.",
        ),
        required(
            REPLACEMENT,
            KeyType::String,
            "What takes its place; $1 and ${name} stand for groups of the expression.",
        ),
    ]
}

#[derive(Debug)]
struct RegexRouter {
    pattern: Pattern,
    replacement: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Text(String),
    Group(usize),
    Named(String),
}

pub(crate) fn make(_: Place, config: &Config) -> Result<Box<dyn Transform>, Problems> {
    let pattern = Pattern::new(config.text(REGEX)).map_err(|what| wrong(REGEX, what))?;
    let replacement =
        parts(config.text(REPLACEMENT), &pattern).map_err(|what| wrong(REPLACEMENT, what))?;
    Ok(Box::new(RegexRouter { pattern, replacement }))
}

impl Transform for RegexRouter {
    fn apply(&self, mut record: Record) -> Applied {
        if self.pattern.matches(&record.topic) {
            let topic = self.pattern.replace_first(&record.topic, |captures| {
                let text = |part: &Part| match part {
                    Part::Text(text) => text.clone(),
                    Part::Group(number) => group(captures.get(*number)),
                    Part::Named(name) => group(captures.name(name)),
                };
                self.replacement.iter().map(text).collect()
            });
            record.topic = Arc::from(topic);
        }
        Ok(Some(record))
    }

    fn reroutes(&self) -> bool {
        true
    }
}

fn group(found: Option<regex::Match<'_>>) -> String {
    found.map(|found| found.as_str().to_owned()).unwrap_or_default()
}

/// Divides a replacement as Java reads it: a group's number takes as many digits as there are groups
/// for, a backslash takes the meaning of what follows.
fn parts(replacement: &str, pattern: &Pattern) -> Result<Vec<Part>, String> {
    let mut parts = Vec::new();
    let mut letters = replacement.chars().peekable();
    while let Some(letter) = letters.next() {
        let part = match letter {
            '\\' => Part::Text(letters.next().ok_or("ends in a backslash")?.to_string()),
            '$' if letters.next_if_eq(&'{').is_some() => {
                let name: String = letters.by_ref().take_while(|letter| *letter != '}').collect();
                if !pattern.has_group(&name) {
                    return Err(format!(
                        "names the group {name:?}, which the expression does not have"
                    ));
                }
                Part::Named(name)
            }
            '$' => {
                let digit = |letter: char| {
                    letter.to_digit(10).and_then(|digit| usize::try_from(digit).ok())
                };
                let mut number = letters.next().and_then(digit).ok_or("has a $ without a group")?;
                while let Some(more) = letters.peek().copied().and_then(digit)
                    && number * 10 + more < pattern.groups()
                {
                    number = number * 10 + more;
                    letters.next();
                }
                if number >= pattern.groups() {
                    return Err(format!(
                        "names group {number}, which the expression does not have"
                    ));
                }
                Part::Group(number)
            }
            letter => Part::Text(letter.to_string()),
        };
        parts.push(part);
    }
    Ok(parts)
}
