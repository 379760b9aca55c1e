//! A value, with or without a schema.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use bytes::Bytes;
use indexmap::IndexMap;

use crate::decimal::Decimal;
use crate::error::DataError;
use crate::fit;
use crate::schema::{Fields, Schema};

/// Entries in the order in which they came; equality does not ask for it.
pub type Map = IndexMap<Value, Value>;

/// A value of Connect. A clone copies no content.
#[derive(Clone, Debug, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Value {
    #[default]
    Null,
    Boolean(bool),
    Int8(i8),
    Int16(i16),
    Int32(i32),
    Int64(i64),
    Float32(f32),
    Float64(f64),
    String(Arc<str>),
    Bytes(Bytes),
    Decimal(Arc<Decimal>),
    /// Milliseconds since 1970 of the logical types Date, Time and Timestamp: which of them it is, the
    /// schema says.
    Moment(i64),
    Array(Arc<Vec<Value>>),
    Map(Arc<Map>),
    Struct(Arc<Struct>),
}

impl Value {
    /// A text.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::String(text.into())
    }

    /// An array of these items.
    pub fn array(items: Vec<Self>) -> Self {
        Self::Array(Arc::new(items))
    }

    /// A map of these entries; of two with one key the last stays.
    pub fn map(entries: impl IntoIterator<Item = (Self, Self)>) -> Self {
        Self::Map(Arc::new(entries.into_iter().collect()))
    }

    /// Whether it is null.
    pub const fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// What it is, for a message.
    pub const fn kind_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "a boolean",
            Self::Int8(_) => "an int8",
            Self::Int16(_) => "an int16",
            Self::Int32(_) => "an int32",
            Self::Int64(_) => "an int64",
            Self::Float32(_) => "a float32",
            Self::Float64(_) => "a float64",
            Self::String(_) => "a string",
            Self::Bytes(_) => "bytes",
            Self::Decimal(_) => "a decimal",
            Self::Moment(_) => "a date or time",
            Self::Array(_) => "an array",
            Self::Map(_) => "a map",
            Self::Struct(_) => "a struct",
        }
    }
}

impl From<Decimal> for Value {
    fn from(decimal: Decimal) -> Self {
        Self::Decimal(Arc::new(decimal))
    }
}

impl From<Struct> for Value {
    fn from(row: Struct) -> Self {
        Self::Struct(Arc::new(row))
    }
}

/// As Java's `equals`: a NaN is itself, and 0.0 is not -0.0.
impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Boolean(a), Self::Boolean(b)) => a == b,
            (Self::Int8(a), Self::Int8(b)) => a == b,
            (Self::Int16(a), Self::Int16(b)) => a == b,
            (Self::Int32(a), Self::Int32(b)) => a == b,
            (Self::Int64(a), Self::Int64(b)) | (Self::Moment(a), Self::Moment(b)) => a == b,
            (Self::Float32(a), Self::Float32(b)) => {
                a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
            }
            (Self::Float64(a), Self::Float64(b)) => {
                a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan()
            }
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Decimal(a), Self::Decimal(b)) => a == b,
            (Self::Array(a), Self::Array(b)) => a == b,
            (Self::Map(a), Self::Map(b)) => a == b,
            (Self::Struct(a), Self::Struct(b)) => a == b,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Null => {}
            Self::Boolean(value) => value.hash(state),
            Self::Int8(value) => value.hash(state),
            Self::Int16(value) => value.hash(state),
            Self::Int32(value) => value.hash(state),
            Self::Int64(value) | Self::Moment(value) => value.hash(state),
            Self::Float32(value) if value.is_nan() => {}
            Self::Float32(value) => value.to_bits().hash(state),
            Self::Float64(value) if value.is_nan() => {}
            Self::Float64(value) => value.to_bits().hash(state),
            Self::String(value) => value.hash(state),
            Self::Bytes(value) => value.hash(state),
            Self::Decimal(value) => value.hash(state),
            Self::Array(items) => items.hash(state),
            // Their order does not count.
            Self::Map(entries) => entries.len().hash(state),
            Self::Struct(row) => row.values.hash(state),
        }
    }
}

/// A value with fields: its schema, and a value for each field.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Struct {
    schema: Schema,
    values: Vec<Value>,
}

impl Struct {
    /// A struct of this schema, every field null; `None` where the schema is of another type.
    pub fn new(schema: &Schema) -> Option<Self> {
        let values = vec![Value::Null; schema.fields()?.len()];
        Some(Self { schema: schema.clone(), values })
    }

    /// Its schema.
    pub const fn schema(&self) -> &Schema {
        &self.schema
    }

    /// Sets a field.
    ///
    /// # Errors
    /// There is no such field, or the value does not fit its schema.
    pub fn put(&mut self, name: &str, value: Value) -> Result<(), DataError> {
        let place = self
            .schema
            .fields()
            .and_then(|fields| fields.place(name))
            .ok_or_else(|| DataError::unfit(format!("the struct has no field {name:?}")))?;
        self.put_at(place, value)
    }

    /// Sets the field at this place.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn put_at(&mut self, place: usize, value: Value) -> Result<(), DataError> {
        let field = self.schema.fields().and_then(|fields| fields.iter().nth(place));
        let (Some(field), Some(held)) = (field, self.values.get_mut(place)) else {
            return Err(DataError::unfit(format!("the struct has no field number {place}")));
        };
        fit::check(&field.schema, &value)
            .map_err(|error| DataError::unfit(format!("field {:?}: {error}", field.name)))?;
        *held = value;
        Ok(())
    }

    /// What was put into the field at this place.
    pub fn at(&self, place: usize) -> &Value {
        self.values.get(place).unwrap_or(&Value::Null)
    }

    /// What was put into a field; `None` where there is no such field.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(self.schema.fields()?.place(name)?)
    }

    /// What was put into a field or, with `replace_null`, its default where that is null; `None` where
    /// there is no such field.
    pub fn read(&self, name: &str, replace_null: bool) -> Option<&Value> {
        let (value, field) = (self.get(name)?, self.schema.fields()?.get(name)?);
        Some(if value.is_null() && replace_null { field.schema.default_value() } else { value })
    }

    /// Each field with what was put into it.
    pub fn entries(&self) -> impl Iterator<Item = (&crate::Field, &Value)> {
        self.schema.fields().map(Fields::iter).unwrap_or_default().zip(&self.values)
    }

    /// Whether every field that must have a value has one.
    ///
    /// # Errors
    /// The field that lacks it.
    pub fn validate(&self) -> Result<(), DataError> {
        for (field, value) in self.entries() {
            if value.is_null() && !field.schema.default_value().is_null() {
                continue;
            }
            fit::check(&field.schema, value)
                .map_err(|error| DataError::unfit(format!("field {:?}: {error}", field.name)))?;
        }
        Ok(())
    }
}

/// A value and what it is; without schema, what it is can be seen from the value alone.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct SchemaAndValue {
    /// The schema.
    pub schema: Option<Schema>,
    /// The value.
    pub value: Value,
}

/// A header of a record. Several of one record may have one name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// Its name.
    pub name: Arc<str>,
    /// Its value.
    pub value: SchemaAndValue,
}

impl SchemaAndValue {
    /// A value without schema.
    pub const fn schemaless(value: Value) -> Self {
        Self { schema: None, value }
    }

    /// A value of this schema.
    pub fn of(schema: impl Into<Schema>, value: Value) -> Self {
        Self { schema: Some(schema.into()), value }
    }
}
