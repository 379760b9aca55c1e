//! What a DDL statement may change, as far as mining is concerned.

use crate::schema::{DdlClass, classify, refreshes_objects};

/// What a DDL statement may change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum DdlReach {
    /// Neither which objects there are nor the columns of a table.
    Nothing,
    /// The columns or keys of the table it names.
    Layout,
    /// Which objects belong to which table.
    Objects,
}

/// What a statement may change. Only what is known to be harmless is taken for it: a step that is cut
/// without need costs a moment, one that is not cut loses rows of objects that nobody asked for.
pub fn reach(sql: &str) -> DdlReach {
    if refreshes_objects(sql) {
        return DdlReach::Objects;
    }
    match classify(sql) {
        DdlClass::Columns | DdlClass::Constraints | DdlClass::Logging => DdlReach::Layout,
        _ => DdlReach::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_all(expected: DdlReach, statements: &[&str]) {
        for statement in statements {
            assert_eq!(reach(statement), expected, "{statement}");
        }
    }

    #[test]
    fn every_form_that_changes_objects_is_found() {
        assert_all(
            DdlReach::Objects,
            &[
                "create table t (id number)",
                "CREATE GLOBAL TEMPORARY TABLE t (id number)",
                "create private temporary table t (id number)",
                "CREATE BLOCKCHAIN TABLE t (id number)",
                "create immutable blockchain table t (id number)",
                "CREATE SHARDED TABLE t (id number)",
                "create duplicated table t (id number)",
                "create /* ours */ table t as select * from s",
                "-- first\ncreate -- second\n table t (id number)",
                "create table if not exists t (id number)",
                "CREATE JSON COLLECTION TABLE t",
                "create materialized view v as select * from t",
                "create schema authorization hr create table t (id number)",
                "drop table t purge",
                "drop table \"HR\".\"T\" AS \"BIN$x==$0\"",
                "flashback table t to before drop",
                "rename a to b",
                "alter table t rename to u",
                "alter table t add partition p values less than (10)",
                "alter table t split partition p at (5) into (partition a, partition b)",
                "ALTER TABLE t MERGE SUBPARTITIONS a, b INTO SUBPARTITION c",
                "alter table t exchange partition p with table u",
                "alter table t drop partition p update indexes",
                "alter table t coalesce partition",
                "alter table t modify partition by range (id) (partition p values less than (9))",
                "alter table t modify nonpartitioned",
                "alter table t add (n nt) nested table n store as n_rows",
                "drop user hr cascade",
                "drop tablespace ts including contents",
                "purge table t",
                "something new",
                "",
                "\u{0}\"",
            ],
        );
    }

    #[test]
    fn an_alter_of_columns_changes_the_layout() {
        assert_all(
            DdlReach::Layout,
            &[
                "alter table t add (c number)",
                "ALTER  TABLE hr.t MODIFY c varchar2(9)",
                "/* x */ alter table t drop column c",
            ],
        );
    }

    #[test]
    fn what_is_known_to_be_harmless_changes_nothing() {
        assert_all(
            DdlReach::Nothing,
            &[
                "comment on table t is 'create table x'",
                "grant select on t to u",
                "truncate table t",
                "alter table t shrink space",
                "create or replace editionable package body p as begin null; end;",
                "create unique index i on t (c) local (partition p)",
                "alter index i rebuild partition p",
                "create or replace force noneditionable view v as select * from t",
                "drop public synonym s",
                "create sequence s",
                "analyze table t compute statistics",
            ],
        );
    }
}
