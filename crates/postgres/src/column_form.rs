//! The form of one column under Debezium's modes: its Connect schema, and its values as JSON.

use std::str::Utf8Error;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use highwater_connector::Json;

use crate::decimal::Decimal;
use crate::forms::{Binaries, Decimals, Forms, Intervals, Times};
use crate::instant;
use crate::interval::Interval;
use crate::java_number;
use crate::shape::JsonKind;

/// What a column is, as the catalog says.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ColumnFacts {
    /// Its own type, as table descriptions name it.
    pub(crate) type_id: String,
    /// OID of its type, or of the type under its domain.
    pub(crate) oid: u32,
    /// Name of that type.
    pub(crate) type_name: String,
    /// Modifier of that type.
    pub(crate) modifier: i32,
    /// Whether NULL may occur.
    pub(crate) optional: bool,
    /// Expression of its default.
    pub(crate) default: Option<String>,
    /// Labels of an enumeration.
    pub(crate) labels: Vec<String>,
}

/// A unit of time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Unit {
    Millis,
    Micros,
    Nanos,
    /// Connect's own types: days and milliseconds.
    Connect,
    /// ISO 8601.
    Iso,
}

/// What a column's values become.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// The source's text (rule R1).
    Plain(JsonKind),
    /// The digits, as a number of so many bits.
    Integer(u8),
    Float,
    Double,
    Boolean,
    Text,
    /// Connect's Decimal; of money, the digits of its text.
    Decimal,
    /// Debezium's structure of scale and number, for a decimal without a declared scale.
    FreeDecimal,
    DecimalText,
    DecimalDouble,
    /// The amount of the text `-$1,234.50` under one of the three above.
    Money(Decimals),
    Date(Unit),
    Time(Unit),
    Timestamp(Unit),
    ZonedTime,
    /// With so many digits of a second.
    ZonedTimestamp(usize),
    Binary(Binaries),
    Interval(Intervals),
    /// Bits as bytes, the lowest first.
    Bits,
    /// One bit.
    Bit,
    /// A type that has no form here: the source's text, and never a key.
    Foreign,
}

/// A value that has no form under the stated modes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Formless;

impl Form {
    /// The form of a column.
    pub(crate) fn of(facts: &ColumnFacts, forms: &Forms) -> Self {
        let modifier = facts.modifier;
        // OIDs of built-in types, from pg_type.dat.
        match facts.oid {
            16 => Self::Boolean,
            21 => Self::Integer(16),
            23 => Self::Integer(32),
            20 | 26 => Self::Integer(64),
            700 => Self::Float,
            701 => Self::Double,
            17 => Self::Binary(forms.binaries),
            790 => Self::Money(forms.decimals),
            1700 => numeric(modifier, forms.decimals),
            1082 => Self::Date(date_unit(forms.times)),
            1083 => Self::Time(time_unit(precision(modifier), forms.times)),
            1114 => Self::Timestamp(timestamp_unit(precision(modifier), forms.times)),
            1266 => Self::ZonedTime,
            1184 => Self::ZonedTimestamp(precision(modifier)),
            1186 => Self::Interval(forms.intervals),
            1560 if modifier <= 1 => Self::Bit,
            1562 if modifier == 1 => Self::Bit,
            1560 | 1562 => Self::Bits,
            _ if is_text(facts) => Self::Text,
            _ => Self::Foreign,
        }
    }

