//! Converters: the same bytes of the same values, and the same values of the same bytes.

use std::collections::BTreeMap;

use bytes::Bytes;
use highwater_data::{
    Decimal, Fields, Logical, PlainConverter, Schema, SchemaAndValue, Struct, Type, Value,
};
use serde_json::Value as Json;

use crate::form;
use crate::judge::{Refusal, ask};

const JSON: &str = "org.apache.kafka.connect.json.JsonConverter";
const STRING: &str = "org.apache.kafka.connect.storage.StringConverter";
const HEADER: &str = "org.apache.kafka.connect.storage.SimpleHeaderConverter";

type Options<'a> = &'a [(&'a str, &'a str)];

fn ours(class: &str, options: Options<'_>) -> PlainConverter {
    let options = options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    PlainConverter::new(class, &options.collect::<BTreeMap<_, _>>()).unwrap()
}

/// How two answers differ; empty where they agree. A refusal is one, whatever its text.
fn differs<T: PartialEq + std::fmt::Debug, E: std::fmt::Debug>(
    what: &str,
    ours: &Result<T, E>,
    theirs: &Result<T, Refusal>,
) -> Option<String> {
    let same = match (ours, theirs) {
        (Ok(ours), Ok(theirs)) => ours == theirs,
        (Err(_), Err(_)) => true,
        _ => false,
    };
    (!same).then(|| format!("{what}\n  ours:   {ours:?}\n  Connect: {theirs:?}"))
}

fn read(class: &str, options: Options<'_>, input: Option<&[u8]>) -> Option<String> {
    let what = if class == HEADER { "read header" } else { "read" };
    let theirs =
        ask(what, class, options, &form::bytes(input)).map(|answer| form::to_both(&answer));
    let ours = ours(class, options).to_connect(input.map(Bytes::copy_from_slice).as_ref());
    let shown = input.map(String::from_utf8_lossy);
    differs(&format!("{class} {options:?} reads {shown:?}"), &ours, &theirs)
}

/// Bytes, and as JSON where they are, since Java's maps have no order.
fn write(class: &str, options: Options<'_>, input: &SchemaAndValue) -> Option<String> {
    let what = if class == HEADER { "write header" } else { "write" };
    let theirs = ask(what, class, options, &form::both(input));
    let ours = ours(class, options).from_connect(input.schema.as_ref(), &input.value);
    let ours = ours.map(|bytes| form::bytes(bytes.as_deref()));
    differs(&format!("{class} {options:?} writes {input:?}"), &ours, &theirs).map(|told| {
        let text = |answer: &Json| {
            use base64::Engine;
            let bytes = base64::engine::general_purpose::STANDARD
                .decode(answer.as_str().unwrap_or_default());
            String::from_utf8_lossy(&bytes.unwrap()).into_owned()
        };
        format!(
            "{told}\n  ours:   {:?}\n  Connect: {:?}",
            ours.map(|a| text(&a)).ok(),
            theirs.map(|a| text(&a)).ok()
        )
    })
}

fn none(differences: Vec<Option<String>>) {
    let told: Vec<String> = differences.into_iter().flatten().collect();
    assert!(told.is_empty(), "{} differences:\n{}", told.len(), told.join("\n"));
}

fn optional(kind: Type) -> Schema {
    Schema::new(kind).optional(true)
}

fn row(fields: Vec<(&str, Schema, Value)>) -> SchemaAndValue {
    let schema = Schema::of_fields(fields.iter().map(|(name, schema, _)| (*name, schema.clone())));
    let mut row = Struct::new(&schema).unwrap();
    for (name, _, value) in fields {
        row.put(name, value).unwrap();
    }
    SchemaAndValue::of(schema, row.into())
}

fn decimal(text: &str) -> Value {
    text.parse::<Decimal>().unwrap().into()
}

