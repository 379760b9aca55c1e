//! Types of columns, read from the text that the dictionary has for them.

use crate::ColumnLayout;

/// The type of a column.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ColumnType {
    /// VARCHAR2, VARCHAR.
    Varchar2,
    /// CHAR, padded with blanks.
    Char,
    /// NVARCHAR2.
    Nvarchar2,
    /// NCHAR, padded with blanks.
    Nchar,
    /// NUMBER, INTEGER, DECIMAL.
    Number,
    /// FLOAT, a NUMBER whose precision is in binary digits.
    Float,
    /// `BINARY_FLOAT`.
    BinaryFloat,
    /// `BINARY_DOUBLE`.
    BinaryDouble,
    /// DATE, with a time of day in seconds and no zone.
    Date,
    /// TIMESTAMP without a zone.
    Timestamp {
        /// Digits of the fraction, where the text says it.
        digits: Option<u8>,
    },
    /// TIMESTAMP WITH TIME ZONE.
    TimestampWithTimeZone,
    /// TIMESTAMP WITH LOCAL TIME ZONE.
    TimestampWithLocalTimeZone,
    /// INTERVAL YEAR TO MONTH.
    IntervalYearToMonth,
    /// INTERVAL DAY TO SECOND.
    IntervalDayToSecond,
    /// RAW.
    Raw,
    /// LONG.
    Long,
    /// LONG RAW.
    LongRaw,
    /// CLOB.
    Clob,
    /// NCLOB.
    Nclob,
    /// BLOB.
    Blob,
    /// BFILE, the name of a file.
    Bfile,
    /// XMLTYPE.
    XmlType,
    /// BOOLEAN (23ai).
    Boolean,
    /// JSON (21c).
    Json,
    /// VECTOR (23ai).
    Vector,
    /// ROWID.
    RowId,
    /// UROWID.
    Urowid,
    /// Any other, such as a type of a user; its text.
    Unknown(String),
}

impl ColumnType {
    /// Reads the dictionary's text, such as `TIMESTAMP(6) WITH TIME ZONE`.
    pub fn of(text: &str) -> Self {
        let name = text.trim().to_ascii_uppercase();
        if let Some(rest) = name.strip_prefix("TIMESTAMP") {
            return timestamp(rest);
        }
        match before_size(&name) {
            "VARCHAR2" | "VARCHAR" => Self::Varchar2,
            "CHAR" => Self::Char,
            "NVARCHAR2" => Self::Nvarchar2,
            "NCHAR" => Self::Nchar,
            "NUMBER" | "INTEGER" | "DECIMAL" => Self::Number,
            "FLOAT" => Self::Float,
            "BINARY_FLOAT" => Self::BinaryFloat,
            "BINARY_DOUBLE" => Self::BinaryDouble,
            "DATE" => Self::Date,
            "INTERVAL YEAR" => Self::IntervalYearToMonth,
            "INTERVAL DAY" => Self::IntervalDayToSecond,
            "RAW" => Self::Raw,
            "LONG" => Self::Long,
            "LONG RAW" => Self::LongRaw,
            "CLOB" => Self::Clob,
            "NCLOB" => Self::Nclob,
            "BLOB" => Self::Blob,
            "BFILE" => Self::Bfile,
            "XMLTYPE" | "SYS.XMLTYPE" | "PUBLIC.XMLTYPE" => Self::XmlType,
            "BOOLEAN" => Self::Boolean,
            "JSON" => Self::Json,
            "VECTOR" => Self::Vector,
            "ROWID" => Self::RowId,
            "UROWID" => Self::Urowid,
            _ => Self::Unknown(text.to_owned()),
        }
    }

    /// Whether it is a large object, which redo gives in pieces and no WHERE ever names.
    pub const fn is_lob(&self) -> bool {
        matches!(self, Self::Clob | Self::Nclob | Self::Blob | Self::XmlType)
    }

