//! The converters that need nobody else, by Connect's class names.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use bytes::Bytes;
use highwater_config::{Config, ConfigDef, ConfigKey, Importance, KeyType, Problem};

use crate::error::DataError;
use crate::json::{DecimalFormat, JsonConverter, JsonOptions};
use crate::primitive::Primitive;
use crate::schema::{Schema, Type};
use crate::value::{SchemaAndValue, Value};
use crate::{infer, text};

/// Between the values of one place in a record (its key, its value, a header) and their bytes.
#[derive(Debug)]
pub enum PlainConverter {
    /// `org.apache.kafka.connect.json.JsonConverter`.
    Json(Box<JsonConverter>),
    /// `org.apache.kafka.connect.storage.StringConverter`.
    String,
    /// `org.apache.kafka.connect.converters.ByteArrayConverter`.
    ByteArray,
    /// `BooleanConverter`, and those of numbers, beside it.
    Primitive(Primitive),
    /// `org.apache.kafka.connect.storage.SimpleHeaderConverter`, of headers alone.
    SimpleHeader,
}

/// Their class names, but for that of headers alone.
pub const PLAIN_CONVERTERS: &[&str] = &[
    "org.apache.kafka.connect.json.JsonConverter",
    "org.apache.kafka.connect.storage.StringConverter",
    "org.apache.kafka.connect.converters.ByteArrayConverter",
    "org.apache.kafka.connect.converters.BooleanConverter",
    "org.apache.kafka.connect.converters.ShortConverter",
    "org.apache.kafka.connect.converters.IntegerConverter",
    "org.apache.kafka.connect.converters.LongConverter",
    "org.apache.kafka.connect.converters.FloatConverter",
    "org.apache.kafka.connect.converters.DoubleConverter",
];

/// The class name of the converter of headers alone; the others here convert headers, too.
pub const SIMPLE_HEADER_CONVERTER: &str = "org.apache.kafka.connect.storage.SimpleHeaderConverter";

const SCHEMAS_ENABLE: &str = "schemas.enable";
const CACHE_SIZE: &str = "schemas.cache.size";
const DECIMAL_FORMAT: &str = "decimal.format";
const REPLACE_NULL: &str = "replace.null.with.default";
const SCHEMA_CONTENT: &str = "schema.content";
const ENCODING: &str = "converter.encoding";

/// The keys of a converter here, without the prefix of its place; `None` for another class.
pub(crate) fn keys(class: &str) -> Option<Vec<ConfigKey>> {
    Some(match simple_name(class)? {
        "JsonConverter" => json_keys(),
        "StringConverter" => vec![ConfigKey::new(
            ENCODING,
            KeyType::String,
            Some("UTF-8"),
            Importance::High,
            "Encoding of the text; UTF-8 is the only one.",
        )],
        _ => Vec::new(),
    })
}

fn json_keys() -> Vec<ConfigKey> {
    vec![
        ConfigKey::new(
            SCHEMAS_ENABLE,
            KeyType::Boolean,
            Some("true"),
            Importance::High,
            "Whether each value stands in an envelope, beside its schema.",
        ),
        ConfigKey::new(
            CACHE_SIZE,
            KeyType::Int { min: 0, max: 1_000_000 },
            Some("1000"),
            Importance::High,
            "How many schemas are remembered each way.",
        ),
        ConfigKey::new(
            DECIMAL_FORMAT,
            KeyType::String,
            Some("BASE64"),
            Importance::Low,
            "How decimals are written: BASE64, or NUMERIC as JSON numbers. Both are read.",
        ),
        ConfigKey::new(
            REPLACE_NULL,
            KeyType::Boolean,
            Some("true"),
            Importance::Low,
            "Whether a null is read and written as the default of its schema, where it has one.",
        ),
        ConfigKey::new(
            SCHEMA_CONTENT,
            KeyType::String,
            Some(""),
            Importance::High,
            "The schema of every value that is read, as JSON: the values then come without. Empty: each \
             value brings its own.",
        ),
    ]
}

/// One schema for all values: who remembers what was made of a schema knows it by its identity.
static OPTIONAL_STRING: LazyLock<Schema> =
    LazyLock::new(|| Schema::new(Type::String).optional(true));
static OPTIONAL_BYTES: LazyLock<Schema> = LazyLock::new(|| Schema::new(Type::Bytes).optional(true));

/// The last part of a converter's class, for its full name, that part, or that part without `Converter`.
fn simple_name(class: &str) -> Option<&'static str> {
    let all = PLAIN_CONVERTERS.iter().chain([&SIMPLE_HEADER_CONVERTER]);
    let simple = |full: &'static str| full.rsplit_once('.').map_or(full, |(_, simple)| simple);
    all.copied()
        .find(|full| {
            *full == class
                || simple(full) == class
                || simple(full).strip_suffix("Converter") == Some(class)
        })
        .map(simple)
}

