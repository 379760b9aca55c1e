//! Connect's logical types: a schema of a plain type with a name that says what its values mean.

use std::sync::Arc;

use crate::decimal::Decimal;
use crate::error::DataError;
use crate::schema::{Schema, Type};
use crate::value::Value;

const DECIMAL: &str = "org.apache.kafka.connect.data.Decimal";
const DATE: &str = "org.apache.kafka.connect.data.Date";
const TIME: &str = "org.apache.kafka.connect.data.Time";
const TIMESTAMP: &str = "org.apache.kafka.connect.data.Timestamp";
const SCALE: &str = "scale";

/// Milliseconds of a day.
pub const DAY: i64 = 86_400_000;

/// A logical type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Logical {
    /// [`Decimal`] over bytes, its scale a parameter.
    Decimal,
    /// Days since 1970.
    Date,
    /// Milliseconds of a day.
    Time,
    /// Milliseconds since 1970.
    Timestamp,
}

impl Logical {
    /// The logical type that the schema's name means.
    pub fn of(schema: &Schema) -> Option<Self> {
        Self::named(schema.name()?)
    }

    /// The logical type of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Self::Decimal, Self::Date, Self::Time, Self::Timestamp]
            .into_iter()
            .find(|logical| logical.name() == name)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Decimal => DECIMAL,
            Self::Date => DATE,
            Self::Time => TIME,
            Self::Timestamp => TIMESTAMP,
        }
    }

    /// The schema of a moment of this type.
    pub fn schema(self) -> Schema {
        let kind = match self {
            Self::Decimal => Type::Bytes,
            Self::Date | Self::Time => Type::Int32,
            Self::Timestamp => Type::Int64,
        };
        Schema::new(kind).named(Some(Arc::from(self.name()))).versioned(Some(1))
    }

    /// The schema of a decimal with this scale.
    pub fn decimal(scale: i32) -> Schema {
        Self::Decimal.schema().parameter(SCALE, scale.to_string())
    }

    /// The plain value that stands for this one.
    ///
    /// # Errors
    /// It is none of this type.
    pub fn to_plain(self, schema: &Schema, value: &Value) -> Result<Value, DataError> {
        match (self, value) {
            (Self::Decimal, Value::Decimal(decimal)) => {
                let scale = scale(schema)?;
                if decimal.scale == scale {
                    Ok(Value::Bytes(decimal.unscaled_bytes().into()))
                } else {
                    let found = decimal.scale;
                    Err(DataError::unfit(format!(
                        "a decimal of scale {found} for a schema of scale {scale}"
                    )))
                }
            }
            (Self::Date, Value::Moment(ms)) if ms % DAY == 0 => {
                i32::try_from(ms / DAY).map(Value::Int32).map_err(|_| self.unfit(value))
            }
            (Self::Time, Value::Moment(ms)) if (0..=DAY).contains(ms) => {
                i32::try_from(*ms).map(Value::Int32).map_err(|_| self.unfit(value))
            }
            (Self::Timestamp, Value::Moment(ms)) => Ok(Value::Int64(*ms)),
            _ => Err(self.unfit(value)),
        }
    }

    /// The value of this type that the plain one stands for.
    ///
    /// # Errors
    /// It stands for none.
    pub fn from_plain(self, schema: &Schema, plain: &Value) -> Result<Value, DataError> {
        match (self, plain) {
            (Self::Decimal, Value::Bytes(bytes)) => {
                Ok(Decimal::from_unscaled_bytes(bytes, scale(schema)?).into())
            }
            (Self::Date, Value::Int32(days)) => Ok(Value::Moment(i64::from(*days) * DAY)),
            (Self::Time, Value::Int32(ms)) if (0..=DAY).contains(&i64::from(*ms)) => {
                Ok(Value::Moment(i64::from(*ms)))
            }
            (Self::Timestamp, Value::Int64(ms)) => Ok(Value::Moment(*ms)),
            _ => Err(self.unfit(plain)),
        }
    }

    fn unfit(self, value: &Value) -> DataError {
        let kind = value.kind_name();
        DataError::unfit(format!("{kind} that is no value of {}", self.name()))
    }
}

/// The scale that a schema of decimals names.
///
/// # Errors
/// It names none.
pub(crate) fn scale(schema: &Schema) -> Result<i32, DataError> {
    schema
        .parameters()
        .and_then(|parameters| parameters.get(SCALE))
        .and_then(|scale| scale.parse().ok())
        .ok_or_else(|| DataError::unfit("a schema of decimals without the parameter scale"))
}
