//! Values as Avro's bytes.

use super::node::{Node, Shape};
use crate::error::DataError;
use crate::logical::Logical;
use crate::value::Value;

/// Appends the bytes of a value.
pub(super) fn value(node: &Node, value: &Value, out: &mut Vec<u8>) -> Result<(), DataError> {
    if let Shape::Optional(other, null) = &node.shape {
        let branch = if value.is_null() { *null } else { 1 - *null };
        long(out, i64::from(branch == 1));
        return if value.is_null() { Ok(()) } else { self::value(other, value, out) };
    }
    let schema = node.schema.as_ref();
    match schema.and_then(|schema| Some((Logical::of(schema)?, schema))) {
        Some((logical, schema)) => plain(node, &logical.to_plain(schema, value)?, out),
        None => plain(node, value, out),
    }
}

fn plain(node: &Node, value: &Value, out: &mut Vec<u8>) -> Result<(), DataError> {
    match (&node.shape, value) {
        (Shape::Boolean, Value::Boolean(value)) => out.push(u8::from(*value)),
        (Shape::Int, Value::Int8(value)) => long(out, i64::from(*value)),
        (Shape::Int, Value::Int16(value)) => long(out, i64::from(*value)),
        (Shape::Int, Value::Int32(value)) => long(out, i64::from(*value)),
        (Shape::Long, Value::Int64(value)) => long(out, *value),
        (Shape::Float, Value::Float32(value)) => out.extend_from_slice(&value.to_le_bytes()),
        (Shape::Double, Value::Float64(value)) => out.extend_from_slice(&value.to_le_bytes()),
        (Shape::Bytes, Value::Bytes(value)) => bytes(out, value),
        (Shape::String, Value::String(value)) => bytes(out, value.as_bytes()),
        (Shape::Array(items), Value::Array(values)) => {
            block(out, &**values, |out, value| self::value(items, value, out))?;
        }
        (Shape::Map(values), Value::Map(entries)) => {
            block(out, &**entries, |out, (key, value)| {
                let Value::String(key) = key else {
                    return Err(DataError::unfit("a key that is no string"));
                };
                bytes(out, key.as_bytes());
                self::value(values, value, out)
            })?
        }
        (Shape::Entries(keys, values), Value::Map(entries)) => {
            block(out, &**entries, |out, (key, value)| {
                self::value(keys, key, out)?;
                self::value(values, value, out)
            })?;
        }
        (Shape::Record(parts), Value::Struct(row)) => {
            for (part, (field, value)) in parts.iter().zip(row.entries()) {
                // As there, a field that is null has its default, be it optional or not.
                let value = if value.is_null() { field.schema.default_value() } else { value };
                self::value(part, value, out).map_err(|error| {
                    DataError::unfit(format!("field {:?}: {error}", field.name))
                })?;
            }
        }
        (_, value) => {
            let wanted = node.schema.as_ref().map_or("null", |schema| schema.kind().name());
            return Err(DataError::unfit(format!(
                "{} where {wanted} is wanted",
                value.kind_name()
            )));
        }
    }
    Ok(())
}

/// One block of all items, and the empty one that ends them.
fn block<'a, T: 'a>(
    out: &mut Vec<u8>,
    items: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    mut item: impl FnMut(&mut Vec<u8>, T) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let items = items.into_iter();
    if items.len() > 0 {
        long(out, i64::try_from(items.len()).unwrap_or(i64::MAX));
        for part in items {
            item(out, part)?;
        }
    }
    long(out, 0);
    Ok(())
}

fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    long(out, i64::try_from(bytes.len()).unwrap_or(i64::MAX));
    out.extend_from_slice(bytes);
}

/// A number in zigzag form, seven bits a byte.
fn long(out: &mut Vec<u8>, value: i64) {
    let mut bits = ((value << 1) ^ (value >> 63)).cast_unsigned();
    loop {
        let seven = u8::try_from(bits & 0x7f).unwrap_or_default();
        bits >>= 7;
        if bits == 0 {
            out.push(seven);
            return;
        }
        out.push(seven | 0x80);
    }
}
