//! Why a text cannot be read.

use std::fmt;

use thiserror::Error;

/// What kind of fault a text has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum StatementErrorKind {
    /// Something stands where LogMiner never writes it.
    UnexpectedToken,
    /// The text ends inside a quoted literal.
    UnterminatedLiteral,
    /// An INSERT has more or fewer values than columns.
    ColumnValueCount,
    /// The argument of HEXTORAW is no whole number of bytes in hexadecimal.
    BadHex,
    /// A backslash in UNISTR begins no UTF-16 code unit, or half a surrogate pair stands alone.
    BadUnistrEscape,
}

impl StatementErrorKind {
    /// The name that scripts know it by.
    pub const fn text(self) -> &'static str {
        match self {
            Self::UnexpectedToken => "unexpected_token",
            Self::UnterminatedLiteral => "unterminated_literal",
            Self::ColumnValueCount => "column_value_count",
            Self::BadHex => "bad_hex",
            Self::BadUnistrEscape => "bad_unistr_escape",
        }
    }
}

impl fmt::Display for StatementErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// A text that cannot be read. It says what was expected where, and never quotes the text: the values of
/// a row are in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{kind} at byte {at}: expected {expected}")]
pub struct StatementError {
    /// See [`StatementErrorKind`].
    pub kind: StatementErrorKind,
    /// Offset of the fault in the text, in bytes.
    pub at: usize,
    /// What should have stood there, in words.
    pub expected: &'static str,
}

impl StatementError {
    /// Something else than what was expected.
    pub(crate) const fn unexpected(at: usize, expected: &'static str) -> Self {
        Self { kind: StatementErrorKind::UnexpectedToken, at, expected }
    }

    /// A literal that begins here and has no end.
    pub(crate) const fn unterminated(at: usize) -> Self {
        let expected = "the end of the literal that begins here";
        Self { kind: StatementErrorKind::UnterminatedLiteral, at, expected }
    }

    /// A list of values that ends, or goes on, here.
    pub(crate) const fn count(at: usize) -> Self {
        let expected = "one value for each column";
        Self { kind: StatementErrorKind::ColumnValueCount, at, expected }
    }

    /// A digit that is none, or is without its partner.
    pub(crate) const fn hex(at: usize) -> Self {
        Self { kind: StatementErrorKind::BadHex, at, expected: "two hexadecimal digits a byte" }
    }

    /// A backslash that begins no code unit.
    pub(crate) const fn unistr(at: usize) -> Self {
        let expected =
            "a code unit as four hexadecimal digits, both halves of a pair, or a second backslash";
        Self { kind: StatementErrorKind::BadUnistrEscape, at, expected }
    }
}
