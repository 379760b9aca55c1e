//! Strings above 4000 bytes, which come in rows of their own: one that names column and row in a statement
//! held as text, then pieces.

use std::borrow::Cow;

use super::error::StatementError;
use super::last_literal::meant;
use super::lob::{assignment, comma, declarations, semicolon, variable};
use super::scanner::Scanner;
use super::written_column::{WrittenColumn, updated};

/// A piece of a long string.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StringPiece<'a> {
    /// What follows the pieces before it.
    pub text: Cow<'a, str>,
    /// Its length in characters, where the row says it as a number.
    pub amount: Option<u64>,
}

/// Reads the row that begins a long string (operation code 91). It holds an UPDATE as a literal, whose quotes
/// are doubled once more.
///
/// # Errors
/// When it is anything else than LogMiner writes. The place of a fault inside the UPDATE counts from the
/// UPDATE's beginning.
pub fn read_string_begin(sql: &str) -> Result<WrittenColumn<'static>, StatementError> {
    let mut scanner = Scanner::new(sql);
    scanner.expect_keyword("declare")?;
    declarations(&mut scanner)?;
    create_temporary(&mut scanner)?;
    scanner.expect_keyword("stmt")?;
    assignment(&mut scanner)?;
    let update = scanner.quoted()?.text();
    scanner.end()?;
    updated(&mut Scanner::new(&update), bound).map(WrittenColumn::into_owned)
}

/// Reads `DBMS_LOB.CreateTemporary(TempLob, FALSE);`.
fn create_temporary(scanner: &mut Scanner<'_>) -> Result<(), StatementError> {
    scanner.expect_keyword("dbms_lob")?;
    scanner.expect(b'.', "a dot and the procedure")?;
    scanner.expect_keyword("createtemporary")?;
    scanner.expect(b'(', "an opening bracket")?;
    variable(scanner)?;
    comma(scanner)?;
    variable(scanner)?;
    scanner.expect(b')', "a closing bracket")?;
    semicolon(scanner)
}

/// Reads the variable that stands for the value: a colon and the column's name.
fn bound(scanner: &mut Scanner<'_>, column: &str) -> Result<(), StatementError> {
    scanner.expect(b':', "a bound variable")?;
    if scanner.peek() == Some(b'"') {
        scanner.name()?;
    } else if !scanner.eat_all(column) {
        variable(scanner)?;
    }
    Ok(())
}

/// Reads a piece of a long string (operation code 92): an assignment of the buffer, and the call that
/// appends it.
///
/// # Errors
/// When it is anything else than LogMiner writes.
pub fn read_string_write(sql: &str) -> Result<StringPiece<'_>, StatementError> {
    let mut scanner = Scanner::new(sql);
    let buffer = variable(&mut scanner)?;
    assignment(&mut scanner)?;
    let written = scanner.quoted_to_last()?;
    semicolon(&mut scanner)?;
    let amount = append(&mut scanner, buffer)?;
    scanner.expect_end()?;
    Ok(StringPiece { text: meant(written, amount)?, amount })
}

/// Reads `DBMS_LOB.WriteAppend(TempLob, amount, buf_c);`, whose amount may be a call of LENGTH.
fn append(scanner: &mut Scanner<'_>, buffer: &str) -> Result<Option<u64>, StatementError> {
    scanner.expect_keyword("dbms_lob")?;
    scanner.expect(b'.', "a dot and the procedure")?;
    scanner.expect_keyword("writeappend")?;
    scanner.expect(b'(', "an opening bracket")?;
    variable(scanner)?;
    comma(scanner)?;
    let amount = if scanner.keyword("length") {
        scanner.expect(b'(', "an opening bracket")?;
        assigned(scanner, buffer)?;
        scanner.expect(b')', "a closing bracket")?;
        None
    } else {
        Some(scanner.number()?)
    };
    comma(scanner)?;
    assigned(scanner, buffer)?;
    scanner.expect(b')', "a closing bracket")?;
    semicolon(scanner)?;
    Ok(amount)
}

fn assigned(scanner: &mut Scanner<'_>, buffer: &str) -> Result<(), StatementError> {
    let at = scanner.at();
    match scanner.word() == buffer {
        true => Ok(()),
        false => Err(StatementError::unexpected(at, "the variable that was assigned")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sql: &str) -> Option<(String, Option<u64>)> {
        read_string_write(sql).ok().map(|piece| (piece.text.into_owned(), piece.amount))
    }

    #[test]
    fn a_piece_says_its_amount_or_leaves_it_to_be_counted() {
        let by_number =
            "\n buf_c := 'salt; ''and'' pepper'; \n DBMS_LOB.WriteAppend(TempLob, 18, buf_c);\n";
        assert_eq!(read(by_number), Some(("salt; 'and' pepper".to_owned(), Some(18))));
        let counted = " buf_c := 'd'une'; dbms_lob.writeappend(TempLob, LENGTH(buf_c), buf_c);";
        assert_eq!(read(counted), Some(("d'une".to_owned(), None)));
    }

    #[test]
    fn another_variable_is_refused() {
        for wrong in [
            " buf_c := 'x'; dbms_lob.writeappend(TempLob, 1, buf_d);",
            " buf_c := 'x'; dbms_lob.writeappend(TempLob, length(buf_d), buf_c);",
            " buf_c := 'x'; dbms_lob.write(TempLob, 1, buf_c);",
            " buf_c := 'x';",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn the_variable_is_named_as_the_column_is() {
        let begin = |bound: &str| {
            let sql = format!(
                "DECLARE\n TempLob CLOB;\nBEGIN\n DBMS_LOB.CreateTemporary(TempLob, FALSE);\n \
                 Stmt := 'update \"O\".\"T\" set \"A B\" = :{bound} where \"ID\" = ''1'';';"
            );
            read_string_begin(&sql).map(|read| read.column.into_owned())
        };
        for bound in ["A B", "\"A B\"", "1"] {
            assert_eq!(begin(bound).as_deref(), Ok("A B"), "{bound}");
        }
        assert!(begin("").is_err());
    }
}
