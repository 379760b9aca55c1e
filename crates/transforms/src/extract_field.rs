//! ExtractField: puts a field of key or value in the place of the whole.

use highwater_config::{Config, ConfigKey, Importance, KeyType};
use highwater_data::{DataError, SchemaAndValue, Value};

use crate::field_path::{FieldPath, syntax};
use crate::options::{Problems, REPLACE_NULL, replace_null, required};
use crate::place::{Place, map_of, struct_of};
use crate::record::Record;
use crate::transform::{Applied, Transform};

const FIELD: &str = "field";

pub(crate) fn keys() -> Vec<ConfigKey> {
    let field = required(FIELD, KeyType::String, "The field.").of_importance(Importance::Medium);
    vec![field, syntax(), replace_null()]
}

#[derive(Debug)]
struct ExtractField {
    place: Place,
    path: FieldPath,
    name: String,
    replace_null: bool,
}

pub(crate) fn make(place: Place, config: &Config) -> Result<Box<dyn Transform>, Problems> {
    let name = config.text(FIELD).to_owned();
    let path = FieldPath::new(config, FIELD, &name)?;
    Ok(Box::new(ExtractField { place, path, name, replace_null: config.flag(REPLACE_NULL) }))
}

impl Transform for ExtractField {
    fn apply(&self, record: Record) -> Applied {
        let old = self.place.of(&record);
        let new = match (&old.schema, &old.value) {
            (None, Value::Null) => SchemaAndValue::default(),
            (None, value) => SchemaAndValue::schemaless(self.path.in_map(map_of(value)?)?),
            (Some(schema), value) => {
                let field = self.path.field(schema).ok_or_else(|| {
                    DataError::unfit(format!("the schema has no field {:?}", self.name))
                })?;
                let value = match value {
                    Value::Null => Value::Null,
                    value => self.path.in_struct(struct_of(value)?, self.replace_null)?,
                };
                SchemaAndValue::of(field.schema.clone(), value)
            }
        };
        Ok(Some(self.place.put(record, new)))
    }
}
