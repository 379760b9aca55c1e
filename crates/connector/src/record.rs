//! What a source task yields.

use std::sync::Arc;

use bytes::Bytes;

use crate::{ColumnStates, Hw, Position};

/// What a record is for; decides how the worker stores it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordKind {
    /// A change, a snapshot row or a mark among them.
    Event,
    /// A table description (rule R4): stored before anything behind it is sent.
    TableDescription,
}

/// One record for the log.
#[derive(Clone, Debug)]
pub struct SourceRecord {
    /// See [`RecordKind`].
    pub kind: RecordKind,
    /// Topic it goes to.
    pub topic: Arc<str>,
    /// Partition it goes to; `None` lets the key choose.
    pub partition: Option<i32>,
    /// Record key, encoded.
    pub key: Option<Bytes>,
    /// Record value, encoded.
    pub value: Option<Bytes>,
    /// Where it stands in the source's history; sent as header `hw`.
    pub hw: Option<Hw>,
    /// Columns without a value; sent as header `hw.states` when it says something.
    pub states: ColumnStates,
    /// The position that holds once this record is acknowledged.
    pub position: Arc<dyn Position>,
    /// Whether a source transaction ends here, so that a task may stop behind it.
    pub boundary: bool,
}

/// One thing that a poll yields.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are records: a box would cost each one")]
pub enum SourceItem {
    /// A record to write.
    Record(SourceRecord),
    /// Nothing to write, but the source moved on to this position while idle (rule P1).
    Idle(Arc<dyn Position>),
}
