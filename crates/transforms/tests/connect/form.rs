//! Values as the judge reads and writes them, each with its Java type.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use highwater_data::{Decimal, Fields, Map, Schema, SchemaAndValue, Struct, Type, Value};
use serde_json::{Value as Json, json};

pub(crate) fn both(both: &SchemaAndValue) -> Json {
    json!({"schema": both.schema.as_ref().map(schema), "value": value(&both.value)})
}

pub(crate) fn bytes(bytes: Option<&[u8]>) -> Json {
    bytes.map(|bytes| STANDARD.encode(bytes)).into()
}

pub(crate) fn schema(schema: &Schema) -> Json {
    let of = |part: &Option<Schema>| part.as_ref().map(self::schema);
    let mut node = json!({
        "optional": schema.is_optional(),
        "name": schema.name().map(|name| name.to_string()),
        "version": schema.version(),
        "doc": schema.doc().map(|doc| doc.to_string()),
        "default": value(schema.default_value()),
        "type": type_name(schema.kind()),
    });
    if let Some(parameters) = schema.parameters() {
        node["parameters"] =
            parameters.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    }
    match schema.kind() {
        Type::Array(items) => node["items"] = json!(of(items)),
        Type::Map(keys, values) => {
            node["keys"] = json!(of(keys));
            node["values"] = json!(of(values));
        }
        Type::Struct(fields) => {
            let field =
                |field: &highwater_data::Field| json!([&*field.name, self::schema(&field.schema)]);
            node["fields"] = fields.iter().map(field).collect();
        }
        _ => {}
    }
    node
}

fn type_name(kind: &Type) -> &'static str {
    match kind {
        Type::Float32 => "float32",
        Type::Float64 => "float64",
        kind => kind.name(),
    }
}

pub(crate) fn value(value: &Value) -> Json {
    let all =
        |values: &mut dyn Iterator<Item = &Value>| values.map(self::value).collect::<Vec<_>>();
    match value {
        Value::Null => Json::Null,
        Value::Boolean(value) => json!(["bool", value]),
        Value::Int8(value) => json!(["i8", value.to_string()]),
        Value::Int16(value) => json!(["i16", value.to_string()]),
        Value::Int32(value) => json!(["i32", value.to_string()]),
        Value::Int64(value) => json!(["i64", value.to_string()]),
        Value::Float32(value) => json!(["f32", value.to_bits().cast_signed().to_string()]),
        Value::Float64(value) => json!(["f64", value.to_bits().cast_signed().to_string()]),
        Value::String(value) => json!(["string", &**value]),
        Value::Bytes(value) => json!(["bytes", STANDARD.encode(value)]),
        Value::Decimal(value) => json!(["decimal", value.unscaled.to_string(), value.scale]),
        Value::Moment(value) => json!(["moment", value.to_string()]),
        Value::Array(items) => json!(["array", all(&mut items.iter())]),
        Value::Map(entries) => {
            let entries: Vec<_> = entries
                .iter()
                .map(|(key, value)| json!([self::value(key), self::value(value)]))
                .collect();
            json!(["map", entries])
        }
        Value::Struct(row) => {
            let values = all(&mut row.entries().map(|(_, value)| value));
            json!(["struct", schema(row.schema()), values])
        }
    }
}

pub(crate) fn to_both(node: &Json) -> SchemaAndValue {
    SchemaAndValue { schema: to_schema(&node["schema"]), value: to_value(&node["value"]) }
}

fn to_schema(node: &Json) -> Option<Schema> {
    let text = |name: &str| node[name].as_str().map(Arc::from);
    let kind = match node["type"].as_str()? {
        "int8" => Type::Int8,
        "int16" => Type::Int16,
        "int32" => Type::Int32,
        "int64" => Type::Int64,
        "float32" => Type::Float32,
        "float64" => Type::Float64,
        "boolean" => Type::Boolean,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "array" => Type::Array(to_schema(&node["items"])),
        "map" => Type::Map(to_schema(&node["keys"]), to_schema(&node["values"])),
        "struct" => {
            let mut fields = Fields::default();
            for field in node["fields"].as_array().unwrap() {
                assert!(fields.add(field[0].as_str().unwrap(), to_schema(&field[1]).unwrap()));
            }
            Type::Struct(fields)
        }
        other => panic!("a schema of type {other}"),
    };
    let version = node["version"].as_i64().map(|version| version.try_into().unwrap());
    let mut schema = Schema::new(kind)
        .optional(node["optional"].as_bool().unwrap())
        .named(text("name"))
        .versioned(version)
        .documented(text("doc"))
        .with_default(to_value(&node["default"]));
    for (key, value) in node["parameters"].as_object().into_iter().flatten() {
        schema = schema.parameter(key, value.as_str().unwrap());
    }
    Some(schema)
}

fn to_value(node: &Json) -> Value {
    let Some(kind) = node[0].as_str() else { return Value::Null };
    let content = &node[1];
    let number = || content.as_str().unwrap().parse::<i64>().unwrap();
    match kind {
        "bool" => Value::Boolean(content.as_bool().unwrap()),
        "i8" => Value::Int8(number().try_into().unwrap()),
        "i16" => Value::Int16(number().try_into().unwrap()),
        "i32" => Value::Int32(number().try_into().unwrap()),
        "i64" => Value::Int64(number()),
        "f32" => Value::Float32(f32::from_bits(i32::try_from(number()).unwrap().cast_unsigned())),
        "f64" => Value::Float64(f64::from_bits(number().cast_unsigned())),
        "string" => Value::text(content.as_str().unwrap()),
        "bytes" => Value::Bytes(STANDARD.decode(content.as_str().unwrap()).unwrap().into()),
        "decimal" => {
            let unscaled = content.as_str().unwrap().parse().unwrap();
            Decimal { unscaled, scale: node[2].as_i64().unwrap().try_into().unwrap() }.into()
        }
        "moment" => Value::Moment(number()),
        "array" => Value::array(content.as_array().unwrap().iter().map(to_value).collect()),
        "map" => {
            let entry = |entry: &Json| (to_value(&entry[0]), to_value(&entry[1]));
            Value::Map(Arc::new(content.as_array().unwrap().iter().map(entry).collect::<Map>()))
        }
        "struct" => {
            let mut row = Struct::new(&to_schema(content).unwrap()).unwrap();
            for (place, value) in node[2].as_array().unwrap().iter().enumerate() {
                // Connect has structs with a required field that nothing was put into.
                if !value.is_null() {
                    row.put_at(place, to_value(value)).unwrap();
                }
            }
            row.into()
        }
        other => panic!("a value of type {other}: {node}"),
    }
}
