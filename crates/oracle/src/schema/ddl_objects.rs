//! Whether a DDL may change which objects there are, so that their numbers have to be resolved again.

use super::ddl_class::{DdlClass, PARTITIONS, classify};
use super::ddl_words::{Word, words};

/// Statements of these never change an object.
const HARMLESS: [&str; 8] =
    ["COMMENT", "GRANT", "REVOKE", "ANALYZE", "AUDIT", "NOAUDIT", "ASSOCIATE", "DISASSOCIATE"];

/// What is created, altered or dropped and is no table, nor brings one along. A materialized view does,
/// and a user or a tablespace takes its tables with it.
const NOT_TABLES: [&str; 17] = [
    "CONTEXT",
    "DIMENSION",
    "DIRECTORY",
    "FUNCTION",
    "INDEX",
    "INDEXTYPE",
    "LIBRARY",
    "OPERATOR",
    "PACKAGE",
    "PROCEDURE",
    "PROFILE",
    "ROLE",
    "SEQUENCE",
    "SYNONYM",
    "TRIGGER",
    "TYPE",
    "VIEW",
];

/// Words between CREATE, ALTER or DROP and what it is about.
const MODIFIERS: [&str; 16] = [
    "BITMAP",
    "EDITIONABLE",
    "EDITIONING",
    "EXISTS",
    "FORCE",
    "IF",
    "MULTIVALUE",
    "NO",
    "NOFORCE",
    "NONEDITIONABLE",
    "NOT",
    "OR",
    "PUBLIC",
    "REPLACE",
    "SHARED",
    "UNIQUE",
];

/// Whether object numbers have to be resolved again behind a statement. Only what is known to change none
/// is taken for that: a question too many costs a moment, and rows of an object that nobody asks for are
/// lost.
pub fn refreshes_objects(sql: &str) -> bool {
    match classify(sql) {
        DdlClass::Create
        | DdlClass::Rename { .. }
        | DdlClass::Partition
        | DdlClass::Drop
        | DdlClass::Unknown => true,
        DdlClass::Truncate | DdlClass::Index { .. } => false,
        DdlClass::Columns | DdlClass::Constraints | DdlClass::Logging => names_objects(sql),
        DdlClass::NoChange => is_unfamiliar(sql),
    }
}

/// A partition has a number of its own, and a nested table is stored in a table of its own.
fn names_objects(sql: &str) -> bool {
    words(sql).any(|word| word.is_any(&PARTITIONS) || word.is("NESTED"))
}

fn is_unfamiliar(sql: &str) -> bool {
    let mut rest = words(sql);
    match rest.next() {
        Some(verb) if verb.is_any(&HARMLESS) => false,
        Some(verb) if verb.is_any(&["CREATE", "ALTER", "DROP"]) => {
            match rest.find(|word| !word.is_any(&MODIFIERS)) {
                Some(Word::Plain(kind)) if kind == "TABLE" => names_objects(sql),
                Some(Word::Plain(kind)) => !NOT_TABLES.contains(&kind.as_str()),
                _ => true,
            }
        }
        _ => true,
    }
}
