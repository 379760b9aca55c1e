//! Numbers in one spelling a value: LogMiner, TO_CHAR and a driver may write `.5`, `0.5` and `5E-1` for one
//! number, and a key must be the same text in all of them.

use std::borrow::Cow;

use highwater_connector::Json;

/// Greatest exponent that is written out; a NUMBER has up to 126.
const LONGEST_EXPONENT: i32 = 200;

/// Digits around a point, and the power of ten behind them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Written<'a> {
    is_negative: bool,
    whole: &'a str,
    fraction: &'a str,
    exponent: &'a str,
}

impl<'a> Written<'a> {
    fn read(text: &'a str) -> Option<Self> {
        let (is_negative, unsigned) = match text.strip_prefix('-') {
            Some(unsigned) => (true, unsigned),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, is_exponent(exponent).then_some(exponent)?),
            None => (unsigned, ""),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let are_digits = are_digits(whole) && are_digits(fraction);
        let is_number = are_digits && !(whole.is_empty() && fraction.is_empty());
        is_number.then_some(Self { is_negative, whole, fraction, exponent })
    }

    const fn sign(&self) -> &'static str {
        if self.is_negative { "-" } else { "" }
    }
}

fn are_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_exponent(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && are_digits(digits)
}

/// A NUMBER in plain digits, without zeros that say nothing. `None` for what is no decimal number, or has
/// an exponent that no NUMBER has.
pub(crate) fn decimal(text: &str) -> Option<Cow<'_, str>> {
    if is_plain(text.as_bytes()) {
        return Some(Cow::Borrowed(text));
    }
    let written = Written::read(text)?;
    let exponent = if written.exponent.is_empty() { 0 } else { written.exponent.parse().ok()? };
    (-LONGEST_EXPONENT..=LONGEST_EXPONENT).contains(&exponent).then_some(())?;
    Some(Cow::Owned(plain(&written, isize::try_from(exponent).ok()?)))
}

/// A NUMBER that is whole, likewise.
pub(crate) fn integer(text: &str) -> Option<Cow<'_, str>> {
    decimal(text).filter(|plain| !plain.contains('.'))
}

/// Whether a text is already in the one spelling.
fn is_plain(text: &[u8]) -> bool {
    let (is_negative, unsigned) = match text {
        [b'-', unsigned @ ..] => (true, unsigned),
        _ => (false, text),
    };
    let whole = unsigned.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let is_whole = match unsigned {
        [b'0'] => !is_negative,
        [b'0', b'.', ..] | [b'1'..=b'9', ..] => true,
        _ => false,
    };
    is_whole
        && match unsigned.get(whole..) {
            None | Some([]) => true,
            Some([b'.', digits @ .., last]) => {
                digits.iter().all(u8::is_ascii_digit) && (b'1'..=b'9').contains(last)
            }
            Some(_) => false,
        }
}

fn plain(written: &Written<'_>, exponent: isize) -> String {
    let digits = [written.whole, written.fraction].concat();
    let significant = digits.trim_start_matches('0');
    let leading = digits.len() - significant.len();
    let significant = significant.trim_end_matches('0');
    if significant.is_empty() {
        return "0".to_owned();
    }
    // How many of the significant digits stand before the point.
    let point = written.whole.len().cast_signed() + exponent - leading.cast_signed();
    let sign = written.sign();
    match usize::try_from(point) {
        Err(_) | Ok(0) => format!("{sign}0.{}{significant}", "0".repeat(point.unsigned_abs())),
        Ok(point) if point >= significant.len() => format!("{sign}{significant:0<point$}"),
        Ok(point) => {
            let (whole, fraction) = significant.split_at(point);
            format!("{sign}{whole}.{fraction}")
        }
    }
}

/// Writes a BINARY_FLOAT or BINARY_DOUBLE with the digits that the source gave; what is no number, under
/// the name that other sources have for it. `None` when the text is neither.
pub(crate) fn float(json: &mut Json, text: &str) -> Option<()> {
    if let Some(name) = special(text) {
        json.string(name);
        return Some(());
    }
    let written = Written::read(text)?;
    let whole = written.whole.trim_start_matches('0');
    json.raw(written.sign());
    json.raw(if whole.is_empty() { "0" } else { whole });
    for (mark, digits) in [(".", written.fraction), ("E", written.exponent)] {
        if !digits.is_empty() {
            json.raw(mark);
            json.raw(digits);
        }
    }
    Some(())
}

