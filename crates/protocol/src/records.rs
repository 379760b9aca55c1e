//! Record batches: Kafka's format 2, the same on the wire and on disk.
//!
//! A batch is a header of 61 bytes ([`BatchHeader`]) and records behind it, which may be
//! compressed together. [`batches`] finds the whole batches in a buffer and reads nothing but
//! their headers; [`Batch::records`] opens one; [`BatchBuilder`] makes one; [`BatchMut`] stamps
//! one where it lies; [`Batch::validate`] is the walk that a log does before it believes one.
//!
//! ```
//! use highwater_protocol::records::{BatchBuilder, Compression, DECOMPRESSED_MAX, batches};
//!
//! let mut builder = BatchBuilder::new(Compression::Lz4);
//! builder.push(1_700_000_000_000, Some(b"key"), Some(b"value"), &[]);
//! builder.push(1_700_000_000_001, Some(b"key"), None, &[]);
//! for batch in batches(builder.build()?) {
//!     for record in batch?.records(DECOMPRESSED_MAX)? {
//!         let record = record?;
//!         println!("{} {:?}", record.offset, record.value);
//!     }
//! }
//! # Ok::<(), highwater_protocol::records::BatchError>(())
//! ```

mod batch;
mod builder;
mod compression;
mod cursor;
mod error;
mod header;
mod marker;
mod record;
mod rewrite;
mod snappy;
mod stamp;
mod validate;
mod walk;

pub use batch::{Batch, Batches, batches};
pub use builder::BatchBuilder;
pub use compression::Compression;
pub use error::BatchError;
pub use header::{BatchHeader, HEADER_SIZE, TimestampType};
pub use marker::Marker;
pub use record::{Record, Records};
pub use rewrite::{RecordRef, Selection};
pub use stamp::BatchMut;
pub use validate::Validated;
pub use walk::RecordTime;

/// A ceiling for the decompressed records of one batch, in bytes, where the caller has no better:
/// what one frame may hold uncompressed.
pub const DECOMPRESSED_MAX: usize = crate::frame::DEFAULT_MAX;
