//! From a committed transaction to records: its statements decoded, its values as Debezium's envelope, keys,
//! topics and headers, each record with the position that holds once it is safe.
//!
//! No I/O happens here. Records are written straight into one buffer that is used again and again, as a
//! large transaction has millions of them.

mod ddl_record;
mod dead_letter;
mod emission;
mod envelope;
mod error;
mod event;
mod form;
mod headers;
mod heartbeat;
mod image;
mod key;
mod moment;
mod number;
mod ops;
mod output;
mod own_record;
mod position_text;
#[cfg(test)]
mod sample;
mod shape;
mod shapes;
mod snapshot_record;
mod split;
mod template;
#[cfg(test)]
mod tests;
mod topic_names;

pub use ddl_record::{DdlEffect, DdlEvent};
pub use dead_letter::{DeadLetter, DeadLetterKind};
pub use emission::{Delivered, Emission, PositionAt};
pub use envelope::SnapshotMark;
pub use form::Form;
pub use heartbeat::{Heartbeat, HeartbeatReason};
pub use image::LargeObjects;
pub use moment::{DATE_MASK, TIMESTAMP_MASK, TIMESTAMP_TZ_MASK};
pub use ops::{OpsEvent, OpsKind};
pub use output::{Delivery, OnDecodeError, Output, OversizedLob};
pub use snapshot_record::{SnapshotEdge, SnapshotRow, SnapshotTable};
pub use split::SplitLimits;
pub use template::Template;
pub use topic_names::{OwnTopics, TableTopics, TopicNames};
