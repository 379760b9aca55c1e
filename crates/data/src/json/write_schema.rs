//! Schemas as JSON.

use super::write::{Writer, comma, text};
use crate::error::DataError;
use crate::schema::{Schema, Type};

type Written = Result<(), DataError>;

/// Writes a schema; of a field of a struct, with its name.
pub(super) fn schema(
    writer: &Writer,
    out: &mut Vec<u8>,
    schema: &Schema,
    field: Option<&str>,
) -> Written {
    out.extend_from_slice(br#"{"type":"#);
    text(out, schema.kind().name());
    parts(writer, out, schema.kind())?;
    out.extend_from_slice(br#","optional":"#);
    out.extend_from_slice(schema.is_optional().to_string().as_bytes());
    metadata(out, schema);
    if !schema.default_value().is_null() {
        out.extend_from_slice(br#","default":"#);
        writer.value(out, Some(schema), schema.default_value())?;
    }
    if let Some(name) = field {
        out.extend_from_slice(br#","field":"#);
        text(out, name);
    }
    out.push(b'}');
    Ok(())
}

fn parts(writer: &Writer, out: &mut Vec<u8>, kind: &Type) -> Written {
    let mut part = |name: &str, part: Option<&Schema>| {
        out.extend_from_slice(format!(",\"{name}\":").as_bytes());
        match part {
            Some(part) => schema(writer, out, part, None),
            None => {
                out.extend_from_slice(b"null");
                Ok(())
            }
        }
    };
    match kind {
        Type::Array(item) => part("items", item.as_ref()),
        Type::Map(key, value) => {
            part("keys", key.as_ref())?;
            part("values", value.as_ref())
        }
        Type::Struct(fields) => {
            out.extend_from_slice(br#","fields":["#);
            for (place, field) in fields.iter().enumerate() {
                comma(out, place);
                schema(writer, out, &field.schema, Some(&field.name))?;
            }
            out.push(b']');
            Ok(())
        }
        _ => Ok(()),
    }
}

fn metadata(out: &mut Vec<u8>, schema: &Schema) {
    let mut member = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            out.extend_from_slice(format!(",\"{name}\":").as_bytes());
            text(out, value);
        }
    };
    member("name", schema.name().map(AsRef::as_ref));
    if let Some(version) = schema.version() {
        out.extend_from_slice(format!(",\"version\":{version}").as_bytes());
    }
    let mut member = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            out.extend_from_slice(format!(",\"{name}\":").as_bytes());
            text(out, value);
        }
    };
    member("doc", schema.doc().map(AsRef::as_ref));
    if let Some(parameters) = schema.parameters() {
        out.extend_from_slice(br#","parameters":{"#);
        for (place, (key, value)) in parameters.iter().enumerate() {
            comma(out, place);
            text(out, key);
            out.push(b':');
            text(out, value);
        }
        out.push(b'}');
    }
}
