//! What a source task yields.

use std::sync::Arc;

use bytes::Bytes;

use highwater_data::{Header, SchemaAndValue};

use crate::{ColumnStates, Hw, Position};

/// Header of a record that deletes a row under its old key: the key that the row goes on under.
pub const NEW_KEY_HEADER: &str = "__debezium.newkey";

/// Header of a record that creates a row under a new key: the key that it had before.
pub const OLD_KEY_HEADER: &str = "__debezium.oldkey";

/// The other key of a row whose key changed, on a topic of its table (rule R3).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum OtherKey {
    /// The row goes on under this key.
    New(Bytes),
    /// The row had this key before.
    Old(Bytes),
}

impl OtherKey {
    /// The header that says it.
    pub fn header(&self) -> (&'static str, Bytes) {
        match self {
            Self::New(key) => (NEW_KEY_HEADER, key.clone()),
            Self::Old(key) => (OLD_KEY_HEADER, key.clone()),
        }
    }
}

/// What a record is for; decides how the worker stores it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordKind {
    /// A change, a snapshot row or a mark among them.
    Event,
    /// A table description (rule R4): stored before anything behind it is sent.
    TableDescription,
}

/// One record for the log, as its bytes: neither transforms nor converters touch it.
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
    /// The other key, where the key of a row changed; sent as a header.
    pub other_key: Option<OtherKey>,
    /// Further headers, by name, in order: what a source's readers know from another connector.
    pub headers: Vec<(&'static str, Bytes)>,
    /// Where it stands in the source's history; sent as header `hw`.
    pub hw: Option<Hw>,
    /// Columns without a value; sent as header `hw.states` when it says something.
    pub states: ColumnStates,
    /// The position that holds once this record is acknowledged.
    pub position: Arc<dyn Position>,
    /// Whether a source transaction ends here, so that a task may stop behind it.
    pub boundary: bool,
}

/// One record for the log, as values: the worker transforms it as the connector's configuration
/// says, and its converters make bytes of it.
#[derive(Clone, Debug)]
pub struct ValueRecord {
    /// Topic it goes to, unless a transform names another.
    pub topic: Arc<str>,
    /// Partition it goes to; `None` lets the key choose.
    pub partition: Option<i32>,
    /// Key.
    pub key: SchemaAndValue,
    /// Value.
    pub value: SchemaAndValue,
    /// Headers, in order.
    pub headers: Vec<Header>,
    /// When it came to be, in milliseconds since 1970; seen by transforms alone, since the log's own
    /// time is that of the append (rule L5).
    pub timestamp: Option<i64>,
    /// The position that holds once this record is acknowledged.
    pub position: Arc<dyn Position>,
    /// Whether a source transaction ends here, so that a task may stop behind it.
    pub boundary: bool,
}

/// One thing that a poll yields.
#[derive(Clone, Debug)]
pub enum SourceItem {
    /// A record to write as it is.
    Record(SourceRecord),
    /// A record to transform and to convert.
    Values(ValueRecord),
    /// Nothing to write, but the source moved on to this position while idle (rule P1).
    Idle(Arc<dyn Position>),
}
