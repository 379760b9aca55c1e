//! What kind of DDL a statement is: its first words decide. What it did is read from the dictionary.

use super::ddl_words::{Word, Words, words};

/// A name as a statement writes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenName {
    /// Owner; `None` where the statement leaves it to its session.
    pub owner: Option<String>,
    /// Name, as the dictionary has it.
    pub name: String,
}

/// The kind of a DDL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DdlClass {
    /// A table is new, or back from the recycle bin.
    Create,
    /// Columns of a table changed.
    Columns,
    /// Constraints of a table changed, so its key may have.
    Constraints,
    /// Supplemental logging of a table changed.
    Logging,
    /// A table has another name.
    Rename {
        /// The new one.
        to: WrittenName,
    },
    /// Partitions of a table changed, and with them its object numbers and perhaps its rows.
    Partition,
    /// All rows of a table are gone.
    Truncate,
    /// A table is gone.
    Drop,
    /// A unique index came or went, so the key of a table may be another.
    Index {
        /// The index.
        index: WrittenName,
        /// Its table, where the statement names it.
        on: Option<WrittenName>,
    },
    /// Neither rows nor their layout changed.
    NoChange,
    /// Not known.
    Unknown,
}

impl DdlClass {
    /// Whether the layout of the table must be read to know what the statement did.
    pub const fn reads_layout(&self) -> bool {
        matches!(
            self,
            Self::Create | Self::Columns | Self::Constraints | Self::Logging | Self::Index { .. }
        )
    }

    /// Its name in records and events.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Columns => "columns",
            Self::Constraints => "constraints",
            Self::Logging => "logging",
            Self::Rename { .. } => "rename",
            Self::Partition => "partition",
            Self::Truncate => "truncate",
            Self::Drop => "drop",
            Self::Index { .. } => "index",
            Self::NoChange => "no-change",
            Self::Unknown => "unknown",
        }
    }
}

/// Words between CREATE and TABLE that may belong to another kind of object, whose text goes on as it
/// likes (`CREATE TYPE t AS TABLE OF NUMBER`).
const OBJECTS_WITH_TEXT: [&str; 10] = [
    "CONTEXT",
    "FUNCTION",
    "INDEX",
    "JAVA",
    "LIBRARY",
    "PACKAGE",
    "PROCEDURE",
    "TRIGGER",
    "TYPE",
    "VIEW",
];
/// How many words may stand between CREATE and TABLE; no release has more than five.
const LONGEST_PREFIX: usize = 8;
const CONSTRAINTS: [&str; 5] = ["CONSTRAINT", "PRIMARY", "UNIQUE", "FOREIGN", "CHECK"];
pub(super) const PARTITIONS: [&str; 4] =
    ["PARTITION", "PARTITIONS", "SUBPARTITION", "SUBPARTITIONS"];
/// First words of an ALTER TABLE that says how rows are stored or may be used, not what they are.
const STORAGE: [&str; 49] = [
    "ACCESS",
    "ALLOCATE",
    "ANNOTATIONS",
    "CACHE",
    "CLUSTERING",
    "COLUMN",
    "COMPRESS",
    "DEALLOCATE",
    "DEFAULT",
    "FILESYSTEM_LIKE_LOGGING",
    "FLASHBACK",
    "HASHKEYS",
    "ILM",
    "INCLUDING",
    "INDEXING",
    "INITRANS",
    "INMEMORY",
    "LOCATION",
    "LOGGING",
    "MAPPING",
    "MAXTRANS",
    "MEMOPTIMIZE",
    "MINIMIZE",
    "MONITORING",
    "MOVE",
    "NO",
    "NOCACHE",
    "NOCOMPRESS",
    "NOLOGGING",
    "NOMAPPING",
    "NOMINIMIZE",
    "NOMONITORING",
    "NOPARALLEL",
    "NOROWDEPENDENCIES",
    "OVERFLOW",
    "PARALLEL",
    "PCTFREE",
    "PCTTHRESHOLD",
    "PCTUSED",
    "PROJECT",
    "READ",
    "REJECT",
    "REKEY",
    "RESULT_CACHE",
    "ROW",
    "ROWDEPENDENCIES",
    "SHRINK",
    "STORAGE",
    "UPGRADE",
];

