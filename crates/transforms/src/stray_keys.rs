//! Keys of transforms and predicates that nobody reads. Connect ignores them; a misspelt one would be an option that
//! is left out.

use std::collections::BTreeMap;

use highwater_config::{Problem, nearest};

use crate::chain::{PREDICATES, TRANSFORMS, names};
use crate::options::Problems;
use crate::predicate::predicate_keys;
use crate::transform::transform_keys;

/// Options that each has beside those of its class.
const OF_TRANSFORMS: [&str; 4] = ["type", "predicate", "negate", "plugin.version"];
const OF_PREDICATES: [&str; 2] = ["type", "plugin.version"];

/// What is wrong with the keys of a configuration behind `transforms.` and `predicates.`.
pub(crate) fn stray_keys(config: &BTreeMap<String, String>) -> Problems {
    let option_of_transform = |class: &str| {
        let own = transform_keys(class)?.into_iter().map(|key| key.name);
        Some(OF_TRANSFORMS.into_iter().chain(own).collect())
    };
    let option_of_predicate = |class: &str| {
        let own = predicate_keys(class)?.into_iter().map(|key| key.name);
        Some(OF_PREDICATES.into_iter().chain(own).collect())
    };
    let mut problems = of_list(config, TRANSFORMS, &option_of_transform);
    problems.extend(of_list(config, PREDICATES, &option_of_predicate));
    problems
}

/// The options of a class; none of one that is not known, which is wrong by itself.
type Options<'a> = &'a dyn Fn(&str) -> Option<Vec<&'static str>>;

fn of_list(config: &BTreeMap<String, String>, list: &str, options: Options<'_>) -> Problems {
    let (names, _) = names(config, list);
    let prefix = format!("{list}.");
    let keys = config.range(prefix.clone()..).map(|(key, _)| key);
    let keys = keys.map_while(|key| Some((key, key.strip_prefix(&prefix)?)));
    keys.filter_map(|(key, rest)| {
        let message = match split(rest, &names) {
            None => unnamed(rest, list, &names),
            Some((name, option)) => {
                let class =
                    config.get(&format!("{prefix}{name}.type")).map_or("", |class| class.trim());
                unknown(option, &format!("{prefix}{name}."), &options(class)?)?
            }
        };
        Some(Problem::new(key, message))
    })
    .collect()
}

/// The name and the option of a key. One name may begin with another and a dot: the longest counts.
fn split<'a>(rest: &'a str, names: &'a [String]) -> Option<(&'a str, &'a str)> {
    let part = |name: &'a String| {
        Some((name.as_str(), rest.strip_prefix(name.as_str())?.strip_prefix('.')?))
    };
    names.iter().filter_map(part).max_by_key(|(name, _)| name.len())
}

fn unnamed(rest: &str, list: &str, names: &[String]) -> String {
    let said = rest.split('.').next().unwrap_or_default();
    match nearest(said, names.iter().map(String::as_str)) {
        Some(right) => format!("is of {said:?}, which {list} does not name; did you mean {right}?"),
        None => format!("is of {said:?}, which {list} does not name"),
    }
}

fn unknown(option: &str, prefix: &str, known: &[&str]) -> Option<String> {
    if known.contains(&option) {
        return None;
    }
    Some(match nearest(option, known.iter().copied()) {
        Some(right) => format!("is not known; did you mean {prefix}{right}?"),
        None => format!("is not known; the options are {}", known.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stray(pairs: &[(&str, &str)]) -> Vec<String> {
        let hoist = [
            ("transforms", "w, w.x, route"),
            ("transforms.w.type", "HoistField$Value"),
            ("transforms.w.field", "line"),
            ("transforms.w.predicate", "p"),
            ("transforms.w.negate", "true"),
            ("transforms.w.x.type", "RegexRouter"),
            ("transforms.w.x.regex", "a"),
            ("transforms.w.x.plugin.version", ""),
            ("predicates", "p"),
            ("predicates.p.type", "TopicNameMatches"),
            ("predicates.p.pattern", "a"),
        ];
        let all = hoist.iter().chain(pairs);
        let config = all.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        stray_keys(&config)
            .iter()
            .map(|problem| format!("{} {}", problem.key, problem.message))
            .collect()
    }

    #[test]
    fn what_a_transform_or_a_predicate_reads_is_right() {
        assert_eq!(stray(&[]), [""; 0]);
        // A class that is not known is wrong by itself.
        assert_eq!(stray(&[("transforms.w.type", "Nope"), ("transforms.w.any", "1")]), [""; 0]);
    }

    #[test]
    fn a_misspelt_key_is_refused_with_the_nearest() {
        for (key, said) in [
            ("transforms.w.negat", "is not known; did you mean transforms.w.negate?"),
            ("transforms.w.x.replacment", "is not known; did you mean transforms.w.x.replacement?"),
            (
                "transforms.rout.regex",
                "is of \"rout\", which transforms does not name; did you mean route?",
            ),
            ("transforms.ww.field", "is of \"ww\", which transforms does not name"),
            ("transforms.other.type", "is of \"other\", which transforms does not name"),
            ("predicates.p.patern", "is not known; did you mean predicates.p.pattern?"),
            ("predicates.p.negate", "is not known; the options are type, plugin.version, pattern"),
            ("predicates.q.type", "is of \"q\", which predicates does not name"),
        ] {
            assert_eq!(stray(&[(key, "1")]), [format!("{key} {said}")]);
        }
    }
}
