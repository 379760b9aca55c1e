//! The Avro schema that stands for one of Connect, as JSON.

use std::collections::HashMap;

use serde_json::{Map as Members, Value as Json, json};

use super::default;
use super::node::{DEFAULT_NAME, DEFAULT_PRECISION, MAP_ENTRY, NAMESPACE, PRECISION};
use crate::error::DataError;
use crate::logical::{self, Logical};
use crate::schema::{Field, Fields, Schema, Type};

/// The JSON of an Avro schema.
pub(super) fn of(schema: &Schema) -> Result<Json, DataError> {
    Names::default().of(schema)
}

/// The records that are defined so far, by their full names: each is defined where it comes first.
#[derive(Default)]
struct Names {
    defined: HashMap<String, Schema>,
}

impl Names {
    fn of(&mut self, schema: &Schema) -> Result<Json, DataError> {
        let base = self.required(schema)?;
        Ok(match (schema.is_optional(), schema.default_value().is_null()) {
            (false, _) => base,
            (true, true) => json!(["null", base]),
            // The branch of the default comes first.
            (true, false) => json!([base, "null"]),
        })
    }

    fn required(&mut self, schema: &Schema) -> Result<Json, DataError> {
        let mut members = Members::new();
        match schema.kind() {
            Type::Struct(fields) => {
                let (namespace, name) = name_of(schema, DEFAULT_NAME)?;
                let full = format!("{namespace}.{name}");
                if let Some(before) = self.defined.get(&full) {
                    return if before.kind() == schema.kind() {
                        Ok(json!(full.trim_start_matches('.')))
                    } else {
                        Err(DataError::unfit(format!(
                            "two structs of the name {full:?} with other fields"
                        )))
                    };
                }
                self.defined.insert(full, schema.clone());
                members.insert("type".into(), json!("record"));
                members.insert("name".into(), json!(name));
                if !namespace.is_empty() {
                    members.insert("namespace".into(), json!(namespace));
                }
                members.insert("fields".into(), self.fields(fields)?);
            }
            Type::Array(items) => {
                members.insert("type".into(), json!("array"));
                members.insert("items".into(), self.part(items.as_ref())?);
            }
            Type::Map(keys, values) => {
                self.map(&mut members, schema, keys.as_ref(), values.as_ref())?
            }
            kind => {
                members.insert("type".into(), json!(plain_name(kind)));
            }
        }
        describe(&mut members, schema)?;
        // A type that nothing stands beside is its name alone.
        if members.len() == 1 {
            return Ok(members.remove("type").unwrap_or_default());
        }
        Ok(Json::Object(members))
    }

    fn part(&mut self, schema: Option<&Schema>) -> Result<Json, DataError> {
        self.of(schema.ok_or_else(|| {
            DataError::unfit("a list or map of nothing but null, which Avro cannot say")
        })?)
    }

    fn fields(&mut self, fields: &Fields) -> Result<Json, DataError> {
        let mut list = Vec::new();
        for Field { name, schema } in fields.iter() {
            checked(name)?;
            let mut field = Members::new();
            field.insert("name".into(), json!(&**name));
            field.insert("type".into(), self.of(schema)?);
            if !schema.default_value().is_null() {
                field.insert("default".into(), default::to_json(schema, schema.default_value())?);
            } else if schema.is_optional() {
                field.insert("default".into(), Json::Null);
            }
            list.push(Json::Object(field));
        }
        Ok(list.into())
    }

