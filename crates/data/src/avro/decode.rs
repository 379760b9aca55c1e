//! Values from Avro's bytes, under the schema that they were written with.

use std::sync::Arc;

use super::node::{Node, Shape};
use crate::error::DataError;
use crate::logical::Logical;
use crate::schema::{Schema, Type};
use crate::value::{Map, Struct, Value};

/// Values that may come without a byte of their own, beside one for each part of the schema.
const FREE: usize = 1024;

/// The value of all of these bytes.
pub(super) fn value(node: &Node, bytes: &[u8]) -> Result<Value, DataError> {
    let mut reader = Reader { rest: bytes, left: bytes.len() + node.size + FREE };
    let value = reader.value(node)?;
    if reader.rest.is_empty() { Ok(value) } else { Err(unfit("bytes behind the value")) }
}

struct Reader<'a> {
    rest: &'a [u8],
    /// How many values may still come: a list of what takes no bytes would not end.
    left: usize,
}

fn unfit(what: &str) -> DataError {
    DataError::unfit(format!("the bytes are no Avro of their schema: {what}"))
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], DataError> {
        let (taken, rest) =
            self.rest.split_at_checked(count).ok_or_else(|| unfit("they are cut"))?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DataError> {
        self.take(N)?.try_into().map_err(|_| unfit("they are cut"))
    }

    /// A number in zigzag form, seven bits a byte.
    fn long(&mut self) -> Result<i64, DataError> {
        let mut bits = 0_u64;
        for shift in (0..70).step_by(7) {
            let [byte] = self.array()?;
            let seven = u64::from(byte & 0x7f);
            if shift == 63 && seven > 1 {
                break;
            }
            bits |= seven << shift;
            if byte & 0x80 == 0 {
                return Ok((bits >> 1).cast_signed() ^ -(bits & 1).cast_signed());
            }
        }
        Err(unfit("a number beyond 64 bits"))
    }

    fn int(&mut self) -> Result<i32, DataError> {
        i32::try_from(self.long()?).map_err(|_| unfit("a number beyond 32 bits"))
    }

    fn length(&mut self) -> Result<usize, DataError> {
        usize::try_from(self.long()?).map_err(|_| unfit("a length below 0"))
    }

    fn text(&mut self) -> Result<Arc<str>, DataError> {
        let length = self.length()?;
        let text = std::str::from_utf8(self.take(length)?)
            .map_err(|_| unfit("a string that is no UTF-8"))?;
        Ok(Arc::from(text))
    }

    fn value(&mut self, node: &Node) -> Result<Value, DataError> {
        self.left = self.left.checked_sub(1).ok_or_else(|| unfit("more values than bytes"))?;
        let Some(schema) = &node.schema else { return Ok(Value::Null) };
        let plain = match &node.shape {
            Shape::Null => Value::Null,
            Shape::Boolean => match self.array()? {
                [0] => Value::Boolean(false),
                [1] => Value::Boolean(true),
                _ => return Err(unfit("a boolean that is neither 0 nor 1")),
            },
            Shape::Int => narrow(schema, self.int()?)?,
            Shape::Long => Value::Int64(self.long()?),
            Shape::Float => Value::Float32(f32::from_le_bytes(self.array()?)),
            Shape::Double => Value::Float64(f64::from_le_bytes(self.array()?)),
            Shape::Bytes => {
                let length = self.length()?;
                Value::Bytes(self.take(length)?.to_vec().into())
            }
            Shape::Fixed(size) => Value::Bytes(self.take(*size)?.to_vec().into()),
            Shape::String => Value::String(self.text()?),
            Shape::Enum(symbols) => {
                let symbol =
                    symbols.get(self.length()?).ok_or_else(|| unfit("an unknown symbol"))?;
                Value::String(Arc::clone(symbol))
            }
            Shape::Array(items) => {
                let mut list = Vec::new();
                self.blocks(|reader| {
                    list.push(reader.value(items)?);
                    Ok(())
                })?;
                Value::array(list)
            }
            Shape::Map(values) => {
                let mut map = Map::new();
                self.blocks(|reader| {
                    let key = Value::String(reader.text()?);
                    map.insert(key, reader.value(values)?);
                    Ok(())
                })?;
                Value::Map(map.into())
            }
            Shape::Entries(key, value) => {
                let mut map = Map::new();
                self.blocks(|reader| {
                    let key = reader.value(key)?;
                    map.insert(key, reader.value(value)?);
                    Ok(())
                })?;
                Value::Map(map.into())
            }
            Shape::Record(parts) => return self.record(schema, parts),
            Shape::Optional(other, null) => {
                let branch = self.length()?;
                return match branch {
                    branch if branch == *null => Ok(Value::Null),
                    0 | 1 => self.optional(other, schema),
                    _ => Err(unfit("a branch that the union does not have")),
                };
            }
            Shape::Union(branches) => return self.union(schema, branches),
        };
        match Logical::of(schema) {
            Some(logical) => logical.from_plain(schema, &plain),
            None => Ok(plain),
        }
    }

    /// Items in blocks, up to an empty one.
    fn blocks(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<(), DataError>,
    ) -> Result<(), DataError> {
        loop {
            let count = self.long()?;
            if count < 0 {
                // The block's size in bytes, for whoever wants to skip it.
                self.long()?;
            }
            if count == 0 {
                return Ok(());
            }
            for _ in 0..count.unsigned_abs() {
                item(self)?;
            }
        }
    }

    fn record(&mut self, schema: &Schema, parts: &[Arc<Node>]) -> Result<Value, DataError> {
        let mut row = Struct::new(schema).ok_or_else(|| unfit("a record without fields"))?;
        for (place, part) in parts.iter().enumerate() {
            row.put_at(place, self.value(part)?)?;
        }
        Ok(row.into())
    }

    /// A struct that may be absent has a schema that says so.
    fn optional(&mut self, other: &Node, schema: &Schema) -> Result<Value, DataError> {
        match (&other.shape, Logical::of(schema)) {
            (Shape::Record(parts), _) => self.record(schema, parts),
            _ => self.value(other),
        }
    }

    /// A struct in which the field of the branch has a value.
    fn union(&mut self, schema: &Schema, branches: &[Arc<Node>]) -> Result<Value, DataError> {
        let number = self.length()?;
        let branch =
            branches.get(number).ok_or_else(|| unfit("a branch that the union does not have"))?;
        if branch.schema.is_none() {
            return Ok(Value::Null);
        }
        let place = branches.iter().take(number).filter(|branch| branch.schema.is_some()).count();
        let field = schema.fields().and_then(|fields| fields.iter().nth(place));
        let field = field.ok_or_else(|| unfit("a branch without field"))?;
        let mut row = Struct::new(schema).ok_or_else(|| unfit("a union without fields"))?;
        row.put_at(place, self.optional(branch, &field.schema)?)?;
        Ok(row.into())
    }
}

fn narrow(schema: &Schema, value: i32) -> Result<Value, DataError> {
    let beyond = |_| unfit("a number beyond its type");
    Ok(match schema.kind() {
        Type::Int8 => Value::Int8(value.try_into().map_err(beyond)?),
        Type::Int16 => Value::Int16(value.try_into().map_err(beyond)?),
        _ => Value::Int32(value),
    })
}
