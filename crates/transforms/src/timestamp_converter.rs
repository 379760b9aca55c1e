//! TimestampConverter: gives a time another form.

use highwater_config::{Config, ConfigKey, Importance, KeyType};
use highwater_data::{
    DAY, DataError, DateFormat, Fields, Logical, Map, Schema, SchemaAndValue, SchemaMemo, Struct,
    Type, Value,
};

use crate::options::{Problems, REPLACE_NULL, given, optional, replace_null, required, wrong};
use crate::place::{Place, filled, map_of, name, struct_of};
use crate::record::Record;
use crate::transform::{Applied, Transform};

const FIELD: &str = "field";
const TARGET: &str = "target.type";
const FORMAT: &str = "format";
const PRECISION: &str = "unix.precision";

pub(crate) fn keys() -> Vec<ConfigKey> {
    vec![
        optional(FIELD, KeyType::String, "", "The field; empty: the whole key or value.")
            .of_importance(Importance::High),
        required(TARGET, KeyType::String, "The form: string, unix, Date, Time or Timestamp."),
        optional(
            FORMAT,
            KeyType::String,
            "",
            "How a time stands in a text, in UTC, by Java's SimpleDateFormat: to write for string, to read \
             where the time is a text.",
        ),
        optional(
            PRECISION,
            KeyType::String,
            "milliseconds",
            "What unix counts since 1970: seconds, milliseconds, microseconds or nanoseconds.",
        )
        .of_importance(Importance::Low),
        replace_null(),
    ]
}

#[derive(Debug)]
struct TimestampConverter {
    place: Place,
    field: Option<String>,
    target: Form,
    format: Option<DateFormat>,
    precision: Precision,
    replace_null: bool,
    memo: SchemaMemo,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    Text,
    Unix,
    Date,
    Time,
    Timestamp,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Precision {
    Seconds,
    Milliseconds,
    Microseconds,
    Nanoseconds,
}

pub(crate) fn make(place: Place, config: &Config) -> Result<Box<dyn Transform>, Problems> {
    let target = match config.text(TARGET) {
        "string" => Form::Text,
        "unix" => Form::Unix,
        "Date" => Form::Date,
        "Time" => Form::Time,
        "Timestamp" => Form::Timestamp,
        _ => return Err(wrong(TARGET, "must be string, unix, Date, Time or Timestamp")),
    };
    let format = given(config, FORMAT).map(|format| DateFormat::new(&format)).transpose();
    let format = format.map_err(|what| wrong(FORMAT, what))?;
    if target == Form::Text && format.is_none() {
        return Err(wrong(FORMAT, "must be given for string"));
    }
    let precision = match config.text(PRECISION) {
        "seconds" => Precision::Seconds,
        "milliseconds" => Precision::Milliseconds,
        "microseconds" => Precision::Microseconds,
        "nanoseconds" => Precision::Nanoseconds,
        _ => {
            let message = "must be seconds, milliseconds, microseconds or nanoseconds";
            return Err(wrong(PRECISION, message));
        }
    };
    let (field, replace_null) = (given(config, FIELD), config.flag(REPLACE_NULL));
    let memo = SchemaMemo::default();
    Ok(Box::new(TimestampConverter { place, field, target, format, precision, replace_null, memo }))
}

impl Transform for TimestampConverter {
    fn apply(&self, record: Record) -> Applied {
        let old = self.place.of(&record);
        let new = match (&self.field, &old.schema) {
            (None, None) => SchemaAndValue::schemaless(self.inferred(&old.value)?),
            (None, Some(schema)) => {
                let value = self.converted(form_of(schema)?, &old.value)?;
                SchemaAndValue::of(self.memo.get(schema, || Ok(self.target_schema(schema)))?, value)
            }
            (Some(_), _) if old.value.is_null() && old.schema.is_none() => return Ok(Some(record)),
            (Some(field), None) => {
                SchemaAndValue::schemaless(self.map(map_of(&old.value)?, field)?)
            }
            (Some(field), Some(schema)) => {
                let new = self.memo.get(schema, || self.schema(schema, field))?;
                let value = match &old.value {
                    Value::Null => Value::Null,
                    value => self.row(struct_of(value)?, &new, field)?,
                };
                SchemaAndValue::of(new, value)
            }
        };
        Ok(Some(self.place.put(record, new)))
    }
}

/// The form of the times that a schema has.
fn form_of(schema: &Schema) -> Result<Form, DataError> {
    match (Logical::of(schema), schema.kind()) {
        (Some(Logical::Timestamp), _) => Ok(Form::Timestamp),
        (Some(Logical::Date), _) => Ok(Form::Date),
        (Some(Logical::Time), _) => Ok(Form::Time),
        (_, Type::String) => Ok(Form::Text),
        (_, Type::Int64) => Ok(Form::Unix),
        (_, kind) => {
            Err(DataError::unfit(format!("a schema of {}, which is no time", kind.name())))
        }
    }
}

impl TimestampConverter {
    fn target_schema(&self, old: &Schema) -> Schema {
        let schema = match self.target {
            Form::Text => Type::String.into(),
            Form::Unix => Type::Int64.into(),
            Form::Date => Logical::Date.schema(),
            Form::Time => Logical::Time.schema(),
            Form::Timestamp => Logical::Timestamp.schema(),
        };
        schema.optional(old.is_optional())
    }

