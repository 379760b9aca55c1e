//! Rows of tables with large objects, as the assembler takes them.

use super::{Engine, Stopped};
use crate::outlet::Outlet;
use crate::row::{Operation, RedoRow};
use crate::schema::{ColumnType, LayoutVersion};
use crate::statement::{self, Columns, Literal, LobStatement, read_lob, read_row};
use crate::transaction::lob_image::{ImageValue, RowImage};
use crate::transaction::lob_piece::{
    LobAssignment, LobData, LobEdit, LobHead, LobKind, LobLiteral, LobPiece, LobTarget, RowPiece,
};
use crate::{Change, Image, TransactionKey, Verb};
use std::time::Instant;

impl<O: Outlet> Engine<O> {
    /// Whether a change may have pieces of large objects behind it.
    pub(super) fn has_large_objects(&self, change: &Change) -> bool {
        let version = self.layouts.numbered(&change.table, change.table_version);
        change.verb != Verb::Delete && version.is_ok_and(|version| has_large(version))
    }

    /// Takes a row of a table with large objects. One that cannot be read waits as it is: it is an error
    /// if it commits.
    pub(super) fn row_piece(&mut self, key: TransactionKey, change: Change) -> Result<(), Stopped> {
        let quoting = self.settings.output.quoting;
        let version = self.layouts.numbered(&change.table, change.table_version)?;
        let sql = change.sql.clone();
        let Ok(read) = read_row(&sql, quoting) else {
            self.close_large_objects(key)?;
            return Ok(self.buffer.add(key, change, Instant::now())?);
        };
        let (large, after) = read
            .after
            .into_iter()
            .partition::<Columns<'_>, _>(|(column, _)| large_kind(version, column).is_some());
        let lobs = large.into_iter().filter_map(|(column, literal)| {
            Some(LobAssignment { target: self.target(version, &column)?, value: assigned(literal) })
        });
        let lobs = lobs.collect();
        let piece = RowPiece { before: image(read.before), after: image(after), lobs, change };
        let whole = self.lobs.row(key, piece);
        self.add_all(key, whole)
    }

    /// Takes a row of a large object.
    pub(super) fn large_object(&mut self, row: RedoRow) -> Result<(), Stopped> {
        let Some(table) = self.miner.objects().table_of(&row) else { return Ok(()) };
        let (key, operation, is_undo) = (row.transaction, row.operation, row.is_undo);
        let change = self.changed(row, Verb::Update, table, Image::Locator)?;
        let version = self.layouts.numbered(&change.table, change.table_version)?;
        let sql = change.sql.clone();
        let piece = match read_lob(&sql) {
            _ if operation == Operation::LobLocator && sql.is_empty() => {
                LobPiece { change, head: None, edit: LobEdit::Locator }
            }
            Ok(_) if is_undo => {
                let why = "a row of a rollback writes a large object".to_owned();
                LobPiece { change, head: None, edit: LobEdit::NotUnderstood(why) }
            }
            Ok(read) => {
                LobPiece { head: self.head(version, &read), edit: edit(read.piece), change }
            }
            Err(error) => {
                LobPiece { change, head: None, edit: LobEdit::NotUnderstood(error.to_string()) }
            }
        };
        let whole = self.lobs.lob(key, piece);
        self.add_all(key, whole)
    }

    /// What a transaction has open for its large objects is whole now.
    pub(super) fn close_large_objects(&mut self, key: TransactionKey) -> Result<(), Stopped> {
        let whole = self.lobs.close(key);
        self.add_all(key, whole)
    }

    fn add_all(
        &mut self,
        key: TransactionKey,
        changes: impl IntoIterator<Item = Change>,
    ) -> Result<(), Stopped> {
        for change in changes {
            self.buffer.add(key, change, Instant::now())?;
        }
        Ok(())
    }

    fn head(&self, version: &LayoutVersion, read: &LobStatement<'_>) -> Option<LobHead> {
        let column = read.column.as_deref()?;
        let row = read.row.as_ref()?;
        Some(LobHead { target: self.target(version, column)?, row: image(row.before.clone()) })
    }

    fn target(&self, version: &LayoutVersion, column: &str) -> Option<LobTarget> {
        Some(LobTarget {
            column: column.to_owned(),
            kind: large_kind(version, column)?,
            is_captured: !self.layouts.is_excluded(&version.table, column),
        })
    }
}

fn has_large(version: &LayoutVersion) -> bool {
    version.columns.iter().any(|column| kind_of(column.column_type()).is_some())
}

fn large_kind(version: &LayoutVersion, column: &str) -> Option<LobKind> {
    kind_of(version.column(column)?.column_type())
}

fn kind_of(column: ColumnType) -> Option<LobKind> {
    match column {
        ColumnType::Clob | ColumnType::Nclob => Some(LobKind::Text),
        ColumnType::Blob => Some(LobKind::Binary),
        _ => None,
    }
}

fn image(columns: Columns<'_>) -> RowImage {
    columns.into_iter().map(|(name, literal)| (name.into_owned(), image_value(literal))).collect()
}

fn image_value(literal: Literal<'_>) -> ImageValue {
    match literal {
        Literal::Null => ImageValue::Null,
        Literal::Raw(hex) => ImageValue::Bytes(bytes(&hex)),
        Literal::Text(text)
        | Literal::National(text)
        | Literal::Date { value: text, .. }
        | Literal::Timestamp { value: text, .. }
        | Literal::TimestampTz { value: text, .. }
        | Literal::YearToMonth(text)
        | Literal::DayToSecond(text)
        | Literal::Other(text) => ImageValue::Text(text.into_owned()),
        Literal::Json(inner) => image_value(*inner),
        Literal::Unsupported | Literal::EmptyClob | Literal::EmptyBlob => {
            ImageValue::Text(String::new())
        }
    }
}

fn assigned(literal: Literal<'_>) -> LobLiteral {
    match literal {
        Literal::Null => LobLiteral::Null,
        Literal::Text(text) | Literal::National(text) => LobLiteral::Text(text.into_owned()),
        Literal::Raw(hex) => LobLiteral::Bytes(bytes(&hex)),
        _ => LobLiteral::Empty,
    }
}

fn edit(piece: statement::LobPiece<'_>) -> LobEdit {
    match piece {
        statement::LobPiece::Locator => LobEdit::Locator,
        statement::LobPiece::Write { data, amount, offset } => match data {
            Literal::Raw(hex) => {
                LobEdit::Write { offset, amount, data: LobData::Bytes(bytes(&hex)) }
            }
            Literal::Text(text) | Literal::National(text) => {
                LobEdit::Write { offset, amount, data: LobData::Text(text.into_owned()) }
            }
            _ => LobEdit::NotUnderstood("the buffer of a write is neither text nor RAW".to_owned()),
        },
        statement::LobPiece::Trim { length } => LobEdit::Trim { length },
        statement::LobPiece::Erase { amount, offset } => LobEdit::Erase { offset, amount },
    }
}

/// Of hexadecimal digits that were checked when the literal was read.
fn bytes(hex: &str) -> Vec<u8> {
    let digit = |digit: u8| (digit as char).to_digit(16).unwrap_or_default() as u8;
    hex.as_bytes()
        .chunks(2)
        .map(|pair| pair.iter().fold(0, |byte, d| byte << 4 | digit(*d)))
        .collect()
}
