//! The columns of a row that its redo names, by which pieces of one row find each other.

/// A value of a column that is no large object.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ImageValue {
    /// NULL.
    Null,
    /// Text, as its literal stands in the redo; numbers and times are text, too.
    Text(String),
    /// A RAW.
    Bytes(Vec<u8>),
}

/// Named values of one row.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct RowImage(Vec<(String, ImageValue)>);

impl FromIterator<(String, ImageValue)> for RowImage {
    fn from_iter<I: IntoIterator<Item = (String, ImageValue)>>(columns: I) -> Self {
        Self(columns.into_iter().collect())
    }
}

impl RowImage {
    /// Whether it names no column.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether some column is named, and each one satisfies the condition.
    pub(crate) fn all(&self, mut is_met: impl FnMut(&str, &ImageValue) -> bool) -> bool {
        !self.is_empty() && self.0.iter().all(|(column, value)| is_met(column, value))
    }

    /// The value of a column, if it is named.
    pub(crate) fn get(&self, column: &str) -> Option<&ImageValue> {
        self.0.iter().find(|(name, _)| name == column).map(|(_, value)| value)
    }
}

impl ImageValue {
    /// Whether two literals say the same. Numbers are compared by value: `.5` is `0.50`.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(one), Self::Text(other)) => {
                one == other
                    || Number::read(one).is_some_and(|number| Number::read(other) == Some(number))
            }
            _ => self == other,
        }
    }
}

/// A decimal number without the zeros that say nothing.
#[derive(PartialEq, Eq, Debug)]
struct Number {
    is_negative: bool,
    digits: String,
    /// Power of ten of the last digit.
    exponent: i64,
}

impl Number {
    fn read(text: &str) -> Option<Self> {
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let exponent: i64 = exponent.parse().ok()?;
        let unsigned = mantissa.strip_prefix(['-', '+']).unwrap_or(mantissa);
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let digits = format!("{whole}{fraction}");
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let exponent = exponent.checked_sub(fraction.len() as i64)?;
        Self::plain(mantissa.starts_with('-'), &digits, exponent)
    }

    fn plain(is_negative: bool, digits: &str, exponent: i64) -> Option<Self> {
        let significant = digits.trim_end_matches('0');
        let zeros = (digits.len() - significant.len()) as i64;
        let significant = significant.trim_start_matches('0');
        if significant.is_empty() {
            return Some(Self { is_negative: false, digits: String::new(), exponent: 0 });
        }
        let exponent = exponent.checked_add(zeros)?;
        Some(Self { is_negative, digits: significant.to_owned(), exponent })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_same(one: &str, other: &str) -> bool {
        ImageValue::Text(one.to_owned()).is_same(&ImageValue::Text(other.to_owned()))
    }

    #[test]
    fn numbers_are_the_same_by_value() {
        for (one, other) in [
            ("1", "1.0"),
            (".5", "0.50"),
            ("-.25", "-0.25"),
            ("1.50000005E+010", "15000000500"),
            ("2500", "2.5E+003"),
            ("0", "-0.00"),
            ("+7", "7"),
        ] {
            assert!(is_same(one, other), "{one} {other}");
        }
        for (one, other) in [("1", "10"), ("1", "-1"), ("1.5", "15"), ("1E2", "1E3"), ("", "0")] {
            assert!(!is_same(one, other), "{one} {other}");
        }
    }

    #[test]
    fn text_is_the_same_by_its_characters() {
        assert!(is_same("blue crate", "blue crate"));
        assert!(!is_same("blue", "BLUE") && !is_same("a ", "a") && !is_same("1e", "1"));
        assert!(!is_same("1E9999999999999999999", "2E9999999999999999999"));
    }

    #[test]
    fn null_is_the_same_as_null_alone() {
        assert!(ImageValue::Null.is_same(&ImageValue::Null));
        assert!(!ImageValue::Null.is_same(&ImageValue::Text(String::new())));
        assert!(!ImageValue::Bytes(vec![0x41]).is_same(&ImageValue::Text("41".to_owned())));
    }

    #[test]
    fn an_image_that_names_nothing_meets_no_condition() {
        assert!(!RowImage::default().all(|_, _| true));
    }
}
