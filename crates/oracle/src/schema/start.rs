//! Layouts at a start: those that are stored, held against the dictionary.

use std::sync::Arc;

use super::key::Key;
use super::versions::{LayoutVersion, Layouts, TableVersions, move_position};
use crate::{Code, Cursor, Marks, OracleError, Scn, TableLayout, TableName};

/// When the last DDL on a table was, [`TIME_SLACK_US`](super::TIME_SLACK_US) added.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LastDdl {
    /// Longer ago than the database maps times to SCNs (ORA-08180), which is several days.
    LongAgo,
    /// At this SCN (`TIMESTAMP_TO_SCN`).
    At(Scn),
}

impl LastDdl {
    fn is_after(self, scn: Scn) -> bool {
        matches!(self, Self::At(ddl) if ddl > scn)
    }
}

/// What becomes of the stored layout of a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verdict {
    /// It holds; what differs came after, and its DDL will be read.
    Keep,
    /// The dictionary's holds from here on.
    Adopt,
    /// They differ, and no DDL ahead explains it.
    Mismatch,
}

impl Layouts {
    /// Takes in what is stored. Later versions whose key the rules of today would not choose are left
    /// out, so that their DDL reads the dictionary again.
    pub fn restore(&mut self, stored: impl IntoIterator<Item = LayoutVersion>, resume: &Cursor) {
        for version in stored {
            let is_useful =
                version.began_by(resume) || self.rules.allow(&version.table, &version.key);
            let versions = self.tables.entry(version.table.clone()).or_default();
            versions.restore(version, is_useful);
        }
        for versions in self.tables.values_mut() {
            let held = versions.held_at(resume).cloned();
            versions.set_current(held);
        }
        self.prune(resume);
    }

    /// Begins to capture a table, or goes on with it. Gives a new version where there is one, which
    /// must be stored before a row names it.
    ///
    /// # Errors
    /// CDC-6003 when the stored layout and the dictionary differ and no DDL ahead explains it;
    /// CDC-3001 when the table has no key.
    pub fn begin(
        &mut self,
        layout: TableLayout,
        last_ddl: LastDdl,
        resume: &Cursor,
    ) -> Result<Option<Arc<LayoutVersion>>, OracleError> {
        let (layout, key) = self.keyed(layout)?;
        let is_ahead = last_ddl.is_after(resume.scn);
        let rules = self.rules.clone();
        let versions = self.tables.entry(layout.name.clone()).or_default();
        let Some(current) = versions.current() else {
            // What lies before a DDL ahead has no layout that is known.
            let from = match last_ddl {
                LastDdl::At(ddl) if is_ahead => ddl,
                _ => resume.scn,
            };
            return Ok(Some(versions.push(first(versions, layout, key, from, true))));
        };
        if current.fits(&layout, &key) {
            return Ok(None);
        }
        let is_allowed = rules.allow(&layout.name, &current.key);
        match verdict(current, &layout, is_allowed, is_ahead, &resume.marks) {
            Verdict::Keep => Ok(None),
            Verdict::Adopt => {
                let version = first(versions, layout, key, resume.scn, !is_ahead);
                Ok(Some(versions.push(version)))
            }
            Verdict::Mismatch => Err(mismatch(&layout.name, current.number, resume.scn)),
        }
    }
}

/// Decided by what differs: a key may be another because the configuration is, and a position without
/// addresses was set by hand, so that what lies before it is nobody's concern.
fn verdict(
    current: &LayoutVersion,
    layout: &TableLayout,
    is_allowed: bool,
    is_ahead: bool,
    marks: &Marks,
) -> Verdict {
    let same_columns = current.columns == layout.columns;
    match (same_columns, is_ahead) {
        (true, _) if !is_allowed => Verdict::Adopt,
        (_, true) => Verdict::Keep,
        (true, false) => Verdict::Adopt,
        (false, false) if *marks == Marks::None => Verdict::Adopt,
        (false, false) => Verdict::Mismatch,
    }
}

fn first(
    versions: &TableVersions,
    layout: TableLayout,
    key: Key,
    from: Scn,
    is_exact: bool,
) -> LayoutVersion {
    LayoutVersion {
        table: layout.name,
        number: versions.next_number(),
        from,
        ddl: None,
        is_exact,
        columns: layout.columns,
        key,
        logging: layout.logging,
    }
}

