//! Connect's JsonConverter: values as JSON, alone or beside their schema.

mod read;
mod read_schema;
mod write;
mod write_schema;

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::Value as Json;
use serde_json::value::RawValue;

use crate::cache::Cache;
use crate::error::DataError;
use crate::schema::Schema;
use crate::value::{SchemaAndValue, Value};

/// How decimals are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DecimalFormat {
    /// Their bytes in base64.
    #[default]
    Base64,
    /// A JSON number.
    Numeric,
}

/// What a [`JsonConverter`] is told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JsonOptions {
    /// Whether each value stands beside its schema, in an envelope.
    pub schemas_enable: bool,
    /// How many schemas are remembered each way.
    pub schemas_cache_size: usize,
    /// See [`DecimalFormat`].
    pub decimal_format: DecimalFormat,
    /// Whether a null is read and written as the default of its schema.
    pub replace_null_with_default: bool,
    /// The schema of every value that is read, as JSON; the values then come without.
    pub schema_content: Option<String>,
}

impl Default for JsonOptions {
    fn default() -> Self {
        Self {
            schemas_enable: true,
            schemas_cache_size: 1000,
            decimal_format: DecimalFormat::Base64,
            replace_null_with_default: true,
            schema_content: None,
        }
    }
}

/// A schema and its text.
type Written = (Schema, Arc<[u8]>);

/// See the module.
#[derive(Debug)]
pub struct JsonConverter {
    options: JsonOptions,
    /// The schema of `schema.content`.
    fixed: Option<Schema>,
    /// Schemas by their text.
    read: Mutex<Cache<Box<str>, Schema>>,
    /// Texts by the identity of their schemas, which are held so that it stays theirs.
    written: Mutex<Cache<usize, Written>>,
}

impl JsonConverter {
    /// A converter with these options.
    ///
    /// # Errors
    /// `schema.content` is no schema.
    pub fn new(options: JsonOptions) -> Result<Self, DataError> {
        let fixed = match &options.schema_content {
            Some(text) if options.schemas_enable => {
                read_schema::schema(&parse(text.as_bytes())?, options.replace_null_with_default)?
            }
            _ => None,
        };
        let size = options.schemas_cache_size;
        let (read, written) = (Mutex::new(Cache::new(size)), Mutex::new(Cache::new(size)));
        Ok(Self { options, fixed, read, written })
    }

