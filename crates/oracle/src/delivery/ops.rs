//! What happened to the connector, for operators and their programs. Never a value of a row.

use std::sync::Arc;

use highwater_connector::{Position, SourceRecord};

use super::output::Delivery;
use super::own_record::{Object, own_record, server_key};
use crate::{Change, Committed, OracleError, Scn};

/// What an event tells.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum OpsKind {
    /// The task has started.
    Startup,
    /// The task stops because of an error.
    Stop,
    /// A DDL was read.
    DdlSeen,
    /// A DDL gave a table another layout.
    DdlApplied,
    /// A step was read again with a dictionary of its time.
    DictionaryReplay,
    /// A dictionary was built into the redo, or could not be.
    DictionaryBuild,
    /// A table is captured from here on.
    TableAdded,
    /// A table is captured no more.
    TableRemoved,
    /// Object numbers were read again.
    IdsRefreshed,
    /// Sessions were opened again.
    Reconnected,
    /// A row that LogMiner cannot give as a statement went to the dead letters.
    UnsupportedRow,
    /// A row that cannot be decoded went to the dead letters.
    DecodeErrorDlq,
    /// A transaction was given up because of its age.
    TransactionDiscarded,
    /// A transaction whose session is gone was given up.
    TransactionOrphanReleased,
    /// A transaction is delivered in several of the log's.
    TransactionSplit,
    /// A part of a snapshot is delivered.
    SnapshotChunkDone,
    /// A snapshot is delivered.
    SnapshotComplete,
    /// The answer to a signal.
    SignalAck,
}

impl OpsKind {
    /// Its name in the record.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Stop => "stop",
            Self::DdlSeen => "ddl-seen",
            Self::DdlApplied => "ddl-applied",
            Self::DictionaryReplay => "dictionary-replay",
            Self::DictionaryBuild => "dictionary-build",
            Self::TableAdded => "table-added",
            Self::TableRemoved => "table-removed",
            Self::IdsRefreshed => "ids-refreshed",
            Self::Reconnected => "reconnected",
            Self::UnsupportedRow => "unsupported-row",
            Self::DecodeErrorDlq => "decode-error-dlq",
            Self::TransactionDiscarded => "transaction-discarded",
            Self::TransactionOrphanReleased => "transaction-orphan-released",
            Self::TransactionSplit => "transaction-split",
            Self::SnapshotChunkDone => "snapshot-chunk-done",
            Self::SnapshotComplete => "snapshot-complete",
            Self::SignalAck => "signal-ack",
        }
    }
}

/// An event. Its texts are cut to 2,000 characters each when it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OpsEvent {
    /// See [`OpsKind`].
    pub kind: OpsKind,
    /// What there is to say, by name.
    pub details: Vec<(&'static str, String)>,
}

impl OpsEvent {
    /// An event with these details.
    pub const fn new(kind: OpsKind, details: Vec<(&'static str, String)>) -> Self {
        Self { kind, details }
    }

    /// The task stops.
    pub fn stop(error: &OracleError) -> Self {
        let details = vec![
            ("code", error.code.to_string()),
            ("message", error.what.clone()),
            ("action", error.remedy.clone()),
        ];
        Self::new(OpsKind::Stop, details)
    }

    /// A transaction is cut for the first time, behind so many changes.
    pub(crate) fn split(committed: &Committed, changes: u64) -> Self {
        let details = vec![
            ("xid", committed.key.to_string()),
            ("commit_scn", committed.commit.scn.to_string()),
            ("events", committed.count.to_string()),
            ("first_cut", changes.to_string()),
        ];
        Self::new(OpsKind::TransactionSplit, details)
    }

    /// A change went to the dead letters.
    pub(crate) fn dead_letter(committed: &Committed, change: &Change, error: &OracleError) -> Self {
        let details = vec![
            ("table", change.table.to_string()),
            ("xid", committed.key.to_string()),
            ("scn", change.at.scn.to_string()),
            ("message", error.what.clone()),
        ];
        Self::new(OpsKind::DecodeErrorDlq, details)
    }
}

impl Delivery {
    /// The record of an event; `resume` is from where redo is read again after a restart, where that is
    /// known.
    pub fn ops(
        &self,
        event: &OpsEvent,
        resume: Option<Scn>,
        position: Arc<dyn Position>,
        now_ms: i64,
    ) -> SourceRecord {
        let resume = resume.map(|scn| scn.to_string());
        let details = event.details.iter();
        let details =
            details.fold(Object::default(), |object, (name, text)| object.text(name, text));
        let value = Object::default()
            .number("v", 1)
            .text("type", event.kind.text())
            .number("ts_ms", now_ms)
            .text("server", self.server())
            .optional("resume_scn", resume.as_deref())
            .json("details", &details.close());
        let key = server_key(self.server());
        own_record(&self.own_topics().ops, key, value.close(), position)
    }
}
