//! Types of columns, and the literals that LogMiner writes for their values.

use highwater_oracle::ColumnLayout;

/// The declared type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ColumnType {
    /// Without precision.
    Number,
    /// Precision and scale.
    NumberOf(u32, i32),
    BinaryFloat,
    BinaryDouble,
    Varchar2(u32),
    Char(u32),
    NVarchar2(u32),
    Date,
    Timestamp(u32),
    TimestampTz,
    TimestampLtz,
    YearToMonth,
    DayToSecond,
    Raw(u32),
    Clob,
    NClob,
    Blob,
}

/// A column of a table. A value is its text as the database writes it (the hexadecimal digits of bytes);
/// the empty text does not exist, it is NULL.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) kind: ColumnType,
    pub(crate) is_nullable: bool,
}

impl Column {
    pub(crate) fn new(name: &str, kind: ColumnType) -> Self {
        Self { name: name.to_owned(), kind, is_nullable: true }
    }

    pub(crate) fn required(name: &str, kind: ColumnType) -> Self {
        Self { is_nullable: false, ..Self::new(name, kind) }
    }

    /// As the dictionary describes it.
    pub(crate) fn layout(&self) -> ColumnLayout {
        let (precision, scale) = self.kind.precision();
        ColumnLayout {
            name: self.name.clone(),
            type_name: self.kind.type_name(),
            length: self.kind.length(),
            precision,
            scale,
            is_nullable: self.is_nullable,
        }
    }
}

impl ColumnType {
    pub(crate) const fn is_lob(self) -> bool {
        matches!(self, Self::Clob | Self::NClob | Self::Blob)
    }

    fn type_name(self) -> String {
        match self {
            Self::Number | Self::NumberOf(..) => "NUMBER".to_owned(),
            Self::BinaryFloat => "BINARY_FLOAT".to_owned(),
            Self::BinaryDouble => "BINARY_DOUBLE".to_owned(),
            Self::Varchar2(_) => "VARCHAR2".to_owned(),
            Self::Char(_) => "CHAR".to_owned(),
            Self::NVarchar2(_) => "NVARCHAR2".to_owned(),
            Self::Date => "DATE".to_owned(),
            Self::Timestamp(digits) => format!("TIMESTAMP({digits})"),
            Self::TimestampTz => "TIMESTAMP(6) WITH TIME ZONE".to_owned(),
            Self::TimestampLtz => "TIMESTAMP(6) WITH LOCAL TIME ZONE".to_owned(),
            Self::YearToMonth => "INTERVAL YEAR(4) TO MONTH".to_owned(),
            Self::DayToSecond => "INTERVAL DAY(5) TO SECOND(6)".to_owned(),
            Self::Raw(_) => "RAW".to_owned(),
            Self::Clob => "CLOB".to_owned(),
            Self::NClob => "NCLOB".to_owned(),
            Self::Blob => "BLOB".to_owned(),
        }
    }

    const fn length(self) -> Option<u32> {
        match self {
            Self::Varchar2(length) | Self::Char(length) => Some(length),
            Self::NVarchar2(length) | Self::Raw(length) => Some(length),
            _ => None,
        }
    }

    const fn precision(self) -> (Option<u32>, Option<i32>) {
        match self {
            Self::NumberOf(precision, scale) => (Some(precision), Some(scale)),
            Self::Timestamp(digits) => (None, Some(digits.cast_signed())),
            Self::TimestampTz | Self::TimestampLtz => (None, Some(6)),
            Self::YearToMonth => (Some(4), Some(0)),
            Self::DayToSecond => (Some(5), Some(6)),
            _ => (None, None),
        }
    }

    /// The literal of a value under the masks of the capture session.
    pub(crate) fn literal(self, value: &str) -> String {
        let quoted = quoted(value);
        match self {
            Self::NVarchar2(_) => unistr(value),
            Self::Date => format!("TO_DATE({quoted}, 'YYYY-MM-DD HH24:MI:SS')"),
            Self::Timestamp(_) => format!("TO_TIMESTAMP({quoted})"),
            Self::TimestampTz | Self::TimestampLtz => format!("TO_TIMESTAMP_TZ({quoted})"),
            Self::YearToMonth => format!("TO_YMINTERVAL({quoted})"),
            Self::DayToSecond => format!("TO_DSINTERVAL({quoted})"),
            Self::Raw(_) | Self::Blob => format!("HEXTORAW({quoted})"),
            _ => quoted,
        }
    }

    /// What an INSERT gives a large object before its content follows.
    pub(crate) const fn empty_lob(self) -> &'static str {
        match self {
            Self::Blob => "EMPTY_BLOB()",
            _ => "EMPTY_CLOB()",
        }
    }
}

/// A string literal: quotes inside are doubled.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// National text: what is not ASCII as UTF-16 code units, a backslash doubled.
fn unistr(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let mut units = [0; 2];
    for letter in text.chars() {
        match letter {
            '\\' => escaped.push_str("\\\\"),
            '\'' => escaped.push_str("''"),
            letter if letter.is_ascii() => escaped.push(letter),
            letter => {
                for unit in letter.encode_utf16(&mut units) {
                    escaped.push_str(&format!("\\{unit:04X}"));
                }
            }
        }
    }
    format!("UNISTR('{escaped}')")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_are_as_logminer_writes_them() {
        let cases = [
            (ColumnType::Varchar2(9), "O'Brien", "'O''Brien'"),
            (ColumnType::NumberOf(9, 2), "-17.25", "'-17.25'"),
            (ColumnType::NVarchar2(9), "J\u{f6}rg", "UNISTR('J\\00F6rg')"),
            (ColumnType::NVarchar2(9), "a\\b's", "UNISTR('a\\\\b''s')"),
            (ColumnType::NVarchar2(9), "\u{1f600}", "UNISTR('\\D83D\\DE00')"),
            (
                ColumnType::Date,
                "2024-05-06 07:08:09",
                "TO_DATE('2024-05-06 07:08:09', 'YYYY-MM-DD HH24:MI:SS')",
            ),
            (ColumnType::Raw(3), "00ff10", "HEXTORAW('00ff10')"),
            (ColumnType::YearToMonth, "-0001-11", "TO_YMINTERVAL('-0001-11')"),
        ];
        for (kind, value, literal) in cases {
            assert_eq!(kind.literal(value), literal);
        }
    }
}
