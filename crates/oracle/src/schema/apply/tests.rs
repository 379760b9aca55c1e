use super::*;
use crate::schema::sample::{self, cursor, point};
use crate::schema::{KeySource, LastDdl, classify};
use crate::{Scn, SupplementalLogging};

const SECOND: i64 = 1_000_000;

/// A table that was read at SCN 100 with the column ID.
struct Bench {
    layouts: Layouts,
    table: TableName,
}

impl Bench {
    fn new() -> Self {
        let mut layouts = sample::layouts();
        let begun =
            layouts.begin(sample::layout(&["ID"]), LastDdl::LongAgo, &cursor(100, Some(100)));
        assert!(begun.unwrap().is_some());
        Self { layouts, table: sample::table() }
    }

    /// A statement at an SCN, which is also its block and its second.
    fn apply(
        &mut self,
        scn: u64,
        sql: &str,
        layout: Option<TableLayout>,
    ) -> Result<Effect, OracleError> {
        let ddl = Ddl {
            at: point(1, scn, scn),
            time_us: i64::try_from(scn).unwrap() * SECOND,
            table: &self.table,
            class: &classify(sql),
            sql,
        };
        self.layouts.apply(&ddl, layout)
    }

    fn current(&self) -> Option<u32> {
        self.layouts.current(&self.table).map(|version| version.number)
    }
}

/// A layout whose last DDL was at this second.
fn layout_at(second: i64, columns: &[&str]) -> Option<TableLayout> {
    Some(TableLayout { last_ddl_us: second * SECOND, ..sample::layout(columns) })
}

fn next(effect: Effect) -> (u32, Scn, bool, bool) {
    match effect {
        Effect::Next { version, is_new } => {
            (version.number, version.from, version.is_exact, is_new)
        }
        other => panic!("{other:?}"),
    }
}

const ADD: &str = "ALTER TABLE hr.t ADD (b NUMBER)";

#[test]
fn a_changed_layout_is_the_next_version_from_the_ddl_on() {
    let mut bench = Bench::new();
    let effect = bench.apply(200, ADD, layout_at(200, &["ID", "B"])).unwrap();
    assert!(effect.is_record());
    assert_eq!(next(effect), (2, Scn(200), true, true));
    assert_eq!(bench.current(), Some(2));
    let names: Vec<_> = bench.layouts.current(&bench.table).unwrap().columns.clone();
    assert_eq!(names.iter().map(|column| column.name.as_str()).collect::<Vec<_>>(), ["ID", "B"]);
    assert_eq!(bench.layouts.numbered(&bench.table, 1).unwrap().columns.len(), 1);
}

#[test]
fn the_times_of_one_ddl_may_differ_by_the_slack() {
    for (second, exact) in [(199, true), (210, true), (211, false)] {
        let effect = Bench::new().apply(200, ADD, layout_at(second, &["ID", "B"])).unwrap();
        assert_eq!(next(effect), (2, Scn(200), exact, true), "{second}");
    }
}

#[test]
fn the_same_layout_makes_no_version() {
    let mut bench = Bench::new();
    let effect = bench.apply(200, ADD, layout_at(200, &["ID"])).unwrap();
    assert_eq!(effect, Effect::Kept);
    assert_eq!(bench.current(), Some(1));
}

/// Two statements were behind: the first sees what both did, the second makes it certain.
#[test]
fn a_dictionary_that_is_ahead_gives_an_inexact_version_until_it_is_caught_up() {
    let mut bench = Bench::new();
    let both = || layout_at(300, &["ID", "B", "C"]);
    assert_eq!(next(bench.apply(200, ADD, both()).unwrap()), (2, Scn(200), false, true));
    assert_eq!(bench.apply(250, ADD, both()).unwrap(), Effect::Kept);
    assert_eq!(next(bench.apply(300, ADD, both()).unwrap()), (3, Scn(300), true, true));
    let at = |scn| bench.layouts.at(&bench.table, Scn(scn)).map(|version| version.number);
    assert_eq!(at(199), Ok(1));
    assert_eq!(at(299).unwrap_err().code, Code::DictionaryUnavailable);
    assert_eq!(at(300), Ok(3));
}

#[test]
fn keys_and_logging_are_part_of_a_layout() {
    let mut bench = Bench::new();
    let mut layout = layout_at(200, &["ID", "B"]).unwrap();
    let with_b = bench.apply(200, ADD, Some(layout.clone())).unwrap();
    assert_eq!(next(with_b).0, 2);
    layout.primary_key = vec!["B".to_owned()];
    let sql = "ALTER TABLE hr.t ADD PRIMARY KEY (b)";
    assert_eq!(next(bench.apply(300, sql, Some(layout.clone())).unwrap()).0, 3);
    layout.logging = SupplementalLogging::PrimaryKey;
    let sql = "ALTER TABLE hr.t DROP SUPPLEMENTAL LOG DATA (ALL) COLUMNS";
    assert_eq!(next(bench.apply(400, sql, Some(layout.clone())).unwrap()).0, 4);
    layout.primary_key.clear();
    layout.unique_indexes = vec![sample::index("I", &["ID"])];
    let sql = "ALTER TABLE hr.t DROP PRIMARY KEY";
    assert_eq!(next(bench.apply(500, sql, Some(layout.clone())).unwrap()).0, 5);
    assert_eq!(bench.layouts.keyed_by("I", None), [bench.table.clone()]);
    assert!(bench.layouts.keyed_by("J", None).is_empty());
    layout.unique_indexes.clear();
    let error = bench.apply(600, "DROP INDEX hr.i", Some(layout)).unwrap_err();
    assert_eq!(error.code, Code::Decode);
    assert_eq!(bench.layouts.keyed_by("J", Some(&bench.table)), [bench.table]);
}

