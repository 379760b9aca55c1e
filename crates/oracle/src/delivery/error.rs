//! Errors of rows that cannot be delivered: they name table and column, never a value.

use super::form::Misfit;
use super::shape::{Shape, ShapeColumn};
use crate::statement::StatementError;
use crate::{Code, OracleError, RedoPoint, TransactionKey, Verb};

const EXCLUDE: &str = "leave the column out with cdc.columns.exclude, or the table with \
                       cdc.tables.exclude, or set cdc.on.decode.error=dlq; then load the table again";

/// A text that is no statement as LogMiner writes it.
pub(crate) fn unreadable(shape: &Shape, error: &StatementError) -> OracleError {
    decode(format!("the text of a row of {} cannot be read: {error}", shape.table))
}

/// A text that does something else than its operation code says.
pub(crate) fn other_verb(shape: &Shape, said: Verb, found: Verb) -> OracleError {
    decode(format!(
        "the operation code of a row of {} says {}, and its text is of {}",
        shape.table,
        verb(said),
        verb(found)
    ))
}

/// A text about a large object that does not say of which row.
pub(crate) fn no_row(shape: &Shape) -> OracleError {
    decode(format!("the text of a large object of {} names no row", shape.table))
}

/// A column that the layout does not have, such as `COL 2` where the dictionary is of another time.
pub(crate) fn unknown_column(shape: &Shape, column: &str) -> OracleError {
    let (table, version) = (&shape.table, shape.version);
    let column: String = column.chars().take(128).collect();
    if shape.is_exact {
        return decode(format!(
            "a row of {table} names column {column:?}, which version {version} has not"
        ));
    }
    OracleError::new(
        Code::DictionaryUnavailable,
        format!(
            "a row of {table} names column {column:?}, which version {version} has not, and that the \
             layout held at its time is not certain, as the table was altered since"
        ),
        "set the offset behind the DDL with highwater offsets set --allow-skip, then load the table again",
    )
}

/// A text that gives one column two values.
pub(crate) fn named_twice(shape: &Shape, column: &str) -> OracleError {
    decode(format!("a row of {} names column {column:?} twice", shape.table))
}

/// A value that is none of its column's type.
pub(crate) fn misfit(shape: &Shape, column: &ShapeColumn, misfit: &Misfit) -> OracleError {
    decode(format!("column {} of a row of {} cannot be read: {misfit}", column.name, shape.table))
}

/// A changed key of which one side is not known.
pub(crate) fn half_a_key(shape: &Shape) -> OracleError {
    OracleError::new(
        Code::Decode,
        format!(
            "an update of {} sets a column of its key, and its redo has not the whole key as it was",
            shape.table
        ),
        format!(
            "ALTER TABLE {} ADD SUPPLEMENTAL LOG DATA (PRIMARY KEY) COLUMNS, then load the table again",
            shape.table
        ),
    )
}

/// A large object above its limit.
pub(crate) fn too_large(shape: &Shape, column: &ShapeColumn) -> OracleError {
    OracleError::new(
        Code::LobTooLarge,
        format!(
            "the large object in column {} of a row of {} is above cdc.lob.max.bytes",
            column.name, shape.table
        ),
        "raise cdc.lob.max.bytes, or set cdc.lob.oversize.action=placeholder",
    )
}

/// A large object whose redo is not understood.
pub(crate) fn lob(shape: &Shape, column: &ShapeColumn, why: &str) -> OracleError {
    decode(format!("the large object in column {} of a row of {}: {why}", column.name, shape.table))
}

/// The same error with the place of its row.
pub(crate) fn at(error: OracleError, at: &RedoPoint, transaction: &TransactionKey) -> OracleError {
    let RedoPoint { thread, scn, address } = at;
    let address = address.map_or_else(|| "no address".to_owned(), |address| address.to_string());
    let what = format!(
        "{} (SCN {scn}, thread {thread}, {address}, transaction {transaction})",
        error.what
    );
    OracleError { what, ..error }
}

fn decode(what: String) -> OracleError {
    OracleError::new(Code::Decode, what, EXCLUDE)
}

/// A verb as SQL has it.
pub(crate) const fn verb(verb: Verb) -> &'static str {
    match verb {
        Verb::Insert => "INSERT",
        Verb::Update => "UPDATE",
        Verb::Delete => "DELETE",
    }
}
