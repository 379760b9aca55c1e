//! What transforms work on.

use std::sync::Arc;

use highwater_data::{Header, SchemaAndValue};

/// A record between a source and its converters, or between the converters and a sink.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The topic it goes to, or comes from.
    pub topic: Arc<str>,
    /// The partition, where one is chosen.
    pub partition: Option<i32>,
    /// The key.
    pub key: SchemaAndValue,
    /// The value.
    pub value: SchemaAndValue,
    /// Milliseconds since 1970.
    pub timestamp: Option<i64>,
    /// Headers in their order; several may have one name.
    pub headers: Vec<Header>,
    /// Where it stands in its partition; known to sinks alone.
    pub offset: Option<i64>,
}

impl Record {
    /// A record of this topic without anything.
    pub fn new(topic: impl Into<Arc<str>>) -> Self {
        Self {
            topic: topic.into(),
            partition: None,
            key: SchemaAndValue::default(),
            value: SchemaAndValue::default(),
            timestamp: None,
            headers: Vec::new(),
            offset: None,
        }
    }
}
