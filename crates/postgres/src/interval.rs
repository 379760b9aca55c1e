//! Intervals of the server's text (`IntervalStyle` postgres) as Debezium writes them.

use crate::instant::seconds;

/// Microseconds of 30.4375 days, Debezium's month (`MicroDuration.DAYS_PER_MONTH_AVG`).
const MONTH: i128 = 2_629_800_000_000;
const DAY: i128 = 86_400_000_000;

/// The parts of an interval; a part may have any sign.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Interval {
    years: i128,
    months: i128,
    days: i128,
    /// Of hours, minutes and seconds together.
    micros: i128,
}

impl Interval {
    /// Reads `1 year 2 mons 3 days 04:05:06.789`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut interval = Self::default();
        let mut words = text.split(' ');
        while let Some(word) = words.next() {
            if word.contains(':') {
                interval.micros = clock(word)?;
                continue;
            }
            let number: i128 = word.parse().ok()?;
            match words.next()?.trim_end_matches('s') {
                "year" => interval.years = number,
                "mon" => interval.months = number,
                "day" => interval.days = number,
                _ => return None,
            }
        }
        Some(interval)
    }

    /// Its length in microseconds.
    pub(crate) const fn micros(self) -> i128 {
        (self.years * 12 + self.months) * MONTH + self.days * DAY + self.micros
    }

    /// ISO 8601, every part written out.
    pub(crate) fn iso(self) -> String {
        let Self { years, months, days, micros } = self;
        let (sign, size) = (if micros < 0 { "-" } else { "" }, micros.abs());
        let signed = |part: i128| if part == 0 { "0".to_owned() } else { format!("{sign}{part}") };
        let (whole, fraction) = (size / 1_000_000 % 60, size % 1_000_000);
        let seconds = if fraction == 0 {
            signed(whole)
        } else {
            format!("{sign}{whole}.{}", format!("{fraction:06}").trim_end_matches('0'))
        };
        let (hours, minutes) = (signed(size / 3_600_000_000), signed(size / 60_000_000 % 60));
        format!("P{years}Y{months}M{days}DT{hours}H{minutes}M{seconds}S")
    }
}

fn clock(text: &str) -> Option<i128> {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let mut fields = text.trim_start_matches('+').splitn(3, ':');
    let mut next = || fields.next()?.parse::<i128>().ok();
    let (hours, minutes) = (next()?, next()?);
    let micros = seconds(fields.next()?)?;
    Some(sign * ((hours * 60 + minutes) * 60_000_000 + micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_written_in_both_forms() {
        for (text, micros, iso) in [
            ("1 year 2 mons 3 days 04:05:06.789", 37_091_106_789_000, "P1Y2M3DT4H5M6.789S"),
            ("-00:00:01.5", -1_500_000, "P0Y0M0DT0H0M-1.5S"),
            ("00:00:00", 0, "P0Y0M0DT0H0M0S"),
            ("-1 days +02:00:00", -79_200_000_000, "P0Y0M-1DT2H0M0S"),
        ] {
            let interval = Interval::parse(text).unwrap();
            assert_eq!((interval.micros(), interval.iso().as_str()), (micros, iso), "{text}");
        }
        assert_eq!(Interval::parse("1 week"), None);
    }
}
