//! A column whose value comes in rows of its own: the text that begins it names column and row.

use std::borrow::Cow;

use super::error::StatementError;
use super::literal::Literal;
use super::row::{Columns, alias, condition, table, unalias};
use super::scanner::Scanner;

/// The row that a column is written of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenRow<'a> {
    /// Owner of the table.
    pub owner: Cow<'a, str>,
    /// Table.
    pub table: Cow<'a, str>,
    /// Columns of the WHERE clause, by which the row is found.
    pub before: Columns<'a>,
    /// The row's id, where the WHERE clause has it.
    pub row_id: Option<Cow<'a, str>>,
}

/// A column that the rows behind this one write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WrittenColumn<'a> {
    /// Its name.
    pub column: Cow<'a, str>,
    /// Its row.
    pub row: WrittenRow<'a>,
}

impl WrittenColumn<'_> {
    /// The same, apart from the text that it was read from.
    #[must_use]
    pub fn into_owned(self) -> WrittenColumn<'static> {
        fn own(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        let own_column =
            |(name, value): (Cow<'_, str>, Literal<'_>)| (own(name), value.into_owned());
        let WrittenRow { owner, table, before, row_id } = self.row;
        let row = WrittenRow {
            owner: own(owner),
            table: own(table),
            before: before.into_iter().map(own_column).collect(),
            row_id: row_id.map(own),
        };
        WrittenColumn { column: own(self.column), row }
    }
}

/// Reads `select "COLUMN" from …`, up to the end of its WHERE clause; `into` reads what stands before FROM.
pub(super) fn selected<'a>(
    scanner: &mut Scanner<'a>,
    into: fn(&mut Scanner<'a>) -> Result<(), StatementError>,
) -> Result<WrittenColumn<'a>, StatementError> {
    scanner.expect_keyword("select")?;
    let column = scanner.name()?;
    into(scanner)?;
    scanner.expect_keyword("from")?;
    let (owner, table) = table(scanner)?;
    // The one word other than WHERE that may follow is no alias.
    let alias = match scanner.peek_word() {
        word if word.eq_ignore_ascii_case("for") => None,
        _ => alias(scanner, "where"),
    };
    let (before, row_id) = condition(scanner, alias)?;
    Ok(WrittenColumn { column, row: WrittenRow { owner, table, before, row_id } })
}

/// Reads `update … set "COLUMN" = …`, up to the end of the text; `bound` reads the variable that stands for
/// the value.
pub(super) fn updated<'a>(
    scanner: &mut Scanner<'a>,
    bound: fn(&mut Scanner<'a>, &str) -> Result<(), StatementError>,
) -> Result<WrittenColumn<'a>, StatementError> {
    scanner.expect_keyword("update")?;
    let (owner, table) = table(scanner)?;
    let alias = alias(scanner, "set");
    scanner.expect_keyword("set")?;
    unalias(scanner, alias)?;
    let column = scanner.name()?;
    scanner.expect(b'=', "an equals sign")?;
    bound(scanner, &column)?;
    let (before, row_id) = condition(scanner, alias)?;
    scanner.end()?;
    Ok(WrittenColumn { column, row: WrittenRow { owner, table, before, row_id } })
}