fn mismatch(table: &TableName, number: u32, scn: Scn) -> OracleError {
    OracleError::new(
        Code::SchemaMismatch,
        format!(
            "version {number} of {table}, which held at SCN {scn}, has other columns than the \
             dictionary, and the last DDL on the table is older than that: a DDL was not seen"
        ),
        format!(
            "move the position back to before the DDL: {}; where its redo is gone, set resume_scn to \
             {scn}, which takes the layout of the dictionary from there on, and load the table again",
            move_position("SCN", "")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::key::{KeyRules, KeySource, MissingKey};
    use crate::schema::sample::{self, cursor, point, version};

    fn with_rules(overrides: &str) -> Layouts {
        let rules = KeyRules::parse(overrides, MissingKey::Fail).unwrap();
        Layouts::new(rules, Arc::new(|_, _| false))
    }

    fn restored(overrides: &str, stored: Vec<LayoutVersion>, resume: &Cursor) -> Layouts {
        let mut layouts = with_rules(overrides);
        layouts.restore(stored, resume);
        layouts
    }

    fn current(layouts: &Layouts) -> u32 {
        layouts.current(&sample::table()).unwrap().number
    }

    fn by_ddl(number: u32, scn: u64) -> LayoutVersion {
        LayoutVersion { ddl: Some(point(1, scn, scn)), ..version(number, scn) }
    }

    #[test]
    fn a_first_start_reads_the_layout_from_where_it_is_certain() {
        for (last_ddl, from) in
            [(LastDdl::LongAgo, 500), (LastDdl::At(Scn(500)), 500), (LastDdl::At(Scn(501)), 501)]
        {
            let mut layouts = with_rules("");
            let begun =
                layouts.begin(sample::layout(&["ID"]), last_ddl, &cursor(500, None)).unwrap();
            let begun = begun.unwrap();
            assert_eq!((begun.number, begun.from, begun.is_exact), (1, Scn(from), true));
            assert_eq!(begun.key.source, KeySource::PrimaryKey);
            assert_eq!(current(&layouts), 1);
        }
    }

    #[test]
    fn a_restart_goes_on_with_the_version_that_held() {
        let stored = vec![version(1, 100), by_ddl(2, 200), by_ddl(3, 300)];
        for (resume, number) in [(150, 1), (200, 2), (299, 2), (300, 3), (50, 1)] {
            let resume = cursor(resume, Some(resume));
            let mut layouts = restored("", stored.clone(), &resume);
            assert_eq!(current(&layouts), number, "{resume:?}");
            let begun = layouts.begin(sample::layout(&["ID"]), LastDdl::At(Scn(1)), &resume);
            assert_eq!(begun.unwrap(), None);
        }
        let layouts = restored("", stored, &cursor(299, Some(299)));
        assert!(layouts.numbered(&sample::table(), 1).is_err(), "too old to be of use");
        assert!(layouts.numbered(&sample::table(), 3).is_ok(), "its DDL is read again");
    }

    #[test]
    fn other_columns_need_a_ddl_ahead() {
        let begin = |last_ddl, resume: &Cursor| {
            let mut layouts = restored("", vec![version(1, 100)], resume);
            layouts.begin(sample::layout(&["ID", "NEW"]), last_ddl, resume)
        };
        let resume = cursor(500, Some(5));
        assert_eq!(begin(LastDdl::At(Scn(501)), &resume), Ok(None));
        for last_ddl in [LastDdl::At(Scn(500)), LastDdl::LongAgo] {
            let error = begin(last_ddl, &resume).unwrap_err();
            assert_eq!(error.code, Code::SchemaMismatch);
            assert!(error.what.contains("HR.T") && error.what.contains("500"), "{error}");
        }
        let by_hand = begin(LastDdl::LongAgo, &cursor(500, None)).unwrap().unwrap();
        assert_eq!((by_hand.number, by_hand.from, by_hand.is_exact), (2, Scn(500), true));
    }

    #[test]
    fn another_key_or_logging_makes_a_version() {
        let resume = cursor(500, Some(5));
        let mut layout = sample::layout(&["ID"]);
        layout.logging = crate::SupplementalLogging::None;
        let mut layouts = restored("", vec![version(1, 100)], &resume);
        assert_eq!(layouts.begin(layout.clone(), LastDdl::At(Scn(600)), &resume), Ok(None));
        let begun = layouts.begin(layout, LastDdl::LongAgo, &resume).unwrap().unwrap();
        assert_eq!((begun.number, current(&layouts)), (2, 2));
    }

    #[test]
    fn another_configured_key_holds_at_once_and_for_what_is_read_again() {
        let resume = cursor(150, Some(150));
        let mut layouts = restored("hr.t:id", vec![version(1, 100), by_ddl(2, 200)], &resume);
        let begun = layouts.begin(sample::layout(&["ID"]), LastDdl::At(Scn(600)), &resume);
        let begun = begun.unwrap().unwrap();
        // Number 2 stays taken: its description is stored.
        assert_eq!((begun.number, begun.key.source.clone()), (3, KeySource::Override));
        assert!(!begun.is_exact);
        assert!(layouts.numbered(&sample::table(), 2).is_err());
    }

    #[test]
    fn a_table_that_lost_its_key_is_refused() {
        let mut layout = sample::layout(&["ID"]);
        layout.primary_key.clear();
        let error = with_rules("").begin(layout, LastDdl::LongAgo, &cursor(1, None)).unwrap_err();
        assert_eq!(error.code, Code::Decode);
    }
}
