//! Flatten: takes the fields of nested structs or maps up to the first level, under joined names.

use std::sync::Arc;

use highwater_config::{Config, ConfigKey, KeyType};
use highwater_data::{
    DataError, Fields, Map, Schema, SchemaAndValue, SchemaMemo, Struct, Type, Value,
};

use crate::options::{Problems, optional};
use crate::place::{Place, filled, map_of, struct_of};
use crate::record::Record;
use crate::transform::{Applied, Transform};

const DELIMITER: &str = "delimiter";

pub(crate) fn keys() -> Vec<ConfigKey> {
    vec![optional(DELIMITER, KeyType::String, ".", "What stands between the joined names.")]
}

#[derive(Debug)]
struct Flatten {
    place: Place,
    delimiter: String,
    memo: SchemaMemo,
}

pub(crate) fn make(place: Place, config: &Config) -> Result<Box<dyn Transform>, Problems> {
    let delimiter = config.text(DELIMITER).to_owned();
    Ok(Box::new(Flatten { place, delimiter, memo: SchemaMemo::default() }))
}

impl Transform for Flatten {
    fn apply(&self, record: Record) -> Applied {
        let old = self.place.of(&record);
        if old.value.is_null() {
            return Ok(Some(record));
        }
        let new = match &old.schema {
            None => {
                let mut flat = Map::new();
                self.map(map_of(&old.value)?, "", &mut flat)?;
                SchemaAndValue::schemaless(Value::Map(flat.into()))
            }
            Some(schema) => {
                let row = struct_of(&old.value)?;
                let new = self.memo.get(schema, || self.schema(schema))?;
                let mut flat =
                    Struct::new(&new).ok_or_else(|| DataError::unfit("no schema of a struct"))?;
                self.row(row, "", &mut flat)?;
                SchemaAndValue::of(new, flat.into())
            }
        };
        Ok(Some(self.place.put(record, new)))
    }
}

impl Flatten {
    fn name(&self, prefix: &str, name: &str) -> Arc<str> {
        if prefix.is_empty() {
            Arc::from(name)
        } else {
            Arc::from(format!("{prefix}{}{name}", self.delimiter))
        }
    }

    fn map(&self, map: &Map, prefix: &str, flat: &mut Map) -> Result<(), DataError> {
        for (key, value) in map {
            let Value::String(key) = key else {
                return Err(DataError::unfit("a map with a key that is no string"));
            };
            let name = self.name(prefix, key);
            match value {
                Value::Map(inner) => self.map(inner, &name, flat)?,
                Value::Struct(_) | Value::Moment(_) | Value::Decimal(_) => {
                    let kind = value.kind_name();
                    return Err(DataError::unfit(format!(
                        "{kind} without schema in field {name:?}"
                    )));
                }
                value => drop(flat.insert(Value::String(name), value.clone())),
            }
        }
        Ok(())
    }

    fn schema(&self, schema: &Schema) -> Result<Schema, DataError> {
        let mut fields = Fields::default();
        self.fields(schema, "", schema.is_optional(), schema.default_value(), &mut fields)?;
        Ok(Schema::like(Type::Struct(fields), schema))
    }

    /// Adds the fields of a struct; those of one that may be absent may be absent, too.
    fn fields(
        &self,
        schema: &Schema,
        prefix: &str,
        optional: bool,
        default: &Value,
        flat: &mut Fields,
    ) -> Result<(), DataError> {
        for field in schema.fields().map(Fields::iter).unwrap_or_default() {
            let name = self.name(prefix, &field.name);
            let optional = optional || field.schema.is_optional();
            let own = field.schema.default_value();
            let default = match default {
                Value::Struct(row) if own.is_null() => {
                    row.read(&field.name, true).unwrap_or(&Value::Null)
                }
                _ => own,
            };
            match field.schema.kind() {
                Type::Struct(_) => {
                    self.fields(&field.schema, &name, optional, default, flat)?;
                    continue;
                }
                Type::Map(..) => {
                    return Err(DataError::unfit(format!(
                        "field {name:?} is a map with a schema, whose keys are no fields"
                    )));
                }
                _ => {}
            }
            let of = Schema::like(field.schema.kind().clone(), &field.schema);
            if !flat.add(name.clone(), of.optional(optional).with_default(default.clone())) {
                return Err(DataError::unfit(format!("two fields become {name:?}")));
            }
        }
        Ok(())
    }

    fn row(&self, row: &Struct, prefix: &str, flat: &mut Struct) -> Result<(), DataError> {
        for (field, value) in row.entries() {
            let name = self.name(prefix, &field.name);
            match (field.schema.kind(), filled(field, value, true)) {
                (Type::Struct(_), Value::Struct(inner)) => self.row(&inner, &name, flat)?,
                (Type::Struct(_), _) => {}
                (_, value) => flat.put(&name, value)?,
            }
        }
        Ok(())
    }
}
