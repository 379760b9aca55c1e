//! What a DDL statement may change, as far as mining is concerned.

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

/// Statements of these never change a table. `TRUNCATE TABLE` leaves `DATA_OBJ#` as it is.
const HARMLESS: [&str; 9] = [
    "COMMENT",
    "GRANT",
    "REVOKE",
    "ANALYZE",
    "AUDIT",
    "NOAUDIT",
    "ASSOCIATE",
    "DISASSOCIATE",
    "TRUNCATE",
];

/// What is created, altered or dropped and is no table, nor brings one along. A materialised view does.
const NOT_TABLES: [&str; 16] = [
    "VIEW",
    "INDEX",
    "SEQUENCE",
    "SYNONYM",
    "PROCEDURE",
    "FUNCTION",
    "PACKAGE",
    "TRIGGER",
    "ROLE",
    "PROFILE",
    "DIRECTORY",
    "LIBRARY",
    "CONTEXT",
    "OPERATOR",
    "INDEXTYPE",
    "DIMENSION",
];

/// Words between CREATE, ALTER or DROP and what it is about.
const MODIFIERS: [&str; 16] = [
    "OR",
    "REPLACE",
    "IF",
    "NOT",
    "EXISTS",
    "PUBLIC",
    "UNIQUE",
    "BITMAP",
    "MULTIVALUE",
    "FORCE",
    "NO",
    "NOFORCE",
    "EDITIONABLE",
    "NONEDITIONABLE",
    "EDITIONING",
    "SHARED",
];

/// Marks of an ALTER TABLE that changes which objects belong to the table, wherever they stand: adding,
/// splitting, merging, exchanging or dropping partitions, making a table partitioned or the reverse,
/// renaming it, giving it a nested table.
const OBJECT_MARKS: [&str; 3] = ["PARTITION", "RENAME", "NESTED"];

/// What a statement may change. Only what is known to be harmless is taken for it: a step that is cut
/// without need costs a moment, one that is not cut loses rows of objects that nobody asked for.
pub fn reach(sql: &str) -> DdlReach {
    let mut words = Words(sql);
    match words.next().as_deref() {
        Some(first) if HARMLESS.contains(&first) => DdlReach::Nothing,
        Some(first @ ("CREATE" | "ALTER" | "DROP")) => {
            let kind = words.find(|word| !MODIFIERS.contains(&word.as_str()));
            reach_of(first, kind.as_deref().unwrap_or_default(), sql)
        }
        _ => DdlReach::Objects,
    }
}

fn reach_of(verb: &str, kind: &str, sql: &str) -> DdlReach {
    if NOT_TABLES.contains(&kind) {
        return DdlReach::Nothing;
    }
    let marks_objects = || {
        let text = sql.to_ascii_uppercase();
        OBJECT_MARKS.iter().any(|mark| text.contains(mark))
    };
    match (verb, kind) {
        ("ALTER", "TABLE") if !marks_objects() => DdlReach::Layout,
        _ => DdlReach::Objects,
    }
}

/// The words of a statement in capitals, without comments.
struct Words<'a>(&'a str);

impl Iterator for Words<'_> {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        loop {
            let text = self.0.trim_start();
            if let Some(comment) = text.strip_prefix("--") {
                self.0 = comment.split_once('\n').map_or("", |(_, rest)| rest);
            } else if let Some(comment) = text.strip_prefix("/*") {
                self.0 = comment.split_once("*/").map_or("", |(_, rest)| rest);
            } else {
                return self.word(text);
            }
        }
    }
}

impl<'a> Words<'a> {
    fn word(&mut self, text: &'a str) -> Option<String> {
        let is_part = |letter: char| letter.is_alphanumeric() || "_$#".contains(letter);
        let end = text.find(|letter| !is_part(letter)).unwrap_or(text.len());
        // Anything else, such as a quote, is a word of one letter.
        let one = text.chars().next()?.len_utf8();
        let (word, rest) = text.split_at(end.max(one));
        self.0 = rest;
        Some(word.to_ascii_uppercase())
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
                "alter table t shrink space",
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