/// Values with a schema, one or more of each type.
fn with_schema() -> Vec<SchemaAndValue> {
    let of = |kind: Type, value: Value| SchemaAndValue::of(kind, value);
    let text = Schema::new(Type::String);
    let named = Schema::new(Type::Int32).named(Some("shop.Id".into())).versioned(Some(3));
    let inner = row(vec![("a", text.clone(), Value::text("b"))]);
    let inner_schema = inner.schema.clone().unwrap();
    vec![
        of(Type::Boolean, Value::Boolean(true)),
        of(Type::Int8, Value::Int8(-128)),
        of(Type::Int16, Value::Int16(32767)),
        of(Type::Int32, Value::Int32(-1)),
        of(Type::Int64, Value::Int64(i64::MIN)),
        of(Type::Float32, Value::Float32(0.1)),
        of(Type::Float32, Value::Float32(f32::NAN)),
        of(Type::Float64, Value::Float64(1e21)),
        of(Type::Float64, Value::Float64(-0.0)),
        of(Type::Float64, Value::Float64(123_456_789.25)),
        of(Type::Float64, Value::Float64(f64::INFINITY)),
        of(Type::String, Value::text("a\"\\/\u{1f}\u{7f}\n\t\u{8}\u{c}é𝄞\u{2028}")),
        of(Type::String, Value::text("")),
        of(Type::Bytes, Value::Bytes(Bytes::from_static(b"\x00\xff\xfe?"))),
        of(Type::Bytes, Value::Bytes(Bytes::new())),
        of(
            Type::Array(Some(optional(Type::Int32))),
            Value::array(vec![Value::Int32(1), Value::Null]),
        ),
        of(
            Type::Map(Some(text.clone()), Some(Type::Int8.into())),
            Value::map([(Value::text("k"), Value::Int8(1))]),
        ),
        of(
            Type::Map(Some(Type::Int32.into()), Some(text.clone())),
            Value::map([(Value::Int32(1), Value::text("x"))]),
        ),
        SchemaAndValue::of(Logical::decimal(2), decimal("-12.34")),
        SchemaAndValue::of(Logical::decimal(0), decimal("123456789012345678901234567890")),
        SchemaAndValue::of(Logical::decimal(-3), Decimal { unscaled: 7.into(), scale: -3 }.into()),
        SchemaAndValue::of(Logical::decimal(9), decimal("0.000000001")),
        SchemaAndValue::of(Logical::decimal(2), decimal("1.5")),
        SchemaAndValue::of(Logical::Date.schema(), Value::Moment(86_400_000 * 19_000)),
        SchemaAndValue::of(Logical::Date.schema(), Value::Moment(-86_400_000)),
        SchemaAndValue::of(Logical::Date.schema(), Value::Moment(1)),
        SchemaAndValue::of(Logical::Time.schema(), Value::Moment(86_399_999)),
        SchemaAndValue::of(Logical::Time.schema(), Value::Moment(86_400_000)),
        SchemaAndValue::of(Logical::Timestamp.schema(), Value::Moment(1_700_000_000_123)),
        SchemaAndValue::of(Logical::Timestamp.schema(), Value::Moment(-1)),
        SchemaAndValue::of(named.clone(), Value::Int32(7)),
        SchemaAndValue::of(
            named
                .documented(Some("an id".into()))
                .parameter("a", "b")
                .with_default(Value::Int32(5)),
            Value::Null,
        ),
        SchemaAndValue::of(optional(Type::String), Value::Null),
        SchemaAndValue::of(optional(Type::String).with_default(Value::text("d")), Value::Null),
        SchemaAndValue::of(text.clone(), Value::Null),
        of(Type::Int32, Value::text("not an int")),
        row(vec![
            ("id", Type::Int32.into(), Value::Int32(1)),
            ("name", optional(Type::String).with_default(Value::text("none")), Value::Null),
            ("price", Logical::decimal(2), decimal("9.90")),
            ("at", Logical::Timestamp.schema(), Value::Moment(5)),
            ("in", inner_schema.clone(), inner.value.clone()),
            ("list", Type::Array(Some(inner_schema)).into(), Value::array(vec![inner.value])),
        ]),
        SchemaAndValue::of(
            Type::Struct(Fields::default()),
            Struct::new(&Type::Struct(Fields::default()).into()).unwrap().into(),
        ),
    ]
}

