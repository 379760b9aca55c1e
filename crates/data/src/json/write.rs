//! Values as JSON, byte for byte as Jackson writes them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::{DecimalFormat, JsonOptions};
use crate::error::DataError;
use crate::fit::of_kind;
use crate::float_text;
use crate::logical::{self, Logical};
use crate::schema::{Schema, Type};
use crate::value::{Map, Struct, Value};

type Written = Result<(), DataError>;

/// Writes values under the options of a converter.
pub(super) struct Writer {
    decimal_format: DecimalFormat,
    replace_null: bool,
}

impl Writer {
    pub(super) const fn new(options: &JsonOptions) -> Self {
        Self {
            decimal_format: options.decimal_format,
            replace_null: options.replace_null_with_default,
        }
    }

    pub(super) fn value(
        &self,
        out: &mut Vec<u8>,
        schema: Option<&Schema>,
        value: &Value,
    ) -> Written {
        let Some(schema) = schema else { return self.schemaless(out, value) };
        if value.is_null() {
            return self.null(out, schema);
        }
        match Logical::of(schema) {
            Some(Logical::Decimal) => self.decimal(out, schema, value),
            Some(logical) => self.plain(out, schema, &logical.to_plain(schema, value)?),
            None => self.plain(out, schema, value),
        }
    }

    fn null(&self, out: &mut Vec<u8>, schema: &Schema) -> Written {
        if self.replace_null && !schema.default_value().is_null() {
            self.value(out, Some(schema), schema.default_value())
        } else if schema.is_optional() {
            out.extend_from_slice(b"null");
            Ok(())
        } else {
            Err(DataError::unfit("null for a required value without default"))
        }
    }

    fn decimal(&self, out: &mut Vec<u8>, schema: &Schema, value: &Value) -> Written {
        match (self.decimal_format, value) {
            (DecimalFormat::Numeric, Value::Decimal(decimal)) => {
                logical::scale(schema)?;
                out.extend_from_slice(decimal.to_string().as_bytes());
                Ok(())
            }
            _ => self.plain(out, schema, &Logical::Decimal.to_plain(schema, value)?),
        }
    }

    fn plain(&self, out: &mut Vec<u8>, schema: &Schema, value: &Value) -> Written {
        match (schema.kind(), value) {
            (Type::Array(item), Value::Array(items)) => self.array(out, item.as_ref(), items),
            (Type::Map(key, of_value), Value::Map(entries)) => {
                let named = key.as_ref().is_some_and(|key| *key.kind() == Type::String);
                self.map(out, named, (key.as_ref(), of_value.as_ref()), entries)
            }
            (Type::Struct(_), Value::Struct(row)) => self.fields(out, schema, row),
            (kind, value) if of_kind(kind, value) => self.schemaless(out, value),
            (kind, value) => {
                let (wanted, found) = (kind.name(), value.kind_name());
                Err(DataError::unfit(format!("{found} where {wanted} is wanted")))
            }
        }
    }

    fn schemaless(&self, out: &mut Vec<u8>, value: &Value) -> Written {
        match value {
            Value::Null => out.extend_from_slice(b"null"),
            Value::Boolean(value) => out.extend_from_slice(value.to_string().as_bytes()),
            Value::Int8(value) => out.extend_from_slice(value.to_string().as_bytes()),
            Value::Int16(value) => out.extend_from_slice(value.to_string().as_bytes()),
            Value::Int32(value) => out.extend_from_slice(value.to_string().as_bytes()),
            Value::Int64(value) => out.extend_from_slice(value.to_string().as_bytes()),
            Value::Float32(value) => float(out, value.is_finite(), &float_text::of_f32(*value)),
            Value::Float64(value) => float(out, value.is_finite(), &float_text::of_f64(*value)),
            Value::String(value) => text(out, value),
            Value::Bytes(value) => text(out, &STANDARD.encode(value)),
            Value::Array(items) => return self.array(out, None, items),
            Value::Map(entries) => {
                let named = entries.keys().all(|key| matches!(key, Value::String(_)));
                return self.map(out, named, (None, None), entries);
            }
            Value::Decimal(_) | Value::Moment(_) | Value::Struct(_) => {
                let kind = value.kind_name();
                return Err(DataError::unfit(format!(
                    "{kind} without schema, which JSON cannot say"
                )));
            }
        }
        Ok(())
    }

    fn array(&self, out: &mut Vec<u8>, item: Option<&Schema>, items: &[Value]) -> Written {
        out.push(b'[');
        for (place, value) in items.iter().enumerate() {
            comma(out, place);
            self.value(out, item, value)?;
        }
        out.push(b']');
        Ok(())
    }

    /// An object where the keys are texts (`named`), else an array of pairs.
    fn map(
        &self,
        out: &mut Vec<u8>,
        named: bool,
        (key, of_value): (Option<&Schema>, Option<&Schema>),
        entries: &Map,
    ) -> Written {
        out.push(if named { b'{' } else { b'[' });
        for (place, (name, value)) in entries.iter().enumerate() {
            comma(out, place);
            match name {
                Value::String(name) if named => {
                    text(out, name);
                    out.push(b':');
                    self.value(out, of_value, value)?;
                }
                _ if named => return Err(DataError::unfit("a key that is no string")),
                _ => {
                    out.push(b'[');
                    self.value(out, key, name)?;
                    out.push(b',');
                    self.value(out, of_value, value)?;
                    out.push(b']');
                }
            }
        }
        out.push(if named { b'}' } else { b']' });
        Ok(())
    }

    fn fields(&self, out: &mut Vec<u8>, schema: &Schema, row: &Struct) -> Written {
        if !row.schema().same_struct(schema) {
            return Err(DataError::unfit("a struct of another schema"));
        }
        out.push(b'{');
        for (place, (field, value)) in row.entries().enumerate() {
            comma(out, place);
            text(out, &field.name);
            out.push(b':');
            self.value(out, Some(&field.schema), value)?;
        }
        out.push(b'}');
        Ok(())
    }
}

pub(super) fn comma(out: &mut Vec<u8>, place: usize) {
    if place > 0 {
        out.push(b',');
    }
}

/// JSON has no number that is not finite; Jackson quotes them.
fn float(out: &mut Vec<u8>, finite: bool, number: &str) {
    if finite {
        out.extend_from_slice(number.as_bytes());
    } else {
        text(out, number);
    }
}

/// A text with what must be escaped, in upper-case hexadecimal digits; Jackson escapes what UTF-16 takes
/// two units for, too.
pub(super) fn text(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    for letter in text.chars() {
        match letter {
            '"' => out.extend_from_slice(b"\\\""),
            '\\' => out.extend_from_slice(b"\\\\"),
            '\n' => out.extend_from_slice(b"\\n"),
            '\r' => out.extend_from_slice(b"\\r"),
            '\t' => out.extend_from_slice(b"\\t"),
            '\u{8}' => out.extend_from_slice(b"\\b"),
            '\u{c}' => out.extend_from_slice(b"\\f"),
            '\0'..' ' | '\u{10000}'.. => {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    out.extend_from_slice(format!("\\u{unit:04X}").as_bytes());
                }
            }
            _ => out.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out.push(b'"');
}
