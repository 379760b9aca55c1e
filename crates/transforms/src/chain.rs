//! The transforms of a connector, one behind the other.

use std::collections::BTreeMap;

use highwater_config::Problem;
use highwater_data::DataError;

use crate::options::{Problems, wrong};
use crate::predicate::Predicate;
use crate::record::Record;
use crate::stray_keys::stray_keys;
use crate::transform::{Transform, new_transform};

pub(crate) const TRANSFORMS: &str = "transforms";
pub(crate) const PREDICATES: &str = "predicates";

/// A transform could not work on a record.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the transform {transform} meets {error}")]
pub struct TransformError {
    /// Its name in the configuration.
    pub transform: String,
    /// Its class as the configuration names it.
    pub class: String,
    /// What it met.
    pub error: DataError,
}

impl TransformError {
    /// Its stable code.
    pub const fn code(&self) -> &'static str {
        "TRANSFORM_FAILED"
    }
}

#[derive(Debug)]
struct Link {
    name: String,
    class: String,
    transform: Box<dyn Transform>,
    condition: Option<Condition>,
}

/// When a transform works on a record.
#[derive(Clone, Debug)]
struct Condition {
    predicate: Predicate,
    negate: bool,
}

impl Condition {
    fn holds(&self, record: &Record) -> bool {
        self.predicate.holds(record) != self.negate
    }
}

/// What a connector's configuration makes of its records.
#[derive(Debug, Default)]
pub struct Chain {
    links: Vec<Link>,
}

impl Chain {
    /// The chain that `transforms` and `predicates` of a connector's configuration name.
    ///
    /// # Errors
    /// All that is wrong with them, by the keys of the configuration.
    pub fn new(config: &BTreeMap<String, String>) -> Result<Self, Vec<Problem>> {
        let (predicates, mut problems) = predicates(config);
        let mut links = Vec::new();
        let (names, more) = names(config, TRANSFORMS);
        problems.extend(more);
        for name in &names {
            match link(config, name, &predicates) {
                Ok(link) => links.push(link),
                Err(more) => problems.extend(more),
            }
        }
        problems.extend(stray_keys(config));
        if problems.is_empty() { Ok(Self { links }) } else { Err(problems) }
    }

    /// Whether it has no transform: records pass as they are.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// The first transform that may drop records or send them elsewhere (rule R2: not on a trail).
    pub fn rerouting(&self) -> Option<&str> {
        self.links.iter().find(|link| link.transform.reroutes()).map(|link| link.name.as_str())
    }

    /// What becomes of a record; none when it is dropped.
    ///
    /// # Errors
    /// A transform cannot work on it.
    pub fn apply(&self, record: Record) -> Result<Option<Record>, TransformError> {
        let mut record = record;
        for Link { name, class, transform, condition } in &self.links {
            if condition.as_ref().is_some_and(|condition| !condition.holds(&record)) {
                continue;
            }
            let applied = transform.apply(record).map_err(|error| TransformError {
                transform: name.clone(),
                class: class.clone(),
                error,
            })?;
            match applied {
                Some(next) => record = next,
                None => return Ok(None),
            }
        }
        Ok(Some(record))
    }
}

/// Transforms, and predicates, of one connector: each may hold a compiled expression.
const MOST: usize = 100;

/// The names that a key lists, and what is wrong with them.
pub(crate) fn names(config: &BTreeMap<String, String>, key: &str) -> (Vec<String>, Problems) {
    let listed = config.get(key).map(String::as_str).unwrap_or_default();
    let mut names: Vec<String> = Vec::new();
    let mut problems = Vec::new();
    for name in listed.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if names.iter().any(|before| before == name) {
            problems.extend(wrong(key, format!("names {name:?} twice")));
        } else if names.len() == MOST {
            problems.extend(wrong(key, format!("names more than {MOST}")));
            break;
        } else {
            names.push(name.to_owned());
        }
    }
    (names, problems)
}

/// The options behind a prefix, without it.
fn options(config: &BTreeMap<String, String>, prefix: &str) -> BTreeMap<String, String> {
    config
        .range(prefix.to_owned()..)
        .map_while(|(key, value)| Some((key.strip_prefix(prefix)?.to_owned(), value.clone())))
        .collect()
}

fn prefixed(prefix: &str, problems: Problems) -> Problems {
    let rename = |problem: Problem| Problem { key: format!("{prefix}{}", problem.key), ..problem };
    problems.into_iter().map(rename).collect()
}

fn class<'a>(options: &'a BTreeMap<String, String>, prefix: &str) -> Result<&'a str, Problems> {
    let class = options.get("type").map(|class| class.trim()).filter(|class| !class.is_empty());
    class.ok_or_else(|| wrong(&format!("{prefix}type"), "is required and has no default"))
}

fn predicates(config: &BTreeMap<String, String>) -> (BTreeMap<String, Predicate>, Problems) {
    let (names, mut problems) = names(config, PREDICATES);
    let mut predicates = BTreeMap::new();
    for name in names {
        let prefix = format!("{PREDICATES}.{name}.");
        let options = options(config, &prefix);
        let made = class(&options, &prefix).and_then(|class| {
            Predicate::new(class, &options).map_err(|problems| prefixed(&prefix, problems))
        });
        match made {
            Ok(predicate) => drop(predicates.insert(name, predicate)),
            Err(more) => problems.extend(more),
        }
    }
    (predicates, problems)
}

