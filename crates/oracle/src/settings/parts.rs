//! Settings of the parts of the engine that have none of their own.

use std::time::Duration;

use highwater_connector::{Config, Problem, Routing, patterns};

use crate::delivery::{OnDecodeError, OversizedLob, SplitLimits};
use crate::mining::table_filter::{ColumnFilter, TableFilter};
use crate::transaction::age::{AgeAction, AgeLimit};
use crate::transaction::orphans::{OrphanAction, OrphanSettings};

use super::{routing, size};

/// Which tables and columns are captured.
#[derive(Clone, Debug)]
pub struct TableSettings {
    /// Tables.
    pub tables: TableFilter,
    /// Columns that are left out.
    pub columns: ColumnFilter,
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
    /// See [`OversizedLob`].
    pub oversized: OversizedLob,
    /// See [`OnDecodeError`].
    pub on_decode_error: OnDecodeError,
    /// See [`SplitLimits`].
    pub split: SplitLimits,
}

impl TableSettings {
    /// # Errors
    /// When no table is named, or a pattern is no regular expression.
    pub(super) fn read(config: &Config) -> Result<Self, Problem> {
        let is_case_sensitive = config.flag("cdc.tables.case.sensitive");
        let [include, exclude, columns] = PATTERNS.map(|key| patterns(config.text(key)));
        if include.is_empty() {
            return Err(Problem::new("cdc.tables.include", "names no table"));
        }
        let faults = [(PATTERNS[0], &include), (PATTERNS[1], &exclude)];
        let fault = faults.into_iter().find_map(|(key, list)| {
            let error = TableFilter::new(list, &[], is_case_sensitive).err()?;
            Some(no_pattern(key, &error))
        });
        let whole = TableFilter::new(&include, &exclude, is_case_sensitive);
        Ok(Self {
            tables: whole
                .map_err(|error| fault.unwrap_or_else(|| no_pattern(PATTERNS[0], &error)))?,
            columns: ColumnFilter::new(&columns, is_case_sensitive)
                .map_err(|error| no_pattern(PATTERNS[2], &error))?,
        })
    }
}

/// Keys whose values are patterns.
const PATTERNS: [&str; 3] = ["cdc.tables.include", "cdc.tables.exclude", "cdc.columns.exclude"];

fn no_pattern(key: &str, error: &impl std::fmt::Display) -> Problem {
    Problem::new(key, format!("has an item that is no regular expression: {error}"))
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

/// How long transactions may be open.
pub(super) fn age(config: &Config) -> AgeLimit {
    let is_bound = config.int("cdc.transaction.max.age.ms") >= 0;
    AgeLimit {
        max: is_bound.then(|| config.millis("cdc.transaction.max.age.ms")),
        action: match config.text("cdc.transaction.max.age.action") {
            "discard" => AgeAction::Discard,
            _ => AgeAction::Fail,
        },
    }
}

/// When orphans are looked for, and what is done with them.
pub(super) fn orphans(config: &Config) -> OrphanSettings {
    OrphanSettings {
        interval: config.millis("cdc.transaction.orphan.check.interval.ms"),
        action: match config.text("cdc.transaction.orphan.action") {
            "fail" => OrphanAction::Fail,
            _ => OrphanAction::Release,
        },
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
            oversized: match config.text("cdc.lob.oversize.action") {
                "placeholder" => OversizedLob::Placeholder,
                _ => OversizedLob::Fail,
            },
            on_decode_error: match config.text("cdc.on.decode.error") {
                "dlq" => OnDecodeError::DeadLetter,
                _ => OnDecodeError::Fail,
            },
            split: SplitLimits {
                records: config.int("cdc.eos.split.max.records").unsigned_abs(),
                bytes: config.int("cdc.eos.split.max.bytes").unsigned_abs(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TableName;
    use crate::settings::sample::config;

    fn table(name: &str) -> TableName {
        TableName { pdb: None, owner: "HR".to_owned(), table: name.to_owned() }
    }

    #[test]
    fn patterns_keep_their_commas() {
        let read = TableSettings::read(&config(&[
            ("cdc.tables.include", r"HR\.T[0-9]{1,2},HR\.EMP"),
            ("cdc.tables.exclude", r"HR\.T9"),
            ("cdc.columns.exclude", r".*\.SSN"),
        ]))
        .unwrap();
        let captured = ["T1", "T12", "emp", "T123", "T9", "DEPT"];
        let captured = captured.map(|name| read.tables.captures(&table(name)));
        assert_eq!(captured, [true, true, true, false, false, false]);
        assert!(read.columns.excludes(&table("EMP"), "SSN"));
        assert!(!read.columns.excludes(&table("EMP"), "ID"));
    }

    #[test]
    fn a_pattern_that_is_none_is_named_by_its_key() {
        for key in PATTERNS {
            assert_eq!(TableSettings::read(&config(&[(key, "A.(")])).unwrap_err().key, key);
        }
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
        let read = |age_ms| age(&config(&[("cdc.transaction.max.age.ms", age_ms)]));
        assert_eq!(read("-1"), AgeLimit { max: None, action: AgeAction::Fail });
        assert_eq!(read("5000").max, Some(Duration::from_secs(5)));
        assert_eq!(orphans(&config(&[])).action, OrphanAction::Release);
    }
}
