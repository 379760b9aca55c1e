//! The converters of one plain type each.

use bytes::Bytes;

use crate::error::DataError;
use crate::schema::{Schema, Type};
use crate::value::{SchemaAndValue, Value};

/// Which type; the bytes are those of Kafka's serializers, most significant first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Primitive {
    Boolean,
    Short,
    Integer,
    Long,
    Float,
    Double,
}

impl Primitive {
    const fn kind(self) -> Type {
        match self {
            Self::Boolean => Type::Boolean,
            Self::Short => Type::Int16,
            Self::Integer => Type::Int32,
            Self::Long => Type::Int64,
            Self::Float => Type::Float32,
            Self::Double => Type::Float64,
        }
    }

    pub(crate) fn write(
        self,
        schema: Option<&Schema>,
        value: &Value,
    ) -> Result<Option<Bytes>, DataError> {
        // Only the converter of booleans looks at the schema.
        if self == Self::Boolean && schema.is_some_and(|schema| *schema.kind() != Type::Boolean) {
            return Err(DataError::unfit(
                "a schema other than of booleans, for the converter of booleans",
            ));
        }
        let bytes = match (self, value) {
            (_, Value::Null) => return Ok(None),
            (Self::Boolean, Value::Boolean(value)) => vec![u8::from(*value)],
            (Self::Short, Value::Int16(value)) => value.to_be_bytes().to_vec(),
            (Self::Integer, Value::Int32(value)) => value.to_be_bytes().to_vec(),
            (Self::Long, Value::Int64(value)) => value.to_be_bytes().to_vec(),
            (Self::Float, Value::Float32(value)) => value.to_be_bytes().to_vec(),
            (Self::Double, Value::Float64(value)) => value.to_be_bytes().to_vec(),
            _ => {
                let (found, wanted) = (value.kind_name(), self.kind().name());
                return Err(DataError::unfit(format!("{found} where {wanted} is wanted")));
            }
        };
        Ok(Some(bytes.into()))
    }

    pub(crate) fn read(self, bytes: Option<&[u8]>) -> Result<SchemaAndValue, DataError> {
        let schema = Schema::new(self.kind()).optional(true);
        let Some(bytes) = bytes else { return Ok(SchemaAndValue::of(schema, Value::Null)) };
        let value = match self {
            Self::Boolean => match bytes {
                [0] => Some(Value::Boolean(false)),
                [1] => Some(Value::Boolean(true)),
                _ => None,
            },
            Self::Short => {
                bytes.try_into().ok().map(|bytes| Value::Int16(i16::from_be_bytes(bytes)))
            }
            Self::Integer => {
                bytes.try_into().ok().map(|bytes| Value::Int32(i32::from_be_bytes(bytes)))
            }
            Self::Long => {
                bytes.try_into().ok().map(|bytes| Value::Int64(i64::from_be_bytes(bytes)))
            }
            Self::Float => {
                bytes.try_into().ok().map(|bytes| Value::Float32(f32::from_be_bytes(bytes)))
            }
            Self::Double => {
                bytes.try_into().ok().map(|bytes| Value::Float64(f64::from_be_bytes(bytes)))
            }
        };
        let unfit = || {
            DataError::unfit(format!("{} bytes that are no {}", bytes.len(), self.kind().name()))
        };
        value.map(|value| SchemaAndValue::of(schema, value)).ok_or_else(unfit)
    }
}
