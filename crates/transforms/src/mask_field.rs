//! MaskField: puts a value that says nothing in the place of a field's.

use std::sync::Arc;

use highwater_config::{Config, ConfigKey, Importance, KeyType};
use highwater_data::{DataError, Decimal, SchemaAndValue, Struct, Value};

use crate::number;
use crate::options::{Problems, REPLACE_NULL, given, optional, replace_null, required, some_list};
use crate::place::{Place, filled, map_of, name, struct_of};
use crate::record::Record;
use crate::transform::{Applied, Transform};

const FIELDS: &str = "fields";
const REPLACEMENT: &str = "replacement";

pub(crate) fn keys() -> Vec<ConfigKey> {
    vec![
        required(FIELDS, KeyType::List, "The fields."),
        optional(
            REPLACEMENT,
            KeyType::String,
            "",
            "What takes the place of numbers and texts; empty: 0 and the empty text.",
        )
        .of_importance(Importance::Low),
        replace_null(),
    ]
}

#[derive(Debug)]
struct MaskField {
    place: Place,
    fields: Vec<String>,
    replacement: Option<String>,
    replace_null: bool,
}

pub(crate) fn make(place: Place, config: &Config) -> Result<Box<dyn Transform>, Problems> {
    Ok(Box::new(MaskField {
        place,
        fields: some_list(config, FIELDS)?,
        replacement: given(config, REPLACEMENT),
        replace_null: config.flag(REPLACE_NULL),
    }))
}

impl Transform for MaskField {
    fn apply(&self, record: Record) -> Applied {
        let old = self.place.of(&record);
        let value = match &old.schema {
            None => {
                let mut map = map_of(&old.value)?.clone();
                for field in &self.fields {
                    let value = map.entry(name(field)).or_default();
                    *value = self.masked(value)?;
                }
                Value::Map(map.into())
            }
            Some(_) => self.row(struct_of(&old.value)?)?,
        };
        let schema = match &value {
            Value::Struct(row) => Some(row.schema().clone()),
            _ => None,
        };
        Ok(Some(self.place.put(record, SchemaAndValue { schema, value })))
    }
}

impl MaskField {
    fn row(&self, row: &Struct) -> Result<Value, DataError> {
        let mut new =
            Struct::new(row.schema()).ok_or_else(|| DataError::unfit("no schema of a struct"))?;
        for (place, (field, value)) in row.entries().enumerate() {
            let value = filled(field, value, self.replace_null);
            let masked = self.fields.iter().any(|name| **name == *field.name);
            new.put_at(place, if masked { self.masked(&value)? } else { value })?;
        }
        Ok(new.into())
    }

    fn masked(&self, value: &Value) -> Result<Value, DataError> {
        match &self.replacement {
            _ if value.is_null() => Ok(Value::Null),
            None => nothing(value),
            Some(replacement) => replaced(value, replacement),
        }
    }
}

/// What says nothing, in the type of a value.
fn nothing(value: &Value) -> Result<Value, DataError> {
    Ok(match value {
        Value::Boolean(_) => Value::Boolean(false),
        Value::Int8(_) => Value::Int8(0),
        Value::Int16(_) => Value::Int16(0),
        Value::Int32(_) => Value::Int32(0),
        Value::Int64(_) => Value::Int64(0),
        Value::Float32(_) => Value::Float32(0.0),
        Value::Float64(_) => Value::Float64(0.0),
        Value::String(_) => Value::text(""),
        // Of the same scale: of another it would not fit its schema.
        Value::Decimal(decimal) => Decimal { unscaled: 0.into(), scale: decimal.scale }.into(),
        Value::Moment(_) => Value::Moment(0),
        Value::Array(_) => Value::array(Vec::new()),
        Value::Map(_) => Value::map([]),
        Value::Null | Value::Bytes(_) | Value::Struct(_) => {
            return Err(DataError::unfit(format!("{}, which cannot be masked", value.kind_name())));
        }
    })
}

fn replaced(value: &Value, replacement: &str) -> Result<Value, DataError> {
    let text = Value::String(Arc::from(replacement));
    Ok(match value {
        Value::Int8(_) => Value::Int8(number::narrow(&text)?),
        Value::Int16(_) => Value::Int16(number::narrow(&text)?),
        Value::Int32(_) => Value::Int32(number::narrow(&text)?),
        Value::Int64(_) => Value::Int64(number::narrow(&text)?),
        Value::Float32(_) => Value::Float32(number::float(&text)?),
        Value::Float64(_) => Value::Float64(number::double(&text)?),
        Value::Decimal(_) => number::decimal(replacement)?.into(),
        Value::String(_) => text,
        value => {
            let kind = value.kind_name();
            return Err(DataError::unfit(format!("{kind}, which takes no replacement")));
        }
    })
}
