//! How far a snapshot is, in words and numbers, decided without I/O.

use std::time::Duration;

use highwater_connector::Fact;

use crate::holding::{duration, grouped};

/// Where a snapshot stands.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Progress {
    /// The table that is read now.
    pub(crate) table: String,
    /// Which of the tables it is, from 1.
    pub(crate) number: usize,
    /// How many tables there are.
    pub(crate) tables: usize,
    /// Rows of it so far.
    pub(crate) rows: u64,
    /// About how many it has, as the server's statistics say; 0 where they say nothing.
    pub(crate) estimate: u64,
    /// About how many rows the tables behind it have; none where one of them has no statistics.
    pub(crate) waiting: Option<u64>,
    /// Rows that were read in this run, over all tables.
    pub(crate) read: u64,
    /// How long that took.
    pub(crate) elapsed: Duration,
}

/// A rate says nothing before this.
const MEASURED: Duration = Duration::from_secs(2);

impl Progress {
    /// Whole percent of the table; never all of it, since the number is an estimate.
    fn percent(&self) -> Option<u64> {
        self.rows.saturating_mul(100).checked_div(self.estimate).map(|percent| percent.min(99))
    }

    /// Seconds until all tables are read, at the speed so far.
    fn seconds_left(&self) -> Option<u64> {
        let left = self.estimate.saturating_sub(self.rows) + self.waiting?;
        if self.estimate == 0 || self.elapsed < MEASURED {
            return None;
        }
        let millis = u64::try_from(self.elapsed.as_millis()).unwrap_or(u64::MAX);
        left.saturating_mul(millis).checked_div(self.read).map(|left| left / 1000)
    }

    /// One sentence.
    pub(crate) fn says(&self) -> String {
        let Self { table, number, tables, rows, estimate, .. } = self;
        let of = match self.percent() {
            Some(percent) => format!(" of about {} rows ({percent} %)", grouped(*estimate)),
            None => " rows, of an unknown number".to_owned(),
        };
        let left = self.seconds_left().map(|left| format!(", about {} left", duration(left)));
        format!(
            "snapshot of {table}: {}{of}, table {number} of {tables}{}",
            grouped(*rows),
            left.unwrap_or_default()
        )
    }

    /// The numbers.
    pub(crate) fn facts(&self) -> Vec<Fact> {
        let number = |name, value: Option<u64>| Some((name, value?.to_string()));
        [
            Some(("snapshot_table", self.table.clone())),
            Some(("snapshot_table_number", self.number.to_string())),
            Some(("snapshot_tables", self.tables.to_string())),
            number("snapshot_rows", Some(self.rows)),
            number("snapshot_rows_estimate", Some(self.estimate).filter(|rows| *rows > 0)),
            number("snapshot_seconds_left", self.seconds_left()),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress() -> Progress {
        Progress {
            table: "public.orders".to_owned(),
            number: 2,
            tables: 5,
            rows: 120_000,
            estimate: 400_000,
            waiting: Some(120_000),
            read: 200_000,
            elapsed: Duration::from_secs(20),
        }
    }

    #[test]
    fn the_sentence_says_how_far_and_how_long() {
        assert_eq!(
            progress().says(),
            "snapshot of public.orders: 120,000 of about 400,000 rows (30 %), table 2 of 5, about \
             40 s left"
        );
        assert!(progress().facts().contains(&("snapshot_seconds_left", "40".to_owned())));
    }

    #[test]
    fn what_is_not_known_is_not_guessed() {
        let unknown = Progress { estimate: 0, ..progress() };
        assert_eq!(
            unknown.says(),
            "snapshot of public.orders: 120,000 rows, of an unknown number, table 2 of 5"
        );
        for early in [
            Progress { waiting: None, ..progress() },
            Progress { elapsed: Duration::from_millis(50), ..progress() },
            Progress { read: 0, ..progress() },
        ] {
            assert!(early.says().ends_with("table 2 of 5"), "{}", early.says());
        }
        // More rows than the statistics know of.
        let more = Progress { rows: 900_000, ..progress() };
        assert!(more.says().contains("(99 %)"));
    }
}
