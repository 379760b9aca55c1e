//! Kafka Connect's data: what a value is ([`Schema`]), the value ([`Value`]), and the converters
//! between values and bytes, under Connect's names.
//!
//! Bytes come from anywhere: none of them panics, nests without bound, or takes much more memory than
//! itself. Where a converter of Connect would give another value than the one that was sent, ours
//! refuses (`docs/reference/converters.md` lists the cases).
//!
//! ```
//! use highwater_data::{JsonConverter, JsonOptions, Value};
//!
//! let converter = JsonConverter::new(JsonOptions { schemas_enable: false, ..Default::default() })?;
//! let read = converter.to_connect(Some(br#"{"id":7}"#))?;
//! assert_eq!(read.value, Value::map([(Value::text("id"), Value::Int64(7))]));
//! # Ok::<(), highwater_data::DataError>(())
//! ```

#![forbid(unsafe_code)]

mod avro;
mod avro_converter;
mod cache;
mod converter;
mod date_format;
mod decimal;
mod error;
pub mod fit;
pub mod float_text;
#[doc(hidden)]
pub mod fuzz;
pub mod infer;
mod json;
mod logical;
mod plain;
mod primitive;
mod registry;
mod schema;
pub mod text;
mod value;

pub use avro::AvroSchema;
pub use avro_converter::{AVRO_CONVERTER, AvroConverter};
pub use cache::SchemaMemo;
pub use converter::{Converter, Role, converter_keys, converters, idle_options, unknown_options};
pub use date_format::DateFormat;
pub use decimal::{Decimal, NotANumber};
pub use error::DataError;
pub use json::{DecimalFormat, JsonConverter, JsonOptions};
pub use logical::{DAY, Logical};
pub use plain::{PLAIN_CONVERTERS, PlainConverter, SIMPLE_HEADER_CONVERTER};
pub use primitive::Primitive;
pub use schema::{Field, Fields, Schema, Type};
pub use value::{Header, Map, SchemaAndValue, Struct, Value};
