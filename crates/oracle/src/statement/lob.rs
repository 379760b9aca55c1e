//! The PL/SQL blocks in which LogMiner writes changes of large objects.
//!
//! A block selects the locator of one object and then writes, cuts or blanks a part of it. Some releases
//! give the select and each part in rows of their own.

use std::borrow::Cow;

use super::error::StatementError;
use super::literal::{Literal, literal};
use super::scanner::Scanner;
use super::written_column::{WrittenColumn, WrittenRow, selected};

/// What a block does to a large object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LobStatement<'a> {
    /// Column of the object; `None` where the block goes on with the locator of an earlier row.
    pub column: Option<Cow<'a, str>>,
    /// Its row, likewise.
    pub row: Option<WrittenRow<'a>>,
    /// See [`LobPiece`].
    pub piece: LobPiece<'a>,
}

/// A change of a large object. Amounts and offsets count characters (a supplementary one is one), or bytes
/// of a BLOB; offsets begin with 1.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LobPiece<'a> {
    /// None yet: the locator alone was selected.
    Locator,
    /// Data was written over what is at the offset.
    Write {
        /// [`Literal::Text`], [`Literal::National`] or [`Literal::Raw`].
        data: Literal<'a>,
        /// How much the block says that it writes.
        amount: u64,
        /// Where.
        offset: u64,
    },
    /// What is beyond a length was cut off.
    Trim {
        /// The length that is left.
        length: u64,
    },
    /// A part was overwritten with blanks, or bytes of zero.
    Erase {
        /// How much.
        amount: u64,
        /// Where it begins.
        offset: u64,
    },
}

impl LobPiece<'_> {
    /// Whether a write says that it writes more or less than its data: a sign that the text went through
    /// another character set. Nothing may be built on such data.
    #[must_use]
    pub fn amount_differs(&self) -> bool {
        let Self::Write { data, amount, .. } = self else { return false };
        let length = match data {
            Literal::Text(text) | Literal::National(text) => text.chars().count(),
            Literal::Raw(hex) => hex.len() / 2,
            _ => return true,
        };
        u64::try_from(length) != Ok(*amount)
    }
}

/// Reads the text of a row that selects a locator, or writes, cuts or blanks an object.
///
/// # Errors
/// When it is anything else than LogMiner writes.
pub fn read_lob(sql: &str) -> Result<LobStatement<'_>, StatementError> {
    let mut scanner = Scanner::new(sql);
    let written = if scanner.keyword("declare") {
        declarations(&mut scanner)?;
        let written = selected(&mut scanner, into_locator)?;
        for_update(&mut scanner)?;
        Some(written)
    } else {
        None
    };
    let at = scanner.at();
    let piece = Body::default().read(&mut scanner)?;
    if written.is_none() && piece == LobPiece::Locator {
        return Err(StatementError::unexpected(at, "a block that changes a large object"));
    }
    let (column, row) = written.map(|WrittenColumn { column, row }| (column, row)).unzip();
    Ok(LobStatement { column, row, piece })
}

/// Reads declarations of variables, up to BEGIN.
pub(super) fn declarations(scanner: &mut Scanner<'_>) -> Result<(), StatementError> {
    const EXPECTED: &str = "a declaration, or begin";
    while !scanner.keyword("begin") {
        let at = scanner.at();
        if scanner.word().is_empty() || scanner.word().is_empty() {
            return Err(StatementError::unexpected(at, EXPECTED));
        }
        if scanner.eat(b'(') {
            scanner.number()?;
            scanner.expect(b')', "a closing bracket")?;
        }
        semicolon(scanner)?;
    }
    Ok(())
}

pub(super) fn semicolon(scanner: &mut Scanner<'_>) -> Result<(), StatementError> {
    scanner.expect(b';', "a semicolon")
}

fn into_locator(scanner: &mut Scanner<'_>) -> Result<(), StatementError> {
    scanner.expect_keyword("into")?;
    variable(scanner).map(drop)
}

fn for_update(scanner: &mut Scanner<'_>) -> Result<(), StatementError> {
    scanner.expect_keyword("for")?;
    scanner.expect_keyword("update")?;
    semicolon(scanner)
}

pub(super) fn variable<'a>(scanner: &mut Scanner<'a>) -> Result<&'a str, StatementError> {
    match scanner.word() {
        "" => Err(StatementError::unexpected(scanner.at(), "a variable")),
        word => Ok(word),
    }
}

