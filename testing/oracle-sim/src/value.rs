//! Values that clients write: texts as the database writes them back.

use std::sync::Arc;

use crate::column::{Column, ColumnType};
use crate::random::Random;

/// A value of a column; `None` is NULL.
pub(crate) type Value = Option<Arc<str>>;

/// The values of a row, by the columns of its table.
pub(crate) type Row = Arc<[Value]>;

/// Pieces of text: harmless ones, and those that look like the statement around them.
const WORDS: &[&str] = &[
    "tide",
    "harbour",
    "slow boat",
    "O'Brien",
    "', '",
    "' and \"ID\" = '7",
    "||",
    "\n",
    "NULL",
    "where",
    "\\",
    "\\00F6",
    "J\u{f6}rg",
    "\u{6e6f}",
    "\u{1f6a2}",
    "\"",
    "values (",
    ")",
    "''",
    "UNISTR(",
    "--",
    ";",
    "/*",
];

impl Column {
    /// A value for the column, NULL now and then where it may be.
    pub(crate) fn random_value(&self, random: &mut Random) -> Value {
        if self.is_nullable && random.one_in(6) {
            return None;
        }
        Some(self.kind.random_text(random).into())
    }
}

impl ColumnType {
    fn random_text(self, random: &mut Random) -> String {
        match self {
            Self::Number => number(random),
            Self::NumberOf(precision, scale) => decimal(random, precision, scale),
            Self::BinaryFloat => float(random, 8),
            Self::BinaryDouble => float(random, 15),
            Self::Varchar2(length) | Self::NVarchar2(length) => words(random, length),
            Self::Char(length) => padded(random, length),
            Self::Date => moment(random),
            Self::Timestamp(digits) => format!("{}.{}", moment(random), fraction(random, digits)),
            Self::TimestampTz => {
                let zone = random.pick(&["+02:00", "-03:30", "+00:00"]).unwrap_or(&"+00:00");
                format!("{}.{} {zone}", moment(random), fraction(random, 6))
            }
            Self::TimestampLtz => format!("{}.{}", moment(random), fraction(random, 6)),
            Self::YearToMonth => {
                format!("{}{:04}-{:02}", sign(random), random.below(300), random.below(12))
            }
            Self::DayToSecond => day_to_second(random),
            Self::Raw(length) => hexadecimal(random, length),
            Self::Clob | Self::NClob | Self::Blob => self.small_lob(random).to_string(),
        }
    }
}

const fn signed(is_negative: bool) -> &'static str {
    if is_negative { "-" } else { "" }
}

fn sign(random: &mut Random) -> char {
    if random.one_in(3) { '-' } else { '+' }
}

/// A number without precision: LogMiner writes no zero before the point.
fn number(random: &mut Random) -> String {
    let sign = signed(random.one_in(3));
    match random.below(4) {
        0 => "0".to_owned(),
        1 => format!("{sign}.{}", random.between(1, 9)),
        2 => format!("{sign}{}.{}", random.between(1, 9999), random.between(1, 9)),
        _ => format!("{sign}{}", random.between(1, 9_999_999_999)),
    }
}

fn decimal(random: &mut Random, precision: u32, scale: i32) -> String {
    let sign = signed(random.one_in(4));
    let scale = scale.clamp(0, 6).unsigned_abs();
    let whole = random.between(1, 10_u64.pow(precision.saturating_sub(scale).clamp(1, 9)) - 1);
    if scale == 0 || random.one_in(3) {
        return format!("{sign}{whole}");
    }
    format!("{sign}{whole}.{}", random.between(1, 9))
}

/// Columns of this length get long texts.
const LONG: u32 = 400;

/// The scientific form of the binary types.
fn float(random: &mut Random, digits: usize) -> String {
    if random.one_in(5) {
        return "0".to_owned();
    }
    let sign = signed(random.one_in(3));
    let mantissa = random.below(10_u64.pow(8));
    let (direction, exponent) = (sign_of_exponent(random), random.below(30));
    format!("{sign}{}.{mantissa:0<digits$}E{direction}{exponent:03}", random.between(1, 9))
}

fn sign_of_exponent(random: &mut Random) -> char {
    if random.one_in(2) { '-' } else { '+' }
}

/// Text of one letter at least and of `length` at most, counted in bytes.
fn words(random: &mut Random, length: u32) -> String {
    let mut text = String::new();
    let most = if length < LONG { 4 } else { u64::from(length) / 4 };
    for _ in 0..random.between(1, most) {
        let word = random.pick(WORDS).copied().unwrap_or("tide");
        if text.len() + word.len() <= length as usize {
            text.push_str(word);
        }
    }
    if text.is_empty() {
        text.push('x');
    }
    text
}

fn padded(random: &mut Random, length: u32) -> String {
    let state = random.pick(&["NEW", "PAID", "SENT", "O'K"]).copied().unwrap_or("NEW");
    format!("{state:<width$}", width = length as usize)
}

fn moment(random: &mut Random) -> String {
    let (year, month, day) =
        (random.between(1970, 2030), random.between(1, 12), random.between(1, 28));
    let (hour, minute, second) = (random.below(24), random.below(60), random.below(60));
    format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// Nine digits, of which so many are kept by the type.
fn fraction(random: &mut Random, digits: u32) -> String {
    format!(
        "{:0width$}{:0<rest$}",
        random.below(10_u64.pow(digits)),
        "",
        width = digits as usize,
        rest = (9 - digits) as usize
    )
}

fn day_to_second(random: &mut Random) -> String {
    let (day, hour) = (random.below(400), random.below(24));
    let (minute, second, micros) = (random.below(60), random.below(60), random.below(1_000_000));
    format!("{}{day:05} {hour:02}:{minute:02}:{second:02}.{micros:06}", sign(random))
}

pub(crate) fn hexadecimal(random: &mut Random, bytes: u32) -> String {
    (0..random.between(1, u64::from(bytes))).map(|_| format!("{:02x}", random.below(256))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_keep_the_form_of_their_type() {
        let mut random = Random::new(5);
        for _ in 0..200 {
            assert_eq!(ColumnType::Char(8).random_text(&mut random).len(), 8);
            assert!(ColumnType::Varchar2(20).random_text(&mut random).len() <= 20);
            let stamp = ColumnType::Timestamp(6).random_text(&mut random);
            assert_eq!(stamp.len(), "2024-05-06 07:08:09.123456000".len());
            assert!(stamp.ends_with("000"));
            assert_eq!(
                ColumnType::DayToSecond.random_text(&mut random).len(),
                "+00002 03:04:05.600000".len()
            );
        }
    }

    #[test]
    fn only_what_may_be_null_is_null() {
        let mut random = Random::new(5);
        let required = Column::required("ID", ColumnType::Number);
        assert!((0..100).all(|_| required.random_value(&mut random).is_some()));
        let free = Column::new("NOTE", ColumnType::Varchar2(9));
        assert!((0..100).any(|_| free.random_value(&mut random).is_none()));
    }
}
