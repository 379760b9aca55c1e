//! HeaderFrom: makes headers of fields of key or value.

use std::sync::Arc;

use highwater_config::{Config, ConfigKey, KeyType};
use highwater_data::{
    DataError, Fields, Header, Map, Schema, SchemaAndValue, SchemaMemo, Struct, Type, Value,
};

use crate::options::{Problems, REPLACE_NULL, replace_null, required, some_list, wrong};
use crate::place::{Place, filled, map_of, name, struct_of};
use crate::record::Record;
use crate::transform::{Applied, Transform};

const FIELDS: &str = "fields";
const HEADERS: &str = "headers";
const OPERATION: &str = "operation";

pub(crate) fn keys() -> Vec<ConfigKey> {
    vec![
        required(FIELDS, KeyType::List, "The fields."),
        required(HEADERS, KeyType::List, "The headers' names, as many and in the same order."),
        required(OPERATION, KeyType::String, "move: the fields are taken away; copy: they stay."),
        replace_null(),
    ]
}

#[derive(Debug)]
struct HeaderFrom {
    place: Place,
    fields: Vec<String>,
    headers: Vec<Arc<str>>,
    moves: bool,
    replace_null: bool,
    memo: SchemaMemo,
}

pub(crate) fn make(place: Place, config: &Config) -> Result<Box<dyn Transform>, Problems> {
    let (fields, headers) = (some_list(config, FIELDS)?, some_list(config, HEADERS)?);
    if fields.len() != headers.len() {
        return Err(wrong(HEADERS, format!("must be as many as {FIELDS}")));
    }
    let moves = match config.text(OPERATION) {
        "move" => true,
        "copy" => false,
        _ => return Err(wrong(OPERATION, "must be move or copy")),
    };
    let headers = headers.into_iter().map(Arc::from).collect();
    let (replace_null, memo) = (config.flag(REPLACE_NULL), SchemaMemo::default());
    Ok(Box::new(HeaderFrom { place, fields, headers, moves, replace_null, memo }))
}

impl Transform for HeaderFrom {
    fn apply(&self, mut record: Record) -> Applied {
        let old = self.place.of(&record).clone();
        let (found, rest) = match &old.schema {
            None => self.of_map(map_of(&old.value)?),
            Some(schema) => self.of_struct(schema, struct_of(&old.value)?)?,
        };
        let headers = self.headers.iter().cloned().zip(found);
        record.headers.extend(headers.map(|(name, value)| Header { name, value }));
        Ok(Some(match rest {
            Some(rest) => self.place.put(record, rest),
            None => record,
        }))
    }
}

/// The values of the headers, and what is left where it is another.
type Taken = (Vec<SchemaAndValue>, Option<SchemaAndValue>);

impl HeaderFrom {
    fn of_map(&self, map: &Map) -> Taken {
        let value = |field: &String| map.get(&name(field)).cloned().unwrap_or_default();
        let found =
            self.fields.iter().map(|field| SchemaAndValue::schemaless(value(field))).collect();
        let rest = self.moves.then(|| {
            let mut rest = map.clone();
            self.fields.iter().for_each(|field| drop(rest.shift_remove(&name(field))));
            SchemaAndValue::schemaless(Value::Map(rest.into()))
        });
        (found, rest)
    }

    fn of_struct(&self, schema: &Schema, row: &Struct) -> Result<Taken, DataError> {
        let mut found = Vec::new();
        for name in &self.fields {
            let field = row.schema().fields().and_then(|fields| fields.get(name));
            let field = field.ok_or_else(|| DataError::unfit(format!("no field {name:?}")))?;
            let value = row.read(name, self.replace_null).cloned().unwrap_or_default();
            found.push(SchemaAndValue::of(field.schema.clone(), value));
        }
        if !self.moves {
            return Ok((found, None));
        }
        let new = self.memo.get(schema, || Ok(self.without(schema)))?;
        let mut rest =
            Struct::new(&new).ok_or_else(|| DataError::unfit("no schema of a struct"))?;
        for (field, value) in row.entries().filter(|(field, _)| !self.takes(&field.name)) {
            rest.put(&field.name, filled(field, value, self.replace_null))?;
        }
        Ok((found, Some(SchemaAndValue::of(new, rest.into()))))
    }

    fn takes(&self, field: &str) -> bool {
        self.fields.iter().any(|name| name == field)
    }

    fn without(&self, schema: &Schema) -> Schema {
        let mut fields = Fields::default();
        for field in schema.fields().map(Fields::iter).unwrap_or_default() {
            if !self.takes(&field.name) {
                fields.add(field.name.clone(), field.schema.clone());
            }
        }
        Schema::like(Type::Struct(fields), schema)
    }
}
