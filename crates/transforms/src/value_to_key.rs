//! ValueToKey: makes the key of fields of the value.

use highwater_config::{Config, ConfigKey, KeyType};
use highwater_data::{DataError, Fields, Schema, SchemaAndValue, SchemaMemo, Struct, Type, Value};

use crate::field_path::{FieldPath, syntax};
use crate::options::{Problems, REPLACE_NULL, replace_null, required, some_list};
use crate::place::{Place, map_of, name, struct_of};
use crate::record::Record;
use crate::transform::{Applied, Transform};

const FIELDS: &str = "fields";

pub(crate) fn keys() -> Vec<ConfigKey> {
    vec![
        required(FIELDS, KeyType::List, "Fields of the value that the key is made of."),
        syntax(),
        replace_null(),
    ]
}

#[derive(Debug)]
struct ValueToKey {
    fields: Vec<(String, FieldPath)>,
    replace_null: bool,
    memo: SchemaMemo,
}

pub(crate) fn make(_: Place, config: &Config) -> Result<Box<dyn Transform>, Problems> {
    let field = |name: String| Ok((name.clone(), FieldPath::new(config, FIELDS, &name)?));
    let fields =
        some_list(config, FIELDS)?.into_iter().map(field).collect::<Result<_, Problems>>()?;
    let replace_null = config.flag(REPLACE_NULL);
    Ok(Box::new(ValueToKey { fields, replace_null, memo: SchemaMemo::default() }))
}

impl ValueToKey {
    fn schema(&self, schema: &Schema) -> Result<Schema, DataError> {
        let mut fields = Fields::default();
        for (name, path) in &self.fields {
            let field = path
                .field(schema)
                .ok_or_else(|| DataError::unfit(format!("the value has no field {name:?}")))?;
            fields.add(name.as_str(), field.schema.clone());
        }
        Ok(Schema::new(Type::Struct(fields)))
    }
}

impl Transform for ValueToKey {
    fn apply(&self, mut record: Record) -> Applied {
        record.key = if record.value.schema.is_none() {
            let map = map_of(&record.value.value)?;
            let entry = |(field, path): &(String, FieldPath)| Ok((name(field), path.in_map(map)?));
            let entries = self.fields.iter().map(entry).collect::<Result<Vec<_>, DataError>>()?;
            SchemaAndValue::schemaless(Value::map(entries))
        } else {
            let row = struct_of(&record.value.value)?;
            let schema = self.memo.get(row.schema(), || self.schema(row.schema()))?;
            let mut key =
                Struct::new(&schema).ok_or_else(|| DataError::unfit("no schema of a struct"))?;
            for (place, (_, path)) in self.fields.iter().enumerate() {
                key.put_at(place, path.in_struct(row, self.replace_null)?)?;
            }
            SchemaAndValue::of(schema, key.into())
        };
        Ok(Some(record))
    }
}
