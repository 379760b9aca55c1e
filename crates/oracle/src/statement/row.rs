//! INSERT, UPDATE and DELETE.

use std::borrow::Cow;

use super::Quoting;
use super::error::StatementError;
use super::literal::{Literal, literal};
use super::relaxed::List;
use super::scanner::Scanner;
use crate::Verb;

/// Columns with their values, in the order of the text.
pub type Columns<'a> = Vec<(Cow<'a, str>, Literal<'a>)>;

/// What a statement does to one row. A column that a text names twice is here twice.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowStatement<'a> {
    /// What is done.
    pub verb: Verb,
    /// Owner of the table.
    pub owner: Cow<'a, str>,
    /// Table.
    pub table: Cow<'a, str>,
    /// Columns of the WHERE clause: the row as it was.
    pub before: Columns<'a>,
    /// Columns of SET, or of INSERT: what the row became.
    pub after: Columns<'a>,
    /// The row's id, where the WHERE clause has it.
    pub row_id: Option<Cow<'a, str>>,
}

/// A list of columns begins with room for so many: what an allocator gives fast.
const COLUMNS: usize = 12;

/// Reads the text of an INSERT, UPDATE or DELETE. Whether it is the one that the operation code says, the
/// caller compares.
///
/// # Errors
/// When it is anything else than LogMiner writes; under [`Quoting::Relaxed`] the fault of the strict
/// reading is said.
pub fn read_row(sql: &str, quoting: Quoting) -> Result<RowStatement<'_>, StatementError> {
    match (statement(Scanner::new(sql)), quoting) {
        (Err(fault), Quoting::Relaxed) => statement(Scanner::relaxed(sql)).map_err(|_| fault),
        (read, _) => read,
    }
}

fn statement(mut scanner: Scanner<'_>) -> Result<RowStatement<'_>, StatementError> {
    let scanner = &mut scanner;
    let read = if scanner.keyword("insert") {
        insert(scanner)?
    } else if scanner.keyword("update") {
        update(scanner)?
    } else if scanner.keyword("delete") {
        delete(scanner)?
    } else {
        return Err(StatementError::unexpected(scanner.at(), "insert, update or delete"));
    };
    scanner.end()?;
    Ok(read)
}

fn insert<'a>(scanner: &mut Scanner<'a>) -> Result<RowStatement<'a>, StatementError> {
    scanner.expect_keyword("into")?;
    let (owner, table) = table(scanner)?;
    let mut after = names(scanner)?;
    scanner.expect_keyword("values")?;
    values(scanner, &mut after)?;
    Ok(RowStatement { verb: Verb::Insert, owner, table, before: Vec::new(), after, row_id: None })
}

fn names<'a>(scanner: &mut Scanner<'a>) -> Result<Columns<'a>, StatementError> {
    let mut names = Vec::with_capacity(COLUMNS);
    scanner.expect(b'(', "the columns in brackets")?;
    loop {
        names.push((scanner.name()?, Literal::Null));
        if !scanner.eat(b',') {
            break;
        }
    }
    scanner.expect(b')', "a comma or a closing bracket")?;
    Ok(names)
}

fn values<'a>(scanner: &mut Scanner<'a>, columns: &mut Columns<'a>) -> Result<(), StatementError> {
    scanner.expect(b'(', "the values in brackets")?;
    let mut read = 0;
    loop {
        let at = scanner.at();
        let value = literal(scanner)?;
        columns.get_mut(read).ok_or(StatementError::count(at))?.1 = value;
        read += 1;
        if !scanner.eat(b',') {
            break;
        }
    }
    let at = scanner.at();
    scanner.expect(b')', "a comma or a closing bracket")?;
    if read < columns.len() { Err(StatementError::count(at)) } else { Ok(()) }
}

fn update<'a>(scanner: &mut Scanner<'a>) -> Result<RowStatement<'a>, StatementError> {
    let (owner, table) = table(scanner)?;
    let alias = alias(scanner, "set");
    scanner.expect_keyword("set")?;
    read_as(scanner, List::Assignments);
    let after = assignments(scanner, alias)?;
    let (before, row_id) = condition(scanner, alias)?;
    Ok(RowStatement { verb: Verb::Update, owner, table, before, after, row_id })
}

