//! Patterns of dates and times as Java's `SimpleDateFormat` has them, in UTC.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time, Weekday};
use jiff::tz::TimeZone;

/// The first year in which all of the calendar is today's: before, Java counts by the Julian one.
const GREGORIAN: i16 = 1583;
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const DAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
/// No pattern is longer.
const LONGEST: usize = 256;

/// A pattern.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DateFormat {
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Text(String),
    Field(Field, usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Field {
    Year,
    Month,
    Day,
    DayOfYear,
    WeekdayName,
    WeekdayNumber,
    HalfOfDay,
    Hour,
    HourFrom1,
    HourOfHalf,
    HourOfHalfFrom1,
    Minute,
    Second,
    Millisecond,
    ZoneName,
    ZoneOffset,
    ZoneIso,
}

impl Field {
    const fn of(letter: char) -> Option<Self> {
        Some(match letter {
            'y' => Self::Year,
            'M' | 'L' => Self::Month,
            'd' => Self::Day,
            'D' => Self::DayOfYear,
            'E' => Self::WeekdayName,
            'u' => Self::WeekdayNumber,
            'a' => Self::HalfOfDay,
            'H' => Self::Hour,
            'k' => Self::HourFrom1,
            'K' => Self::HourOfHalf,
            'h' => Self::HourOfHalfFrom1,
            'm' => Self::Minute,
            's' => Self::Second,
            'S' => Self::Millisecond,
            'z' => Self::ZoneName,
            'Z' => Self::ZoneOffset,
            'X' => Self::ZoneIso,
            _ => return None,
        })
    }
}

impl DateFormat {
    /// Reads a pattern.
    ///
    /// # Errors
    /// The letter that is not known here, or the quote that does not end.
    pub fn new(pattern: &str) -> Result<Self, String> {
        if pattern.len() > LONGEST {
            return Err(format!("is longer than {LONGEST} bytes"));
        }
        let mut parts = Vec::new();
        let mut rest = pattern;
        while let Some(first) = rest.chars().next() {
            let (part, behind) = match first {
                '\'' => quoted(rest)?,
                'A'..='Z' | 'a'..='z' => field(first, rest)?,
                _ => {
                    let (text, behind) = rest.split_at(first.len_utf8());
                    (Part::Text(text.to_owned()), behind)
                }
            };
            parts.push(part);
            rest = behind;
        }
        Ok(Self { parts })
    }

    /// The text of a moment, in milliseconds since 1970; `None` outside of the years 1583 to 9999.
    pub fn format(&self, ms: i64) -> Option<String> {
        let at = Timestamp::from_millisecond(ms).ok()?.to_zoned_datetime(TimeZone::UTC).datetime();
        if at.year() < GREGORIAN {
            return None;
        }
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(literal) => text.push_str(literal),
                Part::Field(field, count) => text.push_str(&written(*field, *count, at)),
            }
        }
        Some(text)
    }

    /// The moment that the whole text says, in milliseconds since 1970.
    pub fn parse(&self, text: &str) -> Option<i64> {
        let mut read = Reading::default();
        let mut rest = text;
        for (place, part) in self.parts.iter().enumerate() {
            rest = match part {
                Part::Text(literal) => rest.strip_prefix(literal.as_str())?,
                Part::Field(field, count) => {
                    let adjacent = matches!(self.parts.get(place + 1), Some(Part::Field(next, _)) if is_number(*next));
                    read.field(*field, *count, adjacent, rest)?
                }
            };
        }
        if rest.is_empty() { read.moment() } else { None }
    }
}

fn quoted(rest: &str) -> Result<(Part, &str), String> {
    if let Some(behind) = rest.strip_prefix("''") {
        return Ok((Part::Text("'".to_owned()), behind));
    }
    let mut text = String::new();
    let mut behind = rest.get(1..).unwrap_or_default();
    loop {
        let (before, after) = behind.split_once('\'').ok_or("has a quote without end")?;
        text.push_str(before);
        behind = after;
        match behind.strip_prefix('\'') {
            Some(more) => {
                text.push('\'');
                behind = more;
            }
            None => return Ok((Part::Text(text), behind)),
        }
    }
}

