//! Dates, timestamps and intervals: their text is checked and written in one spelling a value, never
//! converted. A DATE keeps its wall clock, as it has no zone.

use highwater_connector::Json;

/// `NLS_DATE_FORMAT` of every session. Another one loses the time of day, or the century.
pub const DATE_MASK: &str = "YYYY-MM-DD HH24:MI:SS";
/// `NLS_TIMESTAMP_FORMAT` of every session.
pub const TIMESTAMP_MASK: &str = "YYYY-MM-DD HH24:MI:SS.FF9";
/// `NLS_TIMESTAMP_TZ_FORMAT` of every session.
pub const TIMESTAMP_TZ_MASK: &str = "YYYY-MM-DD HH24:MI:SS.FF9 TZH:TZM";

/// Writes a DATE: `2024-05-06 07:08:09`. `None` when the text is none.
pub(crate) fn date(json: &mut Json, text: &str) -> Option<()> {
    fits(text, SECONDS).then(|| json.string(text))
}

/// Writes a TIMESTAMP, without zeros at its end: `2024-05-06 07:08:09.5`.
pub(crate) fn timestamp(json: &mut Json, text: &str) -> Option<()> {
    let parts = [split(text)?.0, split(text)?.1];
    quoted(json, &parts);
    Some(())
}

/// Writes a TIMESTAMP WITH TIME ZONE with the offset that is stored: `2024-05-06 07:08:09.5+02:00`.
pub(crate) fn zoned(json: &mut Json, text: &str) -> Option<()> {
    let (local, offset) = text.rsplit_once(' ')?;
    let is_offset = fits(offset, "+00:00") || fits(offset, "-00:00");
    is_offset.then_some(())?;
    let (seconds, fraction) = split(local)?;
    quoted(json, &[seconds, fraction, offset]);
    Some(())
}

/// Writes a TIMESTAMP WITH LOCAL TIME ZONE, which sessions in UTC show in UTC: `2024-05-06 05:08:09+00:00`.
pub(crate) fn local(json: &mut Json, text: &str) -> Option<()> {
    let (seconds, fraction) = split(text)?;
    quoted(json, &[seconds, fraction, "+00:00"]);
    Some(())
}

/// Writes an INTERVAL YEAR TO MONTH as SQL does: `-1-11`.
pub(crate) fn year_to_month(json: &mut Json, text: &str) -> Option<()> {
    let (sign, unsigned) = signed(text);
    let (years, months) = unsigned.split_once('-')?;
    let is_interval = is_count(years) && fits(months, "00");
    is_interval.then_some(())?;
    quoted(json, &[sign, stripped(years), "-", months]);
    Some(())
}

/// Writes an INTERVAL DAY TO SECOND as SQL does: `-2 03:04:05.6`.
pub(crate) fn day_to_second(json: &mut Json, text: &str) -> Option<()> {
    let (sign, unsigned) = signed(text);
    let (days, clock) = unsigned.split_once(' ')?;
    let (clock, fraction) = fraction(clock)?;
    let is_interval = is_count(days) && fits(clock, "00:00:00");
    is_interval.then_some(())?;
    quoted(json, &[sign, stripped(days), " ", clock, fraction]);
    Some(())
}

/// Shape of a date with its time of day: a zero stands for any digit.
const SECONDS: &str = "0000-00-00 00:00:00";

fn fits(text: &str, shape: &str) -> bool {
    let fit = |(byte, wanted): (u8, u8)| {
        if wanted == b'0' { byte.is_ascii_digit() } else { byte == wanted }
    };
    text.len() == shape.len() && text.bytes().zip(shape.bytes()).all(fit)
}

/// A timestamp up to its seconds, and its fraction.
fn split(text: &str) -> Option<(&str, &str)> {
    let (seconds, fraction) = fraction(text)?;
    fits(seconds, SECONDS).then_some((seconds, fraction))
}

/// What stands before a fraction, and the fraction with its point; empty when it is zero.
fn fraction(text: &str) -> Option<(&str, &str)> {
    let Some(point) = text.find('.') else { return Some((text, "")) };
    let (before, fraction) = text.split_at_checked(point)?;
    let digits = fraction.strip_prefix('.')?;
    let is_fraction = (1..=9).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    is_fraction.then(|| (before, fraction.trim_end_matches('0').trim_end_matches('.')))
}