/// The kind of a statement.
pub fn classify(sql: &str) -> DdlClass {
    let mut rest = words(sql);
    let Some(Word::Plain(verb)) = rest.next() else { return DdlClass::Unknown };
    match verb.as_str() {
        "CREATE" => create(rest),
        "ALTER" => alter(rest),
        "DROP" => drop_object(rest),
        "TRUNCATE" if rest.next().is_some_and(|word| word.is("TABLE")) => DdlClass::Truncate,
        "RENAME" => rename(rest),
        "FLASHBACK" => flashback(rest),
        "COMMENT" | "GRANT" | "REVOKE" | "ANALYZE" | "AUDIT" | "NOAUDIT" | "PURGE"
        | "ASSOCIATE" | "DISASSOCIATE" => DdlClass::NoChange,
        _ => DdlClass::Unknown,
    }
}

/// The beginning of a statement as errors show it: no literal, and so no value, is in it.
pub(crate) fn head(sql: &str) -> String {
    let show = |word| match word {
        Word::Plain(word) => word,
        Word::Name(parts) => parts.join("."),
        Word::Open => "(".to_owned(),
        Word::Close => ")".to_owned(),
    };
    let shown: Vec<String> = words(sql).take(8).map(show).collect();
    shown.join(" ").chars().take(200).collect()
}

/// The kind of object that CREATE or DROP names.
enum Object {
    Table,
    UniqueIndex,
    Index,
    Other,
}

/// Reads on to behind the words that name a kind of object.
fn object(rest: &mut Words<'_>) -> Object {
    let mut is_unique = false;
    let mut is_materialized = false;
    for word in rest.clone().take(LONGEST_PREFIX) {
        rest.next();
        match word {
            Word::Plain(word) if word == "TABLE" => return Object::Table,
            Word::Plain(word) if word == "MATERIALIZED" => is_materialized = true,
            // The rows of a materialized view are those of a table of its name.
            Word::Plain(word) if word == "VIEW" && is_materialized => return view(rest),
            Word::Plain(word) if word == "UNIQUE" => is_unique = true,
            Word::Plain(word) if word == "INDEX" && is_unique => return Object::UniqueIndex,
            Word::Plain(word) if word == "INDEX" => return Object::Index,
            Word::Plain(word) if !OBJECTS_WITH_TEXT.contains(&word.as_str()) => {}
            _ => return Object::Other,
        }
    }
    Object::Other
}

fn view(rest: &Words<'_>) -> Object {
    let is_log = rest.clone().next().is_some_and(|word| word.is("LOG"));
    if is_log { Object::Other } else { Object::Table }
}

fn create(mut rest: Words<'_>) -> DdlClass {
    match object(&mut rest) {
        Object::Table => DdlClass::Create,
        Object::UniqueIndex => create_index(rest).unwrap_or(DdlClass::Unknown),
        Object::Index | Object::Other => DdlClass::NoChange,
    }
}

fn create_index(mut rest: Words<'_>) -> Option<DdlClass> {
    let index = name(&mut rest)?;
    let on = rest.find(|word| word.is("ON")).and_then(|_| name(&mut rest));
    Some(DdlClass::Index { index, on })
}

fn drop_object(mut rest: Words<'_>) -> DdlClass {
    match object(&mut rest) {
        Object::Table => table_gone(rest),
        Object::Index | Object::UniqueIndex => index_gone(rest),
        Object::Other => DdlClass::NoChange,
    }
}

/// A materialized view may leave its table behind (PRESERVE TABLE).
fn table_gone(mut rest: Words<'_>) -> DdlClass {
    let is_named = name(&mut rest).is_some();
    if is_named && begins_with(&rest, &["PRESERVE"]) { DdlClass::NoChange } else { DdlClass::Drop }
}