fn delete<'a>(scanner: &mut Scanner<'a>) -> Result<RowStatement<'a>, StatementError> {
    scanner.expect_keyword("from")?;
    let (owner, table) = table(scanner)?;
    let alias = alias(scanner, "where");
    if alias.is_some() && !scanner.peek_word().eq_ignore_ascii_case("where") {
        return Err(StatementError::unexpected(scanner.at(), "where"));
    }
    let (before, row_id) = condition(scanner, alias)?;
    let after = Vec::new();
    Ok(RowStatement { verb: Verb::Delete, owner, table, before, after, row_id })
}

/// Reads owner and table.
pub(super) fn table<'a>(
    scanner: &mut Scanner<'a>,
) -> Result<(Cow<'a, str>, Cow<'a, str>), StatementError> {
    let owner = scanner.name()?;
    scanner.expect(b'.', "a dot and the table")?;
    Ok((owner, scanner.name()?))
}

/// Reads what stands for the table before its columns, if a word other than the next keyword is there.
pub(super) fn alias<'a>(scanner: &mut Scanner<'a>, keyword: &str) -> Option<&'a str> {
    let word = scanner.peek_word();
    if word.is_empty() || word.eq_ignore_ascii_case(keyword) {
        return None;
    }
    let alias = scanner.word();
    if let Some(closing) = &mut scanner.closing {
        closing.alias = Some(alias);
    }
    Some(alias)
}

fn read_as(scanner: &mut Scanner<'_>, list: List) {
    if let Some(closing) = &mut scanner.closing {
        closing.list = list;
    }
}

fn assignments<'a>(
    scanner: &mut Scanner<'a>,
    alias: Option<&str>,
) -> Result<Columns<'a>, StatementError> {
    let mut assignments = Vec::with_capacity(COLUMNS);
    loop {
        unalias(scanner, alias)?;
        let column = scanner.name()?;
        scanner.expect(b'=', "an equals sign")?;
        assignments.push((column, literal(scanner)?));
        if !scanner.eat(b',') {
            return Ok(assignments);
        }
    }
}

/// Passes over the alias before a column, if it is there.
pub(super) fn unalias(
    scanner: &mut Scanner<'_>,
    alias: Option<&str>,
) -> Result<(), StatementError> {
    if let Some(alias) = alias
        && scanner.keyword(alias)
    {
        scanner.expect(b'.', "a dot and the column")?;
    }
    Ok(())
}

/// Columns of a WHERE clause, and the row's id.
pub(super) type Condition<'a> = (Columns<'a>, Option<Cow<'a, str>>);

/// Reads a WHERE clause, if there is one.
pub(super) fn condition<'a>(
    scanner: &mut Scanner<'a>,
    alias: Option<&str>,
) -> Result<Condition<'a>, StatementError> {
    if !scanner.keyword("where") {
        return Ok((Vec::new(), None));
    }
    read_as(scanner, List::Terms);
    let (mut columns, mut row_id) = (Vec::with_capacity(COLUMNS), None);
    loop {
        unalias(scanner, alias)?;
        let at = scanner.at();
        if scanner.peek() == Some(b'"') {
            columns.push((scanner.name()?, compared(scanner)?));
        } else if !scanner.keyword("ROWID") {
            return Err(StatementError::unexpected(at, "a column or ROWID"));
        } else if row_id.replace(row_id_compared(scanner)?).is_some() {
            return Err(StatementError::unexpected(at, "ROWID once"));
        }
        if !scanner.keyword("and") {
            return Ok((columns, row_id));
        }
    }
}

fn compared<'a>(scanner: &mut Scanner<'a>) -> Result<Literal<'a>, StatementError> {
    if scanner.eat(b'=') {
        return literal(scanner);
    }
    let at = scanner.at();
    if scanner.keyword("IS") && scanner.keyword("NULL") {
        return Ok(Literal::Null);
    }
    Err(StatementError::unexpected(at, "an equals sign or IS NULL"))
}

fn row_id_compared<'a>(scanner: &mut Scanner<'a>) -> Result<Cow<'a, str>, StatementError> {
    scanner.expect(b'=', "an equals sign")?;
    Ok(scanner.quoted()?.text())
}