fn field(letter: char, rest: &str) -> Result<(Part, &str), String> {
    let field = Field::of(letter).ok_or_else(|| {
        format!("has the letter {letter}, which is not supported: use yMdDEuaHkKhmsSzZX")
    })?;
    let count = rest.chars().take_while(|other| *other == letter).count();
    if field == Field::ZoneIso && count > 3 {
        return Err("has more than three X".to_owned());
    }
    Ok((Part::Field(field, count), rest.get(count..).unwrap_or_default()))
}

const fn is_number(field: Field) -> bool {
    !matches!(
        field,
        Field::WeekdayName
            | Field::HalfOfDay
            | Field::ZoneName
            | Field::ZoneOffset
            | Field::ZoneIso
    )
}

fn written(field: Field, count: usize, at: DateTime) -> String {
    let hour = i64::from(at.hour());
    let number = match field {
        Field::Year if count == 2 => i64::from(at.year()) % 100,
        Field::Year => i64::from(at.year()),
        Field::Month if count > 2 => {
            return name(&MONTHS, at.month(), count > 3);
        }
        Field::Month => i64::from(at.month()),
        Field::Day => i64::from(at.day()),
        Field::DayOfYear => i64::from(at.day_of_year()),
        Field::WeekdayName => return name(&DAYS, at.weekday().to_monday_one_offset(), count > 3),
        Field::WeekdayNumber => i64::from(at.weekday().to_monday_one_offset()),
        Field::HalfOfDay => return if hour < 12 { "AM" } else { "PM" }.to_owned(),
        Field::Hour => hour,
        Field::HourFrom1 => (hour + 23) % 24 + 1,
        Field::HourOfHalf => hour % 12,
        Field::HourOfHalfFrom1 => (hour + 11) % 12 + 1,
        Field::Minute => i64::from(at.minute()),
        Field::Second => i64::from(at.second()),
        Field::Millisecond => i64::from(at.millisecond()),
        Field::ZoneName if count > 3 => return "Coordinated Universal Time".to_owned(),
        Field::ZoneName => return "UTC".to_owned(),
        Field::ZoneOffset => return "+0000".to_owned(),
        Field::ZoneIso => return "Z".to_owned(),
    };
    format!("{number:0>count$}")
}

/// A name by its number from 1, in full or its first three letters.
fn name(names: &[&str], number: i8, full: bool) -> String {
    let place = usize::try_from(number - 1).unwrap_or_default();
    let name = names.get(place).copied().unwrap_or_default();
    let name = if full { name } else { name.get(..3).unwrap_or(name) };
    name.to_owned()
}

/// What was read so far.
#[derive(Default)]
struct Reading {
    year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    weekday: Option<i64>,
    afternoon: Option<bool>,
    hour: Option<i64>,
    hour_of_half: Option<i64>,
    minute: i64,
    second: i64,
    millisecond: i64,
    offset_seconds: i64,
}

