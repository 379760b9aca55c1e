//! InsertField: adds fields with where a record stands, or with a text that is the same for all.

use highwater_config::{Config, ConfigKey, KeyType};
use highwater_data::{
    DataError, Fields, Logical, Schema, SchemaAndValue, SchemaMemo, Struct, Type, Value,
};

use crate::options::{Problems, REPLACE_NULL, given, optional, replace_null, wrong};
use crate::place::{Place, filled, map_of, name, struct_of};
use crate::record::Record;
use crate::transform::{Applied, Transform};

const TOPIC: &str = "topic.field";
const PARTITION: &str = "partition.field";
const OFFSET: &str = "offset.field";
const TIMESTAMP: &str = "timestamp.field";
const STATIC: &str = "static.field";
const STATIC_VALUE: &str = "static.value";

pub(crate) fn keys() -> Vec<ConfigKey> {
    let text = KeyType::String;
    vec![
        optional(
            TOPIC,
            text,
            "",
            "Field for the topic. A ! behind a name makes the field required.",
        ),
        optional(PARTITION, text, "", "Field for the partition."),
        optional(OFFSET, text, "", "Field for the offset; of sinks alone."),
        optional(TIMESTAMP, text, "", "Field for the record's timestamp."),
        optional(STATIC, text, "", "Field for the text of static.value."),
        optional(STATIC_VALUE, text, "", "The text."),
        replace_null(),
    ]
}

#[derive(Debug)]
struct InsertField {
    place: Place,
    fields: Vec<Inserted>,
    replace_null: bool,
    memo: SchemaMemo,
}

#[derive(Debug)]
struct Inserted {
    name: String,
    optional: bool,
    what: What,
}

#[derive(Debug)]
enum What {
    Topic,
    Partition,
    Offset,
    Timestamp,
    Text(String),
}

pub(crate) fn make(place: Place, config: &Config) -> Result<Box<dyn Transform>, Problems> {
    let mut fields = Vec::new();
    let all = [
        (TOPIC, What::Topic),
        (PARTITION, What::Partition),
        (OFFSET, What::Offset),
        (TIMESTAMP, What::Timestamp),
        (STATIC, What::Text(config.text(STATIC_VALUE).to_owned())),
    ];
    for (key, what) in all {
        let Some(name) = given(config, key) else { continue };
        if key == STATIC && given(config, STATIC_VALUE).is_none() {
            return Err(wrong(STATIC_VALUE, format!("must be given beside {STATIC}")));
        }
        let required = name.ends_with('!');
        let name = name.strip_suffix(['!', '?']).map(ToOwned::to_owned).unwrap_or(name);
        fields.push(Inserted { name, optional: !required, what });
    }
    if fields.is_empty() {
        return Err(wrong(TOPIC, "or another field must be given"));
    }
    let (replace_null, memo) = (config.flag(REPLACE_NULL), SchemaMemo::default());
    Ok(Box::new(InsertField { place, fields, replace_null, memo }))
}

impl What {
    fn schema(&self) -> Schema {
        match self {
            Self::Topic | Self::Text(_) => Type::String.into(),
            Self::Partition => Type::Int32.into(),
            Self::Offset => Type::Int64.into(),
            Self::Timestamp => Logical::Timestamp.schema(),
        }
    }

    /// The value of a record; a timestamp is a moment beside a schema, else a number.
    fn value(&self, record: &Record, with_schema: bool) -> Result<Value, DataError> {
        Ok(match self {
            Self::Topic => Value::String(record.topic.clone()),
            Self::Text(text) => Value::text(text.as_str()),
            Self::Partition => record.partition.map_or(Value::Null, Value::Int32),
            Self::Offset => {
                let offset = record.offset.map(Value::Int64);
                offset.ok_or_else(|| {
                    DataError::unfit("the offset of a record that is not in a topic yet")
                })?
            }
            Self::Timestamp if with_schema => record.timestamp.map_or(Value::Null, Value::Moment),
            Self::Timestamp => record.timestamp.map_or(Value::Null, Value::Int64),
        })
    }
}

impl Transform for InsertField {
    fn apply(&self, record: Record) -> Applied {
        let old = self.place.of(&record);
        if old.value.is_null() {
            return Ok(Some(record));
        }
        let new = match &old.schema {
            None => {
                let mut map = map_of(&old.value)?.clone();
                for field in &self.fields {
                    let value = field.what.value(&record, false)?;
                    if !value.is_null() {
                        map.insert(name(&field.name), value);
                    }
                }
                SchemaAndValue::schemaless(Value::Map(map.into()))
            }
            Some(schema) => {
                let row = struct_of(&old.value)?;
                let new = self.memo.get(schema, || self.schema(schema))?;
                let value = self.row(row, &new, &record)?;
                SchemaAndValue::of(new, value)
            }
        };
        Ok(Some(self.place.put(record, new)))
    }
}

impl InsertField {
    fn schema(&self, schema: &Schema) -> Result<Schema, DataError> {
        let mut fields = schema.fields().cloned().unwrap_or_default();
        for Inserted { name, optional, what } in &self.fields {
            if !Fields::add(&mut fields, name.as_str(), what.schema().optional(*optional)) {
                return Err(DataError::unfit(format!("there is a field {name:?} already")));
            }
        }
        Ok(Schema::like(Type::Struct(fields), schema))
    }

    fn row(&self, row: &Struct, schema: &Schema, record: &Record) -> Result<Value, DataError> {
        let mut new =
            Struct::new(schema).ok_or_else(|| DataError::unfit("no schema of a struct"))?;
        for (place, (field, value)) in row.entries().enumerate() {
            new.put_at(place, filled(field, value, self.replace_null))?;
        }
        for field in &self.fields {
            let value = field.what.value(record, true)?;
            // What a record does not have is left out, even where the field is required.
            if !value.is_null() {
                new.put(&field.name, value)?;
            }
        }
        Ok(new.into())
    }
}