    /// A map of Avro where the keys are plain strings, else an array of entries.
    fn map(
        &mut self,
        members: &mut Members<String, Json>,
        schema: &Schema,
        keys: Option<&Schema>,
        values: Option<&Schema>,
    ) -> Result<(), DataError> {
        if keys.is_some_and(|keys| *keys.kind() == Type::String && !keys.is_optional()) {
            members.insert("type".into(), json!("map"));
            members.insert("values".into(), self.part(values)?);
            return Ok(());
        }
        let (namespace, name) = name_of(schema, MAP_ENTRY)?;
        let nothing = || DataError::unfit("a map of nothing but null, which Avro cannot say");
        let mut fields = Fields::default();
        fields.add("key", keys.cloned().ok_or_else(nothing)?);
        fields.add("value", values.cloned().ok_or_else(nothing)?);
        let fields = self.fields(&fields)?;
        let mut entry = Members::new();
        entry.insert("type".into(), json!("record"));
        entry.insert("name".into(), json!(name));
        if !namespace.is_empty() {
            entry.insert("namespace".into(), json!(namespace));
        }
        entry.insert("fields".into(), fields);
        if schema.name().is_some() {
            entry.insert("connect.internal.type".into(), json!(MAP_ENTRY));
        }
        let full = format!("{namespace}.{name}");
        if self
            .defined
            .insert(full.clone(), schema.clone())
            .is_some_and(|before| before.kind() != schema.kind())
        {
            return Err(DataError::unfit(format!(
                "two maps of the name {full:?} with other entries"
            )));
        }
        members.insert("type".into(), json!("array"));
        members.insert("items".into(), Json::Object(entry));
        Ok(())
    }
}

/// Namespace and name of a schema.
fn name_of(schema: &Schema, default: &str) -> Result<(String, String), DataError> {
    let Some(full) = schema.name() else {
        return Ok((NAMESPACE.to_owned(), default.to_owned()));
    };
    full.split('.').try_for_each(checked)?;
    let (namespace, name) = full.rsplit_once('.').unwrap_or(("", full));
    Ok((namespace.to_owned(), name.to_owned()))
}

fn checked(name: &str) -> Result<(), DataError> {
    let begins = name.starts_with(|letter: char| letter.is_ascii_alphabetic() || letter == '_');
    if begins && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        Ok(())
    } else {
        Err(DataError::unfit(format!(
            "the name {name:?}, which is none in Avro: letters, digits and _ are"
        )))
    }
}

const fn plain_name(kind: &Type) -> &'static str {
    match kind {
        Type::Int8 | Type::Int16 | Type::Int32 => "int",
        Type::Int64 => "long",
        Type::Float32 => "float",
        Type::Float64 => "double",
        Type::Boolean => "boolean",
        Type::Bytes => "bytes",
        _ => "string",
    }
}

/// What Avro does not have, beside the type, so that it comes back.
fn describe(members: &mut Members<String, Json>, schema: &Schema) -> Result<(), DataError> {
    let mut put = |name: &str, value: Json| drop(members.insert(name.to_owned(), value));
    match schema.kind() {
        Type::Int8 => put("connect.type", json!("int8")),
        Type::Int16 => put("connect.type", json!("int16")),
        _ => {}
    }
    if let Some(logical) = Logical::of(schema) {
        let name = match logical {
            Logical::Decimal => {
                let precision =
                    schema.parameters().and_then(|all| all.get(PRECISION)?.parse::<i64>().ok());
                put("scale", json!(logical::scale(schema)?));
                put("precision", json!(precision.unwrap_or(DEFAULT_PRECISION)));
                "decimal"
            }
            Logical::Date => "date",
            Logical::Time => "time-millis",
            Logical::Timestamp => "timestamp-millis",
        };
        put("logicalType", json!(name));
    }
    if let Some(doc) = schema.doc() {
        put("connect.doc", json!(&**doc));
    }
    if let Some(version) = schema.version() {
        put("connect.version", json!(version));
    }
    if let Some(parameters) = schema.parameters() {
        let text = |(key, value): (&String, &String)| (key.clone(), json!(value));
        put("connect.parameters", Json::Object(parameters.iter().map(text).collect()));
    }
    if !schema.default_value().is_null() {
        put("connect.default", default::to_json(schema, schema.default_value())?);
    }
    if let Some(name) = schema.name() {
        put("connect.name", json!(&**name));
    }
    Ok(())
}