impl Reading {
    /// Reads a field at the beginning of the text; gives what is behind it.
    fn field<'a>(
        &mut self,
        field: Field,
        count: usize,
        adjacent: bool,
        text: &'a str,
    ) -> Option<&'a str> {
        match field {
            Field::Month if count > 2 => return self.name(field, &MONTHS, text),
            Field::WeekdayName => return self.name(field, &DAYS, text),
            Field::HalfOfDay => return self.name(field, &["AM", "PM"], text),
            Field::ZoneName | Field::ZoneOffset | Field::ZoneIso => {
                let (offset, rest) = zone(field, count, text)?;
                self.offset_seconds = offset;
                return Some(rest);
            }
            _ => {}
        }
        let longest = if adjacent { count } else { 9 };
        let digits = text.bytes().take(longest).take_while(u8::is_ascii_digit).count();
        let (number, rest) = text.split_at_checked(digits)?;
        self.number(field, count, number.len(), number.parse().ok()?);
        Some(rest)
    }

    fn name<'a>(&mut self, field: Field, names: &[&str], text: &'a str) -> Option<&'a str> {
        let begins =
            |name: &str| text.get(..name.len()).is_some_and(|head| head.eq_ignore_ascii_case(name));
        for (place, full) in names.iter().enumerate() {
            for name in [full, full.get(..3).unwrap_or(full)] {
                if begins(name) {
                    let number = i64::try_from(place).ok()? + 1;
                    match field {
                        Field::Month => self.month = Some(number),
                        Field::WeekdayName => self.weekday = Some(number),
                        _ => self.afternoon = Some(number == 2),
                    }
                    return text.get(name.len()..);
                }
            }
        }
        None
    }

    fn number(&mut self, field: Field, count: usize, digits: usize, number: i64) {
        match field {
            Field::Year if count <= 2 && digits == 2 => self.year = Some(full_year(number)),
            Field::Year => self.year = Some(number),
            Field::Month => self.month = Some(number),
            Field::Day => self.day = Some(number),
            Field::DayOfYear => self.day_of_year = Some(number),
            Field::WeekdayNumber => self.weekday = Some(number),
            Field::Hour => self.hour = Some(number),
            Field::HourFrom1 => self.hour = Some(if number == 24 { 0 } else { number }),
            Field::HourOfHalf => self.hour_of_half = Some(number),
            Field::HourOfHalfFrom1 => {
                self.hour_of_half = Some(if number == 12 { 0 } else { number })
            }
            Field::Minute => self.minute = number,
            Field::Second => self.second = number,
            _ => self.millisecond = number,
        }
    }

    fn moment(&self) -> Option<i64> {
        let small = |number: i64| i8::try_from(number).ok();
        let year = i16::try_from(self.year.unwrap_or(1970)).ok()?;
        if year < GREGORIAN {
            return None;
        }
        let (month, day) = (small(self.month.unwrap_or(1))?, small(self.day.unwrap_or(1))?);
        let date = match self.day_of_year {
            None => Date::new(year, month, day).ok()?,
            Some(number) => Date::new(year, 1, 1)
                .ok()?
                .with()
                .day_of_year(i16::try_from(number).ok()?)
                .build()
                .ok()?,
        };
        // A weekday that contradicts the date is no reading of this text.
        if let Some(weekday) = self.weekday
            && date.weekday() != Weekday::from_monday_one_offset(small(weekday)?).ok()?
        {
            return None;
        }
        let half =
            self.hour_of_half.map(|hour| hour + if self.afternoon == Some(true) { 12 } else { 0 });
        let hour = small(self.hour.or(half).unwrap_or(0))?;
        let nanoseconds = i32::try_from(self.millisecond).ok()?.checked_mul(1_000_000)?;
        let time = Time::new(hour, small(self.minute)?, small(self.second)?, nanoseconds).ok()?;
        let at = date.to_datetime(time).to_zoned_datetime(TimeZone::UTC).ok()?;
        Some(at.timestamp().as_millisecond() - self.offset_seconds * 1000)
    }
}

/// Two digits mean a year within 80 years before and 20 after now.
fn full_year(two_digits: i64) -> i64 {
    let now = i64::from(Timestamp::now().to_zoned_datetime(TimeZone::UTC).year());
    let first = now - 80;
    let year = first - first.rem_euclid(100) + two_digits;
    if year < first { year + 100 } else { year }
}

/// An offset from UTC in seconds, and the text behind it.
fn zone(field: Field, count: usize, text: &str) -> Option<(i64, &str)> {
    let general = field != Field::ZoneIso;
    if general {
        for name in ["UTC", "GMT", "Z"] {
            if let Some(rest) = text.strip_prefix(name)
                && (name != "GMT" || !rest.starts_with(['+', '-']))
            {
                return Some((0, rest));
            }
        }
    } else if let Some(rest) = text.strip_prefix('Z') {
        return Some((0, rest));
    }
    let colon = if general { text.starts_with("GMT") } else { count == 3 };
    let text = if general { text.strip_prefix("GMT").unwrap_or(text) } else { text };
    let sign = match text.bytes().next()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let two = |from: usize, most: i64| -> Option<i64> {
        let digits = text
            .get(from..from + 2)
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))?;
        digits.parse().ok().filter(|number| *number <= most)
    };
    let hours = two(1, 23)?;
    if !general && count == 1 {
        return Some((sign * hours * 3600, text.get(3..)?));
    }
    let from = if colon { text.get(3..4).filter(|mark| *mark == ":").map(|_| 4)? } else { 3 };
    Some((sign * (hours * 3600 + two(from, 59)? * 60), text.get(from + 2..)?))
}