impl PlainConverter {
    /// The converter of this class with these options, from whose keys the place's prefix
    /// (`value.converter.`) was taken. Keys that it does not know are left alone.
    ///
    /// # Errors
    /// There is no such class, or a value does not fit.
    pub fn new(class: &str, options: &BTreeMap<String, String>) -> Result<Self, Vec<Problem>> {
        let Some(keys) = keys(class) else {
            let known = PLAIN_CONVERTERS.join(", ");
            return Err(vec![Problem::new(
                "",
                format!("is not known; the converters are {known}"),
            )]);
        };
        let config = checked(keys, options)?;
        Ok(match simple_name(class).unwrap_or_default() {
            "JsonConverter" => Self::Json(Box::new(json(&config)?)),
            "StringConverter" => utf8(&config)?,
            "ByteArrayConverter" => Self::ByteArray,
            "BooleanConverter" => Self::Primitive(Primitive::Boolean),
            "ShortConverter" => Self::Primitive(Primitive::Short),
            "IntegerConverter" => Self::Primitive(Primitive::Integer),
            "LongConverter" => Self::Primitive(Primitive::Long),
            "FloatConverter" => Self::Primitive(Primitive::Float),
            "DoubleConverter" => Self::Primitive(Primitive::Double),
            _ => Self::SimpleHeader,
        })
    }

    /// The bytes of a value; `None` for those of null.
    ///
    /// # Errors
    /// The value is none that this converter writes, or does not fit its schema.
    pub fn from_connect(
        &self,
        schema: Option<&Schema>,
        value: &Value,
    ) -> Result<Option<Bytes>, DataError> {
        match (self, value) {
            (Self::Json(converter), _) => converter.from_connect(schema, value),
            (Self::Primitive(primitive), _) => primitive.write(schema, value),
            (Self::ByteArray, _) if schema.is_some_and(|schema| *schema.kind() != Type::Bytes) => {
                Err(DataError::unfit("a schema other than of bytes, for the converter of bytes"))
            }
            (_, Value::Null) => Ok(None),
            (Self::ByteArray, Value::Bytes(bytes)) => Ok(Some(bytes.clone())),
            (Self::ByteArray, _) => {
                Err(DataError::unfit(format!("{} where bytes are wanted", value.kind_name())))
            }
            (Self::String, Value::String(text)) => {
                Ok(Some(Bytes::copy_from_slice(text.as_bytes())))
            }
            (Self::String, _) => text::java(value).map(|text| Some(text.into())),
            (Self::SimpleHeader, _) => text::of(value).map(|text| Some(text.into())),
        }
    }

    /// The value of these bytes.
    ///
    /// # Errors
    /// They are none that this converter reads.
    pub fn to_connect(&self, bytes: Option<&Bytes>) -> Result<SchemaAndValue, DataError> {
        match self {
            Self::Json(converter) => converter.to_connect(bytes.map(AsRef::as_ref)),
            Self::Primitive(primitive) => primitive.read(bytes.map(AsRef::as_ref)),
            Self::ByteArray => {
                let value = bytes.map_or(Value::Null, |bytes| Value::Bytes(bytes.clone()));
                Ok(SchemaAndValue::of(OPTIONAL_BYTES.clone(), value))
            }
            Self::String => {
                let value = bytes.map(|bytes| utf8_of(bytes).map(Value::text)).transpose()?;
                Ok(SchemaAndValue::of(OPTIONAL_STRING.clone(), value.unwrap_or_default()))
            }
            Self::SimpleHeader => match bytes {
                None => Ok(SchemaAndValue::default()),
                Some(bytes) => Ok(match utf8_of(bytes) {
                    Ok(text) => infer::parse(text),
                    // A header that is no text is for others: it is no reason to refuse the record.
                    Err(_) => SchemaAndValue::of(Type::Bytes, Value::Bytes(bytes.clone())),
                }),
            },
        }
    }
}

/// Connect would put a mark in place of what is no UTF-8.
fn utf8_of(bytes: &[u8]) -> Result<&str, DataError> {
    std::str::from_utf8(bytes).map_err(|_| DataError::unfit("bytes that are no text in UTF-8"))
}

/// The options of these keys.
pub(crate) fn checked(
    keys: Vec<ConfigKey>,
    options: &BTreeMap<String, String>,
) -> Result<Config, Vec<Problem>> {
    let known = options.iter().filter(|(name, _)| keys.iter().any(|key| key.name == name.as_str()));
    let known = known.map(|(name, value)| (name.clone(), value.clone())).collect();
    ConfigDef::new(keys).parse(&known, &[])
}

fn json(config: &Config) -> Result<JsonConverter, Vec<Problem>> {
    let decimal_format = match config.text(DECIMAL_FORMAT) {
        text if text.eq_ignore_ascii_case("BASE64") => DecimalFormat::Base64,
        text if text.eq_ignore_ascii_case("NUMERIC") => DecimalFormat::Numeric,
        _ => return Err(vec![Problem::new(DECIMAL_FORMAT, "must be BASE64 or NUMERIC")]),
    };
    let content = config.text(SCHEMA_CONTENT);
    JsonConverter::new(JsonOptions {
        schemas_enable: config.flag(SCHEMAS_ENABLE),
        schemas_cache_size: usize::try_from(config.int(CACHE_SIZE)).unwrap_or(0),
        decimal_format,
        replace_null_with_default: config.flag(REPLACE_NULL),
        schema_content: (!content.is_empty()).then(|| content.to_owned()),
    })
    .map_err(|error| vec![Problem::new(SCHEMA_CONTENT, format!("is no schema: {error}"))])
}

fn utf8(config: &Config) -> Result<PlainConverter, Vec<Problem>> {
    match config.text(ENCODING).to_ascii_uppercase().as_str() {
        "UTF-8" | "UTF8" => Ok(PlainConverter::String),
        _ => Err(vec![Problem::new(ENCODING, "must be UTF-8, which is the only encoding here")]),
    }
}
