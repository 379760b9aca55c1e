//! HoistField: wraps key or value in a struct or map with one field.

use std::sync::Arc;

use highwater_config::{Config, ConfigKey, Importance, KeyType};
use highwater_data::{DataError, Schema, SchemaAndValue, SchemaMemo, Struct, Value};

use crate::options::{Problems, required};
use crate::place::{Place, name};
use crate::record::Record;
use crate::transform::{Applied, Transform};

const FIELD: &str = "field";

pub(crate) fn keys() -> Vec<ConfigKey> {
    let field = required(FIELD, KeyType::String, "Name of the one field.");
    vec![field.of_importance(Importance::Medium)]
}

#[derive(Debug)]
struct HoistField {
    place: Place,
    field: Arc<str>,
    memo: SchemaMemo,
}

pub(crate) fn make(place: Place, config: &Config) -> Result<Box<dyn Transform>, Problems> {
    let field = Arc::from(config.text(FIELD));
    Ok(Box::new(HoistField { place, field, memo: SchemaMemo::default() }))
}

impl Transform for HoistField {
    fn apply(&self, record: Record) -> Applied {
        let old = self.place.of(&record).clone();
        let new = match old.schema {
            None => SchemaAndValue::schemaless(Value::map([(name(&self.field), old.value)])),
            Some(_) if self.field.is_empty() => {
                return Err(DataError::unfit("a struct cannot have a field without name"));
            }
            Some(schema) => {
                let wrapped = self.memo.get(&schema, || {
                    Ok(Schema::of_fields([(self.field.clone(), schema.clone())]))
                })?;
                let mut row = Struct::new(&wrapped)
                    .ok_or_else(|| DataError::unfit("no schema of a struct"))?;
                row.put(&self.field, old.value)?;
                SchemaAndValue::of(wrapped, row.into())
            }
        };
        Ok(Some(self.place.put(record, new)))
    }
}