/// The sign that an interval is written with, and the rest. An interval of zero has none.
fn signed(text: &str) -> (&'static str, &str) {
    match text.strip_prefix('-') {
        Some(unsigned) if unsigned.bytes().any(|byte| matches!(byte, b'1'..=b'9')) => {
            ("-", unsigned)
        }
        Some(unsigned) => ("", unsigned),
        None => ("", text.strip_prefix('+').unwrap_or(text)),
    }
}

/// Years and days have up to nine digits.
fn is_count(digits: &str) -> bool {
    (1..=9).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn stripped(digits: &str) -> &str {
    let kept = digits.trim_start_matches('0');
    if kept.is_empty() { "0" } else { kept }
}

/// Writes parts, none of which holds anything that JSON escapes, as one string.
fn quoted(json: &mut Json, parts: &[&str]) {
    json.raw("\"");
    for part in parts {
        json.raw(part);
    }
    json.raw("\"");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    type Write = fn(&mut Json, &str) -> Option<()>;

    fn written(write: Write, text: &str) -> Option<String> {
        let mut json = Json::default();
        write(&mut json, text)?;
        Some(serde_json::from_slice(&json.finish()).unwrap())
    }

    #[test]
    fn each_kind_has_its_text() {
        let cases: [(Write, &str, &str); 16] = [
            (date, "2024-05-06 07:08:09", "2024-05-06 07:08:09"),
            (date, "0000-00-00 00:00:00", "0000-00-00 00:00:00"),
            (timestamp, "2024-05-06 07:08:09.123456000", "2024-05-06 07:08:09.123456"),
            (timestamp, "2024-05-06 07:08:09.123456789", "2024-05-06 07:08:09.123456789"),
            (timestamp, "2024-05-06 07:08:09.000000000", "2024-05-06 07:08:09"),
            (timestamp, "2024-05-06 07:08:00", "2024-05-06 07:08:00"),
            (zoned, "2024-05-06 07:08:09.500000000 +02:00", "2024-05-06 07:08:09.5+02:00"),
            (zoned, "2024-05-06 07:08:09 -09:30", "2024-05-06 07:08:09-09:30"),
            (local, "2024-05-06 05:08:09.500000000", "2024-05-06 05:08:09.5+00:00"),
            (year_to_month, "-0001-11", "-1-11"),
            (year_to_month, "+02-00", "2-00"),
            (year_to_month, "-0000-00", "0-00"),
            (day_to_second, "+00002 03:04:05.600000", "2 03:04:05.6"),
            (day_to_second, "-00012 23:59:59.999999999", "-12 23:59:59.999999999"),
            (day_to_second, "+00 00:00:00.000000", "0 00:00:00"),
            (day_to_second, "-00 00:00:00.000001", "-0 00:00:00.000001"),
        ];
        for (write, text, expected) in cases {
            assert_eq!(written(write, text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_another_session_would_write_is_refused() {
        let cases: [(Write, &str); 14] = [
            (date, "06-MAY-24"),
            (date, "2024-05-06"),
            (date, "2024-05-06 07:08:09.5"),
            (timestamp, "06-MAY-24 07.08.09.123 AM"),
            (timestamp, "2024-05-06 07:08:09."),
            (timestamp, "2024-05-06 07:08:09.1234567890"),
            (timestamp, "2024-05-06 07:08:09.5 +02:00"),
            (zoned, "2024-05-06 07:08:09.5"),
            (zoned, "2024-05-06 07:08:09.5 EUROPE/LISBON"),
            (local, "2024-05-06 07:08:09.5 +02:00"),
            (year_to_month, "1 year"),
            (year_to_month, "-1-1"),
            (day_to_second, "2 3:04:05"),
            (day_to_second, "1234567890 03:04:05"),
        ];
        for (write, text) in cases {
            assert_eq!(written(write, text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[-+0-9.: ]{0,30}|.{0,24}") {
            for write in [date, timestamp, zoned, local, year_to_month, day_to_second] {
                let _ = written(write, &text);
            }
        }
    }
}