    /// The bytes of a value; `None` for null without schema.
    ///
    /// # Errors
    /// The value does not fit its schema.
    pub fn from_connect(
        &self,
        schema: Option<&Schema>,
        value: &Value,
    ) -> Result<Option<Bytes>, DataError> {
        if schema.is_none() && value.is_null() {
            return Ok(None);
        }
        let schema_text = match schema {
            Some(schema) if self.options.schemas_enable => Some(self.schema_text(schema)?),
            _ => None,
        };
        let schema_text = schema_text.as_deref().unwrap_or(b"null");
        let mut out = Vec::with_capacity(schema_text.len() + size_hint(value));
        let writer = write::Writer::new(&self.options);
        if self.options.schemas_enable {
            out.extend_from_slice(br#"{"schema":"#);
            out.extend_from_slice(schema_text);
            out.extend_from_slice(br#","payload":"#);
            writer.value(&mut out, schema, value)?;
            out.push(b'}');
        } else {
            writer.value(&mut out, schema, value)?;
        }
        Ok(Some(out.into()))
    }

    fn schema_text(&self, schema: &Schema) -> Result<Arc<[u8]>, DataError> {
        if let Some((_, text)) = self.written.lock().get(&schema.identity()) {
            return Ok(Arc::clone(text));
        }
        let mut out = Vec::new();
        write_schema::schema(&write::Writer::new(&self.options), &mut out, schema, None)?;
        let text: Arc<[u8]> = out.into();
        self.written.lock().put(schema.identity(), (schema.clone(), Arc::clone(&text)));
        Ok(text)
    }

    /// The value of these bytes.
    ///
    /// # Errors
    /// They are no JSON, lack the envelope, or do not fit the schema.
    pub fn to_connect(&self, bytes: Option<&[u8]>) -> Result<SchemaAndValue, DataError> {
        let Some(bytes) = bytes else { return Ok(SchemaAndValue::default()) };
        let (schema, payload) = if !self.options.schemas_enable {
            (None, parse(bytes)?)
        } else if let Some(fixed) = &self.fixed {
            (Some(fixed.clone()), parse(bytes)?)
        } else {
            let (schema, payload) = envelope(bytes)?;
            (self.schema_of(schema.get())?, parse(payload.get().as_bytes())?)
        };
        let value =
            read::value(schema.as_ref(), Some(&payload), self.options.replace_null_with_default)?;
        Ok(SchemaAndValue { schema, value })
    }

    fn schema_of(&self, text: &str) -> Result<Option<Schema>, DataError> {
        if let Some(schema) = self.read.lock().get(text) {
            return Ok(Some(schema.clone()));
        }
        let schema =
            read_schema::schema(&parse(text.as_bytes())?, self.options.replace_null_with_default)?;
        if let Some(schema) = &schema {
            self.read.lock().put(text.into(), schema.clone());
        }
        Ok(schema)
    }
}

/// About how many bytes a value takes beside its schema: a text is most often copied once so.
fn size_hint(value: &Value) -> usize {
    const ENVELOPE: usize = 32;
    ENVELOPE + if let Value::String(text) = value { text.len() } else { 96 }
}

/// Words that the parser keeps for itself, and would read as something else.
const RESERVED: &str = "$serde_json::private::";

/// Nothing but space is null, as in Connect.
fn parse(bytes: &[u8]) -> Result<Json, DataError> {
    let text = checked(bytes)?;
    if text.trim_matches([' ', '\t', '\r', '\n']).is_empty() {
        return Ok(Json::Null);
    }
    serde_json::from_str(text).map_err(|error| not_json(&error))
}

fn checked(bytes: &[u8]) -> Result<&str, DataError> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| DataError::unfit("the bytes are no JSON: no UTF-8"))?;
    if text.contains(RESERVED) {
        return Err(DataError::unfit(format!("JSON with {RESERVED:?}, which cannot be read")));
    }
    // A mark of the byte order says nothing of UTF-8.
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text))
}

fn not_json(error: &serde_json::Error) -> DataError {
    DataError::unfit(format!("the bytes are no JSON: {error}"))
}

const NO_ENVELOPE: &str = "JSON without the members schema and payload alone, which schemas.enable=true asks \
                           for; set it to false for plain JSON";

/// The two members of an envelope as they stand.
fn envelope(bytes: &[u8]) -> Result<(&RawValue, &RawValue), DataError> {
    let text = checked(bytes)?;
    let members: Vec<(Cow<'_, str>, &RawValue)> = members(text)?;
    let find =
        |name: &str| members.iter().rev().find(|(member, _)| member == name).map(|(_, raw)| *raw);
    let strange = members.iter().any(|(name, _)| name != "schema" && name != "payload");
    match (find("schema"), find("payload")) {
        (Some(schema), Some(payload)) if !strange => Ok((schema, payload)),
        _ => Err(DataError::unfit(NO_ENVELOPE)),
    }
}

fn members(text: &str) -> Result<Vec<(Cow<'_, str>, &RawValue)>, DataError> {
    use serde::de::{Deserializer, MapAccess, Visitor};
    /// More members than an envelope has say already that it is none.
    const ENOUGH: usize = 8;
    struct Members;
    #[derive(serde::Deserialize)]
    struct Name<'a>(#[serde(borrow)] Cow<'a, str>);
    impl<'de> Visitor<'de> for Members {
        type Value = Vec<(Cow<'de, str>, &'de RawValue)>;
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("an object with the members schema and payload")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Vec::new();
            while let Some((Name(name), value)) = map.next_entry::<Name<'de>, &RawValue>()? {
                if members.len() < ENOUGH {
                    members.push((name, value));
                }
            }
            Ok(members)
        }
    }
    let mut parser = serde_json::Deserializer::from_str(text);
    let members = parser.deserialize_map(Members).map_err(|error| {
        if error.is_data() { DataError::unfit(NO_ENVELOPE) } else { not_json(&error) }
    })?;
    parser.end().map_err(|error| not_json(&error))?;
    Ok(members)
}
