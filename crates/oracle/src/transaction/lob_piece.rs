//! Rows that write large objects, as they were read.

use super::lob_image::RowImage;
use crate::Change;

/// What a large object holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LobKind {
    /// A CLOB or NCLOB: offsets and amounts count code points.
    Text,
    /// A BLOB: offsets and amounts count bytes.
    Binary,
}

/// A column of large objects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LobTarget {
    /// Its name.
    pub column: String,
    /// See [`LobKind`].
    pub kind: LobKind,
    /// Whether it is captured. Of one that is not, no content is kept.
    pub is_captured: bool,
}

/// A literal that stands for a large object in a statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LobLiteral {
    /// `NULL`.
    Null,
    /// `EMPTY_CLOB()` or `EMPTY_BLOB()`. It also stands for a locator whose content is elsewhere.
    Empty,
    /// Text of a CLOB or NCLOB.
    Text(String),
    /// Bytes of a BLOB.
    Bytes(Vec<u8>),
}

/// A column of large objects that a statement sets.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LobAssignment {
    /// The column.
    pub target: LobTarget,
    /// Its literal.
    pub value: LobLiteral,
}

/// An INSERT or UPDATE of a table with large objects. No undo: that closes the open change instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowPiece {
    /// The change that it is.
    pub change: Change,
    /// What its WHERE names.
    pub before: RowImage,
    /// What it sets or inserts, large objects aside.
    pub after: RowImage,
    /// Large objects that it sets or inserts.
    pub lobs: Vec<LobAssignment>,
}

/// Which large object a block writes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LobHead {
    /// Its column.
    pub target: LobTarget,
    /// What the WHERE of the block names.
    pub row: RowImage,
}

/// A row of `LOB_WRITE`, `LOB_TRIM`, `LOB_ERASE`, or that of a locator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LobPiece {
    /// The change that it is when it follows no other: an UPDATE whose text is the block, and whose
    /// row id is that of the row as LogMiner gave it.
    pub change: Change,
    /// What the block writes to. `None` where the text is a call alone, which goes on from the locator
    /// before it, and for a locator without a text.
    pub head: Option<LobHead>,
    /// See [`LobEdit`].
    pub edit: LobEdit,
}

/// What a row does to a large object. Offsets count from 1, as `DBMS_LOB` does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LobEdit {
    /// Selects its locator.
    Locator,
    /// `DBMS_LOB.WRITE`.
    Write {
        /// First unit that is written.
        offset: u64,
        /// How many units the call says that it writes.
        amount: u64,
        /// What it writes.
        data: LobData,
    },
    /// `DBMS_LOB.TRIM`.
    Trim {
        /// Units that are left.
        length: u64,
    },
    /// `DBMS_LOB.ERASE`.
    Erase {
        /// First unit that is blanked.
        offset: u64,
        /// How many units are blanked.
        amount: u64,
    },
    /// A row that is not understood, such as one of a rollback: what is wrong with it, without values.
    NotUnderstood(String),
}

/// The buffer of a write.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LobData {
    /// Of a CLOB or NCLOB.
    Text(String),
    /// Of a BLOB.
    Bytes(Vec<u8>),
}