/// No manual says how LogMiner spells these, so every spelling that Oracle's functions take is known.
fn special(text: &str) -> Option<&'static str> {
    let (sign, name) = match text.strip_prefix(['+', '-']) {
        Some(name) => (text.starts_with('-'), name),
        None => (false, text),
    };
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    match sign {
        _ if is("Nan") => Some("NaN"),
        false if is("Inf") || is("Infinity") => Some("Infinity"),
        true if is("Inf") || is("Infinity") => Some("-Infinity"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_has_one_spelling() {
        for (text, plain) in [
            ("41", "41"),
            ("-17.25", "-17.25"),
            (".5", "0.5"),
            ("-.25", "-0.25"),
            ("0.50", "0.5"),
            ("007", "7"),
            ("+3", "3"),
            ("0", "0"),
            ("-0", "0"),
            ("0.000", "0"),
            ("5.", "5"),
            ("1E+05", "100000"),
            ("2.50000000E+003", "2500"),
            ("12345e-2", "123.45"),
            ("5E-1", "0.5"),
            ("1.20E-4", "0.00012"),
            (".000000000000000000001", "0.000000000000000000001"),
            ("99999999999999999999999999999999999999", "99999999999999999999999999999999999999"),
        ] {
            assert_eq!(decimal(text).as_deref(), Some(plain), "{text}");
        }
        assert_eq!(decimal("1E126").unwrap().len(), 127);
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in [
            "",
            "-",
            ".",
            "-.",
            "E5",
            "1E",
            "1E+",
            "1.2.3",
            "1,5",
            "0x1",
            "~",
            "Nan",
            "1E201",
            "1 ",
            "1E99999999999",
        ] {
            assert_eq!(decimal(text), None, "{text}");
        }
        assert_eq!(integer("1.5"), None);
        assert_eq!(integer("150E-1").as_deref(), Some("15"));
    }

    fn written(text: &str) -> Option<String> {
        let mut json = Json::default();
        float(&mut json, text)?;
        Some(String::from_utf8(json.finish().to_vec()).unwrap())
    }

    #[test]
    fn a_float_keeps_its_digits() {
        for (text, json) in [
            ("1.50000005E+010", "1.50000005E+010"),
            ("-2.5", "-2.5"),
            (".5", "0.5"),
            ("00.50", "0.50"),
            ("7.", "7"),
            ("+0", "0"),
            ("-0", "-0"),
            ("Inf", "\"Infinity\""),
            ("-INF", "\"-Infinity\""),
            ("Nan", "\"NaN\""),
        ] {
            assert_eq!(written(text).as_deref(), Some(json), "{text}");
        }
        assert_eq!(written("Info"), None);
        assert_eq!(written("1e"), None);
    }

    /// What a text of digits is worth: its digits, and where its point stands.
    fn worth(text: &str) -> (bool, String, i64) {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let exponent: i64 = exponent.parse().unwrap();
        let unsigned = mantissa.trim_start_matches(['+', '-']);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = format!("{whole}{fraction}");
        let digits = digits.trim_start_matches('0');
        let scale = i64::try_from(fraction.len()).unwrap() - exponent;
        let kept = digits.trim_end_matches('0');
        if kept.is_empty() {
            return (false, String::new(), 0);
        }
        let dropped = i64::try_from(digits.len() - kept.len()).unwrap();
        (mantissa.starts_with('-'), kept.to_owned(), scale - dropped)
    }

    proptest! {
        #[test]
        fn no_digit_is_lost(text in "[+-]?(0{0,3}[0-9]{1,40}[.]?[0-9]{0,20}|[.][0-9]{1,20})([eE][+-]?[0-9]{1,2})?") {
            let plain = decimal(&text).unwrap();
            prop_assert_eq!(worth(&plain), worth(&text));
            prop_assert!(is_plain(plain.as_bytes()), "{}", plain);
            prop_assert_eq!(decimal(&plain).unwrap(), plain.as_ref());
            prop_assert!(serde_json::from_str::<serde_json::Number>(&plain).is_ok(), "{}", plain);
        }

        #[test]
        fn one_value_has_one_spelling(digits in "[1-9][0-9]{0,10}", moved in 0_u32..30, zeros in 0_usize..4) {
            let shifted = format!("0{digits}.{}E-{moved}", "0".repeat(zeros));
            let grown = format!("{digits}{}E-{}", "0".repeat(3), moved + 3);
            prop_assert_eq!(decimal(&shifted).unwrap(), decimal(&grown).unwrap());
        }

        #[test]
        fn no_text_makes_it_panic(text in ".{0,12}") {
            let _ = decimal(&text);
            if let Some(json) = written(&text) {
                prop_assert!(serde_json::from_str::<serde_json::Value>(&json).is_ok(), "{}", json);
            }
        }
    }
}
