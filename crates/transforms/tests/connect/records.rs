//! Records that the transforms are tried on.

use bytes::Bytes;
use highwater_data::{Decimal, Header, Logical, Schema, SchemaAndValue, Struct, Type, Value};
use highwater_transforms::Record;
use serde_json::{Value as Json, json};

use crate::form;

pub(crate) fn to_json(record: &Record) -> Json {
    let header = |header: &Header| json!([&*header.name, form::both(&header.value)]);
    json!({
        "topic": &*record.topic,
        "partition": record.partition,
        "key": form::both(&record.key),
        "value": form::both(&record.value),
        "timestamp": record.timestamp,
        "offset": record.offset,
        "headers": record.headers.iter().map(header).collect::<Vec<_>>(),
    })
}

/// None where Connect drops it.
pub(crate) fn of_json(node: &Json) -> Option<Record> {
    let header = |node: &Json| Header {
        name: node[0].as_str().unwrap().into(),
        value: form::to_both(&node[1]),
    };
    Some(Record {
        topic: node["topic"].as_str()?.into(),
        partition: node["partition"].as_i64().map(|number| number.try_into().unwrap()),
        key: form::to_both(&node["key"]),
        value: form::to_both(&node["value"]),
        timestamp: node["timestamp"].as_i64(),
        headers: node["headers"].as_array().unwrap().iter().map(header).collect(),
        offset: node["offset"].as_i64(),
    })
}

fn optional(kind: Type) -> Schema {
    Schema::new(kind).optional(true)
}

pub(crate) fn row(name: &str, fields: Vec<(&str, Schema, Value)>) -> SchemaAndValue {
    let schema = Schema::of_fields(fields.iter().map(|(name, schema, _)| (*name, schema.clone())));
    let schema = schema.named((!name.is_empty()).then(|| name.into()));
    let mut row = Struct::new(&schema).unwrap();
    for (name, _, value) in fields {
        row.put(name, value).unwrap();
    }
    SchemaAndValue::of(schema, row.into())
}

fn decimal(text: &str) -> Value {
    text.parse::<Decimal>().unwrap().into()
}

/// Every type, with names that the configurations of the tests name.
fn wide() -> SchemaAndValue {
    let inner = row(
        "",
        vec![
            ("x", Type::Int32.into(), Value::Int32(9)),
            ("y", optional(Type::String), Value::Null),
        ],
    );
    let inner_schema = inner.schema.clone().unwrap();
    row(
        "shop.Row",
        vec![
            ("id", Type::Int32.into(), Value::Int32(7)),
            ("small", Type::Int8.into(), Value::Int8(5)),
            ("short", Type::Int16.into(), Value::Int16(-6)),
            ("big", Type::Int64.into(), Value::Int64(1_700_000_000_123)),
            ("float", Type::Float32.into(), Value::Float32(1.75)),
            ("double", Type::Float64.into(), Value::Float64(-2.5)),
            ("flag", Type::Boolean.into(), Value::Boolean(true)),
            ("text", optional(Type::String), Value::text("42")),
            ("null", optional(Type::String), Value::Null),
            ("absent", optional(Type::Int32).with_default(Value::Int32(3)), Value::Null),
            ("bytes", Type::Bytes.into(), Value::Bytes(Bytes::from_static(b"\x01\x02"))),
            ("price", Logical::decimal(2), decimal("12.34")),
            ("date", Logical::Date.schema(), Value::Moment(86_400_000 * 19_000)),
            ("time", Logical::Time.schema().optional(true), Value::Moment(3_723_004)),
            ("at", Logical::Timestamp.schema(), Value::Moment(1_700_000_000_123)),
            (
                "list",
                Type::Array(Some(Type::Int32.into())).into(),
                Value::array(vec![Value::Int32(1)]),
            ),
            (
                "map",
                Type::Map(Some(Type::String.into()), Some(Type::Int32.into())).into(),
                Value::map([(Value::text("k"), Value::Int32(1))]),
            ),
            ("in", inner_schema.clone().optional(true), {
                let mut copy = Struct::new(&inner_schema.optional(true)).unwrap();
                copy.put("x", Value::Int32(9)).unwrap();
                copy.into()
            }),
            (
                "gone",
                Schema::of_fields([("z", Schema::from(Type::Int32))]).optional(true),
                Value::Null,
            ),
        ],
    )
}

