//! Reads what LogMiner writes into `SQL_REDO`: names and values of a row, pieces of large values, the head
//! of a DDL.
//!
//! The texts are generated, so the grammar is narrow: names in double quotes, values in single quotes,
//! conditions of equality joined by AND. What does not fit is refused with its place; nothing is guessed,
//! save where [`Quoting::Relaxed`] asks for it. The readers work on bytes and borrow from the text.

mod ddl;
mod decode;
mod error;
mod last_literal;
mod literal;
mod lob;
mod national;
mod relaxed;
mod row;
mod scanner;
mod search;
mod string_32k;
mod written_column;
mod xml;

pub use ddl::{DdlHead, DdlKind, read_ddl};
pub use decode::decode_line;
pub use error::{StatementError, StatementErrorKind};
pub use literal::Literal;
pub use lob::{LobPiece, LobStatement, read_lob};
pub use row::{Columns, RowStatement, read_row};
pub use string_32k::{StringPiece, read_string_begin, read_string_write};
pub use written_column::{WrittenColumn, WrittenRow};
pub use xml::{XmlPiece, read_xml_begin, read_xml_write};

/// How quotes inside a literal are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Quoting {
    /// Doubled, as SQL wants it.
    #[default]
    Strict,
    /// Perhaps not doubled, as some releases do with strings above 4000 bytes (`MAX_STRING_SIZE=EXTENDED`).
    /// The strict reading is tried first.
    Relaxed,
}
