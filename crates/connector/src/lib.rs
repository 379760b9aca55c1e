//! What a connector is: the records it yields, the `hw` header they carry, the offsets behind
//! them, its configuration, its errors, and the traits that the worker drives.
//!
//! The one idea of the product lives here: every [`SourceRecord`] carries the [`Position`] that
//! holds once that record is safe, and a position is stored only after its record was
//! acknowledged. A source system is one crate that implements [`SourceConnector`] and
//! [`SourceTask`] and nothing else; a sink system likewise [`SinkConnector`] and [`SinkTask`], whose
//! offsets move up to what the sink calls durable, never to what it merely accepted.
//!
//! ```
//! use highwater_connector::{Generation, Hw, RecordId};
//!
//! let hw = Hw {
//!     generation: Generation::from_bits(7),
//!     lane: Some("pg".to_owned()),
//!     position: "00000000/01A2B3C8".to_owned(),
//!     index: 4,
//!     part: 0,
//!     commit_time_us: Some(1_793_000_000_000_000),
//!     table_version: Some(2),
//!     xid: Some("742".to_owned()),
//!     count: None,
//! };
//! let read_back = Hw::decode(&hw.encode())?;
//! assert_eq!(read_back, hw);
//! assert_eq!(hw.record_id().to_string(), "0000000000000007:00000000/01A2B3C8:4:0");
//! # Ok::<(), highwater_connector::HwError>(())
//! ```

mod allowed_paths;
mod error;
mod finding;
#[doc(hidden)]
pub mod fuzz;
mod generation;
mod hold;
mod hw;
mod json;
mod offset;
mod record;
mod sink;
mod source;
mod states;
mod table;
mod tail;

pub use allowed_paths::{AllowedPaths, identity};
pub use error::{BY_ITSELF, CONNECTOR_NAME, ConnectorError, ErrorKind, Retry};
pub use finding::{Finding, Severity};
pub use generation::{GENERATION_HEADER, Generation, GenerationMark};
pub use highwater_config::{
    Config, ConfigDef, ConfigKey, Importance, KeyType, Problem, nearest, patterns,
};
pub use highwater_data::{DataError, Header, Schema, SchemaAndValue, Struct, Type, Value, text};
pub use highwater_protocol::TopicPartition;
pub use hold::{Claim, Fact, Hold};
pub use hw::{HW_HEADER, Hw, HwError, RecordId};
pub use json::Json;
pub use offset::{Position, SourceOffset, SourcePartition};
pub use record::{
    NEW_KEY_HEADER, OLD_KEY_HEADER, OtherKey, RecordKind, SourceItem, SourceRecord, ValueRecord,
};
pub use sink::{LogRecord, SinkConnector, SinkContext, SinkOffsets, SinkRecord, SinkTask};
pub use source::{
    ExactlyOnce, Keeps, OffsetChange, OffsetVerdict, OwnRecord, RecordForm, Routing, SideTopic,
    SourceConnector, SourceTask, Start, TaskStore, Topics,
};
pub use states::{ColumnStates, STATES_HEADER};
pub use table::{
    Column, TableDescription, TableKey, contained_name, name_part, qualified_name, schema_topic,
};
pub use tail::{TAIL_HEADER, Tail, TailEntry};
