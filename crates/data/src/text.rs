//! Values as text: Connect's form, in which the header converter writes, and Java's, in which the
//! string converter does.

use std::fmt::Write;
use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::date_format::DateFormat;
use crate::error::DataError;
use crate::float_text;
use crate::logical::DAY;
use crate::value::Value;

/// The forms in which dates and times stand in texts.
pub(crate) struct Forms {
    pub(crate) date: DateFormat,
    pub(crate) time: DateFormat,
    pub(crate) timestamp: DateFormat,
    java: DateFormat,
}

/// `None` cannot be: the patterns are constant, and a test reads them.
pub(crate) static FORMS: LazyLock<Option<Forms>> = LazyLock::new(|| {
    let form = |pattern| DateFormat::new(pattern).ok();
    Some(Forms {
        date: form("yyyy-MM-dd")?,
        time: form("HH:mm:ss.SSS'Z'")?,
        timestamp: form("yyyy-MM-dd'T'HH:mm:ss.SSS'Z'")?,
        java: form("EEE MMM dd HH:mm:ss zzz yyyy")?,
    })
});

/// The text of a value in Connect's form: lists in brackets, maps in braces, texts inside of them quoted.
///
/// # Errors
/// A date that cannot be written.
pub fn of(value: &Value) -> Result<String, DataError> {
    let mut text = String::new();
    append(&mut text, value, false)?;
    Ok(text)
}

/// A text alone, or within another value.
fn append(out: &mut String, value: &Value, embedded: bool) -> Result<(), DataError> {
    if scalar(out, value) {
        return Ok(());
    }
    match value {
        Value::Null => out.push_str("null"),
        Value::String(text) if embedded => {
            quote(out, &text.replace('\\', "\\\\").replace('"', "\\\""))
        }
        Value::String(text) => out.push_str(text),
        Value::Bytes(bytes) if embedded => quote(out, &STANDARD.encode(bytes)),
        Value::Bytes(bytes) => out.push_str(&STANDARD.encode(bytes)),
        Value::Moment(ms) => out.push_str(&moment(*ms)?),
        Value::Array(items) => {
            listed(out, "[]", ",", items.iter(), |out, item| append(out, item, true))?
        }
        Value::Map(entries) => listed(out, "{}", ",", entries.iter(), |out, (key, value)| {
            append(out, key, true)?;
            out.push(':');
            append(out, value, true)
        })?,
        Value::Struct(row) => listed(out, "{}", ",", row.entries(), |out, (field, value)| {
            append(out, &Value::String(field.name.clone()), true)?;
            out.push(':');
            let value = if value.is_null() { field.schema.default_value() } else { value };
            append(out, value, true)
        })?,
        _ => {}
    }
    Ok(())
}

fn quote(out: &mut String, text: &str) {
    let _ = write!(out, "\"{text}\"");
}

/// Writes numbers and booleans, which have one text everywhere.
fn scalar(out: &mut String, value: &Value) -> bool {
    let _ = match value {
        Value::Boolean(value) => write!(out, "{value}"),
        Value::Int8(value) => write!(out, "{value}"),
        Value::Int16(value) => write!(out, "{value}"),
        Value::Int32(value) => write!(out, "{value}"),
        Value::Int64(value) => write!(out, "{value}"),
        Value::Float32(value) => write!(out, "{}", float_text::of_f32(*value)),
        Value::Float64(value) => write!(out, "{}", float_text::of_f64(*value)),
        Value::Decimal(value) => write!(out, "{value}"),
        _ => return false,
    };
    true
}

/// A moment of the first day or before it is a time, one at midnight a date.
fn moment(ms: i64) -> Result<String, DataError> {
    let form = FORMS.as_ref().map(|forms| {
        if ms < DAY {
            &forms.time
        } else if ms % DAY == 0 {
            &forms.date
        } else {
            &forms.timestamp
        }
    });
    form.and_then(|form| form.format(ms)).ok_or_else(unwritable)
}

fn unwritable() -> DataError {
    DataError::unfit("a moment outside of the years 1583 to 9999")
}

/// The text of a value as Java's `toString` gives it.
///
/// # Errors
/// Bytes: Java gives the address of an array, which says nothing of them.
pub fn java(value: &Value) -> Result<String, DataError> {
    let mut text = String::new();
    append_java(&mut text, value)?;
    Ok(text)
}

fn append_java(out: &mut String, value: &Value) -> Result<(), DataError> {
    if scalar(out, value) {
        return Ok(());
    }
    match value {
        Value::Null => out.push_str("null"),
        Value::String(text) => out.push_str(text),
        Value::Moment(ms) => {
            let text = FORMS.as_ref().and_then(|forms| forms.java.format(*ms));
            out.push_str(&text.ok_or_else(unwritable)?);
        }
        Value::Array(items) => listed(out, "[]", ", ", items.iter(), append_java)?,
        Value::Map(entries) => listed(out, "{}", ", ", entries.iter(), |out, (key, value)| {
            append_java(out, key)?;
            out.push('=');
            append_java(out, value)
        })?,
        Value::Struct(row) => {
            out.push_str("Struct");
            let given = row.entries().filter(|(_, value)| !value.is_null());
            listed(out, "{}", ",", given, |out, (field, value)| {
                out.push_str(&field.name);
                out.push('=');
                append_java(out, value)
            })?;
        }
        _ => {
            return Err(DataError::unfit(
                "bytes, which have no text: Connect would write where they lie in memory",
            ));
        }
    }
    Ok(())
}

/// Items between the two characters of `marks`, with `between` between them.
fn listed<T>(
    out: &mut String,
    marks: &str,
    between: &str,
    items: impl Iterator<Item = T>,
    mut item: impl FnMut(&mut String, T) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let (open, close) = marks.split_at(1);
    out.push_str(open);
    for (place, part) in items.enumerate() {
        if place > 0 {
            out.push_str(between);
        }
        item(out, part)?;
    }
    out.push_str(close);
    Ok(())
}
