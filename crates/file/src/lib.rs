//! Files as a source and as a sink: a line is a record.
//!
//! Both are, in class, keys and offsets, those that come with Kafka Connect, so that a connector of
//! that name goes on here where it stood there. Files are opened below the folders only that the
//! server's operator has named ([`AllowedPaths`](highwater_connector::AllowedPaths)).

#![forbid(unsafe_code)]

mod error;
mod lines;
mod reader;
mod sink;
mod source;
mod source_task;
mod writer;

pub use sink::FileSinkConnector;
pub use source::FileSourceConnector;