    /// Whether a value of it can be part of a key: it must be in the WHERE of every change.
    pub const fn can_be_key(&self) -> bool {
        self.can_be_read() && !self.is_lob() && !matches!(self, Self::Long | Self::LongRaw)
    }

    /// Whether LogMiner gives its values in a form that is read.
    pub const fn can_be_read(&self) -> bool {
        !matches!(self, Self::Bfile | Self::Boolean | Self::Json | Self::Vector | Self::Unknown(_))
    }
}

/// What follows `TIMESTAMP`.
fn timestamp(rest: &str) -> ColumnType {
    match rest {
        _ if rest.contains("LOCAL TIME ZONE") => ColumnType::TimestampWithLocalTimeZone,
        _ if rest.contains("TIME ZONE") => ColumnType::TimestampWithTimeZone,
        _ => {
            let digits = rest.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
            ColumnType::Timestamp { digits: digits.and_then(|digits| digits.trim().parse().ok()) }
        }
    }
}

/// `VARCHAR2` of `VARCHAR2(30 CHAR)`, `INTERVAL DAY` of `INTERVAL DAY(2) TO SECOND(6)`.
fn before_size(name: &str) -> &str {
    let name = name.split_once('(').map_or(name, |(name, _)| name);
    name.split_once(" TO ").map_or(name, |(name, _)| name).trim_end()
}

impl ColumnLayout {
    /// Its type.
    pub fn column_type(&self) -> ColumnType {
        ColumnType::of(&self.type_name)
    }

    /// Its type as somebody would declare it, such as `NUMBER(10,2)`.
    pub fn declared_type(&self) -> String {
        let name = self.type_name.trim();
        let has_size = name.contains('(');
        match (self.column_type(), self.precision, self.length) {
            _ if has_size => name.to_owned(),
            (ColumnType::Number, Some(precision), _) => match self.scale {
                Some(scale) if scale != 0 => format!("{name}({precision},{scale})"),
                _ => format!("{name}({precision})"),
            },
            (ColumnType::Number, None, _) if self.scale == Some(0) => format!("{name}(*,0)"),
            (ColumnType::Float, Some(precision), _) => format!("{name}({precision})"),
            (
                ColumnType::Varchar2
                | ColumnType::Char
                | ColumnType::Nvarchar2
                | ColumnType::Nchar
                | ColumnType::Raw
                | ColumnType::Urowid,
                _,
                Some(length),
            ) => format!("{name}({length})"),
            _ => name.to_owned(),
        }
    }