    /// What its Connect schema says before and behind `optional`.
    pub(crate) fn schema(self, facts: &ColumnFacts) -> (&'static str, String) {
        let named = |name: &str| format!(r#","name":"{name}","version":1"#);
        match self {
            Self::Integer(16) => (r#""int16""#, String::new()),
            Self::Integer(32) => (r#""int32""#, String::new()),
            Self::Integer(_) => (r#""int64""#, String::new()),
            Self::Float => (r#""float""#, String::new()),
            Self::Double | Self::DecimalDouble | Self::Money(Decimals::Double) => {
                (r#""double""#, String::new())
            }
            Self::Boolean | Self::Bit => (r#""boolean""#, String::new()),
            Self::Decimal => {
                (r#""bytes""#, decimal_schema(scale(facts.modifier), Some(facts.modifier)))
            }
            Self::Money(Decimals::Precise) => (r#""bytes""#, decimal_schema(2, None)),
            Self::FreeDecimal => (FREE_DECIMAL, named(FREE_DECIMAL_NAME) + FREE_DECIMAL_DOC),
            Self::Date(unit) | Self::Time(unit) | Self::Timestamp(unit) => self.time_schema(unit),
            Self::ZonedTime => (r#""string""#, named("io.debezium.time.ZonedTime")),
            Self::ZonedTimestamp(_) => (r#""string""#, named("io.debezium.time.ZonedTimestamp")),
            Self::Interval(Intervals::Micros) => {
                (r#""int64""#, named("io.debezium.time.MicroDuration"))
            }
            Self::Interval(Intervals::Iso) => (r#""string""#, named("io.debezium.time.Interval")),
            Self::Bits => (r#""bytes""#, bits_schema(facts.modifier)),
            Self::Binary(Binaries::Bytes) => (r#""bytes""#, String::new()),
            Self::Text => (r#""string""#, text_schema(facts)),
            Self::Binary(_)
            | Self::DecimalText
            | Self::Money(Decimals::Text)
            | Self::Foreign
            | Self::Plain(_) => (r#""string""#, String::new()),
        }
    }

    fn time_schema(self, unit: Unit) -> (&'static str, String) {
        let noun = match self {
            Self::Date(_) => "Date",
            Self::Time(_) => "Time",
            _ => "Timestamp",
        };
        let (package, prefix) = match unit {
            Unit::Connect => ("org.apache.kafka.connect.data", ""),
            Unit::Iso => ("io.debezium.time", "Iso"),
            Unit::Micros if noun != "Date" => ("io.debezium.time", "Micro"),
            Unit::Nanos if noun != "Date" => ("io.debezium.time", "Nano"),
            _ => ("io.debezium.time", ""),
        };
        let json_type = match (unit, noun) {
            (Unit::Iso, _) => r#""string""#,
            (_, "Date") | (Unit::Connect | Unit::Millis, "Time") => r#""int32""#,
            _ => r#""int64""#,
        };
        (json_type, format!(r#","name":"{package}.{prefix}{noun}","version":1"#))
    }

    /// JSON primitive that its values are, for table descriptions.
    pub(crate) const fn json_type(self) -> &'static str {
        match self {
            Self::Plain(kind) => kind.name(),
            Self::Boolean | Self::Bit => "boolean",
            Self::Integer(_) | Self::Float | Self::Double | Self::DecimalDouble => "number",
            Self::Money(Decimals::Double) | Self::Interval(Intervals::Micros) => "number",
            Self::Date(unit) | Self::Time(unit) | Self::Timestamp(unit)
                if !matches!(unit, Unit::Iso) =>
            {
                "number"
            }
            _ => "string",
        }
    }

    /// Writes a value of the server's text.
    ///
    /// # Errors
    /// When it has no such form.
    pub(crate) fn write(self, json: &mut Json, text: &str) -> Result<(), Formless> {
        match self {
            Self::Plain(kind) => return plain(json, kind, text.as_bytes()).map_err(|_| Formless),
            Self::Integer(_) => json.raw(text),
            Self::Float => float(json, text.parse().ok().map(java_number::float), text),
            Self::Double | Self::DecimalDouble => double(json, text),
            Self::Boolean => json.raw(if text == "t" { "true" } else { "false" }),
            Self::Bit => json.raw(if text == "1" { "true" } else { "false" }),
            Self::Text | Self::Foreign => json.string(text),
            Self::Decimal => json.string(&Decimal::parse(text).ok_or(Formless)?.base64()),
            Self::FreeDecimal => {
                let decimal = Decimal::parse(text).ok_or(Formless)?.stripped();
                let (scale, value) = (decimal.scale, decimal.base64());
                json.raw(&format!(r#"{{"scale":{scale},"value":"{value}"}}"#));
            }
            Self::DecimalText => json.string(special(text).unwrap_or(text)),
            Self::Money(decimals) => {
                let form = match decimals {
                    Decimals::Precise => Self::Decimal,
                    Decimals::Text => Self::DecimalText,
                    Decimals::Double => Self::DecimalDouble,
                };
                return form.write(json, &amount(text));
            }
            Self::Binary(binaries) => json.string(&binary(text, binaries).ok_or(Formless)?),
            Self::Bits => json.string(&STANDARD.encode(bits(text))),
            _ => return self.write_time(json, text).ok_or(Formless),
        }
        Ok(())
    }

    fn write_time(self, json: &mut Json, text: &str) -> Option<()> {
        match self {
            Self::Date(Unit::Iso) => {
                json.string(&format!("{}Z", instant::iso_date(instant::date(text)?)));
            }
            Self::Date(_) => json.int(instant::date(text)?),
            Self::Time(Unit::Iso) => {
                json.string(&format!("{}Z", instant::iso_time(instant::time(text)?, None)));
            }
            Self::Time(unit) => json.int(counted(instant::time(text)?, unit)?),
            Self::Timestamp(Unit::Iso) => {
                json.string(&instant::iso_timestamp(instant::timestamp(text)?, None));
            }
            Self::Timestamp(unit) => json.int(counted(instant::timestamp(text)?, unit)?),
            Self::ZonedTime => {
                let (micros, offset) = instant::zoned_time(text)?;
                json.string(&format!("{}Z", instant::iso_time(micros - offset, None)));
            }
            Self::ZonedTimestamp(_) if text.ends_with("infinity") => json.string(text),
            Self::ZonedTimestamp(digits) => {
                json.string(&instant::iso_timestamp(instant::timestamp(text)?, Some(digits)));
            }
            Self::Interval(Intervals::Micros) => json.int(Interval::parse(text)?.micros()),
            Self::Interval(Intervals::Iso) => json.string(&Interval::parse(text)?.iso()),
            _ => return None,
        }
        Some(())
    }

    /// Writes what stands for a value that the server did not send.
    pub(crate) fn write_placeholder(self, json: &mut Json, placeholder: &str, optional: bool) {
        match self {
            Self::Plain(_) | Self::Text | Self::Foreign | Self::Binary(Binaries::Hex) => {
                json.string(placeholder);
            }
            Self::Binary(Binaries::Base64Url) => json.string(&URL_SAFE.encode(placeholder)),
            Self::Binary(_) => json.string(&STANDARD.encode(placeholder)),
            _ if optional => json.raw("null"),
            Self::FreeDecimal => json.raw(r#"{"scale":0,"value":"AA=="}"#),
            Self::Boolean | Self::Bit => json.raw("false"),
            form if form.json_type() == "number" => json.raw("0"),
            _ => json.raw(r#""""#),
        }
    }
}

/// Writes the source's text.
///
/// # Errors
/// When it is not UTF-8.
pub(crate) fn plain(json: &mut Json, kind: JsonKind, text: &[u8]) -> Result<(), Utf8Error> {
    let text = std::str::from_utf8(text)?;
    match (kind, text) {
        (JsonKind::Boolean, "t") => json.raw("true"),
        (JsonKind::Boolean, "f") => json.raw("false"),
        (JsonKind::Number, digits) => json.number(digits),
        _ => json.string(text),
    }
    Ok(())
}

/// Type of [`Form::FreeDecimal`] (`VariableScaleDecimal.java`).
const FREE_DECIMAL: &str = r#""struct","fields":[{"type":"int32","optional":false,"field":"scale"},{"type":"bytes","optional":false,"field":"value"}]"#;
const FREE_DECIMAL_NAME: &str = "io.debezium.data.VariableScaleDecimal";
const FREE_DECIMAL_DOC: &str = r#","doc":"Variable scaled decimal""#;

/// Text types, whose form is their text.
fn is_text(facts: &ColumnFacts) -> bool {
    // text, varchar, bpchar, uuid, json, jsonb, xml, inet, cidr, macaddr, macaddr8 and the ranges.
    const TEXTS: [u32; 17] = [
        25, 1043, 1042, 2950, 114, 3802, 142, 869, 650, 829, 774, 3904, 3906, 3908, 3910, 3912,
        3926,
    ];
    !facts.labels.is_empty() || TEXTS.contains(&facts.oid) || facts.type_name == "citext"
}

fn text_schema(facts: &ColumnFacts) -> String {
    let named = |name: &str| format!(r#","name":"io.debezium.data.{name}","version":1"#);
    match facts.oid {
        2950 => named("Uuid"),
        114 | 3802 => named("Json"),
        142 => named("Xml"),
        _ if facts.labels.is_empty() => String::new(),
        _ => {
            let mut allowed = Json::java();
            allowed.string(&facts.labels.join(","));
            let allowed = String::from_utf8_lossy(&allowed.finish()).into_owned();
            format!(r#"{},"parameters":{{"allowed":{allowed}}}"#, named("Enum"))
        }
    }
}

fn decimal_schema(scale: i32, modifier: Option<i32>) -> String {
    let precision = modifier.map(|modifier| {
        format!(r#","connect.decimal.precision":"{}""#, (modifier - 4) >> 16 & 0xFFFF)
    });
    format!(
        r#","name":"org.apache.kafka.connect.data.Decimal","version":1,"parameters":{{"scale":"{scale}"{}}}"#,
        precision.unwrap_or_default()
    )
}

fn bits_schema(modifier: i32) -> String {
    let length = if modifier < 0 { i32::MAX } else { modifier };
    format!(r#","name":"io.debezium.data.Bits","version":1,"parameters":{{"length":"{length}"}}"#)
}

/// The scale that a numeric column declares, if it does.
pub(crate) fn declared_scale(modifier: i32) -> Option<i32> {
    (modifier >= 4).then(|| scale(modifier))
}

/// The scale in a modifier of numeric.
const fn scale(modifier: i32) -> i32 {
    // Eleven bits with sign (numeric.c).
    ((modifier - 4) & 0x7FF ^ 0x400) - 0x400
}

fn numeric(modifier: i32, decimals: Decimals) -> Form {
    match decimals {
        Decimals::Text => Form::DecimalText,
        Decimals::Double => Form::DecimalDouble,
        Decimals::Precise if modifier < 4 => Form::FreeDecimal,
        // Java's bytes would need another scale than the text has.
        Decimals::Precise if scale(modifier) < 0 => Form::Foreign,
        Decimals::Precise => Form::Decimal,
    }
}

/// Digits of a second in a modifier.
fn precision(modifier: i32) -> usize {
    usize::try_from(modifier).unwrap_or(6).min(6)
}

const fn date_unit(times: Times) -> Unit {
    match times {
        Times::Iso => Unit::Iso,
        Times::Connect => Unit::Connect,
        _ => Unit::Micros,
    }
}

const fn time_unit(precision: usize, times: Times) -> Unit {
    match times {
        Times::AdaptiveMicros => Unit::Micros,
        times => timestamp_unit(precision, times),
    }
}

const fn timestamp_unit(precision: usize, times: Times) -> Unit {
    match times {
        Times::Iso => Unit::Iso,
        Times::Connect => Unit::Connect,
        Times::Nanos => Unit::Nanos,
        Times::Micros => Unit::Micros,
        Times::Adaptive | Times::AdaptiveMicros if precision <= 3 => Unit::Millis,
        Times::Adaptive | Times::AdaptiveMicros => Unit::Micros,
    }
}

/// Microseconds in another unit, where 64 bits hold them.
fn counted(micros: i128, unit: Unit) -> Option<i128> {
    let counted = match unit {
        Unit::Millis | Unit::Connect => micros.div_euclid(1_000),
        Unit::Micros | Unit::Iso => micros,
        Unit::Nanos => micros * 1_000,
    };
    i64::try_from(counted).ok().map(i128::from)
}

fn double(json: &mut Json, text: &str) {
    float(json, text.parse().ok().map(java_number::double), text);
}

/// Java's number, or as a text what is none.
fn float(json: &mut Json, number: Option<Option<String>>, text: &str) {
    match number.flatten() {
        Some(number) => json.raw(&number),
        None => json.string(text),
    }
}

/// `SpecialValueDecimal`'s names.
fn special(text: &str) -> Option<&'static str> {
    match text {
        "NaN" => Some("NAN"),
        "Infinity" => Some("POSITIVE_INFINITY"),
        "-Infinity" => Some("NEGATIVE_INFINITY"),
        _ => None,
    }
}

/// `-$1,234.50`, as sessions with `lc_monetary` C have it, as a decimal.
fn amount(text: &str) -> String {
    text.chars().filter(|c| c.is_ascii_digit() || matches!(c, '-' | '.')).collect()
}

fn binary(text: &str, binaries: Binaries) -> Option<String> {
    let hex = text.strip_prefix("\\x")?;
    if binaries == Binaries::Hex {
        return Some(hex.to_owned());
    }
    let pairs = hex.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok());
    let bytes: Vec<u8> = bytes.collect::<Option<_>>()?;
    Some(match binaries {
        Binaries::Base64Url => URL_SAFE.encode(bytes),
        _ => STANDARD.encode(bytes),
    })
}

/// `000100000001` as bytes, the lowest bit first, without zero bytes at the end.
fn bits(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().rev().collect();
    let byte = |chunk: &[u8]| {
        chunk.iter().rev().fold(0, |byte, digit| byte << 1 | u8::from(*digit == b'1'))
    };
    let mut bytes: Vec<u8> = digits.chunks(8).map(byte).collect();
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    bytes
}
