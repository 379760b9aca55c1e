//! Floating-point numbers as Java writes them (`Double.toString`, `Float.toString`).

/// The text of a 64-bit number; none when it is not finite.
pub(crate) fn double(number: f64) -> Option<String> {
    number.is_finite().then(|| java(&format!("{number:e}")))
}

/// The text of a 32-bit number; none when it is not finite.
pub(crate) fn float(number: f32) -> Option<String> {
    number.is_finite().then(|| java(&format!("{number:e}")))
}

/// From `-d.ddde-n`, the shortest digits that give the number back. From 10^-3 to 10^7 Java writes
/// the number out, else with an exponent, and always with a digit behind the point.
fn java(scientific: &str) -> String {
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let (sign, mantissa) = mantissa.strip_prefix('-').map_or(("", mantissa), |rest| ("-", rest));
    let digits: String = mantissa.chars().filter(|c| *c != '.').collect();
    if !(-3..7).contains(&exponent) && digits != "0" {
        let (first, rest) = digits.split_at(1);
        let rest = if rest.is_empty() { "0" } else { rest };
        return format!("{sign}{first}.{rest}E{exponent}");
    }
    let Ok(point) = usize::try_from(exponent + 1) else {
        let zeros = usize::try_from(-exponent - 1).unwrap_or(0);
        return format!("{sign}0.{}{digits}", "0".repeat(zeros));
    };
    if point == 0 {
        return format!("{sign}0.{digits}");
    }
    let digits = format!("{digits:0<point$}");
    let (whole, fraction) = digits.split_at(point);
    format!("{sign}{whole}.{}", if fraction.is_empty() { "0" } else { fraction })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_java_does() {
        for (number, text) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (100.0, "100.0"),
            (1_234_567.5, "1234567.5"),
            (1e7, "1.0E7"),
            (0.001, "0.001"),
            (0.012_5, "0.0125"),
            (0.1, "0.1"),
            (0.000_1, "1.0E-4"),
            (-9_999_999_999.99, "-9.99999999999E9"),
            (f64::MAX, "1.7976931348623157E308"),
        ] {
            assert_eq!(double(number).unwrap(), text);
        }
        assert_eq!(float(16_777_216.0).unwrap(), "1.6777216E7");
        assert_eq!(float(123_456.78).unwrap(), "123456.78");
        assert_eq!(double(f64::NAN), None);
    }
}