/// The same without its map.
fn without_map() -> SchemaAndValue {
    let SchemaAndValue { schema, value: Value::Struct(old) } = wide() else { unreachable!() };
    let fields =
        schema.as_ref().unwrap().fields().unwrap().iter().filter(|field| &*field.name != "map");
    let schema = Schema::of_fields(fields.map(|field| (field.name.clone(), field.schema.clone())));
    let mut row = Struct::new(&schema).unwrap();
    for field in schema.fields().unwrap().iter() {
        row.put(&field.name, old.get(&field.name).unwrap().clone()).unwrap();
    }
    SchemaAndValue::of(schema, row.into())
}

fn loose() -> SchemaAndValue {
    let text = Value::text;
    SchemaAndValue::schemaless(Value::map([
        (text("id"), Value::Int64(7)),
        (text("small"), Value::Int8(5)),
        (text("float"), Value::Float32(1.75)),
        (text("double"), Value::Float64(-2.5)),
        (text("flag"), Value::Boolean(false)),
        (text("text"), text("42")),
        (text("null"), Value::Null),
        (text("big"), Value::Int64(1_700_000_000_123)),
        (text("list"), Value::array(vec![Value::Int64(1), text("b")])),
        (
            text("in"),
            Value::map([
                (text("x"), Value::Int64(9)),
                (text("in"), Value::map([(text("y"), Value::Null)])),
            ]),
        ),
        (text("a.b"), text("dotted")),
    ]))
}

/// A record of a topic with this value, and the same as key.
fn of(both: SchemaAndValue) -> Record {
    Record {
        partition: Some(3),
        key: both.clone(),
        value: both,
        timestamp: Some(1_709_251_199_999),
        headers: vec![
            Header { name: "a".into(), value: SchemaAndValue::of(Type::String, Value::text("1")) },
            Header { name: "b".into(), value: SchemaAndValue::schemaless(Value::Int64(2)) },
            Header { name: "a".into(), value: SchemaAndValue::default() },
        ],
        offset: Some(77),
        ..Record::new("shop.orders")
    }
}

pub(crate) fn all() -> Vec<Record> {
    let plain = |kind: Type, value: Value| of(SchemaAndValue::of(kind, value));
    let mut records = vec![
        of(wide()),
        of(loose()),
        of(without_map()),
        of(SchemaAndValue::default()),
        of(SchemaAndValue::of(optional(Type::String), Value::Null)),
        of(SchemaAndValue {
            schema: wide().schema.map(|schema| schema.optional(true)),
            value: Value::Null,
        }),
        plain(Type::Int32, Value::Int32(100)),
        plain(Type::Int64, Value::Int64(1_700_000_000_123)),
        plain(Type::String, Value::text("2024-02-29")),
        plain(Type::Boolean, Value::Boolean(true)),
        of(SchemaAndValue::of(Logical::Timestamp.schema(), Value::Moment(1_700_000_000_123))),
        of(SchemaAndValue::of(Logical::Date.schema().optional(true), Value::Moment(86_400_000))),
        of(SchemaAndValue::of(Logical::decimal(2), decimal("7.50"))),
        of(SchemaAndValue::of(
            Type::Array(Some(Type::Int8.into())),
            Value::array(vec![Value::Int8(1)]),
        )),
        of(SchemaAndValue::schemaless(Value::Int64(5))),
        of(SchemaAndValue::schemaless(Value::text("2024-02-29"))),
        of(SchemaAndValue::schemaless(Value::Float64(1.5))),
        of(SchemaAndValue::schemaless(Value::Moment(1_700_000_000_123))),
        of(SchemaAndValue::schemaless(Value::map([]))),
    ];
    // From a source, without anything.
    records.push(Record {
        offset: None,
        partition: None,
        timestamp: None,
        headers: Vec::new(),
        ..of(wide())
    });
    records.push(Record { offset: None, partition: None, timestamp: None, ..of(loose()) });
    records
}
