//! What a text says: how the header converter finds the type of a value that was written as text.

use std::sync::Arc;

use crate::decimal::Decimal;
use crate::error::DataError;
use crate::logical::Logical;
use crate::schema::{Schema, Type};
use crate::text::FORMS;
use crate::value::{Map, SchemaAndValue, Value};

/// Lists and maps that nest deeper are a text.
const DEEPEST: usize = 64;

/// How often a letter may be looked at, on the average. What is no list or map after all is read once
/// more, and so is what is in it: without a bound, the time would double with each level.
const LOOKS: usize = 64;

/// The value that a text says; without schema where it says null.
pub fn parse(text: &str) -> SchemaAndValue {
    if text.is_empty() {
        return a_text(text);
    }
    let looks = text.len().saturating_mul(LOOKS).saturating_add(1024);
    let mut parser = Parser { text, at: 0, depth: 0, looks };
    match parser.value(false) {
        Ok(value) if parser.looks > 0 => value,
        _ => a_text(text),
    }
}

fn a_text(text: &str) -> SchemaAndValue {
    SchemaAndValue::of(Type::String, Value::text(text))
}

/// The text is not what was tried.
struct NotThis;

type Parsed = Result<SchemaAndValue, NotThis>;

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// How many letters may still be looked at.
    looks: usize,
}

impl<'a> Parser<'a> {
    fn has_next(&self) -> bool {
        self.at < self.text.len()
    }

    /// The next mark, or the text up to it. A mark behind a backslash is text.
    fn next(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let mut escaped = false;
        let mut end = rest.len();
        for (place, letter) in rest.char_indices() {
            match letter {
                '\\' => escaped = !escaped,
                ':' | ',' | '{' | '}' | '[' | ']' | '"' if !escaped => {
                    end = if place == 0 { 1 } else { place };
                    break;
                }
                _ => escaped = false,
            }
        }
        self.at += end;
        self.looks = self.looks.saturating_sub(end);
        rest.get(..end).unwrap_or_default()
    }