    /// Whether it is a whole number of at most 18 digits, which every reader of JSON numbers of 64 bits
    /// takes as it is.
    pub fn is_integer(&self) -> bool {
        let (Some(precision), scale) = (self.precision, self.scale.unwrap_or(0)) else {
            return false;
        };
        let digits = i64::from(precision) - i64::from(scale);
        self.column_type() == ColumnType::Number && scale <= 0 && digits <= 18
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_the_dictionary_is_read() {
        use ColumnType::{
            Bfile, BinaryDouble, BinaryFloat, Blob, Boolean, Char, Clob, Date, Float,
            IntervalDayToSecond, IntervalYearToMonth, Json, Long, LongRaw, Nchar, Nclob, Number,
            Nvarchar2, Raw, RowId, Timestamp, TimestampWithLocalTimeZone, TimestampWithTimeZone,
            Unknown, Urowid, Varchar2, Vector, XmlType,
        };
        for (text, expected) in [
            ("VARCHAR2", Varchar2),
            ("VARCHAR2(30 CHAR)", Varchar2),
            ("CHAR", Char),
            ("NVARCHAR2", Nvarchar2),
            ("NCHAR", Nchar),
            ("NUMBER", Number),
            ("number(10,2)", Number),
            ("INTEGER", Number),
            ("FLOAT", Float),
            ("BINARY_FLOAT", BinaryFloat),
            ("BINARY_DOUBLE", BinaryDouble),
            ("DATE", Date),
            ("TIMESTAMP", Timestamp { digits: None }),
            ("TIMESTAMP(6)", Timestamp { digits: Some(6) }),
            ("TIMESTAMP(0)", Timestamp { digits: Some(0) }),
            ("TIMESTAMP(9) WITH TIME ZONE", TimestampWithTimeZone),
            ("TIMESTAMP(3) WITH LOCAL TIME ZONE", TimestampWithLocalTimeZone),
            ("INTERVAL YEAR(2) TO MONTH", IntervalYearToMonth),
            ("INTERVAL YEAR TO MONTH", IntervalYearToMonth),
            ("INTERVAL DAY(2) TO SECOND(6)", IntervalDayToSecond),
            ("RAW", Raw),
            ("LONG", Long),
            ("LONG RAW", LongRaw),
            ("CLOB", Clob),
            ("NCLOB", Nclob),
            ("BLOB", Blob),
            ("BFILE", Bfile),
            ("XMLTYPE", XmlType),
            ("SYS.XMLTYPE", XmlType),
            ("BOOLEAN", Boolean),
            ("JSON", Json),
            ("VECTOR(3, FLOAT32)", Vector),
            ("ROWID", RowId),
            ("UROWID", Urowid),
            ("SDO_GEOMETRY", Unknown("SDO_GEOMETRY".to_owned())),
            ("", Unknown(String::new())),
        ] {
            assert_eq!(ColumnType::of(text), expected, "{text}");
        }
    }

    fn column(type_name: &str, size: (Option<u32>, Option<u32>, Option<i32>)) -> ColumnLayout {
        let (length, precision, scale) = size;
        ColumnLayout {
            name: "C".to_owned(),
            type_name: type_name.to_owned(),
            length,
            precision,
            scale,
            is_nullable: true,
        }
    }

    #[test]
    fn a_type_is_shown_as_it_would_be_declared() {
        for (type_name, size, shown) in [
            ("NUMBER", (Some(22), Some(10), Some(2)), "NUMBER(10,2)"),
            ("NUMBER", (Some(22), Some(10), Some(0)), "NUMBER(10)"),
            ("NUMBER", (Some(22), Some(5), Some(-2)), "NUMBER(5,-2)"),
            ("NUMBER", (Some(22), None, Some(0)), "NUMBER(*,0)"),
            ("NUMBER", (Some(22), None, None), "NUMBER"),
            ("FLOAT", (Some(22), Some(126), None), "FLOAT(126)"),
            ("VARCHAR2", (Some(30), None, None), "VARCHAR2(30)"),
            ("DATE", (Some(7), None, None), "DATE"),
            ("CLOB", (Some(4000), None, None), "CLOB"),
            ("TIMESTAMP(6)", (Some(11), None, Some(6)), "TIMESTAMP(6)"),
        ] {
            assert_eq!(column(type_name, size).declared_type(), shown);
        }
    }

    #[test]
    fn a_whole_number_has_at_most_18_digits() {
        for (size, expected) in [
            ((None, Some(18), Some(0)), true),
            ((None, Some(18), None), true),
            ((None, Some(19), Some(0)), false),
            ((None, Some(16), Some(-2)), true),
            ((None, Some(17), Some(-2)), false),
            ((None, Some(5), Some(1)), false),
            ((None, None, Some(0)), false),
        ] {
            assert_eq!(column("NUMBER", size).is_integer(), expected, "{size:?}");
        }
        assert!(!column("FLOAT", (None, Some(10), Some(0))).is_integer());
    }

    #[test]
    fn large_objects_are_no_keys() {
        for name in ["CLOB", "NCLOB", "BLOB", "XMLTYPE", "LONG", "BFILE", "JSON"] {
            assert!(!ColumnType::of(name).can_be_key(), "{name}");
        }
        assert!(ColumnType::of("NUMBER").can_be_key() && ColumnType::of("DATE").can_be_key());
        assert!(ColumnType::Long.can_be_read() && !ColumnType::Boolean.can_be_read());
    }
}
