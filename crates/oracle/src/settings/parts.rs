//! Settings of the parts of the engine that have none of their own.

use std::time::Duration;

use highwater_connector::{Config, Problem, Routing, patterns};

use super::keys::RECORD_LIMIT;
use super::{routing, size};

/// Which tables and columns are captured, as patterns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableSettings {
    /// Tables to capture.
    pub include: Vec<String>,
    /// Tables not to capture all the same.
    pub exclude: Vec<String>,
    /// Columns to leave out.
    pub exclude_columns: Vec<String>,
    /// Whether names that differ by case alone are told apart.
    pub is_case_sensitive: bool,
}

/// How statements are run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StatementSettings {
    /// Rows that the server sends at a time.
    pub fetch_size: usize,
    /// How long the statement of a step may run.
    pub timeout: Duration,
    /// Most items of an IN list.
    pub in_list_max: usize,
    /// `ORA-` numbers that pass by themselves, beside those that are known to.
    pub transient_errors: Vec<u32>,
}

/// When and how open transactions go to the journal topic.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalSettings {
    /// Age from which they do.
    pub threshold: Duration,
    /// Number of changes from which they do.
    pub threshold_changes: u64,
    /// Bytes of one record.
    pub chunk_max_bytes: usize,
}

/// What to do with a transaction that is open for too long.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnTooOld {
    /// Stop (CDC-4004).
    Fail,
    /// Drop its changes.
    Discard,
}

/// What to do with a transaction that the database does not know any more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnOrphan {
    /// Drop it as rolled back.
    Release,
    /// Stop (CDC-7002).
    Fail,
}

/// How long transactions may be open.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TransactionSettings {
    /// Greatest age; `None` without bound.
    pub max_age: Option<Duration>,
    /// See [`OnTooOld`].
    pub on_too_old: OnTooOld,
    /// Time between two looks for orphans.
    pub orphan_check: Duration,
    /// See [`OnOrphan`].
    pub on_orphan: OnOrphan,
}

/// How records are made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordSettings {
    /// `cdc.topic.prefix`: the trail's name, or what the names of tables' topics begin with.
    pub prefix: String,
    /// See [`Routing`].
    pub routing: Routing,
    /// Template of the names of tables' topics, where one is given.
    pub template: Option<String>,
    /// Whether a tombstone follows a DELETE on the topic of a table.
    pub has_tombstones: bool,
    /// Stands for a value that is not known.
    pub placeholder: String,
    /// Bound of a record's key and value together, bytes.
    pub max_bytes: usize,
}

impl TableSettings {
    pub(super) fn read(config: &Config) -> Self {
        let list = |name: &str| patterns(config.text(name));
        Self {
            include: list("cdc.tables.include"),
            exclude: list("cdc.tables.exclude"),
            exclude_columns: list("cdc.columns.exclude"),
            is_case_sensitive: config.flag("cdc.tables.case.sensitive"),
        }
    }
}

impl StatementSettings {
    /// # Errors
    /// When an error is not named as Oracle names it.
    pub(super) fn read(config: &Config) -> Result<Self, Problem> {
        let errors = config.list("cdc.retry.extra.error.codes").into_iter().map(ora_number);
        Ok(Self {
            fetch_size: size(config, "cdc.mining.fetch.size"),
            timeout: config.millis("cdc.mining.query.timeout.ms"),
            in_list_max: size(config, "cdc.mining.inlist.max"),
            transient_errors: errors.collect::<Result<_, _>>()?,
        })
    }
}

fn ora_number(name: &str) -> Result<u32, Problem> {
    let digits = name.strip_prefix("ORA-").unwrap_or_default();
    let is_number = (1..=5).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    let number = digits.parse().ok().filter(|_| is_number);
    number.ok_or_else(|| {
        let what = format!("has {name:?}; an error is named such as ORA-12805");
        Problem::new("cdc.retry.extra.error.codes", what)
    })
}

impl JournalSettings {
    pub(super) fn read(config: &Config) -> Self {
        Self {
            threshold: config.millis("cdc.txjournal.threshold.ms"),
            threshold_changes: config.int("cdc.txjournal.threshold.events").unsigned_abs(),
            chunk_max_bytes: size(config, "cdc.txjournal.chunk.max.bytes"),
        }
    }
}

impl TransactionSettings {
    pub(super) fn read(config: &Config) -> Self {
        let is_bound = config.int("cdc.transaction.max.age.ms") >= 0;
        Self {
            max_age: is_bound.then(|| config.millis("cdc.transaction.max.age.ms")),
            on_too_old: match config.text("cdc.transaction.max.age.action") {
                "discard" => OnTooOld::Discard,
                _ => OnTooOld::Fail,
            },
            orphan_check: config.millis("cdc.transaction.orphan.check.interval.ms"),
            on_orphan: match config.text("cdc.transaction.orphan.action") {
                "fail" => OnOrphan::Fail,
                _ => OnOrphan::Release,
            },
        }
    }
}

impl RecordSettings {
    pub(super) fn read(config: &Config) -> Self {
        let template = config.text("cdc.topic.template");
        Self {
            prefix: config.text("cdc.topic.prefix").to_owned(),
            routing: routing(config),
            template: Some(template.to_owned()).filter(|template| !template.is_empty()),
            has_tombstones: config.text("cdc.tombstones.on.delete") != "false",
            placeholder: config.text("cdc.unavailable.placeholder").to_owned(),
            max_bytes: size(config, RECORD_LIMIT),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::sample::config;

    #[test]
    fn patterns_keep_their_commas() {
        let tables = TableSettings::read(&config(&[
            ("cdc.tables.include", r"HR\.T[0-9]{1,2},HR\.EMP"),
            ("cdc.columns.exclude", r".*\.SSN"),
        ]));
        assert_eq!(tables.include, [r"HR\.T[0-9]{1,2}", r"HR\.EMP"]);
        assert_eq!(tables.exclude_columns, [r".*\.SSN"]);
        assert!(tables.exclude.is_empty() && !tables.is_case_sensitive);
    }

    #[test]
    fn errors_are_named_as_oracle_names_them() {
        let read = |codes| {
            let config = config(&[("cdc.retry.extra.error.codes", codes)]);
            StatementSettings::read(&config).map(|settings| settings.transient_errors)
        };
        assert_eq!(read("ORA-12805, ORA-00060").unwrap(), [12805, 60]);
        assert!(read("").unwrap().is_empty());
        for codes in ["12805", "ORA-", "ORA-1x", "ORA-+5", "ORA-123456", "TNS-12541"] {
            assert_eq!(read(codes).unwrap_err().key, "cdc.retry.extra.error.codes", "{codes}");
        }
    }

    #[test]
    fn an_age_without_bound_is_none() {
        let read = |age| TransactionSettings::read(&config(&[("cdc.transaction.max.age.ms", age)]));
        assert_eq!(read("-1").max_age, None);
        assert_eq!(read("5000").max_age, Some(Duration::from_secs(5)));
        assert_eq!(
            (read("-1").on_too_old, read("-1").on_orphan),
            (OnTooOld::Fail, OnOrphan::Release)
        );
    }
}
