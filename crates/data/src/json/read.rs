//! Values from JSON. Where Connect would give another value than the one that stands there (300 as an
//! int8, a text as a number), it is refused.

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Number, Value as Json};

use crate::decimal::Decimal;
use crate::error::DataError;
use crate::logical::{self, Logical};
use crate::schema::{Fields, Schema, Type};
use crate::value::{Map, Struct, Value};

type Read = Result<Value, DataError>;

/// The value that stands there; nothing there is read as null.
pub(super) fn value(schema: Option<&Schema>, json: Option<&Json>, replace_null: bool) -> Read {
    match (schema, json) {
        (None, None | Some(Json::Null)) => Ok(Value::Null),
        (Some(schema), None | Some(Json::Null)) => null(schema, replace_null),
        (None, Some(json)) => schemaless(json),
        (Some(schema), Some(json)) => match Logical::of(schema) {
            Some(logical) => logical_value(logical, schema, json),
            None => plain(schema, json, replace_null),
        },
    }
}

fn null(schema: &Schema, replace_null: bool) -> Read {
    if replace_null && !schema.default_value().is_null() {
        Ok(schema.default_value().clone())
    } else if schema.is_optional() {
        Ok(Value::Null)
    } else {
        Err(DataError::unfit("null for a required value without default"))
    }
}

fn schemaless(json: &Json) -> Read {
    match json {
        Json::Null => Ok(Value::Null),
        Json::Bool(value) => Ok(Value::Boolean(*value)),
        Json::Number(number) if is_whole(number) => whole(number).map(Value::Int64),
        Json::Number(number) => double(number).map(Value::Float64),
        Json::String(text) => Ok(Value::text(text.as_str())),
        Json::Array(items) => {
            items.iter().map(schemaless).collect::<Result<_, _>>().map(Value::array)
        }
        Json::Object(members) => {
            let entry =
                |(name, json): (&String, _)| Ok((Value::text(name.as_str()), schemaless(json)?));
            members.iter().map(entry).collect::<Result<Map, _>>().map(|map| Value::Map(map.into()))
        }
    }
}

pub(super) fn is_whole(number: &Number) -> bool {
    !number.as_str().contains(['.', 'e', 'E'])
}

fn whole(number: &Number) -> Result<i64, DataError> {
    number.as_str().parse().map_err(|_| beyond("64 bits"))
}

fn double(number: &Number) -> Result<f64, DataError> {
    let value: f64 = number.as_str().parse().map_err(|_| beyond("a double"))?;
    if value.is_finite() { Ok(value) } else { Err(beyond("a double")) }
}

/// The number itself is not said: it is content.
fn beyond(what: &str) -> DataError {
    DataError::unfit(format!("a number is beyond {what}"))
}

fn logical_value(logical: Logical, schema: &Schema, json: &Json) -> Read {
    match (logical, json) {
        (Logical::Decimal, Json::Number(number)) => {
            logical::scale(schema)?;
            let decimal: Result<Decimal, _> = number.as_str().parse();
            decimal.map(Value::from).map_err(|_| beyond("what is read as a decimal"))
        }
        (Logical::Decimal, Json::String(text)) => logical.from_plain(schema, &bytes(text)?),
        (Logical::Date | Logical::Time, Json::Number(number)) if is_whole(number) => {
            let plain = i32::try_from(whole(number)?).map_err(|_| beyond("an int32"))?;
            logical.from_plain(schema, &Value::Int32(plain))
        }
        (Logical::Timestamp, Json::Number(number)) if is_whole(number) => {
            logical.from_plain(schema, &Value::Int64(whole(number)?))
        }
        _ => Err(unfit(json, logical.name())),
    }
}

