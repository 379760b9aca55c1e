//! Dates and times of the server's text as the numbers and ISO texts that Debezium writes.

/// Microseconds of a day.
const DAY: i128 = 86_400_000_000;

/// What the JDBC driver makes of `infinity` and `-infinity` (`PGStatement.DATE_POSITIVE_INFINITY`),
/// taken for microseconds as Debezium does.
const INFINITY: i128 = 9_223_372_036_825_200_000;
const MINUS_INFINITY: i128 = -9_223_372_036_832_400_000;

/// Microseconds since 1970 of a timestamp: `2024-02-29 13:14:15.123456`, `… BC`, an infinity. An
/// offset such as `+00` is taken off.
pub(crate) fn timestamp(text: &str) -> Option<i128> {
    match text {
        "infinity" => return Some(INFINITY),
        "-infinity" => return Some(MINUS_INFINITY),
        _ => {}
    }
    let (text, bc) = text.strip_suffix(" BC").map_or((text, ""), |rest| (rest, " BC"));
    let (day, time) = text.split_once(' ')?;
    let (micros, offset) = zoned_time(time)?;
    Some(date(&format!("{day}{bc}"))? * DAY + micros - offset)
}

/// Days since 1970 of a date: `2024-02-29`, `0044-03-15 BC`; none for the infinities.
pub(crate) fn date(text: &str) -> Option<i128> {
    let (text, bc) = text.strip_suffix(" BC").map_or((text, false), |rest| (rest, true));
    let mut fields = text.splitn(3, '-').map(str::parse::<i128>);
    let mut next = || fields.next()?.ok();
    let (year, month, day) = (next()?, next()?, next()?);
    let year = if bc { 1 - year } else { year };
    Some(days(year, month, day))
}

/// Microseconds of a time of day: `13:14:15.123456`, `24:00:00`.
pub(crate) fn time(text: &str) -> Option<i128> {
    let mut fields = text.splitn(3, ':');
    let mut next = || fields.next()?.parse::<i128>().ok();
    let (hours, minutes) = (next()?, next()?);
    let micros = seconds(fields.next()?)?;
    Some((hours * 60 + minutes) * 60_000_000 + micros)
}

/// Microseconds of `15.123456`.
pub(crate) fn seconds(text: &str) -> Option<i128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let micros: i128 = format!("{fraction:0<6}").get(..6)?.parse().ok()?;
    Some(whole.parse::<i128>().ok()? * 1_000_000 + micros)
}

/// Microseconds of a time of day and of its offset from UTC, `10:00:00+05:30`; without an offset
/// it is UTC.
pub(crate) fn zoned_time(text: &str) -> Option<(i128, i128)> {
    let Some(at) = text.find(['+', '-']) else { return Some((time(text)?, 0)) };
    let (clock, zone) = text.split_at(at);
    let (sign, zone) = zone.split_at(1);
    let mut fields = zone.split(':').map(str::parse::<i128>);
    let mut next = || fields.next().map_or(Some(0), Result::ok);
    let offset = (next()? * 60 + next()?) * 60 + next()?;
    let sign = if sign == "-" { -1 } else { 1 };
    Some((time(clock)?, sign * offset * 1_000_000))
}

/// A date in ISO 8601, as Java writes it.
pub(crate) fn iso_date(days: i128) -> String {
    let (year, month, day) = civil(days);
    let year = match year {
        10_000.. => format!("+{year}"),
        0..10_000 => format!("{year:04}"),
        _ => format!("-{:04}", -year),
    };
    format!("{year}-{month:02}-{day:02}")
}

/// A time of day in ISO 8601; with `digits` behind the point, or as many as it has.
pub(crate) fn iso_time(micros: i128, digits: Option<usize>) -> String {
    let micros = micros.rem_euclid(DAY);
    let (whole, fraction) = (micros / 1_000_000, micros % 1_000_000);
    let fraction = format!("{fraction:06}");
    let fraction = match digits {
        Some(digits) => fraction.get(..digits.min(6)).unwrap_or_default(),
        None => fraction.trim_end_matches('0'),
    };
    let point = if fraction.is_empty() { "" } else { "." };
    format!("{:02}:{:02}:{:02}{point}{fraction}", whole / 3600, whole / 60 % 60, whole % 60)
}

/// A timestamp in ISO 8601, UTC.
pub(crate) fn iso_timestamp(micros: i128, digits: Option<usize>) -> String {
    format!("{}T{}Z", iso_date(micros.div_euclid(DAY)), iso_time(micros, digits))
}

/// Days since 1970 in the Gregorian calendar, whatever the year (Hinnant, "chrono-compatible
/// low-level date algorithms").
fn days(year: i128, month: i128, day: i128) -> i128 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Year, month and day of a day since 1970: the inverse of [`days`].
fn civil(days: i128) -> (i128, i128, i128) {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i128::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_of_the_server_become_numbers() {
        assert_eq!(date("1970-01-01"), Some(0));
        assert_eq!(date("0044-03-15 BC"), Some(-735_160));
        assert_eq!(date("infinity"), None);
        assert_eq!(time("24:00:00"), Some(DAY));
        assert_eq!(timestamp("1969-12-31 23:59:59.5"), Some(-500_000));
        assert_eq!(timestamp("2024-02-29 11:14:15.123456+00"), Some(1_709_205_255_123_456));
        assert_eq!(zoned_time("10:00:00+05:30"), Some((36_000_000_000, 19_800_000_000)));
    }

    #[test]
    fn numbers_become_iso_texts() {
        assert_eq!(iso_timestamp(-500_000, None), "1969-12-31T23:59:59.5Z");
        assert_eq!(iso_timestamp(0, Some(6)), "1970-01-01T00:00:00.000000Z");
        assert_eq!(iso_timestamp(0, Some(0)), "1970-01-01T00:00:00Z");
        assert_eq!(iso_timestamp(INFINITY, None), "+294247-01-10T04:00:25.2Z");
        assert_eq!(iso_timestamp(MINUS_INFINITY, None), "-290308-12-21T19:59:27.6Z");
    }

    proptest! {
        #[test]
        fn every_day_is_found_again(day in -110_000_000..110_000_000_i128) {
            let (year, month, day_of_month) = civil(day);
            prop_assert_eq!(days(year, month, day_of_month), day);
            prop_assert!((1..=12).contains(&month) && (1..=31).contains(&day_of_month));
        }

        #[test]
        fn no_text_makes_it_panic(text in "[-+0-9:. BCinfty]{0,24}") {
            let _ = (timestamp(&text), date(&text), zoned_time(&text));
        }
    }
}
