//! The converters by their class names: those that need nobody else, and Avro's with its registry.

use std::collections::BTreeMap;

use bytes::Bytes;
use highwater_config::{ConfigKey, Problem, nearest};

use crate::avro_converter::{self, AVRO_CONVERTER, AvroConverter};
use crate::error::DataError;
use crate::plain::{self, PLAIN_CONVERTERS, PlainConverter, SIMPLE_HEADER_CONVERTER};
use crate::schema::Schema;
use crate::value::{SchemaAndValue, Value};

/// What of a record a converter is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Its key: `key.converter`.
    Key,
    /// Its value: `value.converter`.
    Value,
    /// Its headers: `header.converter`.
    Header,
}

/// Between the values of one place in a record (its key, its value, a header) and their bytes.
#[derive(Debug)]
pub enum Converter {
    /// One that needs nobody else.
    Plain(PlainConverter),
    /// `io.confluent.connect.avro.AvroConverter`.
    Avro(Box<AvroConverter>),
}

/// The class names of the converters for this role.
pub fn converters(role: Role) -> Vec<&'static str> {
    let also = if role == Role::Header { SIMPLE_HEADER_CONVERTER } else { AVRO_CONVERTER };
    PLAIN_CONVERTERS.iter().copied().chain([also]).collect()
}

/// The keys of a converter, without the prefix of its place; `None` for a class that is none.
pub fn converter_keys(class: &str) -> Option<Vec<ConfigKey>> {
    if is_avro(class) { Some(avro_converter::keys()) } else { plain::keys(class) }
}

fn is_avro(class: &str) -> bool {
    class == AVRO_CONVERTER || class == "AvroConverter" || class == "Avro"
}

/// Options that every converter has in Connect, whatever they say.
const OF_ALL: [&str; 2] = ["converter.type", "plugin.version"];

/// The options that this class takes, or changes nothing by.
fn options_of(class: &str) -> Vec<&'static str> {
    let mut options = OF_ALL.to_vec();
    if is_avro(class) {
        options.extend(avro_converter::options());
    } else {
        options.extend(plain::keys(class).unwrap_or_default().iter().map(|key| key.name));
    }
    options
}

/// What is wrong with options that no converter has, by their names: a misspelt one would be left out. `prefix` is
/// what stands before their names. Those of another converter are [`idle_options`].
pub fn unknown_options(options: &BTreeMap<String, String>, prefix: &str) -> Vec<Problem> {
    let known: Vec<_> = converters(Role::Value).into_iter().flat_map(options_of).collect();
    let unknown = options.keys().filter(|name| !known.contains(&name.as_str()));
    let message = |name: &String| match nearest(name, known.iter().copied()) {
        Some(right) => format!("is no option of a converter; did you mean {prefix}{right}?"),
        None => "is no option of a converter".to_owned(),
    };
    unknown.map(|name| Problem::new(name, message(name))).collect()
}

/// The options that another converter has and that of this class has not: they stay behind when the class is
/// changed, and many a configuration has them.
pub fn idle_options<'a>(class: &str, options: &'a BTreeMap<String, String>) -> Vec<&'a str> {
    let known = options_of(class);
    options.keys().map(String::as_str).filter(|name| !known.contains(name)).collect()
}

impl Converter {
    /// The converter of this class with these options, from whose keys the place's prefix
    /// (`value.converter.`) was taken. Keys that it does not know are [`unknown_options`] or [`idle_options`].
    ///
    /// # Errors
    /// There is no such class for this role, or a value does not fit. A problem of the class itself has
    /// an empty key.
    pub fn new(
        class: &str,
        options: &BTreeMap<String, String>,
        role: Role,
    ) -> Result<Self, Vec<Problem>> {
        let avro = is_avro(class);
        if avro && role != Role::Header {
            return AvroConverter::new(options, role)
                .map(|converter| Self::Avro(Box::new(converter)));
        }
        match (avro, PlainConverter::new(class, options)) {
            (false, Ok(PlainConverter::SimpleHeader)) if role != Role::Header => {}
            (false, Ok(converter)) => return Ok(Self::Plain(converter)),
            (false, Err(problems)) if plain::keys(class).is_some() => return Err(problems),
            _ => {}
        }
        let known = converters(role).join(", ");
        Err(vec![Problem::new("", format!("is no converter for this place; they are {known}"))])
    }

    /// The bytes of a value for a topic; `None` for those of null.
    ///
    /// # Errors
    /// The value is none that this converter writes, or the registry does not take its schema.
    pub async fn write(
        &self,
        topic: &str,
        schema: Option<&Schema>,
        value: &Value,
    ) -> Result<Option<Bytes>, DataError> {
        match self {
            Self::Plain(converter) => converter.from_connect(schema, value),
            Self::Avro(converter) => converter.from_connect(topic, schema, value).await,
        }
    }

    /// The value of these bytes.
    ///
    /// # Errors
    /// They are none that this converter reads, or the registry does not know their schema.
    pub async fn read(&self, bytes: Option<&Bytes>) -> Result<SchemaAndValue, DataError> {
        match self {
            Self::Plain(converter) => converter.to_connect(bytes),
            Self::Avro(converter) => converter.to_connect(bytes.map(AsRef::as_ref)).await,
        }
    }
}
