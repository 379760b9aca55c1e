//! Where in a record a transform works.

use highwater_data::{DataError, Field, Map, SchemaAndValue, Struct, Value};

use crate::record::Record;

/// The key or the value: `$Key` or `$Value` behind a transform's class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The key.
    Key,
    /// The value.
    Value,
}

impl Place {
    /// What stands there.
    pub const fn of(self, record: &Record) -> &SchemaAndValue {
        match self {
            Self::Key => &record.key,
            Self::Value => &record.value,
        }
    }

    /// The record with this there instead.
    #[must_use]
    pub fn put(self, mut record: Record, new: SchemaAndValue) -> Record {
        match self {
            Self::Key => record.key = new,
            Self::Value => record.value = new,
        }
        record
    }
}

/// The map that a value without schema must be.
pub(crate) fn map_of(value: &Value) -> Result<&Map, DataError> {
    match value {
        Value::Map(map) => Ok(map),
        _ => Err(DataError::unfit(format!(
            "{} without schema where a map is wanted",
            value.kind_name()
        ))),
    }
}

/// The struct that a value with schema must be.
pub(crate) fn struct_of(value: &Value) -> Result<&Struct, DataError> {
    match value {
        Value::Struct(row) => Ok(row),
        _ => Err(DataError::unfit(format!(
            "{} with a schema where a struct is wanted",
            value.kind_name()
        ))),
    }
}

/// The value of a field or, where that is null and `replace_null` says so, its default.
pub(crate) fn filled(field: &Field, value: &Value, replace_null: bool) -> Value {
    if value.is_null() && replace_null {
        field.schema.default_value().clone()
    } else {
        value.clone()
    }
}

/// A map's key of this name.
pub(crate) fn name(name: &str) -> Value {
    Value::text(name)
}