    /// The text of this many tokens.
    fn take(&mut self, count: usize) -> Option<&'a str> {
        let begin = self.at;
        for _ in 0..count {
            if !self.has_next() {
                self.at = begin;
                return None;
            }
            self.next();
        }
        self.text.get(begin..self.at)
    }

    /// Passes this token when it is the next, but for space before it.
    fn pass(&mut self, wanted: &str) -> bool {
        let begin = self.at;
        if !self.has_next() {
            return false;
        }
        let mut token = self.next();
        while trimmed(token).is_empty() && self.has_next() {
            token = self.next();
        }
        if trimmed(token) == wanted {
            return true;
        }
        self.at = begin;
        false
    }

    /// Passes space before a mark, unless it is all there is.
    fn pass_space(&mut self) {
        let mut begin = self.at;
        while trimmed(self.next()).is_empty() && self.has_next() {
            begin = self.at;
        }
        self.at = begin;
    }

    /// A word that must be all there is, unless it stands in a list or map.
    fn pass_word(&mut self, word: &str, embedded: bool) -> bool {
        let begin = self.at;
        if self.pass(word) && (embedded || !self.has_next()) {
            return true;
        }
        self.at = begin;
        false
    }

    fn value(&mut self, embedded: bool) -> Parsed {
        if self.looks == 0 {
            return Err(NotThis);
        }
        if !self.has_next() {
            return if embedded { Err(NotThis) } else { Ok(SchemaAndValue::default()) };
        }
        if embedded && self.pass("\"") {
            return Ok(self.quoted());
        }
        if self.pass_word("null", embedded) {
            return Ok(SchemaAndValue::default());
        }
        for truth in [true, false] {
            if self.pass_word(if truth { "true" } else { "false" }, embedded) {
                return Ok(SchemaAndValue::of(Type::Boolean, Value::Boolean(truth)));
            }
        }
        let begin = self.at;
        let opened = self.pass("[") || self.pass("{");
        if !opened {
            self.pass_space();
            return self.scalar(embedded);
        }
        let list = self.text.get(..self.at).is_some_and(|passed| trimmed(passed).ends_with('['));
        if self.depth < DEEPEST {
            self.depth += 1;
            let parsed = if list { self.list() } else { self.map() };
            self.depth -= 1;
            if parsed.is_ok() {
                return parsed;
            }
        }
        self.at = begin;
        self.scalar(embedded)
    }

    /// Up to the closing quote, or to the end where there is none.
    fn quoted(&mut self) -> SchemaAndValue {
        let begin = self.at;
        let mut end = self.at;
        while self.has_next() {
            if self.pass("\"") {
                break;
            }
            self.next();
            end = self.at;
        }
        let content = self.text.get(begin..end).unwrap_or_default();
        moment(content).unwrap_or_else(|| a_text(content))
    }

    fn list(&mut self) -> Parsed {
        let mut items = Vec::new();
        let mut common = Common::default();
        while self.has_next() {
            if self.pass("]") {
                let schema = common.schema();
                let items = items.into_iter().map(|item| aligned(schema.as_ref(), item));
                let items = items.collect::<Result<_, _>>()?;
                return Ok(SchemaAndValue::of(Type::Array(schema), Value::array(items)));
            }
            if self.pass(",") {
                return Err(NotThis);
            }
            let item = self.value(true)?;
            common.see(&item);
            items.push(item.value);
            let behind = self.at;
            if self.pass("]") {
                self.at = behind;
            } else if !self.pass(",") {
                return Err(NotThis);
            }
        }
        Err(NotThis)
    }

    fn map(&mut self) -> Parsed {
        let mut entries = Map::new();
        let (mut keys, mut values) = (Common::default(), Common::default());
        while self.has_next() {
            if self.pass("}") {
                let (keys, values) = (keys.schema(), values.schema());
                let entries = entries.into_iter().map(|(key, value)| {
                    Ok((aligned(keys.as_ref(), key)?, aligned(values.as_ref(), value)?))
                });
                let entries: Map = entries.collect::<Result<_, _>>()?;
                return Ok(SchemaAndValue::of(
                    Type::Map(keys, values),
                    Value::Map(Arc::new(entries)),
                ));
            }
            if self.pass(",") {
                return Err(NotThis);
            }
            let key = self.value(true)?;
            if key.value.is_null() || !self.pass(":") {
                return Err(NotThis);
            }
            let value = self.value(true)?;
            self.pass(",");
            keys.see(&key);
            values.see(&value);
            entries.insert(key.value, value.value);
        }
        Err(NotThis)
    }

    fn scalar(&mut self, embedded: bool) -> Parsed {
        let token = self.next();
        if trimmed(token).is_empty() {
            return Ok(a_text(token));
        }
        let token = trimmed(token);
        let digit = token.starts_with(|letter: char| letter.is_ascii_digit());
        if digit {
            // The colons of a time divide it into five tokens.
            let behind = self.at;
            if let Some(rest) = self.take(4)
                && let Some(moment) = moment(&format!("{token}{rest}"))
            {
                return Ok(moment);
            }
            self.at = behind;
            if let Some(moment) = moment(token) {
                return Ok(moment);
            }
        }
        if (digit || token.starts_with(['+', '-']))
            && let Some(number) = number(token)
        {
            return Ok(number);
        }
        if embedded { Err(NotThis) } else { Ok(a_text(self.text)) }
    }
}

/// As Java's `trim`.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|letter| letter <= ' ')
}

fn moment(text: &str) -> Option<SchemaAndValue> {
    let text = text.replace("\\:", ":");
    let forms = FORMS.as_ref()?;
    let (logical, form) = match text.len() {
        10 => (Logical::Date, &forms.date),
        13 => (Logical::Time, &forms.time),
        24 => (Logical::Timestamp, &forms.timestamp),
        _ => return None,
    };
    Some(SchemaAndValue::of(logical.schema(), Value::Moment(form.parse(&text)?)))
}

