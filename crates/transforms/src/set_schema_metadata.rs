//! SetSchemaMetadata: gives the schema of key or value a name, a version, or both.

use std::sync::Arc;

use highwater_config::{Config, ConfigKey, Importance, KeyType};
use highwater_data::{DataError, Schema, SchemaAndValue, SchemaMemo, Struct, Value};

use crate::options::{Problems, REPLACE_NULL, given, optional, replace_null, wrong};
use crate::place::{Place, filled};
use crate::record::Record;
use crate::transform::{Applied, Transform};

const NAME: &str = "schema.name";
const VERSION: &str = "schema.version";

pub(crate) fn keys() -> Vec<ConfigKey> {
    vec![
        optional(NAME, KeyType::String, "", "The name; empty: as it was.")
            .of_importance(Importance::High),
        optional(VERSION, KeyType::String, "", "The version, a whole number; empty: as it was.")
            .of_importance(Importance::High),
        replace_null(),
    ]
}

#[derive(Debug)]
struct SetSchemaMetadata {
    place: Place,
    name: Option<Arc<str>>,
    version: Option<i32>,
    replace_null: bool,
    memo: SchemaMemo,
}

pub(crate) fn make(place: Place, config: &Config) -> Result<Box<dyn Transform>, Problems> {
    let name = given(config, NAME).map(Arc::from);
    let version = given(config, VERSION)
        .map(|text| {
            text.trim().parse().map_err(|_| wrong(VERSION, "must be a whole number of 32 bits"))
        })
        .transpose()?;
    if name.is_none() && version.is_none() {
        return Err(wrong(NAME, format!("or {VERSION} must be given")));
    }
    let (replace_null, memo) = (config.flag(REPLACE_NULL), SchemaMemo::default());
    Ok(Box::new(SetSchemaMetadata { place, name, version, replace_null, memo }))
}

impl Transform for SetSchemaMetadata {
    fn apply(&self, record: Record) -> Applied {
        let old = self.place.of(&record);
        let schema = match &old.schema {
            None if old.value.is_null() => return Ok(Some(record)),
            None => {
                return Err(DataError::unfit("a value without schema, whose name is to be set"));
            }
            Some(schema) => schema,
        };
        let renamed = self.memo.get(schema, || {
            let name = self.name.clone().or_else(|| schema.name().cloned());
            let version = self.version.or_else(|| schema.version());
            Ok(schema.clone().named(name).versioned(version))
        })?;
        let value = match &old.value {
            Value::Struct(row) => self.copied(row, &renamed)?,
            value => value.clone(),
        };
        Ok(Some(self.place.put(record, SchemaAndValue::of(renamed, value))))
    }
}

impl SetSchemaMetadata {
    fn copied(&self, row: &Struct, schema: &Schema) -> Result<Value, DataError> {
        let mut copy =
            Struct::new(schema).ok_or_else(|| DataError::unfit("no schema of a struct"))?;
        for (place, (field, value)) in row.entries().enumerate() {
            copy.put_at(place, filled(field, value, self.replace_null))?;
        }
        Ok(copy.into())
    }
}
