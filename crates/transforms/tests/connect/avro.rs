//! Avro: the same schema for a registry, the same bytes, and the same values of bytes.

use highwater_data::{AvroSchema, Decimal, Logical, Schema, SchemaAndValue, Type, Value};
use serde_json::{Value as Json, json};

use crate::form;
use crate::judge::ask;
use crate::records::row;

fn optional(kind: Type) -> Schema {
    Schema::new(kind).optional(true)
}

fn written() -> Vec<SchemaAndValue> {
    let of = |schema: Schema, value: Value| SchemaAndValue { schema: Some(schema), value };
    let text = || Schema::new(Type::String);
    let inner = row("", vec![("x", Type::Int32.into(), Value::Int32(-3))]);
    let inner_schema = inner.schema.clone().unwrap();
    let price: Value = "12.34".parse::<Decimal>().unwrap().into();
    let whole = row(
        "shop.Row",
        vec![
            ("id", Type::Int32.into(), Value::Int32(i32::MIN)),
            ("i8", Type::Int8.into(), Value::Int8(-1)),
            ("i16", optional(Type::Int16), Value::Null),
            ("big", Type::Int64.into(), Value::Int64(i64::MAX)),
            ("float", Type::Float32.into(), Value::Float32(f32::NAN)),
            ("double", Type::Float64.into(), Value::Float64(-2.5)),
            ("flag", Type::Boolean.into(), Value::Boolean(true)),
            ("text", optional(Type::String), Value::text("é𝄞")),
            ("absent", optional(Type::String).with_default(Value::text("q")), Value::Null),
            ("count", Schema::new(Type::Int32).with_default(Value::Int32(5)), Value::Int32(6)),
            ("bytes", Type::Bytes.into(), Value::Bytes(vec![0, 255].into())),
            ("price", Logical::decimal(2), price),
            ("date", Logical::Date.schema(), Value::Moment(-86_400_000)),
            ("time", Logical::Time.schema().optional(true), Value::Moment(5)),
            ("at", Logical::Timestamp.schema().optional(true), Value::Null),
            ("in", inner_schema, inner.value.clone()),
            (
                "list",
                Type::Array(Some(optional(Type::Int32))).into(),
                Value::array(vec![Value::Int32(1), Value::Null]),
            ),
            (
                "map",
                Type::Map(Some(text()), Some(Type::Int64.into())).into(),
                Value::map([(Value::text("k"), Value::Int64(1))]),
            ),
            (
                "pairs",
                Type::Map(Some(Type::Int32.into()), Some(text())).into(),
                Value::map([(Value::Int32(7), Value::text("z"))]),
            ),
            (
                "named",
                Schema::new(Type::Int32)
                    .named(Some("a.B".into()))
                    .documented(Some("dd".into()))
                    .parameter("k", "v"),
                Value::Int32(9),
            ),
        ],
    );
    vec![
        whole.clone(),
        SchemaAndValue {
            schema: whole.schema.map(|schema| schema.versioned(Some(2)).optional(true)),
            value: Value::Null,
        },
        inner,
        of(Type::Int8.into(), Value::Int8(7)),
        of(Type::Boolean.into(), Value::Boolean(false)),
        of(optional(Type::String), Value::Null),
        of(optional(Type::String), Value::text("")),
        of(optional(Type::String).with_default(Value::text("d")), Value::text("x")),
        of(text().named(Some("n.N".into())).versioned(Some(3)), Value::text("a")),
        of(
            Logical::decimal(0).parameter("connect.decimal.precision", "9"),
            "7".parse::<Decimal>().unwrap().into(),
        ),
        of(Logical::decimal(2), "1.5".parse::<Decimal>().unwrap().into()),
        of(Logical::Timestamp.schema(), Value::Moment(1_700_000_000_123)),
        of(Type::Array(Some(text())).into(), Value::array(vec![])),
        of(
            Schema::new(Type::Map(Some(Type::Int32.into()), Some(text())))
                .named(Some("my.Map".into())),
            Value::map([]),
        ),
        of(Type::Map(Some(optional(Type::String)), Some(text())).into(), Value::map([])),
        of(Type::Int32.into(), Value::text("no int")),
        of(Type::Int32.into(), Value::Null),
        row("bad-name", vec![("x", Type::Int32.into(), Value::Int32(1))]),
        row("a.B", vec![("bad.field", Type::Int32.into(), Value::Int32(1))]),
    ]
}

