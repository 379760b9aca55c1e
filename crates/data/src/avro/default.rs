//! Defaults in Avro schemas: values as JSON, bytes as text with a letter a byte.

use serde_json::{Value as Json, json};

use crate::error::DataError;
use crate::logical::Logical;
use crate::schema::{Schema, Type};
use crate::value::{Map, Struct, Value};

/// The value that a default says.
pub(super) fn from_json(schema: &Schema, json: &Json) -> Result<Value, DataError> {
    if json.is_null() {
        return Ok(Value::Null);
    }
    let plain = plain(schema, json).ok_or_else(|| {
        DataError::unfit(format!("a default that is no {}", schema.kind().name()))
    })?;
    match Logical::of(schema) {
        Some(logical) => logical.from_plain(schema, &plain),
        None => Ok(plain),
    }
}

fn plain(schema: &Schema, json: &Json) -> Option<Value> {
    let whole = || json.as_i64();
    Some(match schema.kind() {
        Type::Int8 => Value::Int8(whole()?.try_into().ok()?),
        Type::Int16 => Value::Int16(whole()?.try_into().ok()?),
        Type::Int32 => Value::Int32(whole()?.try_into().ok()?),
        Type::Int64 => Value::Int64(whole()?),
        #[expect(clippy::cast_possible_truncation, reason = "a float's default is a float")]
        Type::Float32 => Value::Float32(json.as_f64()? as f32),
        Type::Float64 => Value::Float64(json.as_f64()?),
        Type::Boolean => Value::Boolean(json.as_bool()?),
        Type::String => Value::text(json.as_str()?),
        Type::Bytes => {
            let byte = |letter: char| u8::try_from(u32::from(letter)).ok();
            Value::Bytes(json.as_str()?.chars().map(byte).collect::<Option<Vec<u8>>>()?.into())
        }
        Type::Array(items) => {
            let items = items.as_ref()?;
            let item = |json| from_json(items, json).ok();
            Value::array(json.as_array()?.iter().map(item).collect::<Option<_>>()?)
        }
        Type::Map(_, values) => {
            let values = values.as_ref()?;
            let entry = |(key, json): (&String, _)| {
                Some((Value::text(key.as_str()), from_json(values, json).ok()?))
            };
            Value::Map(json.as_object()?.iter().map(entry).collect::<Option<Map>>()?.into())
        }
        Type::Struct(fields) => {
            let members = json.as_object()?;
            let mut row = Struct::new(schema)?;
            for field in fields.iter() {
                let json = members.get(&*field.name).unwrap_or(&Json::Null);
                row.put(&field.name, from_json(&field.schema, json).ok()?).ok()?;
            }
            row.into()
        }
    })
}

/// The JSON of a default.
pub(super) fn to_json(schema: &Schema, value: &Value) -> Result<Json, DataError> {
    if value.is_null() {
        return Ok(Json::Null);
    }
    let value = match Logical::of(schema) {
        Some(logical) => &logical.to_plain(schema, value)?,
        None => value,
    };
    Ok(match (schema.kind(), value) {
        (_, Value::Boolean(value)) => json!(value),
        (_, Value::Int8(value)) => json!(value),
        (_, Value::Int16(value)) => json!(value),
        (_, Value::Int32(value)) => json!(value),
        (_, Value::Int64(value)) => json!(value),
        (_, Value::Float32(value)) => json!(value),
        (_, Value::Float64(value)) => json!(value),
        (_, Value::String(value)) => json!(&**value),
        (_, Value::Bytes(bytes)) => {
            bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into()
        }
        (Type::Array(Some(items)), Value::Array(values)) => {
            values.iter().map(|value| to_json(items, value)).collect::<Result<Vec<_>, _>>()?.into()
        }
        (Type::Map(_, Some(values)), Value::Map(entries)) => {
            let entry = |(key, value): (&Value, &Value)| match key {
                Value::String(key) => Ok((key.to_string(), to_json(values, value)?)),
                _ => Err(DataError::unfit("a default map whose keys are no strings")),
            };
            Json::Object(entries.iter().map(entry).collect::<Result<_, _>>()?)
        }
        (Type::Struct(_), Value::Struct(row)) => {
            let member = |(field, value): (&crate::Field, &Value)| {
                Ok((field.name.to_string(), to_json(&field.schema, value)?))
            };
            Json::Object(row.entries().map(member).collect::<Result<_, DataError>>()?)
        }
        (kind, value) => {
            let (found, wanted) = (value.kind_name(), kind.name());
            return Err(DataError::unfit(format!("the default {found} where {wanted} is wanted")));
        }
    })
}
