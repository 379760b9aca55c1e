//! Whether a value is one of its schema.

use crate::error::DataError;
use crate::logical::Logical;
use crate::schema::{Schema, Type};
use crate::value::Value;

/// Whether this value is one of this schema.
///
/// # Errors
/// What does not fit.
pub fn check(schema: &Schema, value: &Value) -> Result<(), DataError> {
    if value.is_null() {
        return if schema.is_optional() || !schema.default_value().is_null() {
            Ok(())
        } else {
            Err(DataError::unfit("null for a required value"))
        };
    }
    if !is_of(schema, value) {
        let wanted = schema.name().map_or(schema.kind().name(), AsRef::as_ref);
        return Err(DataError::unfit(format!("{} where {wanted} is wanted", value.kind_name())));
    }
    check_parts(schema, value)
}

fn is_of(schema: &Schema, value: &Value) -> bool {
    match Logical::of(schema) {
        Some(Logical::Decimal) => return matches!(value, Value::Decimal(_)),
        Some(_) => return matches!(value, Value::Moment(_)),
        None => {}
    }
    of_kind(schema.kind(), value)
}

/// Whether a value is of this kind, whatever the schema's name makes of it.
pub(crate) const fn of_kind(kind: &Type, value: &Value) -> bool {
    matches!(
        (kind, value),
        (Type::Int8, Value::Int8(_))
            | (Type::Int16, Value::Int16(_))
            | (Type::Int32, Value::Int32(_))
            | (Type::Int64, Value::Int64(_))
            | (Type::Float32, Value::Float32(_))
            | (Type::Float64, Value::Float64(_))
            | (Type::Boolean, Value::Boolean(_))
            | (Type::String, Value::String(_))
            | (Type::Bytes, Value::Bytes(_))
            | (Type::Array(_), Value::Array(_))
            | (Type::Map(..), Value::Map(_))
            | (Type::Struct(_), Value::Struct(_))
    )
}

fn check_parts(schema: &Schema, value: &Value) -> Result<(), DataError> {
    match (schema.kind(), value) {
        (Type::Struct(_), Value::Struct(row)) if !row.schema().same_struct(schema) => {
            Err(DataError::unfit("a struct of another schema"))
        }
        (Type::Array(Some(item)), Value::Array(items)) => {
            items.iter().try_for_each(|value| check(item, value))
        }
        (Type::Map(key, of_values), Value::Map(entries)) => {
            entries.iter().try_for_each(|(name, value)| {
                key.as_ref().map_or(Ok(()), |key| check(key, name))?;
                of_values.as_ref().map_or(Ok(()), |of_values| check(of_values, value))
            })
        }
        _ => Ok(()),
    }
}