#[test]
fn values_become_the_avro_that_connect_makes_of_them() {
    let mut told = Vec::new();
    for SchemaAndValue { schema, value } in written() {
        let on = SchemaAndValue { schema: schema.clone(), value: value.clone() };
        let theirs = ask("write avro", "", &[], &form::both(&on)).map(|answer| {
            let schema: Json = serde_json::from_str(answer["schema"].as_str().unwrap()).unwrap();
            (schema, answer["bytes"].clone())
        });
        let ours = AvroSchema::of(schema.as_ref().unwrap()).and_then(|avro| {
            let bytes = avro.encode(&value)?;
            Ok((
                serde_json::from_str::<Json>(avro.text()).unwrap(),
                form::bytes(Some(&bytes)),
                bytes,
            ))
        });
        match (&ours, &theirs) {
            (Ok((ours, bytes, _)), Ok((theirs, their_bytes)))
                if ours == theirs && bytes == their_bytes => {}
            (Err(_), Err(_)) => continue,
            _ => told.push(format!("{on:?}\n  ours:    {ours:?}\n  Connect: {theirs:?}")),
        }
        if let Ok((schema, _, bytes)) = ours {
            told.extend(read(&schema.to_string(), &bytes));
        }
    }
    assert!(told.is_empty(), "{} differences:\n{}", told.len(), told.join("\n"));
}

fn read(schema: &str, bytes: &[u8]) -> Option<String> {
    let on = json!({"schema": schema, "bytes": form::bytes(Some(bytes))});
    let theirs = ask("read avro", "", &[], &on).map(|answer| form::to_both(&answer));
    let ours = AvroSchema::parse(schema).and_then(|avro| avro.decode(bytes));
    let same = match (&ours, &theirs) {
        (Ok(ours), Ok(theirs)) => ours == theirs,
        (Err(_), Err(_)) => true,
        _ => false,
    };
    (!same).then(|| format!("{schema} reads {bytes:?}\n  ours:    {ours:?}\n  Connect: {theirs:?}"))
}

#[test]
fn avro_that_others_write_is_read_as_connect_reads_it() {
    let mut told = Vec::new();
    for line in include_str!("avro.txt").lines() {
        let (bytes, schema) = line.split_once(' ').unwrap();
        let bytes = bytes.trim_matches('-');
        let byte = |place: usize| u8::from_str_radix(&bytes[place..place + 2], 16).unwrap();
        told.extend(read(schema, &(0..bytes.len()).step_by(2).map(byte).collect::<Vec<_>>()));
    }
    assert!(told.is_empty(), "{} differences:\n{}", told.len(), told.join("\n"));
}

#[test]
fn what_connect_changes_silently_is_refused() {
    let numbers = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x03];
    for (schema, bytes) in [
        ("\"long\"", &numbers[..]),
        ("\"boolean\"", &[2]),
        ("\"string\"", &[2, 0xff]),
        ("\"int\"", &[2, 0]),
    ] {
        let on = json!({"schema": schema, "bytes": form::bytes(Some(bytes))});
        assert!(ask("read avro", "", &[], &on).is_ok(), "Connect: {schema}");
        assert!(AvroSchema::parse(schema).unwrap().decode(bytes).is_err(), "{schema}");
    }
}

#[test]
fn what_would_not_end_is_refused() {
    for schema in [
        r#"{"type":"record","name":"R","fields":[{"name":"next","type":["null","R"]}]}"#.to_owned(),
        // Each of these has the one before twice: 2^40 parts.
        format!(
            "[{}]",
            (0..40)
                .map(|number: usize| {
                    let before = number.checked_sub(1).map_or("\"int\"".to_owned(), |before| format!("\"R{before}\""));
                    format!(
                        r#"{{"type":"record","name":"R{number}","fields":[{{"name":"a","type":{before}}},{{"name":"b","type":{before}}}]}}"#
                    )
                })
                .collect::<Vec<_>>()
                .join(",")
        ),
        format!("{}\"int\"{}", r#"{"type":"array","items":"#.repeat(120), "}".repeat(120)),
    ] {
        assert!(AvroSchema::parse(&schema).is_err(), "{schema}");
    }
    let nothing =
        AvroSchema::parse(r#"{"type":"array","items":{"type":"record","name":"E","fields":[]}}"#)
            .unwrap();
    let a_lot = [0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    assert!(nothing.decode(&a_lot).is_err());
}