fn without_schema() -> Vec<SchemaAndValue> {
    let inner = row(vec![("a", Type::String.into(), Value::text("b"))]);
    [
        Value::Null,
        Value::Boolean(false),
        Value::Int8(1),
        Value::Int64(7),
        Value::Float32(1.5e-5),
        Value::Float64(1234.5),
        Value::text("x"),
        Value::Bytes(Bytes::from_static(b"ab")),
        Value::Moment(5),
        Value::Moment(86_400_000),
        Value::Moment(1_700_000_000_123),
        decimal("1.5"),
        decimal("1e5"),
        Value::array(vec![
            Value::Int64(1),
            Value::text("a\"b\\c"),
            Value::Null,
            Value::array(vec![]),
        ]),
        Value::map([(Value::text("a"), Value::map([]))]),
        Value::map([(Value::Int64(1), Value::text("x"))]),
        inner.value,
    ]
    .map(SchemaAndValue::schemaless)
    .to_vec()
}

#[test]
fn values_become_the_bytes_that_connect_makes_of_them() {
    let json: [Options<'_>; 5] = [
        &[],
        &[("schemas.enable", "false")],
        &[("decimal.format", "NUMERIC")],
        &[("decimal.format", "numeric"), ("schemas.enable", "false")],
        &[("replace.null.with.default", "false")],
    ];
    let mut found = Vec::new();
    for value in with_schema().iter().chain(&without_schema()) {
        found.extend(json.iter().map(|options| write(JSON, options, value)));
        let bytes = matches!(value.value, Value::Bytes(_));
        found.extend((!bytes).then(|| write(STRING, &[], value)));
        found.push(write(HEADER, &[], value));
        for name in ["ByteArray", "Boolean", "Short", "Integer", "Long", "Float", "Double"] {
            found.push(write(
                &format!("org.apache.kafka.connect.converters.{name}Converter"),
                &[],
                value,
            ));
        }
    }
    none(found);
}

#[test]
fn bytes_become_the_values_that_connect_makes_of_them() {
    let mut found = Vec::new();
    for value in with_schema() {
        for options in [&[][..], &[("decimal.format", "NUMERIC")]] {
            let converter = ours(JSON, options);
            if let Ok(bytes) = converter.from_connect(value.schema.as_ref(), &value.value) {
                // What is no finite number Jackson writes as a text and reads as 0, and -0.0 as 0.0.
                let kept = !matches!(value.value, Value::Float32(f) if !f.is_finite())
                    && !matches!(value.value, Value::Float64(f) if !f.is_finite() || f.to_bits() == 1 << 63);
                found.extend(kept.then(|| read(JSON, &[], bytes.as_deref())));
                found.extend(kept.then(|| {
                    read(JSON, &[("replace.null.with.default", "false")], bytes.as_deref())
                }));
            }
        }
    }
    none(found);
}