#[test]
fn what_changes_no_layout_is_told_and_no_more() {
    let mut bench = Bench::new();
    let apply = |bench: &mut Bench, sql: &str| bench.apply(200, sql, None).unwrap();
    assert_eq!(apply(&mut bench, "GRANT SELECT ON hr.t TO u"), Effect::Seen);
    assert!(!Effect::Seen.is_record());
    assert_eq!(apply(&mut bench, "ALTER TABLE hr.t DROP PARTITION p"), Effect::Kept);
    assert_eq!(apply(&mut bench, "TRUNCATE TABLE hr.t"), Effect::Truncated);
    assert_eq!(bench.current(), Some(1));
}

#[test]
fn a_table_that_is_gone_is_forgotten_and_its_numbers_stay_taken() {
    let mut bench = Bench::new();
    let gone = Effect::Forgotten { renamed_to: None };
    assert_eq!(bench.apply(200, "DROP TABLE hr.t", layout_at(300, &["ID"])).unwrap(), gone);
    assert_eq!(bench.current(), None);
    assert!(bench.layouts.numbered(&bench.table, 1).is_ok(), "what is staged is still decoded");
    let created = bench.apply(300, "CREATE TABLE hr.t (id NUMBER)", layout_at(300, &["ID"]));
    assert_eq!(next(created.unwrap()), (2, Scn(300), true, true));
    assert_eq!(bench.apply(400, ADD, None).unwrap(), gone);
}

#[test]
fn a_renamed_table_goes_on_under_its_new_name() {
    let mut bench = Bench::new();
    let effect = bench.apply(200, "ALTER TABLE hr.t RENAME TO \"u\"", None).unwrap();
    let name = TableName { table: "u".to_owned(), ..sample::table() };
    assert_eq!(effect, Effect::Forgotten { renamed_to: Some(name.clone()) });
    let sql = "ALTER TABLE hr.t RENAME TO \"u\"";
    let ddl = Ddl {
        at: point(1, 200, 200),
        time_us: 200 * SECOND,
        table: &name,
        class: &DdlClass::Create,
        sql,
    };
    let layout = TableLayout { name: name.clone(), ..sample::layout(&["ID"]) };
    assert_eq!(next(bench.layouts.apply(&ddl, Some(layout)).unwrap()), (1, Scn(200), true, true));
    assert_eq!(bench.current(), None);
}

/// The offset behind a DDL may be lost with a crash; its description is not.
#[test]
fn a_ddl_that_is_read_again_begins_the_version_that_it_began() {
    let mut first = Bench::new();
    let effect = first.apply(200, ADD, layout_at(200, &["ID", "B"])).unwrap();
    let versions = [1, 2]
        .map(|number| LayoutVersion::clone(first.layouts.numbered(&first.table, number).unwrap()));

    let mut again = Bench { layouts: sample::layouts(), table: sample::table() };
    again.layouts.restore(versions, &cursor(150, Some(150)));
    assert_eq!(again.current(), Some(1));
    // Meanwhile another column came, and the table may even be gone.
    for layout in [layout_at(900, &["ID", "B", "C"]), None] {
        let repeated = again.apply(200, ADD, layout).unwrap();
        assert_eq!(next(repeated), (2, Scn(200), true, false));
        assert_eq!(again.current(), Some(2));
    }
    assert_eq!(next(effect), (2, Scn(200), true, true));
}

#[test]
fn an_unknown_statement_stops() {
    let error = Bench::new().apply(200, "ALTER TABLE hr.t FOLD 'secret'", None).unwrap_err();
    assert_eq!(error.code, Code::UnsupportedDdl);
    assert!(error.what.contains("HR.T at SCN 200") && error.what.contains("FOLD"), "{error}");
    assert!(!error.to_string().contains("secret"));
    assert!(error.remedy.contains("resume_scn=201"), "{error}");
}

#[test]
fn the_key_that_an_operator_chose_must_stay() {
    let rules = crate::schema::KeyRules::parse("hr.t:b", crate::schema::MissingKey::Fail).unwrap();
    let mut bench = Bench { layouts: sample::layouts(), table: sample::table() };
    bench.layouts.rules = rules;
    let layout = sample::layout(&["ID", "B"]);
    let begun = bench.layouts.begin(layout, LastDdl::LongAgo, &cursor(100, None)).unwrap();
    assert_eq!(begun.unwrap().key.source, KeySource::Override);
    let sql = "ALTER TABLE hr.t DROP COLUMN b";
    assert_eq!(bench.apply(200, sql, layout_at(200, &["ID"])).unwrap_err().code, Code::Decode);
}
