//! A row change as it waits for the commit of its transaction.

use std::sync::Arc;

use crate::{RedoPoint, TableName};

/// What a change does to its row.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Verb {
    /// The row is new.
    Insert,
    /// The row is gone.
    Delete,
    /// Columns of the row have other values.
    Update,
}

impl Verb {
    /// The verb of the row that takes a change of this one back.
    #[must_use]
    pub const fn inverse(self) -> Self {
        match self {
            Self::Insert => Self::Delete,
            Self::Delete => Self::Insert,
            Self::Update => Self::Update,
        }
    }
}

/// What the text of a change is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Image {
    /// `SQL_REDO` of an INSERT, UPDATE or DELETE.
    Statement,
    /// A block that selects the locator of a large object: its WHERE names the row, and what changed
    /// is in [`Change::lobs`] alone.
    Locator,
}

/// The value of a large object after a change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LobValue {
    /// A CLOB or NCLOB, known whole.
    Text(String),
    /// A BLOB, known whole.
    Bytes(Vec<u8>),
    /// Changed, and not known whole: consumers keep what they have.
    Unavailable,
    /// Above `cdc.lob.max.bytes`.
    TooLarge,
}

/// A large object that a change wrote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LobColumn {
    /// Its column.
    pub column: String,
    /// See [`LobValue`].
    pub value: LobValue,
}

/// A row change. Its values wait as the text that LogMiner gave and are decoded when they are
/// delivered: most of the cost is never paid for what is rolled back, and what is undecodable stops
/// the task only if it was committed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// Where its redo stands.
    pub at: RedoPoint,
    /// See [`Verb`].
    pub verb: Verb,
    /// Table of the row.
    pub table: Arc<TableName>,
    /// Version of the table's layout that the text was written under.
    pub table_version: u32,
    /// The row's id; names the change that an undo takes back.
    pub row_id: Box<str>,
    /// See [`Image`].
    pub image: Image,
    /// The text.
    pub sql: Box<str>,
    /// Large objects that it wrote.
    pub lobs: Vec<LobColumn>,
}