#[test]
fn json_that_people_write_is_read_as_connect_reads_it() {
    let plain: &[&str] = &[
        "null",
        "true",
        "0",
        "-0",
        "1",
        "1.0",
        "1e3",
        "1.5e300",
        "\"\"",
        "\"a\\u0041\\n\"",
        "[]",
        "{}",
        "[1,2.5,null,\"x\"]",
        "{\"a\":{\"b\":[{}]}}",
        "9223372036854775807",
        "-9223372036854775808",
        "{\"a\":1,\"a\":2}",
        " 1 ",
        "",
        " ",
        "{",
        "nul",
        "+1",
        "NaN",
        "'a'",
        "{a:1}",
        "[1,]",
        "\u{feff}1",
        "\"\u{1}\"",
    ];
    let mut found: Vec<_> = plain
        .iter()
        .map(|text| read(JSON, &[("schemas.enable", "false")], Some(text.as_bytes())))
        .collect();
    found.push(read(JSON, &[("schemas.enable", "false")], None));
    found.push(read(JSON, &[], None));
    let enveloped = include_str!("enveloped.txt");
    found.extend(enveloped.lines().map(|text| read(JSON, &[], Some(text.as_bytes()))));
    let content: Options<'_> =
        &[("schema.content", r#"{"type":"struct","fields":[{"type":"int32","field":"a"}]}"#)];
    for text in [r#"{"a":1}"#, "{}", "null", r#"{"schema":null,"payload":1}"#] {
        found.push(read(JSON, content, Some(text.as_bytes())));
    }
    none(found);
}

#[test]
fn the_number_converters_read_what_connect_reads() {
    let inputs: [&[u8]; 9] = [
        b"",
        b"\0",
        b"\x01",
        b"\x02",
        b"\0\x07",
        b"\x80\0\0\x01",
        b"\x3f\x80\0\0",
        b"\x3f\xf0\0\0\0\0\0\0",
        b"123",
    ];
    let mut found = Vec::new();
    for name in ["ByteArray", "Boolean", "Short", "Integer", "Long", "Float", "Double"] {
        let class = format!("org.apache.kafka.connect.converters.{name}Converter");
        found.extend(inputs.iter().map(|input| read(&class, &[], Some(input))));
        found.push(read(&class, &[], None));
    }
    found.extend(inputs[..5].iter().map(|input| read(STRING, &[], Some(input))));
    found.push(read(STRING, &[], None));
    none(found);
}

#[test]
fn headers_are_inferred_as_connect_infers_them() {
    let texts = include_str!("headers.txt");
    let mut found: Vec<_> =
        texts.lines().map(|text| read(HEADER, &[], Some(text.as_bytes()))).collect();
    found.push(read(HEADER, &[], None));
    none(found);
}

/// Texts of the marks and words that the inference looks for, by a fixed seed.
#[test]
fn headers_made_at_random_are_inferred_as_connect_infers_them() {
    let words = [
        "[",
        "]",
        "{",
        "}",
        ",",
        ":",
        "\"",
        "\\",
        " ",
        "1",
        "-2.5",
        "300",
        "70000",
        "true",
        "null",
        "a",
        "2024-02-29",
        "12:34:56.789Z",
        "\"b\"",
        "\"k\":1",
    ];
    let mut state = 7_u64;
    let mut chance = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(state >> 33).unwrap() % below
    };
    let mut found = Vec::new();
    for _ in 0..2000 {
        let length = 1 + chance(9);
        let text: String = (0..length).map(|_| words[chance(words.len())]).collect();
        found.push(read(HEADER, &[], Some(text.as_bytes())));
    }
    none(found);
}

#[test]
fn what_connect_changes_silently_is_refused() {
    let enveloped = |schema: &str, payload: &str| {
        format!(r#"{{"schema":{{"type":"{schema}"}},"payload":{payload}}}"#)
    };
    for text in [
        enveloped("int8", "300"),
        enveloped("int32", "\"7\""),
        enveloped("int32", "1.5"),
        enveloped("int64", "9223372036854775808"),
        enveloped("boolean", "\"true\""),
        enveloped("float", "1e300"),
        r#"{"schema":{"type":"array","items":{"type":"int32"}},"payload":7}"#.to_owned(),
    ] {
        assert!(
            ask("read", JSON, &[], &form::bytes(Some(text.as_bytes()))).is_ok(),
            "Connect reads {text}"
        );
        assert!(ours(JSON, &[]).to_connect(Some(&Bytes::from(text.clone()))).is_err(), "{text}");
    }
    for text in ["9223372036854775808", "1e999", "1 x", "01"] {
        let plain: Options<'_> = &[("schemas.enable", "false")];
        assert!(
            ask("read", JSON, plain, &form::bytes(Some(text.as_bytes()))).is_ok(),
            "Connect reads {text}"
        );
        assert!(ours(JSON, plain).to_connect(Some(&Bytes::from(text))).is_err(), "{text}");
    }
    assert!(ours(STRING, &[]).to_connect(Some(&Bytes::from_static(b"\xff"))).is_err());
}

#[test]
fn an_unknown_class_or_a_wrong_option_is_refused() {
    for (class, key, value) in [
        (JSON, "schemas.enable", "perhaps"),
        (JSON, "schemas.cache.size", "many"),
        (JSON, "decimal.format", "ROMAN"),
        (JSON, "schema.content", "{"),
        (JSON, "replace.null.with.default", "2"),
    ] {
        assert!(ask("read", class, &[(key, value)], &Json::Null).is_err(), "{key}={value}");
        assert!(
            PlainConverter::new(class, &[(key.to_owned(), value.to_owned())].into()).is_err(),
            "{key}={value}"
        );
    }
    assert!(PlainConverter::new("com.example.NoConverter", &BTreeMap::new()).is_err());
}
