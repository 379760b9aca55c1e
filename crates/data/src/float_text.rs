//! Floating-point numbers as Java writes them.

/// A double's text.
pub fn of_f64(value: f64) -> String {
    java(value.is_nan(), value.is_infinite(), value.is_sign_negative(), &format!("{value:e}"))
}

/// A float's text.
pub fn of_f32(value: f32) -> String {
    java(value.is_nan(), value.is_infinite(), value.is_sign_negative(), &format!("{value:e}"))
}

/// `scientific` is Rust's shortest text that reads back as the same, `d.ddde-n`.
fn java(nan: bool, infinite: bool, negative: bool, scientific: &str) -> String {
    let sign = if negative && !nan { "-" } else { "" };
    if nan {
        return "NaN".to_owned();
    }
    if infinite {
        return format!("{sign}Infinity");
    }
    let magnitude = scientific.trim_start_matches('-');
    let (mantissa, exponent) = magnitude.split_once('e').unwrap_or((magnitude, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let zero = digits.bytes().all(|digit| digit == b'0');
    if zero || (-3..7).contains(&exponent) {
        let exponent = if zero { 0 } else { exponent };
        format!("{sign}{}", plain(&digits, exponent))
    } else {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        format!("{sign}{first}.{rest}E{exponent}")
    }
}

fn plain(digits: &str, exponent: i32) -> String {
    match usize::try_from(exponent) {
        Ok(exponent) => {
            let padded = format!("{digits:0<width$}", width = exponent + 2);
            let (whole, rest) = padded.split_at(exponent + 1);
            format!("{whole}.{rest}")
        }
        Err(_) => {
            let zeros = usize::try_from(-1 - exponent).unwrap_or(0);
            format!("0.{}{digits}", "0".repeat(zeros))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_java_writes_them() {
        for (value, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (0.001, "0.001"),
            (0.0009, "9.0E-4"),
            (123.25, "123.25"),
            (9_999_999.0, "9999999.0"),
            (1e7, "1.0E7"),
            (-1.25e-9, "-1.25E-9"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "-Infinity"),
        ] {
            assert_eq!(of_f64(value), text);
        }
        assert_eq!(of_f32(0.1), "0.1");
    }
}
