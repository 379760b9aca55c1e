//! A row of `V$LOGMNR_CONTENTS`, as the session gives it.

use crate::{RedoPoint, TransactionKey};

/// What a row says, by `OPERATION_CODE`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// 1: a row was inserted.
    Insert,
    /// 2: a row was deleted.
    Delete,
    /// 3: a row was updated.
    Update,
    /// 5: a statement changed a definition.
    Ddl,
    /// 6: a transaction began.
    Start,
    /// 7: a transaction committed.
    Commit,
    /// 9: the locator of a large object was selected; some releases call it INTERNAL.
    LobLocator,
    /// 10: a piece of a large object was written.
    LobWrite,
    /// 11: a large object was cut.
    LobTrim,
    /// 29, and 28 in the documentation: a part of a large object was blanked.
    LobErase,
    /// 34: redo is missing here.
    MissingScn,
    /// 36: a transaction was rolled back.
    Rollback,
    /// 255: the row cannot be given as a statement.
    Unsupported,
    /// Any other; it changes no row that is captured.
    Other(u16),
}

impl Operation {
    /// Reads an `OPERATION_CODE`.
    pub const fn from_code(code: u16) -> Self {
        match code {
            1 => Self::Insert,
            2 => Self::Delete,
            3 => Self::Update,
            5 => Self::Ddl,
            6 => Self::Start,
            7 => Self::Commit,
            9 => Self::LobLocator,
            10 => Self::LobWrite,
            11 => Self::LobTrim,
            28 | 29 => Self::LobErase,
            34 => Self::MissingScn,
            36 => Self::Rollback,
            255 => Self::Unsupported,
            other => Self::Other(other),
        }
    }

    /// Whether the row carries data or a definition, so that an address of all zeros on it is damage.
    pub const fn is_content(self) -> bool {
        use Operation::{Commit, LobLocator, MissingScn, Other, Rollback, Start};
        !matches!(self, Start | Commit | Rollback | Other(_) | MissingScn | LobLocator)
    }
}

/// The table of a row: the container and its object number (`DATA_OBJ#`), which is allocated in each
/// container by itself.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ObjectId {
    /// `SRC_CON_ID`.
    pub container: u32,
    /// `DATA_OBJ#`.
    pub number: u64,
}

/// The session that began a transaction.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClientSession {
    /// `SESSION#`.
    pub number: u32,
    /// `SERIAL#`.
    pub serial: u32,
    /// `CLIENT_ID`.
    pub client_id: Option<String>,
}

/// A row of `V$LOGMNR_CONTENTS`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RedoRow {
    /// `THREAD#`, `SCN`, `RS_ID`, `SSN`.
    pub at: RedoPoint,
    /// `SRC_CON_ID`, `XIDUSN`, `XIDSLT`, `XIDSQN`.
    pub transaction: TransactionKey,
    /// `OPERATION_CODE`.
    pub operation: Operation,
    /// `ROLLBACK`: the row takes back an earlier one of its transaction.
    pub is_undo: bool,
    /// `CSF`: the statement goes on in the next row.
    pub is_continued: bool,
    /// `STATUS`; 0 where the statement is whole and can be run.
    pub status: u32,
    /// `INFO`.
    pub info: Option<String>,
    /// `TIMESTAMP`, in microseconds since 1970 (UTC session).
    pub time_us: i64,
    /// `SRC_CON_ID`, `DATA_OBJ#`.
    pub object: ObjectId,
    /// `DATA_OBJV#`.
    pub object_version: u64,
    /// `SRC_CON_NAME`; `None` in a database without containers.
    pub pdb: Option<String>,
    /// `SEG_OWNER`.
    pub owner: Option<String>,
    /// `TABLE_NAME`.
    pub table: Option<String>,
    /// `ROW_ID`.
    pub row_id: String,
    /// `USERNAME`.
    pub user: Option<String>,
    /// `SESSION#`, `SERIAL#`, `CLIENT_ID`.
    pub session: ClientSession,
    /// `SQL_REDO`.
    pub sql_redo: Option<String>,
}

impl RedoRow {
    /// Bytes of memory that the row takes.
    pub fn bytes(&self) -> usize {
        let texts = [
            &self.info,
            &self.pdb,
            &self.owner,
            &self.table,
            &self.user,
            &self.session.client_id,
            &self.sql_redo,
        ];
        let text: usize = texts.into_iter().flatten().map(String::len).sum();
        size_of::<Self>() + self.row_id.len() + text
    }
}