    fn schema(&self, schema: &Schema, name: &str) -> Result<Schema, DataError> {
        let old =
            schema.fields().ok_or_else(|| DataError::unfit("a schema that is no struct's"))?;
        let mut fields = Fields::default();
        for field in old.iter() {
            let converted = *field.name == *name;
            let of =
                if converted { self.target_schema(&field.schema) } else { field.schema.clone() };
            fields.add(field.name.clone(), of);
        }
        let new = Schema::like(Type::Struct(fields), schema).optional(schema.is_optional());
        match schema.default_value() {
            Value::Struct(row) => {
                let default = self.row(row, &new, name)?;
                Ok(new.with_default(default))
            }
            _ => Ok(new),
        }
    }

    fn map(&self, map: &Map, field: &str) -> Result<Value, DataError> {
        let mut new = map.clone();
        let value = map.get(&name(field)).unwrap_or(&Value::Null);
        new.insert(name(field), self.inferred(value)?);
        Ok(Value::Map(new.into()))
    }

    fn row(&self, row: &Struct, schema: &Schema, name: &str) -> Result<Value, DataError> {
        let mut new =
            Struct::new(schema).ok_or_else(|| DataError::unfit("no schema of a struct"))?;
        for (place, (field, value)) in row.entries().enumerate() {
            let mut value = filled(field, value, self.replace_null);
            if *field.name == *name {
                value = self.converted(form_of(&field.schema)?, &value)?;
            }
            new.put_at(place, value)?;
        }
        Ok(new.into())
    }

    /// A time without schema: its form is that of its type.
    fn inferred(&self, value: &Value) -> Result<Value, DataError> {
        let form = match value {
            Value::Null => return Ok(Value::Null),
            Value::Moment(_) => Form::Timestamp,
            Value::Int64(_) => Form::Unix,
            Value::String(_) => Form::Text,
            value => {
                return Err(DataError::unfit(format!("{}, which is no time", value.kind_name())));
            }
        };
        self.converted(form, value)
    }

    fn converted(&self, form: Form, value: &Value) -> Result<Value, DataError> {
        let ms = match (form, value) {
            (_, Value::Null) => return Ok(Value::Null),
            (Form::Text, Value::String(text)) => self.read(text)?,
            (Form::Unix, Value::Int64(count)) => self.precision.milliseconds(*count)?,
            (Form::Date | Form::Time | Form::Timestamp, Value::Moment(ms)) => *ms,
            (_, value) => {
                return Err(DataError::unfit(format!("{}, which is no time", value.kind_name())));
            }
        };
        Ok(match self.target {
            Form::Text => Value::text(self.written(ms)?),
            Form::Unix => Value::Int64(self.precision.count(ms)?),
            Form::Date => Value::Moment(ms - ms.rem_euclid(DAY)),
            Form::Time => Value::Moment(ms.rem_euclid(DAY)),
            Form::Timestamp => Value::Moment(ms),
        })
    }

    fn read(&self, text: &str) -> Result<i64, DataError> {
        let read = self.format.as_ref().and_then(|format| format.parse(text));
        read.ok_or_else(|| {
            let length = text.chars().count();
            DataError::unfit(format!("a text of {length} characters, which does not fit {FORMAT}"))
        })
    }

    fn written(&self, ms: i64) -> Result<String, DataError> {
        let text = self.format.as_ref().and_then(|format| format.format(ms));
        text.ok_or_else(|| DataError::unfit("a time outside of the years 1583 to 9999"))
    }
}

impl Precision {
    fn milliseconds(self, count: i64) -> Result<i64, DataError> {
        match self {
            Self::Seconds => count.checked_mul(1000).ok_or_else(beyond),
            Self::Milliseconds => Ok(count),
            Self::Microseconds => Ok(count / 1000),
            Self::Nanoseconds => Ok(count / 1_000_000),
        }
    }

    fn count(self, ms: i64) -> Result<i64, DataError> {
        match self {
            Self::Seconds => Ok(ms / 1000),
            Self::Milliseconds => Ok(ms),
            Self::Microseconds => ms.checked_mul(1000).ok_or_else(beyond),
            Self::Nanoseconds => ms.checked_mul(1_000_000).ok_or_else(beyond),
        }
    }
}

fn beyond() -> DataError {
    DataError::unfit("a time that is beyond 64 bits in the other unit")
}
