//! ReplaceField: leaves fields out, and gives others another name.

use std::collections::HashMap;
use std::sync::Arc;

use highwater_config::{Config, ConfigKey, KeyType};
use highwater_data::{
    DataError, Fields, Map, Schema, SchemaAndValue, SchemaMemo, Struct, Type, Value,
};

use crate::options::{Problems, REPLACE_NULL, list, optional, replace_null, wrong};
use crate::place::{Place, filled, map_of, struct_of};
use crate::record::Record;
use crate::transform::{Applied, Transform};

const EXCLUDE: &str = "exclude";
const INCLUDE: &str = "include";
const RENAMES: &str = "renames";

pub(crate) fn keys() -> Vec<ConfigKey> {
    let list = KeyType::List;
    vec![
        optional(EXCLUDE, list, "", "Fields to leave out, whatever include says."),
        optional(INCLUDE, list, "", "Fields to keep; empty: all."),
        optional(RENAMES, list, "", "Pairs old:new of names."),
        replace_null(),
    ]
}

#[derive(Debug)]
struct ReplaceField {
    place: Place,
    exclude: Vec<String>,
    include: Vec<String>,
    renames: HashMap<String, Arc<str>>,
    replace_null: bool,
    memo: SchemaMemo,
}

pub(crate) fn make(place: Place, config: &Config) -> Result<Box<dyn Transform>, Problems> {
    let mut renames = HashMap::new();
    for pair in list(config, RENAMES) {
        match pair.split(':').collect::<Vec<_>>().as_slice() {
            [old, new] if !old.is_empty() && !new.is_empty() => {
                renames.insert((*old).to_owned(), Arc::from(*new));
            }
            _ => return Err(wrong(RENAMES, format!("has {pair:?}, which is no pair old:new"))),
        }
    }
    Ok(Box::new(ReplaceField {
        place,
        exclude: list(config, EXCLUDE),
        include: list(config, INCLUDE),
        renames,
        replace_null: config.flag(REPLACE_NULL),
        memo: SchemaMemo::default(),
    }))
}

impl Transform for ReplaceField {
    fn apply(&self, record: Record) -> Applied {
        let old = self.place.of(&record);
        if old.value.is_null() {
            return Ok(Some(record));
        }
        let new = match &old.schema {
            None => SchemaAndValue::schemaless(self.map(map_of(&old.value)?)),
            Some(schema) => {
                let row = struct_of(&old.value)?;
                let new = self.memo.get(schema, || self.schema(schema))?;
                let value = self.row(row, &new)?;
                SchemaAndValue::of(new, value)
            }
        };
        Ok(Some(self.place.put(record, new)))
    }
}

impl ReplaceField {
    fn keeps(&self, field: &str) -> bool {
        let named = |names: &[String]| names.iter().any(|name| name == field);
        !named(&self.exclude) && (self.include.is_empty() || named(&self.include))
    }

    fn renamed(&self, field: &Arc<str>) -> Arc<str> {
        self.renames.get(&**field).unwrap_or(field).clone()
    }

    fn map(&self, map: &Map) -> Value {
        let entry = |(key, value): (&Value, &Value)| match key {
            Value::String(name) if self.keeps(name) => {
                Some((Value::String(self.renamed(name)), value.clone()))
            }
            Value::String(_) => None,
            key => Some((key.clone(), value.clone())),
        };
        Value::map(map.iter().filter_map(entry))
    }

    fn schema(&self, schema: &Schema) -> Result<Schema, DataError> {
        let mut fields = Fields::default();
        for field in schema.fields().map(Fields::iter).unwrap_or_default() {
            let name = self.renamed(&field.name);
            if self.keeps(&field.name) && !fields.add(name.clone(), field.schema.clone()) {
                return Err(DataError::unfit(format!("two fields become {name:?}")));
            }
        }
        Ok(Schema::like(Type::Struct(fields), schema))
    }

    fn row(&self, row: &Struct, schema: &Schema) -> Result<Value, DataError> {
        let mut new =
            Struct::new(schema).ok_or_else(|| DataError::unfit("no schema of a struct"))?;
        let kept = row.entries().filter(|(field, _)| self.keeps(&field.name));
        for (place, (field, value)) in kept.enumerate() {
            new.put_at(place, filled(field, value, self.replace_null))?;
        }
        Ok(new.into())
    }
}
