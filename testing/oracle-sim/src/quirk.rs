//! What real databases do that a plain model of one does not. Each can be switched on alone.

use std::collections::BTreeSet;

/// A behaviour of Oracle or LogMiner that an engine must live with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Quirk {
    /// A change gets its SCN when it is made, but waits in the private strand of its transaction until
    /// the commit, until the strand is full, or until a log switch: it reaches the log after rows with
    /// higher SCNs. Off, every change is written at once.
    LateStrands,
    /// `RS_ID` is all zeros on ROLLBACK rows, and now and then on START and COMMIT rows: seen on hosted
    /// machines for ROLLBACK. A COMMIT without an address has an SCN that no other row has.
    ZeroAddress,
    /// Rows that a rollback wrote come with `XIDSQN` 4294967295. Those of a rollback to a savepoint do
    /// while their log is online only, and are then closed by a ROLLBACK row without an address though
    /// the transaction goes on; from the archived log they come whole and without that row.
    PartialXid,
    /// A table whose statements are longer than 4000 characters: they go on in further rows of the same
    /// address (`CSF`).
    SplitStatements,
    /// One statement deletes several rows, and all rows of it have the same `RS_ID` and `SSN`, as array
    /// deletes have in real redo.
    ArrayDeletes,
    /// Undo is local to a pluggable database: the same XID is open in two of them at once. There are at
    /// least two.
    SamePdbXids,
    /// START rows with an XID of zeros, beside the true one or in its place.
    ZeroXid,
    /// A client dies with its transaction: the rows are as they were, `GV$TRANSACTION` and
    /// `GV$SESSION` do not know it any more, and no redo says so.
    Orphans,
    /// A transaction gets the XID of one that has ended, as after a wrap of the sequence.
    ReusedXid,
    /// Transactions without a START row, whose user and session the redo then does not tell.
    MissingStart,
    /// Redo is missing (operation 34). An engine must stop.
    MissingScn,
    /// A table with a type that LogMiner does not know: all its rows are UNSUPPORTED.
    Unsupported,
    /// A table with large objects: a statement gives a row with a placeholder for its ROWID, PL/SQL
    /// blocks that write pieces, cut or blank, and an UPDATE with the real ROWID, in the patterns that
    /// were seen on release 23ai. An undo row takes back one statement's change of one row.
    LobPieces,
    /// An index-organised table: `DATA_OBJ#` is the number of its top index. That its rows have a
    /// `ROW_ID` of eighteen letters A, and that the undo of an insert names the row by its columns, is an
    /// assumption: they have no ROWID of a block.
    IndexOrganised,
    /// A partitioned table: `DATA_OBJ#` is the partition's. Partitions are added, split and merged, which
    /// gives new numbers, dropped and truncated. With the online dictionary, rows of a partition that is
    /// gone come without a name. Dictionaries are built into the redo.
    Partitions,
    /// Tables are created, dropped and truncated, columns are added and dropped. With the online
    /// dictionary, rows from before a change of columns come with `COL n` names, raw values and STATUS
    /// 2, and rows of a dropped table without a name. Dictionaries are built into the redo.
    Ddl,
    /// A pluggable database is closed for a while: LogMiner gives ORA-16331, captured or not.
    ClosedPdb,
    /// Once, the database is opened with RESETLOGS: another incarnation, whose sequences begin again.
    /// Sessions get ORA-03113 until they reconnect. An engine must stop.
    NewIncarnation,
    /// One read in four is cancelled for its time (ORA-01013) after some rows.
    TimedOut,
    /// In the middle of one read in three the database goes on until logs are switched, sometimes until
    /// the online log that is read was overwritten (ORA-00310).
    LogSwitchInRead,
    /// A log switch in progress: the newest log has ended and the next is not listed for a while,
    /// though it is written to.
    LaggingLog,
}

impl Quirk {
    /// Every quirk.
    pub const ALL: &[Self] = &[
        Self::LateStrands,
        Self::ZeroAddress,
        Self::PartialXid,
        Self::SplitStatements,
        Self::ArrayDeletes,
        Self::SamePdbXids,
        Self::ZeroXid,
        Self::Orphans,
        Self::ReusedXid,
        Self::MissingStart,
        Self::MissingScn,
        Self::Unsupported,
        Self::LobPieces,
        Self::IndexOrganised,
        Self::Partitions,
        Self::Ddl,
        Self::ClosedPdb,
        Self::NewIncarnation,
        Self::TimedOut,
        Self::LogSwitchInRead,
        Self::LaggingLog,
    ];

    /// The quirk of this name, written as in the code.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|quirk| format!("{quirk:?}").eq_ignore_ascii_case(name))
    }
}

/// Which quirks are on.
pub type Quirks = BTreeSet<Quirk>;