/// The smallest type that holds it.
fn number(text: &str) -> Option<SchemaAndValue> {
    let decimal: Decimal = text.parse().ok()?;
    if let Some(whole) = decimal.to_i64() {
        return Some(if let Ok(value) = i8::try_from(whole) {
            SchemaAndValue::of(Type::Int8, Value::Int8(value))
        } else if let Ok(value) = i16::try_from(whole) {
            SchemaAndValue::of(Type::Int16, Value::Int16(value))
        } else if let Ok(value) = i32::try_from(whole) {
            SchemaAndValue::of(Type::Int32, Value::Int32(value))
        } else {
            SchemaAndValue::of(Type::Int64, Value::Int64(whole))
        });
    }
    let (float, double) = (decimal.to_f32(), decimal.to_f64());
    Some(if decimal.scale != 0 && float.is_finite() {
        SchemaAndValue::of(Type::Float32, Value::Float32(float))
    } else if decimal.scale != 0 && double.is_finite() {
        SchemaAndValue::of(Type::Float64, Value::Float64(double))
    } else {
        SchemaAndValue::of(Logical::decimal(decimal.scale), decimal.into())
    })
}

/// The schema that all items of a list have.
#[derive(Default)]
enum Common {
    /// No item but null was seen.
    #[default]
    Unknown,
    One(Schema),
    /// No schema holds all of them.
    Mixed,
}

impl Common {
    fn see(&mut self, item: &SchemaAndValue) {
        let Some(new) = &item.schema else { return };
        *self = match std::mem::take(self) {
            Self::Unknown => Self::One(new.clone()),
            Self::One(old) => wider(old, new).map_or(Self::Mixed, Self::One),
            Self::Mixed => Self::Mixed,
        };
    }

    fn schema(self) -> Option<Schema> {
        match self {
            Self::One(schema) => Some(schema),
            Self::Unknown | Self::Mixed => None,
        }
    }
}

/// The wider of two numbers; `None` where none holds the other.
fn wider(old: Schema, new: &Schema) -> Option<Schema> {
    if old.kind().same_kind(new.kind()) {
        return (old == *new || old.is_optional() == new.is_optional()).then(|| new.clone());
    }
    let (width_of_old, width_of_new) = (width(old.kind())?, width(new.kind())?);
    Some(if width_of_old < width_of_new { new.clone() } else { old })
}

const fn width(kind: &Type) -> Option<u8> {
    Some(match kind {
        Type::Int8 => 0,
        Type::Int16 => 1,
        Type::Int32 => 2,
        Type::Int64 => 3,
        Type::Float32 => 4,
        Type::Float64 => 5,
        _ => return None,
    })
}

/// An item in the type of all, which has no null.
fn aligned(schema: Option<&Schema>, value: Value) -> Result<Value, NotThis> {
    let Some(schema) = schema else { return Ok(value) };
    if value.is_null() {
        return Err(NotThis);
    }
    convert(schema.kind(), value).map_err(|_| NotThis)
}

fn convert(kind: &Type, value: Value) -> Result<Value, DataError> {
    let whole = match &value {
        Value::Int8(value) => i64::from(*value),
        Value::Int16(value) => i64::from(*value),
        Value::Int32(value) => i64::from(*value),
        Value::Int64(value) => *value,
        Value::Float32(float) => {
            return Ok(if *kind == Type::Float64 {
                Value::Float64(f64::from(*float))
            } else {
                value
            });
        }
        _ => return Ok(value),
    };
    let beyond = |_| DataError::unfit("beyond the type");
    #[expect(clippy::cast_precision_loss, reason = "as Java widens")]
    Ok(match kind {
        Type::Int8 => Value::Int8(i8::try_from(whole).map_err(beyond)?),
        Type::Int16 => Value::Int16(i16::try_from(whole).map_err(beyond)?),
        Type::Int32 => Value::Int32(i32::try_from(whole).map_err(beyond)?),
        Type::Int64 => Value::Int64(whole),
        Type::Float32 => Value::Float32(whole as f32),
        Type::Float64 => Value::Float64(whole as f64),
        _ => value,
    })
}