fn index_gone(mut rest: Words<'_>) -> DdlClass {
    let index = name(&mut rest).map(|index| DdlClass::Index { index, on: None });
    index.unwrap_or(DdlClass::Unknown)
}

fn rename(mut rest: Words<'_>) -> DdlClass {
    let to = name(&mut rest).and_then(|_| rest.find(|word| word.is("TO")));
    renamed(to.and_then(|_| name(&mut rest)))
}

fn renamed(to: Option<WrittenName>) -> DdlClass {
    to.map_or(DdlClass::Unknown, |to| DdlClass::Rename { to })
}

/// Out of the recycle bin a table comes back whole; to an SCN its rows are changed one by one.
fn flashback(mut rest: Words<'_>) -> DdlClass {
    match rest.next() {
        Some(word) if word.is("TABLE") && rest.any(|word| word.is("DROP")) => DdlClass::Create,
        _ => DdlClass::NoChange,
    }
}

fn alter(mut rest: Words<'_>) -> DdlClass {
    match rest.next() {
        Some(Word::Plain(word)) if word == "TABLE" => alter_table(rest),
        Some(Word::Plain(word)) if word == "INDEX" => alter_index(rest),
        _ => DdlClass::NoChange,
    }
}

/// A key is the first index by name of those that can be used.
fn alter_index(rest: Words<'_>) -> DdlClass {
    let mut after = rest.clone();
    let is_other = name(&mut after)
        .and_then(|_| after.next())
        .is_some_and(|word| word.is_any(&["RENAME", "UNUSABLE", "REBUILD"]));
    if is_other { index_gone(rest) } else { DdlClass::NoChange }
}

fn alter_table(mut rest: Words<'_>) -> DdlClass {
    if name(&mut rest).is_none() {
        return DdlClass::Unknown;
    }
    let clauses = rest.clone();
    let Some(Word::Plain(verb)) = rest.next() else { return DdlClass::Unknown };
    match verb.as_str() {
        "ADD" => add(rest),
        "DROP" => drop_part(rest),
        "MODIFY" => modify(rest),
        "RENAME" => rename_part(rest),
        "SET" => set(rest),
        "SPLIT" | "MERGE" | "EXCHANGE" | "TRUNCATE" => DdlClass::Partition,
        "COALESCE" if begins_with(&rest, &PARTITIONS) => DdlClass::Partition,
        "COALESCE" => DdlClass::NoChange,
        "ENABLE" | "DISABLE" | "VALIDATE" | "NOVALIDATE" => enable(rest),
        verb if STORAGE.contains(&verb) => storage(verb, clauses),
        _ => DdlClass::Unknown,
    }
}

fn begins_with(rest: &Words<'_>, keywords: &[&str]) -> bool {
    rest.clone().next().is_some_and(|word| word.is_any(keywords))
}

/// Inside parentheses there are columns and constraints, or either.
fn add(mut rest: Words<'_>) -> DdlClass {
    match rest.next() {
        Some(Word::Open) if begins_with(&rest, &CONSTRAINTS) => DdlClass::Constraints,
        Some(Word::Open) if begins_with(&rest, &["SUPPLEMENTAL"]) => DdlClass::Logging,
        Some(word) if word.is_any(&CONSTRAINTS) => DdlClass::Constraints,
        Some(word) if word.is("SUPPLEMENTAL") => DdlClass::Logging,
        Some(word) if word.is_any(&PARTITIONS) => DdlClass::Partition,
        Some(word) if word.is_any(&["CLUSTERING", "OVERFLOW"]) => DdlClass::NoChange,
        Some(_) => DdlClass::Columns,
        None => DdlClass::Unknown,
    }
}

fn drop_part(mut rest: Words<'_>) -> DdlClass {
    match rest.next() {
        Some(Word::Open) => DdlClass::Columns,
        Some(word) if word.is_any(&["COLUMN", "COLUMNS", "PERIOD"]) => DdlClass::Columns,
        Some(word) if word.is_any(&["UNUSED", "CLUSTERING"]) => DdlClass::NoChange,
        Some(word) if word.is_any(&CONSTRAINTS) => DdlClass::Constraints,
        Some(word) if word.is("SUPPLEMENTAL") => DdlClass::Logging,
        Some(word) if word.is_any(&PARTITIONS) => DdlClass::Partition,
        _ => DdlClass::Unknown,
    }
}

