//! The predicates by their class names.

use std::collections::BTreeMap;

use highwater_config::{ConfigKey, Importance, KeyType};

use crate::options::{Problems, required, wrong};
use crate::pattern::Pattern;
use crate::record::Record;
use crate::transform::checked;

/// What a record must be for a transform to work on it.
#[derive(Clone, Debug)]
pub enum Predicate {
    /// A header has this name.
    HasHeaderKey(String),
    /// The value is null.
    RecordIsTombstone,
    /// The topic's name fits.
    TopicNameMatches(TopicPattern),
}

/// A regular expression that all of a topic's name must fit.
#[derive(Clone, Debug)]
pub struct TopicPattern(Pattern);

/// The class names of all of them.
pub const PREDICATES: &[&str] = &[
    "org.apache.kafka.connect.transforms.predicates.HasHeaderKey",
    "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
    "org.apache.kafka.connect.transforms.predicates.TopicNameMatches",
];

const NAME: &str = "name";
const PATTERN: &str = "pattern";

/// The last part of a predicate's class, for that or the whole.
fn simple_name(class: &str) -> Option<&'static str> {
    PREDICATES.iter().copied().find_map(|full| {
        let simple = full.rsplit_once('.').map_or(full, |(_, simple)| simple);
        (full == class || simple == class).then_some(simple)
    })
}

/// The keys of a predicate, without its prefix; `None` for a class that is none.
pub fn predicate_keys(class: &str) -> Option<Vec<ConfigKey>> {
    Some(match simple_name(class)? {
        "HasHeaderKey" => {
            vec![
                required(NAME, KeyType::String, "Name of the header.")
                    .of_importance(Importance::Medium),
            ]
        }
        "TopicNameMatches" => {
            vec![
                required(
                    PATTERN,
                    KeyType::String,
                    "Regular expression that all of the topic's name must fit.",
                )
                .of_importance(Importance::Medium),
            ]
        }
        _ => Vec::new(),
    })
}

impl Predicate {
    /// The predicate of this class with these options, from whose keys its prefix was taken.
    ///
    /// # Errors
    /// There is no such class, or an option does not fit.
    pub fn new(class: &str, options: &BTreeMap<String, String>) -> Result<Self, Problems> {
        let (Some(keys), Some(name)) = (predicate_keys(class), simple_name(class)) else {
            let known = PREDICATES.join(", ");
            return Err(wrong("type", format!("is not known; the predicates are {known}")));
        };
        let config = checked(keys, options)?;
        Ok(match name {
            "HasHeaderKey" if config.text(NAME).is_empty() => {
                return Err(wrong(NAME, "must not be empty"));
            }
            "HasHeaderKey" => Self::HasHeaderKey(config.text(NAME).to_owned()),
            "TopicNameMatches" => {
                let pattern =
                    Pattern::new(config.text(PATTERN)).map_err(|what| wrong(PATTERN, what))?;
                Self::TopicNameMatches(TopicPattern(pattern))
            }
            _ => Self::RecordIsTombstone,
        })
    }

    /// Whether it holds for this record.
    pub fn holds(&self, record: &Record) -> bool {
        match self {
            Self::HasHeaderKey(name) => record.headers.iter().any(|header| *header.name == **name),
            Self::RecordIsTombstone => record.value.value.is_null(),
            Self::TopicNameMatches(TopicPattern(pattern)) => pattern.matches(&record.topic),
        }
    }
}
