//! Values that each fit their key and do not hold together.

use highwater_connector::{Config, Problem};

use super::database::DatabaseSettings;
use super::keys::RECORD_LIMIT;
use super::parts::{StatementSettings, TableSettings};
use super::{keys_of, topics};
use crate::delivery::Template;

/// All that does not hold together, by the key that is at fault.
pub fn problems(config: &Config) -> Vec<Problem> {
    let found = [
        DatabaseSettings::read(config).err(),
        containers(config),
        TableSettings::read(config).err(),
        keys_of(config).err(),
        StatementSettings::read(config).err(),
        age(config),
        prefix(config),
        routing(config),
        template(config),
        sizes(config),
        topics::problem(config),
    ];
    found.into_iter().flatten().collect()
}

fn problem(key: &str, what: impl Into<String>) -> Option<Problem> {
    Some(Problem::new(key, what))
}

/// A session that names ranges is inside of one pluggable database.
fn containers(config: &Config) -> Option<Problem> {
    let count = config.list("cdc.database.pdbs").len();
    if config.text("cdc.mining.mode") != "range" || count < 2 {
        return None;
    }
    let what = format!("names {count}; with cdc.mining.mode=range a connector captures one");
    problem("cdc.database.pdbs", what)
}

fn age(config: &Config) -> Option<Problem> {
    let age = config.int("cdc.transaction.max.age.ms");
    let is_short = (0..1_000).contains(&age);
    is_short.then(|| {
        let what = format!("is {age}; it must be -1 or a whole number of 1000 or more");
        Problem::new("cdc.transaction.max.age.ms", what)
    })
}

fn prefix(config: &Config) -> Option<Problem> {
    let prefix = config.text("cdc.topic.prefix");
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if !prefix.is_empty() && prefix.len() <= 200 && prefix.bytes().all(fits) {
        return None;
    }
    problem("cdc.topic.prefix", format!("is {prefix:?}, no topic name of at most 200 bytes"))
}

fn routing(config: &Config) -> Option<Problem> {
    if config.text("topic.routing") == "table" {
        return None;
    }
    let needs = "needs topic.routing=table";
    if config.text("cdc.tombstones.on.delete") == "true" {
        return problem("cdc.tombstones.on.delete", needs);
    }
    let has_template = !config.text("cdc.topic.template").is_empty();
    has_template.then(|| Problem::new("cdc.topic.template", needs))
}

/// The worker lets a connector write to topics below its prefix alone.
fn template(config: &Config) -> Option<Problem> {
    let template = config.text("cdc.topic.template");
    if template.is_empty() {
        return None;
    }
    if !template.starts_with("${prefix}.") {
        let what = format!("is {template:?}; it must begin with ${{prefix}}.");
        return problem("cdc.topic.template", what);
    }
    let what = Template::new(Some(template), "", "", true).err()?;
    problem("cdc.topic.template", what)
}

fn sizes(config: &Config) -> Option<Problem> {
    let limit = config.int(RECORD_LIMIT);
    let above = |key: &str| {
        let value = config.int(key);
        (value > limit).then(|| {
            let what = format!("is {value}, above the largest record ({RECORD_LIMIT}), {limit}");
            Problem::new(key, what)
        })
    };
    let has_lobs = config.text("cdc.lob.mode") != "skip";
    let lobs = || has_lobs.then(|| above("cdc.lob.max.bytes")).flatten();
    above("cdc.txjournal.chunk.max.bytes").or_else(lobs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::sample::config;

    #[test]
    fn values_that_do_not_hold_together_are_named_by_key() {
        let cases: &[(&[(&str, &str)], &str)] = &[
            (&[("cdc.database.host", "")], "cdc.database.host"),
            (&[("cdc.mining.mode", "range"), ("cdc.database.pdbs", "A,B")], "cdc.database.pdbs"),
            (&[("cdc.tables.include", " , ")], "cdc.tables.include"),
            (&[("cdc.columns.exclude", "A.(")], "cdc.columns.exclude"),
            (&[("cdc.key.columns", "EMP")], "cdc.key.columns"),
            (&[("cdc.retry.extra.error.codes", "12805")], "cdc.retry.extra.error.codes"),
            (&[("cdc.transaction.max.age.ms", "999")], "cdc.transaction.max.age.ms"),
            (&[("cdc.topic.prefix", "a b")], "cdc.topic.prefix"),
            (&[("cdc.tombstones.on.delete", "true")], "cdc.tombstones.on.delete"),
            (&[("cdc.topic.template", "${prefix}.${table}")], "cdc.topic.template"),
            (
                &[("cdc.topic.template", "x.${table}"), ("topic.routing", "table")],
                "cdc.topic.template",
            ),
            (&[(RECORD_LIMIT, "200000")], "cdc.txjournal.chunk.max.bytes"),
            (&[("cdc.lob.mode", "inline"), ("cdc.lob.max.bytes", "20000000")], "cdc.lob.max.bytes"),
            (&[("cdc.ops.topic", "shop")], "cdc.ops.topic"),
        ];
        for (pairs, key) in cases {
            let found: Vec<String> =
                problems(&config(pairs)).into_iter().map(|problem| problem.key).collect();
            assert_eq!(found, [*key], "{pairs:?}");
        }
    }

    #[test]
    fn what_holds_together_is_let_pass() {
        for pairs in [
            &[("cdc.mining.mode", "range"), ("cdc.database.pdbs", "A")][..],
            &[("cdc.lob.max.bytes", "20000000")],
            &[("cdc.tombstones.on.delete", "true"), ("topic.routing", "table")],
            &[("cdc.topic.template", "${prefix}.${table}"), ("topic.routing", "table")],
            &[("cdc.transaction.max.age.ms", "1000")],
        ] {
            assert_eq!(problems(&config(pairs)), [], "{pairs:?}");
        }
    }

    #[test]
    fn all_problems_are_named_at_once() {
        let config = config(&[("cdc.topic.prefix", ""), ("cdc.transaction.max.age.ms", "5")]);
        assert_eq!(problems(&config).len(), 2);
    }
}
