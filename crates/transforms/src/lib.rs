//! Kafka Connect's transforms and predicates over its data, under Connect's names and options.
//!
//! A [`Chain`] is what a connector's configuration says: transforms in order, each perhaps under a
//! predicate. A transform is one file here, named after it. Where a transform of Connect would change a
//! value beyond what it was asked to, ours refuses (`docs/reference/transforms.md` lists the cases).
//!
//! ```
//! use highwater_transforms::{Chain, Record};
//!
//! let config = [
//!     ("transforms", "route"),
//!     ("transforms.route.type", "org.apache.kafka.connect.transforms.RegexRouter"),
//!     ("transforms.route.regex", "shop\\.(.*)"),
//!     ("transforms.route.replacement", "$1"),
//! ];
//! let config = config.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
//! let chain = Chain::new(&config).map_err(|problems| format!("{problems:?}"))?;
//! let record = chain.apply(Record::new("shop.orders")).map_err(|error| error.to_string())?;
//! assert_eq!(record.map(|record| record.topic), Some("orders".into()));
//! # Ok::<(), String>(())
//! ```

#![forbid(unsafe_code)]

mod cast;
mod chain;
mod drop_headers;
mod extract_field;
mod field_path;
mod filter;
mod flatten;
#[doc(hidden)]
pub mod fuzz;
mod header_from;
mod hoist_field;
mod insert_field;
mod insert_header;
mod mask_field;
mod number;
mod options;
mod pattern;
mod place;
mod predicate;
mod record;
mod regex_router;
mod replace_field;
mod set_schema_metadata;
mod stray_keys;
mod timestamp_converter;
mod timestamp_router;
mod transform;
mod value_to_key;

pub use chain::{Chain, TransformError};
pub use place::Place;
pub use predicate::{PREDICATES, Predicate, predicate_keys};
pub use record::Record;
pub use transform::{Applied, TRANSFORMS, Transform, new_transform, transform_keys};