fn plain(schema: &Schema, json: &Json, replace_null: bool) -> Read {
    let kind = schema.kind();
    match (kind, json) {
        (Type::Boolean, Json::Bool(value)) => Ok(Value::Boolean(*value)),
        (Type::String, Json::String(text)) => Ok(Value::text(text.as_str())),
        (Type::Bytes, Json::String(text)) => bytes(text),
        (Type::Int8 | Type::Int16 | Type::Int32 | Type::Int64, Json::Number(number)) => {
            integer(kind, number).ok_or_else(|| unfit(json, kind.name()))
        }
        (Type::Float32 | Type::Float64, Json::Number(number)) => {
            float(kind, number.as_str()).ok_or_else(|| beyond(kind.name()))
        }
        (Type::Float32 | Type::Float64, Json::String(text)) => {
            not_finite(kind, text).ok_or_else(|| unfit(json, kind.name()))
        }
        (Type::Array(item), Json::Array(items)) => items
            .iter()
            .map(|json| value(item.as_ref(), Some(json), replace_null))
            .collect::<Result<_, _>>()
            .map(Value::array),
        (Type::Map(key, of_value), _) => {
            entries((key.as_ref(), of_value.as_ref()), json, replace_null)
        }
        (Type::Struct(fields), Json::Object(members)) => row(schema, fields, members, replace_null),
        _ => Err(unfit(json, kind.name())),
    }
}

fn integer(kind: &Type, number: &Number) -> Option<Value> {
    let whole = match number.as_str().parse::<i64>() {
        Ok(whole) => whole,
        Err(_) => number.as_str().parse::<Decimal>().ok()?.to_i64()?,
    };
    match kind {
        Type::Int8 => i8::try_from(whole).ok().map(Value::Int8),
        Type::Int16 => i16::try_from(whole).ok().map(Value::Int16),
        Type::Int32 => i32::try_from(whole).ok().map(Value::Int32),
        _ => Some(Value::Int64(whole)),
    }
}

fn float(kind: &Type, text: &str) -> Option<Value> {
    match kind {
        Type::Float32 => {
            text.parse().ok().filter(|value: &f32| value.is_finite()).map(Value::Float32)
        }
        _ => text.parse().ok().filter(|value: &f64| value.is_finite()).map(Value::Float64),
    }
}

/// What is written for numbers that JSON cannot say.
fn not_finite(kind: &Type, text: &str) -> Option<Value> {
    let value = match text {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        _ => return None,
    };
    #[expect(clippy::cast_possible_truncation, reason = "none of the three has digits")]
    Some(if *kind == Type::Float32 { Value::Float32(value as f32) } else { Value::Float64(value) })
}

fn bytes(text: &str) -> Read {
    let bytes = STANDARD.decode(text).map_err(|_| DataError::unfit("bytes that are no base64"))?;
    Ok(Value::Bytes(bytes.into()))
}

fn entries(
    (key, of_value): (Option<&Schema>, Option<&Schema>),
    json: &Json,
    replace_null: bool,
) -> Read {
    let named = key.is_none_or(|key| *key.kind() == Type::String);
    let mut map = Map::new();
    match json {
        Json::Object(members) if named => {
            for (name, json) in members {
                map.insert(Value::text(name.as_str()), value(of_value, Some(json), replace_null)?);
            }
        }
        Json::Array(pairs) if !named => {
            for pair in pairs {
                let Some([name, json]) = pair.as_array().map(Vec::as_slice) else {
                    return Err(unfit(pair, "a pair of a map"));
                };
                let name = value(key, Some(name), replace_null)?;
                map.insert(name, value(of_value, Some(json), replace_null)?);
            }
        }
        _ => return Err(unfit(json, "a map")),
    }
    Ok(Value::Map(map.into()))
}

fn row(
    schema: &Schema,
    fields: &Fields,
    members: &serde_json::Map<String, Json>,
    replace_null: bool,
) -> Read {
    let mut row = Struct::new(schema).ok_or_else(|| DataError::unfit("no schema of a struct"))?;
    // A wide struct is not searched field by field.
    let by_name: HashMap<&str, &Json> =
        members.iter().map(|(name, json)| (name.as_str(), json)).collect();
    for (place, field) in fields.iter().enumerate() {
        let json = by_name.get(&*field.name).copied();
        let value = value(Some(&field.schema), json, replace_null)
            .map_err(|error| DataError::unfit(format!("field {:?}: {error}", field.name)))?;
        row.put_at(place, value)?;
    }
    Ok(row.into())
}

fn unfit(json: &Json, wanted: &str) -> DataError {
    let found = match json {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number that does not fit",
        Json::String(_) => "a string",
        Json::Array(_) => "an array",
        Json::Object(_) => "an object",
    };
    DataError::unfit(format!("{found} where {wanted} is wanted"))
}
