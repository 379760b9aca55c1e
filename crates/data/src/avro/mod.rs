//! Avro as the AvroConverter that people use with a schema registry has it: schemas of Connect as
//! schemas of Avro with what Avro lacks beside them, and values as Avro's bytes.

mod decode;
mod default;
mod definition;
mod encode;
mod node;

use std::sync::Arc;

use crate::error::DataError;
use crate::schema::Schema;
use crate::value::{SchemaAndValue, Value};

use node::Node;

/// An Avro schema: what a registry holds under an id.
#[derive(Clone, Debug)]
pub struct AvroSchema {
    root: Arc<Node>,
    text: Arc<str>,
}

impl AvroSchema {
    /// Reads the JSON of a schema.
    ///
    /// # Errors
    /// It is none, or means nothing in Connect: a type within itself, a field that is always null.
    pub fn parse(text: &str) -> Result<Self, DataError> {
        Ok(Self { root: node::parse(text)?, text: text.into() })
    }

    /// The Avro schema that stands for this one of Connect.
    ///
    /// # Errors
    /// Avro has none: a name that is none there, two structs of one name.
    pub fn of(schema: &Schema) -> Result<Self, DataError> {
        let text = definition::of(schema)?.to_string();
        let root = node::parse(&text)?;
        Ok(Self { root, text: text.into() })
    }

    /// Its JSON.
    pub const fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// What it means in Connect; `None` for null.
    pub fn schema(&self) -> Option<&Schema> {
        self.root.schema.as_ref()
    }

    /// The bytes of a value.
    ///
    /// # Errors
    /// It is no value of this schema.
    pub fn encode(&self, value: &Value) -> Result<Vec<u8>, DataError> {
        let mut out = Vec::new();
        encode::value(&self.root, value, &mut out)?;
        Ok(out)
    }

    /// The value of all of these bytes; null has no schema, as there.
    ///
    /// # Errors
    /// They are none of this schema.
    pub fn decode(&self, bytes: &[u8]) -> Result<SchemaAndValue, DataError> {
        let value = decode::value(&self.root, bytes)?;
        let schema = self.root.schema.clone().filter(|_| !value.is_null());
        Ok(SchemaAndValue { schema, value })
    }
}