pub(super) fn comma(scanner: &mut Scanner<'_>) -> Result<(), StatementError> {
    scanner.expect(b',', "a comma")
}

/// What assignments have put into variables.
#[derive(Default)]
struct Body<'a> {
    data: Option<(&'a str, Literal<'a>)>,
    number: Option<(&'a str, u64)>,
}

impl<'a> Body<'a> {
    /// Reads assignments and one call, up to the end of the text.
    fn read(mut self, scanner: &mut Scanner<'a>) -> Result<LobPiece<'a>, StatementError> {
        while scanner.peek().is_some() {
            if scanner.keyword("end") {
                semicolon(scanner)?;
                break;
            }
            let variable = variable(scanner)?;
            if variable.eq_ignore_ascii_case("dbms_lob") {
                let piece = self.call(scanner)?;
                if scanner.keyword("end") {
                    semicolon(scanner)?;
                }
                scanner.expect_end()?;
                return Ok(piece);
            }
            self.assign(scanner, variable)?;
        }
        let at = scanner.at();
        scanner.expect_end()?;
        if self.data.is_some() || self.number.is_some() {
            return Err(StatementError::unexpected(at, "a call of dbms_lob"));
        }
        Ok(LobPiece::Locator)
    }

    fn assign(
        &mut self,
        scanner: &mut Scanner<'a>,
        variable: &'a str,
    ) -> Result<(), StatementError> {
        assignment(scanner)?;
        let at = scanner.at();
        let is_second = match scanner.peek() {
            Some(b'0'..=b'9') => self.number.replace((variable, scanner.number()?)).is_some(),
            _ => self.data.replace((variable, data(scanner)?)).is_some(),
        };
        if is_second {
            return Err(StatementError::unexpected(at, "one assignment of a kind"));
        }
        semicolon(scanner)
    }

    /// Reads a call behind the name of its package.
    fn call(self, scanner: &mut Scanner<'a>) -> Result<LobPiece<'a>, StatementError> {
        scanner.expect(b'.', "a dot and the procedure")?;
        let at = scanner.at();
        let procedure = scanner.word();
        scanner.expect(b'(', "an opening bracket")?;
        variable(scanner)?;
        comma(scanner)?;
        let piece = if procedure.eq_ignore_ascii_case("write") {
            self.write(scanner)?
        } else if procedure.eq_ignore_ascii_case("trim") {
            LobPiece::Trim { length: scanner.number()? }
        } else if procedure.eq_ignore_ascii_case("erase") {
            self.erase(scanner)?
        } else {
            return Err(StatementError::unexpected(at, "write, trim or erase"));
        };
        scanner.expect(b')', "a closing bracket")?;
        semicolon(scanner)?;
        Ok(piece)
    }

    fn write(self, scanner: &mut Scanner<'a>) -> Result<LobPiece<'a>, StatementError> {
        let amount = scanner.number()?;
        comma(scanner)?;
        let offset = scanner.number()?;
        comma(scanner)?;
        let at = scanner.at();
        let buffer = variable(scanner)?;
        match self.data {
            Some((assigned, data)) if assigned == buffer => {
                Ok(LobPiece::Write { data, amount, offset })
            }
            _ => Err(StatementError::unexpected(at, "the variable that was assigned")),
        }
    }

    fn erase(self, scanner: &mut Scanner<'a>) -> Result<LobPiece<'a>, StatementError> {
        let at = scanner.at();
        let amount = match (scanner.peek(), self.number) {
            (Some(b'0'..=b'9'), _) => scanner.number()?,
            (_, Some((assigned, amount))) if variable(scanner)? == assigned => amount,
            _ => return Err(StatementError::unexpected(at, "the variable that was assigned")),
        };
        comma(scanner)?;
        Ok(LobPiece::Erase { amount, offset: scanner.number()? })
    }
}

pub(super) fn assignment(scanner: &mut Scanner<'_>) -> Result<(), StatementError> {
    if scanner.eat_all(":=") {
        Ok(())
    } else {
        Err(StatementError::unexpected(scanner.at(), "an assignment"))
    }
}

fn data<'a>(scanner: &mut Scanner<'a>) -> Result<Literal<'a>, StatementError> {
    let at = scanner.at();
    match literal(scanner)? {
        data @ (Literal::Text(_) | Literal::National(_) | Literal::Raw(_)) => Ok(data),
        _ => Err(StatementError::unexpected(at, "text or bytes")),
    }
}