fn link(
    config: &BTreeMap<String, String>,
    name: &str,
    predicates: &BTreeMap<String, Predicate>,
) -> Result<Link, Problems> {
    let prefix = format!("{TRANSFORMS}.{name}.");
    let options = options(config, &prefix);
    let class = class(&options, &prefix)?;
    let transform =
        new_transform(class, &options).map_err(|problems| prefixed(&prefix, problems))?;
    let negate = match options.get("negate").map(|text| text.trim().to_ascii_lowercase()).as_deref()
    {
        None | Some("false") => false,
        Some("true") => true,
        Some(_) => return Err(wrong(&format!("{prefix}negate"), "must be true or false")),
    };
    let condition = match options.get("predicate").map(String::as_str) {
        None | Some("") if negate => {
            return Err(wrong(&format!("{prefix}negate"), "is of no use without predicate"));
        }
        None | Some("") => None,
        Some(named) => {
            let predicate = predicates.get(named).cloned().ok_or_else(|| {
                wrong(
                    &format!("{prefix}predicate"),
                    format!("names {named:?}, which {PREDICATES} does not"),
                )
            })?;
            Some(Condition { predicate, negate })
        }
    };
    Ok(Link { name: name.to_owned(), class: class.to_owned(), transform, condition })
}

#[cfg(test)]
mod tests {
    use highwater_data::{SchemaAndValue, Value};

    use super::*;

    const PACKAGE: &str = "org.apache.kafka.connect.transforms.";

    fn config(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        let full = |value: &str| value.replace('@', PACKAGE);
        pairs.iter().map(|(key, value)| ((*key).to_owned(), full(value))).collect()
    }

    fn tombstones(negate: &str) -> Chain {
        let pairs = [
            ("transforms", "drop, name"),
            ("transforms.drop.type", "@Filter"),
            ("transforms.drop.predicate", "empty"),
            ("transforms.drop.negate", negate),
            ("transforms.name.type", "@InsertHeader"),
            ("transforms.name.header", "seen"),
            ("transforms.name.value.literal", "true"),
            ("predicates", "empty"),
            ("predicates.empty.type", "@predicates.RecordIsTombstone"),
        ];
        Chain::new(&config(&pairs)).unwrap()
    }

    #[test]
    fn a_transform_works_where_its_predicate_holds_or_does_not() {
        let empty = Record::new("a");
        let full = Record { value: SchemaAndValue::schemaless(Value::Int64(1)), ..empty.clone() };
        assert_eq!(tombstones("false").apply(empty.clone()), Ok(None));
        let passed = tombstones("false").apply(full.clone()).unwrap().unwrap();
        assert_eq!((passed.value, passed.headers.len()), (full.value.clone(), 1));
        assert_eq!(tombstones("true").apply(full), Ok(None));
        assert!(tombstones("true").apply(empty).unwrap().is_some());
        assert_eq!(tombstones("true").rerouting(), Some("drop"));
    }

    #[test]
    fn what_is_wrong_is_named_by_the_keys_of_the_configuration() {
        for (pairs, key) in [
            (&[("transforms", "a")][..], "transforms.a.type"),
            (&[("transforms", "a,a")], "transforms"),
            (&[("transforms", "a"), ("transforms.a.type", "@Nothing")], "transforms.a.type"),
            (&[("transforms", "a"), ("transforms.a.type", "@Cast")], "transforms.a.type"),
            (&[("transforms", "a"), ("transforms.a.type", "@Filter$Key")], "transforms.a.type"),
            (&[("transforms", "a"), ("transforms.a.type", "@Cast$Value")], "transforms.a.spec"),
            (
                &[
                    ("transforms", "a"),
                    ("transforms.a.type", "@Filter"),
                    ("transforms.a.predicate", "p"),
                ],
                "transforms.a.predicate",
            ),
            (
                &[
                    ("transforms", "a"),
                    ("transforms.a.type", "@Filter"),
                    ("transforms.a.negate", "2"),
                ],
                "transforms.a.negate",
            ),
            (&[("predicates", "p")], "predicates.p.type"),
            (
                &[
                    ("predicates", "p"),
                    ("predicates.p.type", "TopicNameMatches"),
                    ("predicates.p.pattern", "("),
                ],
                "predicates.p.pattern",
            ),
        ] {
            // `a` may itself be missing beside what is wrong with it.
            let problems = Chain::new(&config(pairs)).unwrap_err();
            assert!(problems.iter().any(|problem| problem.key == key), "{key}: {problems:?}");
        }
        assert!(Chain::new(&BTreeMap::new()).unwrap().is_empty());
    }

    #[test]
    fn a_list_without_end_is_refused_at_once() {
        let many: Vec<String> = (0..200_000).map(|number| number.to_string()).collect();
        let problems = Chain::new(&config(&[("predicates", &many.join(","))])).unwrap_err();
        let last = problems.iter().rfind(|problem| problem.key == "predicates").unwrap();
        assert!(last.message.contains("more than 100"), "{}", last.message);
        assert!(problems.len() < 1_000, "{}", problems.len());
    }

    #[test]
    fn a_failure_names_the_transform() {
        let pairs = [
            ("transforms", "key"),
            ("transforms.key.type", "@ValueToKey"),
            ("transforms.key.fields", "id"),
        ];
        let failed = Chain::new(&config(&pairs)).unwrap().apply(Record::new("a")).unwrap_err();
        assert_eq!((failed.transform.as_str(), failed.code()), ("key", "TRANSFORM_FAILED"));
    }
}
