//! Row images: columns without a value removed, values shown as the stream wants them.

use std::borrow::Cow;
use std::fmt;

use highwater_connector::ColumnStates;
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::encoding::Encoding;
use crate::object::ObjectWriter;

/// The columns of an image, in order, each value as its JSON text.
pub(crate) struct Image<'a>(Vec<(Cow<'a, str>, &'a str)>);

/// Writes an image. `other` is the row's image on the other side of the change, if it has one.
///
/// A placeholder stands in the image of the state after the change; where the state before holds a
/// real value of the same column, that value stays.
pub(crate) fn write(
    out: &mut Vec<u8>,
    encoding: &Encoding,
    states: &ColumnStates,
    image: &RawValue,
    after: Option<&RawValue>,
) {
    let plain = states.is_empty()
        && !encoding.omit_null_column_values
        && !encoding.treat_all_columns_as_strings;
    let columns = if plain { None } else { Image::parse(image) };
    let Some(columns) = columns else {
        out.extend_from_slice(image.get().as_bytes());
        return;
    };
    let after = if states.is_empty() { None } else { after.and_then(Image::parse) };
    let mut object = ObjectWriter::begin(out);
    for (name, value) in &columns.0 {
        let left_out = encoding.omit_null_column_values && *value == "null";
        if !left_out && !is_placeholder(states, name, value, after.as_ref()) {
            write_value(&mut object, encoding, name, value);
        }
    }
    object.end();
}

fn write_value(object: &mut ObjectWriter<'_>, encoding: &Encoding, name: &str, value: &str) {
    let is_text_or_null = value.starts_with('"') || value == "null";
    if encoding.treat_all_columns_as_strings && !is_text_or_null {
        object.value(name, value);
    } else {
        object.raw(name, value);
    }
}

/// Whether `value` of a column that `states` names is what stands for a missing value.
fn is_placeholder(
    states: &ColumnStates,
    name: &str,
    value: &str,
    after: Option<&Image<'_>>,
) -> bool {
    let named = states.unchanged.iter().chain(&states.unavailable).any(|column| column == name);
    named && after.and_then(|after| after.value(name)).is_none_or(|there| there == value)
}

impl<'a> Image<'a> {
    fn parse(image: &'a RawValue) -> Option<Self> {
        serde_json::from_str(image.get()).ok()
    }

    fn value(&self, column: &str) -> Option<&'a str> {
        self.0.iter().find(|(name, _)| name == column).map(|(_, value)| *value)
    }
}

impl<'de> Deserialize<'de> for Image<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Columns)
    }
}

struct Columns;

impl<'de> Visitor<'de> for Columns {
    type Value = Image<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of columns")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut columns = Vec::new();
        while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &'de RawValue>()? {
            columns.push((name, value.get()));
        }
        Ok(Image(columns))
    }
}

/// A member name, borrowed where it holds no escape.
#[derive(Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
