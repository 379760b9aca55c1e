//! Schemas from JSON.

use std::sync::Arc;

use serde_json::Value as Json;

use super::read;
use crate::error::DataError;
use crate::schema::{Fields, Schema, Type};

/// The schema that stands there; `None` for null.
pub(super) fn schema(json: &Json, replace_null: bool) -> Result<Option<Schema>, DataError> {
    if json.is_null() {
        return Ok(None);
    }
    let text = |name: &str| json.get(name).and_then(Json::as_str).map(Arc::from);
    let optional = json.get("optional").and_then(Json::as_bool).unwrap_or(false);
    let mut schema = Schema::new(kind(json, replace_null)?)
        .optional(optional)
        .named(text("name"))
        .versioned(version(json)?)
        .documented(text("doc"));
    if let Some(parameters) = json.get("parameters").and_then(Json::as_object) {
        for (key, value) in parameters {
            let Some(value) = value.as_str() else {
                return Err(DataError::unfit(format!(
                    "the schema's parameter {key:?} is no string"
                )));
            };
            schema = schema.parameter(key, value);
        }
    }
    match json.get("default") {
        None => Ok(Some(schema)),
        Some(default) => {
            let default = read::value(Some(&schema), Some(default), replace_null)?;
            Ok(Some(schema.with_default(default)))
        }
    }
}

fn version(json: &Json) -> Result<Option<i32>, DataError> {
    let Some(Json::Number(number)) = json.get("version") else { return Ok(None) };
    if !read::is_whole(number) {
        return Ok(None);
    }
    let version = number.as_i64().and_then(|version| i32::try_from(version).ok());
    version.map(Some).ok_or_else(|| DataError::unfit("the schema's version is no int32"))
}

fn kind(json: &Json, replace_null: bool) -> Result<Type, DataError> {
    let name = json.get("type").and_then(Json::as_str);
    Ok(match name.ok_or_else(|| DataError::unfit("a schema without type"))? {
        "boolean" => Type::Boolean,
        "int8" => Type::Int8,
        "int16" => Type::Int16,
        "int32" => Type::Int32,
        "int64" => Type::Int64,
        "float" => Type::Float32,
        "double" => Type::Float64,
        "bytes" => Type::Bytes,
        "string" => Type::String,
        "array" => Type::Array(Some(part(json, "items", replace_null)?)),
        "map" => Type::Map(
            Some(part(json, "keys", replace_null)?),
            Some(part(json, "values", replace_null)?),
        ),
        "struct" => Type::Struct(fields(json, replace_null)?),
        other => {
            let shown: String = other.chars().take(40).collect();
            return Err(DataError::unfit(format!("a schema of the unknown type {shown:?}")));
        }
    })
}

fn part(json: &Json, name: &str, replace_null: bool) -> Result<Schema, DataError> {
    let part = json.get(name).map(|part| schema(part, replace_null)).transpose()?;
    part.flatten().ok_or_else(|| DataError::unfit(format!("a schema without {name}")))
}

fn fields(json: &Json, replace_null: bool) -> Result<Fields, DataError> {
    let list = json.get("fields").and_then(Json::as_array);
    let mut fields = Fields::default();
    for field in list.ok_or_else(|| DataError::unfit("the schema of a struct without fields"))? {
        let name = field.get("field").and_then(Json::as_str);
        let name = name
            .filter(|name| !name.is_empty())
            .ok_or_else(|| DataError::unfit("a field without name"))?;
        let schema = schema(field, replace_null)?
            .ok_or_else(|| DataError::unfit("a field without schema"))?;
        if !fields.add(name, schema) {
            return Err(DataError::unfit(format!("two fields of the name {name:?}")));
        }
    }
    Ok(fields)
}