fn modify(mut rest: Words<'_>) -> DdlClass {
    match rest.next() {
        // `MODIFY LOB (c) (...)`, and not a column of that name.
        Some(word) if word.is("LOB") && matches!(rest.clone().next(), Some(Word::Open)) => {
            DdlClass::NoChange
        }
        Some(word) if word.is_any(&["VARRAY", "NESTED", "OPAQUE", "CLUSTERING"]) => {
            DdlClass::NoChange
        }
        Some(word) if word.is_any(&CONSTRAINTS) => DdlClass::Constraints,
        Some(word) if word.is_any(&PARTITIONS) => DdlClass::Partition,
        Some(word) if word.is_any(&["DEFAULT", "NONPARTITIONED"]) => DdlClass::Partition,
        Some(_) => DdlClass::Columns,
        None => DdlClass::Unknown,
    }
}

fn rename_part(mut rest: Words<'_>) -> DdlClass {
    match rest.next() {
        Some(word) if word.is("TO") => renamed(name(&mut rest)),
        Some(word) if word.is("COLUMN") => DdlClass::Columns,
        Some(word) if word.is("CONSTRAINT") || word.is_any(&PARTITIONS) => DdlClass::NoChange,
        _ => DdlClass::Unknown,
    }
}

/// What is not about unused columns is about partitions that the table shall have.
fn set(mut rest: Words<'_>) -> DdlClass {
    match rest.next() {
        Some(word) if word.is("UNUSED") => DdlClass::Columns,
        Some(word) if word.is_any(&["INTERVAL", "STORE", "SUBPARTITION", "PARTITIONING"]) => {
            DdlClass::Partition
        }
        _ => DdlClass::Unknown,
    }
}

fn enable(rest: Words<'_>) -> DdlClass {
    match rest.clone().find(|word| !word.is_any(&["VALIDATE", "NOVALIDATE"])) {
        Some(word) if word.is_any(&CONSTRAINTS) => DdlClass::Constraints,
        // LOGICAL REPLICATION says what is logged beside the changed columns.
        Some(word) if word.is("LOGICAL") => DdlClass::Logging,
        Some(_) => DdlClass::NoChange,
        None => DdlClass::Unknown,
    }
}

/// Clauses of storage may be followed by others. Policies, archives and rules of deletion have words of
/// their own behind them.
fn storage(verb: &str, clauses: Words<'_>) -> DdlClass {
    let is_alone = matches!(verb, "ILM" | "NO" | "ANNOTATIONS");
    let is_more = !is_alone && outside(clauses).any(|word| word.is_any(&["ADD", "MODIFY", "DROP"]));
    if is_more { DdlClass::Columns } else { DdlClass::NoChange }
}

/// The words outside of parentheses.
fn outside(words: Words<'_>) -> impl Iterator<Item = Word> {
    let mut depth = 0_usize;
    words.filter(move |word| {
        match word {
            Word::Open => depth = depth.saturating_add(1),
            Word::Close => depth = depth.saturating_sub(1),
            Word::Plain(_) | Word::Name(_) => return depth == 0,
        }
        false
    })
}

/// The name that comes next.
fn name(rest: &mut Words<'_>) -> Option<WrittenName> {
    skip_condition(rest);
    let mut parts = rest.next()?.into_name()?;
    let name = parts.pop()?;
    Some(WrittenName { owner: parts.pop(), name })
}

fn skip_condition(rest: &mut Words<'_>) {
    for condition in [&["IF", "EXISTS"][..], &["IF", "NOT", "EXISTS"]] {
        let mut ahead = rest.clone();
        if condition.iter().all(|keyword| ahead.next().is_some_and(|word| word.is(keyword))) {
            *rest = ahead;
            return;
        }
    }
}

#[cfg(test)]
mod tests;
