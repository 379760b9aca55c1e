//! The head of a DDL: what it does, and to which table. What it means for the captured tables is judged
//! elsewhere, with the dictionary.

use std::borrow::Cow;

use super::error::StatementError;
use super::scanner::Scanner;

/// What a DDL does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DdlKind {
    /// Makes a table.
    CreateTable,
    /// Changes a table.
    AlterTable,
    /// Gives a table another name.
    RenameTable,
    /// Drops a table.
    DropTable,
    /// Takes all rows out of a table.
    TruncateTable,
    /// Anything else.
    Other,
}

impl DdlKind {
    /// The name that scripts know it by.
    pub const fn text(self) -> &'static str {
        match self {
            Self::CreateTable => "create_table",
            Self::AlterTable => "alter_table",
            Self::RenameTable => "rename_table",
            Self::DropTable => "drop_table",
            Self::TruncateTable => "truncate_table",
            Self::Other => "other",
        }
    }
}

/// The head of a DDL. Names are as the dictionary has them: in capitals unless they are quoted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DdlHead<'a> {
    /// See [`DdlKind`].
    pub kind: DdlKind,
    /// Owner of the table, where the text names it.
    pub owner: Option<Cow<'a, str>>,
    /// The table; of a renaming its name before. `None` for [`DdlKind::Other`].
    pub table: Option<Cow<'a, str>>,
}

/// Words that may stand between CREATE and TABLE.
const KINDS_OF_TABLE: [&str; 9] = [
    "or",
    "replace",
    "global",
    "private",
    "temporary",
    "sharded",
    "duplicated",
    "blockchain",
    "immutable",
];

/// Reads the head of a DDL. Its text is the user's own, so comments may stand anywhere.
///
/// # Errors
/// When no word begins it, or a table's name does not follow where it must.
pub fn read_ddl(sql: &str) -> Result<DdlHead<'_>, StatementError> {
    let mut scanner = Scanner::new(sql);
    let Some(kind) = kind(&mut scanner)? else {
        return Ok(DdlHead { kind: DdlKind::Other, owner: None, table: None });
    };
    if_exists(&mut scanner);
    let first = name(&mut scanner)?;
    comments(&mut scanner);
    let (owner, table) = match scanner.eat(b'.') {
        true => (Some(first), name(&mut scanner)?),
        false => (None, first),
    };
    let is_renaming = kind == DdlKind::AlterTable && words(&mut scanner, &["rename", "to"]);
    let kind = if is_renaming { DdlKind::RenameTable } else { kind };
    Ok(DdlHead { kind, owner, table: Some(table) })
}

/// Reads up to the table's name; `None` where no table is meant.
fn kind(scanner: &mut Scanner<'_>) -> Result<Option<DdlKind>, StatementError> {
    comments(scanner);
    let at = scanner.at();
    let verb = scanner.word();
    let kind = match verb.to_ascii_lowercase().as_str() {
        "" => return Err(StatementError::unexpected(at, "a statement")),
        "rename" => return Ok(Some(DdlKind::RenameTable)),
        "create" => DdlKind::CreateTable,
        "alter" => DdlKind::AlterTable,
        "drop" => DdlKind::DropTable,
        "truncate" => DdlKind::TruncateTable,
        _ => return Ok(None),
    };
    if kind == DdlKind::CreateTable {
        while KINDS_OF_TABLE.iter().any(|word| words(scanner, &[word])) {}
    }
    Ok(words(scanner, &["table"]).then_some(kind))
}

/// Takes keywords, if all of them are next, with comments between.
fn words(scanner: &mut Scanner<'_>, keywords: &[&str]) -> bool {
    let mut ahead = scanner.clone();
    let are_next = keywords.iter().all(|keyword| {
        comments(&mut ahead);
        ahead.keyword(keyword)
    });
    if are_next {
        *scanner = ahead;
    }
    are_next
}

fn if_exists(scanner: &mut Scanner<'_>) {
    if !words(scanner, &["if", "exists"]) {
        words(scanner, &["if", "not", "exists"]);
    }
}

fn name<'a>(scanner: &mut Scanner<'a>) -> Result<Cow<'a, str>, StatementError> {
    comments(scanner);
    if scanner.peek() == Some(b'"') {
        return scanner.name();
    }
    match scanner.word() {
        "" => Err(StatementError::unexpected(scanner.at(), "the name of a table")),
        word => Ok(Cow::Owned(word.to_uppercase())),
    }
}

/// Passes over comments.
fn comments(scanner: &mut Scanner<'_>) {
    loop {
        if scanner.eat_all("/*") {
            scanner.pass("*/");
        } else if scanner.eat_all("--") {
            scanner.pass("\n");
        } else {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(sql: &str) -> (DdlKind, Option<String>, Option<String>) {
        let head = read_ddl(sql).unwrap();
        (head.kind, head.owner.map(Cow::into_owned), head.table.map(Cow::into_owned))
    }

    fn owned(kind: DdlKind, owner: &str, table: &str) -> (DdlKind, Option<String>, Option<String>) {
        (kind, Some(owner.to_owned()), Some(table.to_owned()))
    }

    #[test]
    fn every_kind_of_table_is_a_table() {
        for sql in [
            "CREATE GLOBAL TEMPORARY TABLE o.t (a number)",
            "create or replace /* x */ private temporary table O.T(a number)",
            "create immutable blockchain table if not exists \"O\" . \"T\" (a number)",
            "-- why\ncreate table o./* ? */t as select * from dual",
        ] {
            assert_eq!(head(sql), owned(DdlKind::CreateTable, "O", "T"), "{sql}");
        }
    }

    #[test]
    fn a_name_is_folded_unless_it_is_quoted() {
        assert_eq!(head("truncate table \"o\".täg"), owned(DdlKind::TruncateTable, "o", "TÄG"));
        assert_eq!(head("drop table if exists o.if"), owned(DdlKind::DropTable, "O", "IF"));
    }

    #[test]
    fn only_a_renaming_of_the_table_is_one() {
        let kind = |sql: &str| head(sql).0;
        assert_eq!(kind("alter table o.t rename /* x */ to u"), DdlKind::RenameTable);
        assert_eq!(kind("alter table o.t rename column a to b"), DdlKind::AlterTable);
        assert_eq!(kind("alter table o.rename add (a number)"), DdlKind::AlterTable);
    }

    #[test]
    fn what_is_no_table_has_no_name() {
        for sql in ["create index i on t(a)", "grant select on t to u", "alter session set x = 1"] {
            assert_eq!(head(sql), (DdlKind::Other, None, None), "{sql}");
        }
    }

    #[test]
    fn a_table_needs_its_name() {
        for (sql, at) in [("", 0), ("drop table", 10), ("alter table o.", 14), ("/* open", 7)] {
            assert_eq!(read_ddl(sql).unwrap_err().at, at, "{sql}");
        }
    }
}
