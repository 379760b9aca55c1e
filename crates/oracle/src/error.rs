//! Errors of the engine, with their stable codes.

use std::fmt;

use highwater_connector::{BY_ITSELF, ConnectorError, ErrorKind};
use thiserror::Error;

/// A stable code, one a condition; each has a page in the reference.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Code {
    /// CDC-1001: the database cannot be reached, or gave an error that no list knows.
    TransientDatabase,
    /// CDC-1002: a step failed too often in a row.
    MiningStepRetry,
    /// CDC-2001: the logs of a thread do not cover the range.
    LogGap,
    /// CDC-2002: a log that is needed was deleted or cannot be read.
    LogPurged,
    /// CDC-3001: a row cannot be decoded.
    Decode,
    /// CDC-3002: redo, a spill file or an offset is damaged.
    Corruption,
    /// CDC-3003: a large object is above its limit.
    LobTooLarge,
    /// CDC-4001: open transactions are above the bound of their disk.
    BufferExhausted,
    /// CDC-4002: the transaction journal is damaged.
    JournalCorruption,
    /// CDC-4003: one log cannot be mined in time.
    MiningStalled,
    /// CDC-4004: a transaction is open for longer than allowed.
    TransactionTooOld,
    /// CDC-5001: another database, or one of a shape that is not captured.
    Topology,
    /// CDC-5002: a privilege is missing.
    Privilege,
    /// CDC-6001: no dictionary decodes rows from before a DDL.
    DictionaryUnavailable,
    /// CDC-6002: a DDL on a captured table is not known.
    UnsupportedDdl,
    /// CDC-6003: a stored layout and the dictionary differ.
    SchemaMismatch,
    /// CDC-6004: two names come to one.
    NameCollision,
    /// CDC-7001: a transaction that was released commits.
    OrphanReleaseViolation,
    /// CDC-7002: a transaction has lost its session.
    OrphanTransaction,
    /// CDC-7003: a commit lies below what its thread has acknowledged.
    CommitBelowFloor,
    /// CDC-8001: undo for a snapshot is gone.
    SnapshotTooOld,
}

impl Code {
    /// The code as it stands in messages and pages.
    pub const fn text(self) -> &'static str {
        match self {
            Self::TransientDatabase => "CDC-1001",
            Self::MiningStepRetry => "CDC-1002",
            Self::LogGap => "CDC-2001",
            Self::LogPurged => "CDC-2002",
            Self::Decode => "CDC-3001",
            Self::Corruption => "CDC-3002",
            Self::LobTooLarge => "CDC-3003",
            Self::BufferExhausted => "CDC-4001",
            Self::JournalCorruption => "CDC-4002",
            Self::MiningStalled => "CDC-4003",
            Self::TransactionTooOld => "CDC-4004",
            Self::Topology => "CDC-5001",
            Self::Privilege => "CDC-5002",
            Self::DictionaryUnavailable => "CDC-6001",
            Self::UnsupportedDdl => "CDC-6002",
            Self::SchemaMismatch => "CDC-6003",
            Self::NameCollision => "CDC-6004",
            Self::OrphanReleaseViolation => "CDC-7001",
            Self::OrphanTransaction => "CDC-7002",
            Self::CommitBelowFloor => "CDC-7003",
            Self::SnapshotTooOld => "CDC-8001",
        }
    }

    /// Who has to act.
    pub const fn kind(self) -> ErrorKind {
        match self {
            Self::TransientDatabase
            | Self::MiningStepRetry
            | Self::MiningStalled
            | Self::BufferExhausted
            | Self::TransactionTooOld
            | Self::OrphanTransaction
            | Self::Privilege
            | Self::SnapshotTooOld => ErrorKind::Source,
            Self::LogGap
            | Self::LogPurged
            | Self::Topology
            | Self::OrphanReleaseViolation
            | Self::CommitBelowFloor => ErrorKind::Position,
            Self::Decode
            | Self::Corruption
            | Self::LobTooLarge
            | Self::JournalCorruption
            | Self::DictionaryUnavailable
            | Self::UnsupportedDdl
            | Self::SchemaMismatch
            | Self::NameCollision => ErrorKind::Data,
        }
    }

    /// Whether the task tries again by itself.
    pub const fn is_retried(self) -> bool {
        matches!(self, Self::TransientDatabase | Self::MiningStepRetry)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// An error of the engine. It never quotes the values of a row.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{code}: {what}. Do: {remedy}.")]
pub struct OracleError {
    /// See [`Code`].
    pub code: Code,
    /// What happened, and to what, with its numbers.
    pub what: String,
    /// What to do.
    pub remedy: String,
}

impl OracleError {
    /// An error with this code.
    pub fn new(code: Code, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { code, what: what.into(), remedy: remedy.into() }
    }
}

impl OracleError {
    /// What did not work for a reason of this process, and may work when it is tried again.
    pub(crate) fn again(what: impl Into<String>) -> Self {
        Self::new(Code::TransientDatabase, what, BY_ITSELF)
    }
}

impl From<OracleError> for ConnectorError {
    fn from(OracleError { code, what, remedy }: OracleError) -> Self {
        if code.is_retried() {
            return Self { remedy, ..Self::again(code.text(), code.kind(), what) };
        }
        Self::stop(code.text(), code.kind(), what, remedy)
    }
}
