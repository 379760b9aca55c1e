//! Cast: makes values of one type those of another.

use std::collections::HashMap;

use highwater_config::{Config, ConfigKey, KeyType};
use highwater_data::{
    DataError, Fields, Logical, Map, Schema, SchemaAndValue, SchemaMemo, Struct, Type, Value, text,
};

use crate::number;
use crate::options::{Problems, REPLACE_NULL, replace_null, required, some_list, wrong};
use crate::place::{Place, filled, map_of, name, struct_of};
use crate::record::Record;
use crate::transform::{Applied, Transform};

const SPEC: &str = "spec";

pub(crate) fn keys() -> Vec<ConfigKey> {
    vec![
        required(
            SPEC,
            KeyType::List,
            "Pairs field:type, or one type for the whole key or value. Types: int8, int16, int32, int64, \
             float32, float64, boolean, string.",
        ),
        replace_null(),
    ]
}

#[derive(Debug)]
struct Cast {
    place: Place,
    spec: Spec,
    replace_null: bool,
    memo: SchemaMemo,
}

#[derive(Debug)]
enum Spec {
    Whole(Type),
    Fields(HashMap<String, Type>),
}

pub(crate) fn make(place: Place, config: &Config) -> Result<Box<dyn Transform>, Problems> {
    let spec = spec(&some_list(config, SPEC)?).map_err(|what| wrong(SPEC, what))?;
    let (replace_null, memo) = (config.flag(REPLACE_NULL), SchemaMemo::default());
    Ok(Box::new(Cast { place, spec, replace_null, memo }))
}

fn spec(items: &[String]) -> Result<Spec, String> {
    let mut fields = HashMap::new();
    for item in items {
        match item.split(':').map(str::trim).collect::<Vec<_>>().as_slice() {
            [name] if items.len() == 1 => return Ok(Spec::Whole(target(name)?)),
            [_] => return Err("names a type for the whole beside others".to_owned()),
            [field, name] => drop(fields.insert((*field).to_owned(), target(name)?)),
            _ => return Err(format!("has {item:?}, which is no pair field:type")),
        }
    }
    Ok(Spec::Fields(fields))
}

fn target(name: &str) -> Result<Type, String> {
    Ok(match name.to_ascii_lowercase().as_str() {
        "int8" => Type::Int8,
        "int16" => Type::Int16,
        "int32" => Type::Int32,
        "int64" => Type::Int64,
        "float32" => Type::Float32,
        "float64" => Type::Float64,
        "boolean" => Type::Boolean,
        "string" => Type::String,
        _ => return Err(format!("has {name:?}, which is no type to cast to")),
    })
}

impl Transform for Cast {
    fn apply(&self, record: Record) -> Applied {
        let old = self.place.of(&record);
        if old.value.is_null() {
            return Ok(Some(record));
        }
        let new = match (&self.spec, &old.schema) {
            (Spec::Whole(kind), None) => SchemaAndValue::schemaless(cast(None, &old.value, kind)?),
            (Spec::Whole(kind), Some(schema)) => {
                let new = self.memo.get(schema, || whole(schema, kind))?;
                SchemaAndValue::of(new, cast(Some(schema), &old.value, kind)?)
            }
            (Spec::Fields(fields), None) => {
                SchemaAndValue::schemaless(in_map(map_of(&old.value)?, fields)?)
            }
            (Spec::Fields(fields), Some(schema)) => {
                let row = struct_of(&old.value)?;
                let new = self.memo.get(schema, || of_fields(schema, fields))?;
                let value = in_struct(row, &new, fields, self.replace_null)?;
                SchemaAndValue::of(new, value)
            }
        };
        Ok(Some(self.place.put(record, new)))
    }
}

/// A field that is named and not there is null then, as in Connect.
fn in_map(map: &Map, fields: &HashMap<String, Type>) -> Result<Value, DataError> {
    let mut new = map.clone();
    for (field, kind) in fields {
        let value = map.get(&name(field)).unwrap_or(&Value::Null);
        new.insert(name(field), cast(None, value, kind)?);
    }
    Ok(Value::Map(new.into()))
}

fn in_struct(
    row: &Struct,
    schema: &Schema,
    fields: &HashMap<String, Type>,
    replace_null: bool,
) -> Result<Value, DataError> {
    let mut new = Struct::new(schema).ok_or_else(|| DataError::unfit("no schema of a struct"))?;
    for (place, (field, value)) in row.entries().enumerate() {
        let value = filled(field, value, replace_null);
        let value = match fields.get(&*field.name) {
            Some(kind) => cast(Some(&field.schema), &value, kind)?,
            None => value,
        };
        new.put_at(place, value)?;
    }
    Ok(new.into())
}

fn whole(schema: &Schema, kind: &Type) -> Result<Schema, DataError> {
    let default = cast(Some(schema), schema.default_value(), kind)?;
    Ok(Schema::like(kind.clone(), schema).optional(schema.is_optional()).with_default(default))
}

fn of_fields(schema: &Schema, fields: &HashMap<String, Type>) -> Result<Schema, DataError> {
    if !schema.default_value().is_null() {
        return Err(DataError::unfit("a struct with a default, which cannot be cast"));
    }
    let mut new = Fields::default();
    for field in schema.fields().map(Fields::iter).unwrap_or_default() {
        let of = match fields.get(&*field.name) {
            None => field.schema.clone(),
            Some(kind) => Schema::new(kind.clone())
                .optional(field.schema.is_optional())
                .with_default(cast(Some(&field.schema), field.schema.default_value(), kind)?),
        };
        new.add(field.name.clone(), of);
    }
    Ok(Schema::like(Type::Struct(new), schema).optional(schema.is_optional()))
}

/// A value in another type. Dates and times are taken for the number that stands for them, but as a
/// string for what they say.
fn cast(schema: Option<&Schema>, value: &Value, kind: &Type) -> Result<Value, DataError> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let plain = match schema.and_then(|schema| Some((Logical::of(schema)?, schema))) {
        Some((logical, schema)) if logical != Logical::Decimal && *kind != Type::String => {
            &logical.to_plain(schema, value)?
        }
        None if matches!(value, Value::Moment(_) | Value::Decimal(_)) => {
            return Err(DataError::unfit(format!("{} without schema", value.kind_name())));
        }
        _ => value,
    };
    if matches!(plain, Value::Array(_) | Value::Map(_) | Value::Struct(_)) {
        return Err(DataError::unfit(format!("{}, which cannot be cast", plain.kind_name())));
    }
    Ok(match kind {
        Type::Int8 => Value::Int8(number::narrow(plain)?),
        Type::Int16 => Value::Int16(number::narrow(plain)?),
        Type::Int32 => Value::Int32(number::narrow(plain)?),
        Type::Int64 => Value::Int64(number::narrow(plain)?),
        Type::Float32 => Value::Float32(number::float(plain)?),
        Type::Float64 => Value::Float64(number::double(plain)?),
        Type::Boolean => Value::Boolean(truth(plain)?),
        _ => Value::text(text::of(plain)?),
    })
}

fn truth(value: &Value) -> Result<bool, DataError> {
    match value {
        Value::Boolean(value) => Ok(*value),
        Value::String(text) => Ok(text.eq_ignore_ascii_case("true")),
        value => Ok(number::whole(value)? != 0),
    }
}
