//! What the engine asks of a database. No driver is seen beyond this trait; it is synchronous, as an
//! engine has a thread of its own.

use std::ops::ControlFlow;

use thiserror::Error;

use crate::row::{ClientSession, ObjectId, RedoRow};
use crate::{RedoAddress, RedoThread, Scn, TableLayout, TableName, TransactionKey};

/// What can be done about an error of the database.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ErrorClass {
    /// The connection or the instance is away: reopen the session, then the same step again.
    Transient,
    /// The step cannot be read now: the same step again.
    StepRetry,
    /// A log that the catalog lists cannot be read.
    LogPurged,
    /// A privilege is missing, or the login was refused.
    Privilege,
    /// The statement took longer than allowed and was cancelled.
    Timeout,
    /// The server's memory for the session is used up: a new session, and a smaller step.
    OutOfMemory,
    /// Undo for a read at an earlier SCN is gone.
    SnapshotTooOld,
    /// The table was changed just before the SCN of the read.
    TableChanged,
    /// In no list: stop.
    Unknown,
}

/// An error of the database.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{message}")]
pub struct SessionError {
    /// Number after `ORA-`, where the database gave one.
    pub ora: Option<u32>,
    /// See [`ErrorClass`].
    pub class: ErrorClass,
    /// The message, with what was asked.
    pub message: String,
}

/// Which database, and which incarnation of it, a position belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Identity {
    /// `V$DATABASE.DBID`.
    pub dbid: u64,
    /// `V$DATABASE.RESETLOGS_CHANGE#`.
    pub resetlogs: Scn,
}

/// `V$DATABASE.DATABASE_ROLE`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Role {
    /// PRIMARY.
    Primary,
    /// PHYSICAL STANDBY.
    PhysicalStandby,
    /// Any other.
    Other(String),
}

/// `V$DATABASE.OPEN_MODE`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OpenMode {
    /// READ WRITE.
    ReadWrite,
    /// READ ONLY, with or without apply.
    ReadOnly,
    /// Any other, such as MOUNTED.
    Other(String),
}

/// What the database says of itself.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Database {
    /// See [`Identity`].
    pub identity: Identity,
    /// `NAME`.
    pub name: String,
    /// Full version, such as `19.22.0.0.0`.
    pub version: String,
    /// Whether it has containers, and the session is in the root.
    pub is_cdb_root: bool,
    /// Whether the session is in a pluggable database, where logs cannot be named.
    pub is_in_pdb: bool,
    /// Whether redo is archived.
    pub is_archiving: bool,
    /// Whether minimal supplemental logging is on.
    pub has_supplemental_logging: bool,
    /// See [`Role`].
    pub role: Role,
    /// See [`OpenMode`].
    pub open_mode: OpenMode,
}

/// A redo thread (`V$THREAD`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ThreadState {
    /// Number.
    pub thread: RedoThread,
    /// Whether an instance may write to it; `DISABLED` is not.
    pub is_enabled: bool,
    /// Whether an instance has it open.
    pub is_open: bool,
}

/// Whether a log is archived or online.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LogPlace {
    /// `V$ARCHIVED_LOG`.
    Archived {
        /// Whether the catalog says that its file is gone (`DELETED`, or `STATUS` D or X).
        is_purged: bool,
    },
    /// `V$LOG`; that being written to ends at [`Scn::MAX`].
    Online,
}

/// A redo log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RedoLog {
    /// Thread that wrote it.
    pub thread: RedoThread,
    /// Its sequence in the thread.
    pub sequence: u64,
    /// `FIRST_CHANGE#`.
    pub first: Scn,
    /// `NEXT_CHANGE#`, the first SCN after it.
    pub next: Scn,
    /// File or member.
    pub name: String,
    /// See [`LogPlace`].
    pub place: LogPlace,
    /// `DICTIONARY_BEGIN`.
    pub begins_dictionary: bool,
    /// `DICTIONARY_END`.
    pub ends_dictionary: bool,
}

/// An archive destination (`V$ARCHIVE_DEST_STATUS`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ArchiveDestination {
    /// `DEST_ID`.
    pub id: u32,
    /// `DEST_NAME`.
    pub name: String,
    /// Whether it is VALID and local.
    pub is_usable: bool,
}

/// Which logs are asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogQuery {
    /// First SCN of the range.
    pub from: Scn,
    /// Last SCN of the range.
    pub to: Scn,
    /// `DEST_ID` of the archive destination that is read.
    pub destination: u32,
    /// Whether online logs are read, too.
    pub with_online: bool,
}

/// With which dictionary rows are decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dictionary {
    /// The present one (`DICT_FROM_ONLINE_CATALOG`).
    Online,
    /// One built into the redo (`DICT_FROM_REDO_LOGS` with `DDL_DICT_TRACKING`).
    Redo,
}

