//! Kafka's wire format, bounded: requests and responses of the versions we speak, frames, and
//! record batches.
//!
//! Every decoder takes bytes that a stranger may have sent. A length is checked against the bytes
//! that are left before it is believed, arrays and decompression have a ceiling, nothing recurses
//! and nothing panics: bad input is a [`DecodeError`] or a [`BatchError`](records::BatchError).
//!
//! Messages are tables that read like Kafka's own schemas (`src/messages`), with its names. Both
//! directions of each are here: a broker decodes requests and encodes responses, a client does the
//! reverse.
//!
//! ```
//! use bytes::{Bytes, BytesMut};
//! use highwater_protocol::{
//!     ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic, Message, RequestHeader, frame,
//! };
//!
//! let request = ListOffsetsRequest {
//!     topics: vec![ListOffsetsTopic {
//!         name: "orders".to_owned(),
//!         partitions: vec![ListOffsetsPartition { timestamp: -3, ..Default::default() }],
//!     }],
//!     ..Default::default()
//! };
//! let mut out = BytesMut::new();
//! frame::encode_request(&mut out, 7, 1, Some("example"), &request);
//!
//! let mut frame = frame::split(&mut out, 1024)?.ok_or("one whole frame")?;
//! let header = RequestHeader::decode(&mut frame)?;
//! let decoded = ListOffsetsRequest::decode_body(frame, header.api_version)?;
//! assert_eq!(decoded, request);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod apart;
mod api;
mod error;
mod error_code;
pub mod frame;
#[doc(hidden)]
pub mod fuzz;
mod header;
mod message;
#[macro_use]
mod schema;
mod messages;
mod reader;
pub mod records;
pub mod stored;
#[cfg(test)]
mod tests;
mod topic_partition;
mod wire;
mod writer;

pub use apart::{Gap, Records};
pub use api::ApiKey;
pub use error::DecodeError;
pub use error_code::ErrorCode;
pub use header::{RequestHeader, ResponseHeader};
pub use message::{Message, Request};
pub use messages::*;
pub use reader::Reader;
pub use topic_partition::TopicPartition;
pub use wire::Secret;
