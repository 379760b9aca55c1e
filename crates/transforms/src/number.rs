//! Numbers made of values, as Java's casts and parsers make them; where those would wrap around or
//! become infinite, it is refused.

use highwater_data::{DataError, Decimal, Value};
use num_bigint::BigInt;

/// The whole number of a value: what stands behind the point is cut.
pub(crate) fn whole(value: &Value) -> Result<i128, DataError> {
    Ok(match value {
        Value::Boolean(value) => i128::from(*value),
        Value::Int8(value) => i128::from(*value),
        Value::Int16(value) => i128::from(*value),
        Value::Int32(value) => i128::from(*value),
        Value::Int64(value) => i128::from(*value),
        Value::Float32(float) => cut(f64::from(*float)).ok_or_else(|| beyond(value))?,
        Value::Float64(double) => cut(*double).ok_or_else(|| beyond(value))?,
        Value::Decimal(decimal) => {
            let whole: BigInt = decimal.whole();
            i128::try_from(whole).map_err(|_| beyond(value))?
        }
        Value::String(text) => text.parse::<i64>().map(i128::from).map_err(|_| no_number(text))?,
        _ => return Err(DataError::unfit(format!("{} is no number", value.kind_name()))),
    })
}

fn cut(double: f64) -> Option<i128> {
    /// Beyond it no double is a whole number of 64 bits.
    const GREATEST: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "it is within the bounds")]
    (double.abs() <= GREATEST).then_some(double as i128)
}

/// A value as a double.
pub(crate) fn double(value: &Value) -> Result<f64, DataError> {
    Ok(match value {
        Value::Float32(value) => f64::from(*value),
        Value::Float64(value) => *value,
        Value::Decimal(decimal) => decimal.to_f64(),
        Value::String(text) => parsed(text)?.parse().map_err(|_| no_number(text))?,
        #[expect(clippy::cast_precision_loss, reason = "as Java widens")]
        value => whole(value)? as f64,
    })
}

/// A value as a float.
pub(crate) fn float(value: &Value) -> Result<f32, DataError> {
    let float = match value {
        Value::Float32(value) => *value,
        Value::Decimal(decimal) => decimal.to_f32(),
        Value::String(text) => parsed(text)?.parse().map_err(|_| no_number(text))?,
        #[expect(clippy::cast_possible_truncation, reason = "the nearest float is wanted")]
        Value::Float64(double) => *double as f32,
        #[expect(clippy::cast_precision_loss, reason = "as Java widens")]
        value => whole(value)? as f32,
    };
    let was_infinite = match value {
        Value::Float64(double) => !double.is_finite(),
        Value::Float32(_) | Value::String(_) => true,
        _ => false,
    };
    if float.is_finite() || was_infinite { Ok(float) } else { Err(beyond(value)) }
}

/// A floating-point number as Java reads it, in Rust's spelling: space around it and a letter for its
/// type behind it are passed over.
fn parsed(text: &str) -> Result<&str, DataError> {
    let trimmed = text.trim_matches(|letter| letter <= ' ');
    let unsigned = trimmed.strip_prefix(['+', '-']).unwrap_or(trimmed);
    if matches!(unsigned, "NaN" | "Infinity") {
        return Ok(trimmed);
    }
    let number = trimmed.strip_suffix(['f', 'F', 'd', 'D']).unwrap_or(trimmed);
    // Rust reads "inf" and "nan" in any case.
    let digits = number.bytes().any(|byte| byte.is_ascii_digit());
    if digits { Ok(number) } else { Err(no_number(text)) }
}

/// The decimal that a text says.
pub(crate) fn decimal(text: &str) -> Result<Decimal, DataError> {
    text.parse().map_err(|_| no_number(text))
}

/// The text itself is not said: it is content, which not everyone may read who may read a status.
fn no_number(text: &str) -> DataError {
    let length = text.chars().count();
    DataError::unfit(format!("a text of {length} characters, no number of the type that is wanted"))
}

fn beyond(value: &Value) -> DataError {
    DataError::unfit(format!("{} beyond the type that is wanted", value.kind_name()))
}

/// A whole number in a narrower type.
pub(crate) fn narrow<T: TryFrom<i128>>(value: &Value) -> Result<T, DataError> {
    T::try_from(whole(value)?).map_err(|_| beyond(value))
}
