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
    /// NULL.
    Null,
    /// A CLOB or NCLOB, known whole.
    Text(String),
    /// A BLOB, known whole.
    Bytes(Vec<u8>),
    /// Changed, and not known whole: consumers keep what they have.
    Unavailable,
    /// Above `cdc.lob.max.bytes`.
    TooLarge,
    /// Its redo is not understood, which is an error if the change commits: what is wrong, without
    /// the value.
    Undecodable(String),
}

/// A large object that a change wrote.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LobColumn {
    /// Its column.
    pub column: String,
    /// See [`LobValue`].
    pub value: LobValue,
    /// Where the last piece of its redo stands.
    pub last: RedoPoint,
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

impl Change {
    /// Where its redo ends: that of its large objects follows that of its row.
    pub fn last(&self) -> RedoPoint {
        let pieces = self.lobs.iter().map(|lob| lob.last);
        pieces.fold(self.at, |last, piece| if piece.address > last.address { piece } else { last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RedoAddress, RedoThread, Scn};

    fn at(block: u64) -> RedoPoint {
        let address = RedoAddress { sequence: 1, block, byte: 16, ssn: 0 };
        RedoPoint { thread: RedoThread(1), scn: Scn(block), address: Some(address) }
    }

    fn change(at: RedoPoint, lobs: Vec<LobColumn>) -> Change {
        let table = TableName { pdb: None, owner: "SHOP".into(), table: "BOOK".into() };
        Change {
            at,
            verb: Verb::Insert,
            table: Arc::new(table),
            table_version: 1,
            row_id: "AAAR9zAAHAAAACrAAB".into(),
            image: Image::Statement,
            sql: "".into(),
            lobs,
        }
    }

    #[test]
    fn a_change_ends_with_the_last_piece_of_its_large_objects() {
        let lob = |column: &str, block| LobColumn {
            column: column.to_owned(),
            value: LobValue::Unavailable,
            last: at(block),
        };
        assert_eq!(change(at(3), vec![]).last(), at(3));
        assert_eq!(change(at(3), vec![lob("A", 9), lob("B", 7)]).last(), at(9));
    }
}