/// What LogMiner is started over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MiningStart {
    /// Logs to add; empty in range mode, where the database finds them itself.
    pub logs: Vec<RedoLog>,
    /// `STARTSCN`.
    pub start: Scn,
    /// `ENDSCN`, the last SCN that is read; [`Scn::MAX`] for none, so that rows come up to what was
    /// written last.
    pub end: Scn,
    /// See [`Dictionary`].
    pub dictionary: Dictionary,
}

/// After which address of a thread rows are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RowMark {
    /// Thread; `None` stands for any, from a position that names none.
    pub thread: Option<RedoThread>,
    /// Address.
    pub address: RedoAddress,
    /// Whether the row at the address is wanted, too.
    pub is_inclusive: bool,
}

/// Which rows of the started range are wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RowQuery {
    /// Marks, one a thread. Rows of a thread without one, and rows with an address of all zeros, are
    /// selected by `from` instead.
    pub marks: Vec<RowMark>,
    /// First SCN for what no mark selects.
    pub from: Scn,
    /// First SCN that is not wanted any more; [`Scn::MAX`] for none.
    pub until: Scn,
    /// Objects whose row changes are wanted.
    pub objects: Vec<ObjectId>,
    /// First SCN from which row changes of objects that the dictionary does not know are not wanted:
    /// such rows come without a name.
    pub unnamed_until: Scn,
    /// Users whose changes and transactions are left out.
    pub excluded_users: Vec<String>,
}

/// A transaction that is open now (`GV$TRANSACTION`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenTransaction {
    /// Its key.
    pub key: TransactionKey,
    /// `START_SCN`.
    pub start: Scn,
}

/// A table, partition or top index of an index-organised table that rows may name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableObject {
    /// Its number.
    pub id: ObjectId,
    /// The table that its rows belong to.
    pub table: TableName,
}

/// A session with a database: all that the engine asks of one.
///
/// Every call may fail with a [`SessionError`], whose class says what can be done.
pub trait Session: Send {
    /// What the database says of itself.
    ///
    /// # Errors
    /// As every call of this trait.
    fn database(&mut self) -> Result<Database, SessionError>;

    /// `V$DATABASE.CURRENT_SCN`; on a standby what was applied.
    ///
    /// # Errors
    /// As every call of this trait.
    fn current_scn(&mut self) -> Result<Scn, SessionError>;

    /// All redo threads.
    ///
    /// # Errors
    /// As every call of this trait.
    fn threads(&mut self) -> Result<Vec<ThreadState>, SessionError>;

    /// All archive destinations.
    ///
    /// # Errors
    /// As every call of this trait.
    fn archive_destinations(&mut self) -> Result<Vec<ArchiveDestination>, SessionError>;

    /// Logs of the present incarnation that overlap a range, copies among them, in no order.
    ///
    /// # Errors
    /// As every call of this trait.
    fn logs(&mut self, query: &LogQuery) -> Result<Vec<RedoLog>, SessionError>;

    /// Starts LogMiner; a session that was started before ends.
    ///
    /// # Errors
    /// As every call of this trait.
    fn start_mining(&mut self, start: &MiningStart) -> Result<(), SessionError>;

    /// Gives each row of the started range that is wanted to `take`, in the order in which LogMiner
    /// returns them: the redo order of each thread. Ends early when `take` breaks.
    ///
    /// # Errors
    /// As every call of this trait; rows given before it are void.
    fn rows(
        &mut self,
        query: &RowQuery,
        take: &mut dyn FnMut(RedoRow) -> ControlFlow<()>,
    ) -> Result<(), SessionError>;

    /// Ends LogMiner, whether or not it was started.
    fn end_mining(&mut self);

    /// Transactions that are open now.
    ///
    /// # Errors
    /// As every call of this trait.
    fn open_transactions(&mut self) -> Result<Vec<OpenTransaction>, SessionError>;

    /// Whether a client's session is still there (`GV$SESSION` by number and serial).
    ///
    /// # Errors
    /// As every call of this trait.
    fn is_alive(&mut self, session: &ClientSession) -> Result<bool, SessionError>;

    /// All objects of users' tables, by container.
    ///
    /// # Errors
    /// As every call of this trait.
    fn table_objects(&mut self) -> Result<Vec<TableObject>, SessionError>;

    /// The layout of a table now; `None` when there is no such table.
    ///
    /// # Errors
    /// As every call of this trait.
    fn layout(&mut self, table: &TableName) -> Result<Option<TableLayout>, SessionError>;

    /// The SCN at a time, in microseconds since 1970 (`TIMESTAMP_TO_SCN`); `None` where the database does
    /// not map that time any more (ORA-08180), which is some days ago.
    ///
    /// # Errors
    /// As every call of this trait.
    fn scn_at(&mut self, time_us: i64) -> Result<Option<Scn>, SessionError>;

    /// Closes every connection and opens them again.
    ///
    /// # Errors
    /// As every call of this trait.
    fn reconnect(&mut self) -> Result<(), SessionError>;
}
