//! What the values of a column become: the source's text, or a JSON number where the type is one of whole
//! or floating-point numbers.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use highwater_connector::Json;

use super::moment::{self, DATE_MASK, TIMESTAMP_MASK, TIMESTAMP_TZ_MASK};
use super::number;
use crate::ColumnLayout;
use crate::schema::ColumnType;
use crate::statement::Literal;

/// The form of a column's values, by its type.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Form {
    /// Text: VARCHAR2, CHAR with its padding, NVARCHAR2, NCHAR, LONG, ROWID, UROWID.
    Text,
    /// A NUMBER that is whole and fits into 64 bits: a JSON number.
    Integer,
    /// Any other NUMBER, and FLOAT: its digits as text.
    Decimal,
    /// BINARY_FLOAT, BINARY_DOUBLE: a JSON number.
    Float,
    /// DATE.
    Date,
    /// TIMESTAMP.
    Timestamp,
    /// TIMESTAMP WITH TIME ZONE.
    ZonedTimestamp,
    /// TIMESTAMP WITH LOCAL TIME ZONE.
    LocalTimestamp,
    /// INTERVAL YEAR TO MONTH.
    YearToMonth,
    /// INTERVAL DAY TO SECOND.
    DayToSecond,
    /// RAW, LONG RAW: base64.
    Raw,
    /// CLOB, NCLOB: text.
    Clob,
    /// BLOB: base64.
    Blob,
    /// XMLTYPE: redo never has the value whole.
    Xml,
    /// A type whose values are not read, such as BFILE, BOOLEAN, JSON, VECTOR or an object type.
    Unread,
}

/// A literal that no value of its column is written as. It does not quote the literal.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum Misfit {
    #[error("its value came as {0}")]
    Kind(&'static str),
    #[error("its value has not the form that the session's formats give it")]
    Text,
    #[error("its date is written with the mask {0:?}, and the session's is {DATE_MASK:?}")]
    Mask(String),
    #[error("values of its type are not read")]
    Unread,
}

impl Form {
    /// The form of a column.
    pub fn of(column: &ColumnLayout) -> Self {
        use ColumnType as T;
        match column.column_type() {
            T::Varchar2 | T::Char | T::Nvarchar2 | T::Nchar | T::Long | T::RowId | T::Urowid => {
                Self::Text
            }
            T::Number if column.is_integer() => Self::Integer,
            T::Number | T::Float => Self::Decimal,
            T::BinaryFloat | T::BinaryDouble => Self::Float,
            T::Date => Self::Date,
            T::Timestamp { .. } => Self::Timestamp,
            T::TimestampWithTimeZone => Self::ZonedTimestamp,
            T::TimestampWithLocalTimeZone => Self::LocalTimestamp,
            T::IntervalYearToMonth => Self::YearToMonth,
            T::IntervalDayToSecond => Self::DayToSecond,
            T::Raw | T::LongRaw => Self::Raw,
            T::Clob | T::Nclob => Self::Clob,
            T::Blob => Self::Blob,
            T::XmlType => Self::Xml,
            T::Bfile | T::Boolean | T::Json | T::Vector | T::Unknown(_) => Self::Unread,
        }
    }

    /// The JSON primitive of its values, as table descriptions name it.
    pub const fn json_type(self) -> &'static str {
        match self {
            Self::Integer | Self::Float => "number",
            _ => "string",
        }
    }

    /// Whether its values are stored apart from the row, so that images may lack them.
    pub const fn is_large(self) -> bool {
        matches!(self, Self::Clob | Self::Blob | Self::Xml)
    }

    /// Writes a value.
    ///
    /// # Errors
    /// When the literal is none of this type.
    pub(crate) fn write(self, json: &mut Json, literal: &Literal<'_>) -> Result<(), Misfit> {
        let written = match (self, literal) {
            (Self::Unread, _) => return Err(Misfit::Unread),
            (_, Literal::Null) => null(json),
            (_, Literal::Json(value)) => return self.write(json, value),
            (Self::Text, Literal::Text(text) | Literal::National(text)) => string(json, text),
            (Self::Integer, Literal::Text(text)) => integer(json, text),
            (Self::Decimal, Literal::Text(text)) => decimal(json, text),
            (Self::Float, Literal::Text(text)) => number::float(json, text),
            (Self::Raw | Self::Blob, Literal::Raw(hex)) => bytes(json, hex),
            (Self::Blob, Literal::EmptyBlob) | (Self::Clob, Literal::EmptyClob) => string(json, ""),
            (Self::Clob, Literal::Text(text) | Literal::National(text)) => string(json, text),
            _ => return self.write_moment(json, literal),
        };
        written.ok_or(Misfit::Text)
    }

    fn write_moment(self, json: &mut Json, literal: &Literal<'_>) -> Result<(), Misfit> {
        let written = match (self, literal) {
            (Self::Date, Literal::Date { mask, .. }) if mask != DATE_MASK => {
                return Err(Misfit::Mask(mask.chars().take(64).collect()));
            }
            (Self::Date, Literal::Date { value, .. }) => moment::date(json, value),
            (Self::Timestamp, Literal::Timestamp { value, mask }) => {
                masked(mask.as_deref(), TIMESTAMP_MASK)
                    .and_then(|()| moment::timestamp(json, value))
            }
            (Self::ZonedTimestamp, Literal::TimestampTz { value, mask }) => {
                masked(mask.as_deref(), TIMESTAMP_TZ_MASK).and_then(|()| moment::zoned(json, value))
            }
            (Self::LocalTimestamp, Literal::TimestampTz { value, mask }) => {
                masked(mask.as_deref(), TIMESTAMP_TZ_MASK).and_then(|()| moment::local(json, value))
            }
            (Self::YearToMonth, Literal::YearToMonth(text)) => moment::year_to_month(json, text),
            (Self::DayToSecond, Literal::DayToSecond(text)) => moment::day_to_second(json, text),
            (_, other) => return Err(Misfit::Kind(kind(other))),
        };
        written.ok_or(Misfit::Text)
    }
}

fn null(json: &mut Json) -> Option<()> {
    json.raw("null");
    Some(())
}

fn string(json: &mut Json, text: &str) -> Option<()> {
    json.string(text);
    Some(())
}

fn integer(json: &mut Json, text: &str) -> Option<()> {
    json.raw(&number::integer(text)?);
    Some(())
}

fn decimal(json: &mut Json, text: &str) -> Option<()> {
    json.string(&number::decimal(text)?);
    Some(())
}

fn bytes(json: &mut Json, hex: &str) -> Option<()> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = hex.as_bytes().as_chunks::<2>() else { return None };
    let bytes = pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?));
    let bytes: Vec<u8> = bytes.collect::<Option<_>>()?;
    base64(json, &bytes);
    Some(())
}

/// Writes bytes.
pub(crate) fn base64(json: &mut Json, bytes: &[u8]) {
    json.string(&STANDARD.encode(bytes));
}

/// A mask is given by some releases, and is then the session's.
fn masked(mask: Option<&str>, expected: &str) -> Option<()> {
    mask.is_none_or(|mask| mask == expected).then_some(())
}

/// What a literal is, in words of SQL.
const fn kind(literal: &Literal<'_>) -> &'static str {
    match literal {
        Literal::Null => "NULL",
        Literal::Unsupported => "Unsupported Type",
        Literal::Text(_) => "a quoted text",
        Literal::National(_) => "UNISTR",
        Literal::Date { .. } => "TO_DATE",
        Literal::Timestamp { .. } => "TO_TIMESTAMP",
        Literal::TimestampTz { .. } => "TO_TIMESTAMP_TZ",
        Literal::YearToMonth(_) => "TO_YMINTERVAL",
        Literal::DayToSecond(_) => "TO_DSINTERVAL",
        Literal::Raw(_) => "HEXTORAW",
        Literal::EmptyClob => "EMPTY_CLOB",
        Literal::EmptyBlob => "EMPTY_BLOB",
        Literal::Json(_) => "JSON",
        Literal::Other(_) => "the constructor of an object type",
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    fn column(type_name: &str, precision: Option<u32>, scale: Option<i32>) -> ColumnLayout {
        ColumnLayout {
            name: "C".to_owned(),
            type_name: type_name.to_owned(),
            length: None,
            precision,
            scale,
            is_nullable: true,
        }
    }

    #[test]
    fn a_type_has_its_form() {
        for (form_expected, names) in [
            (Form::Text, "VARCHAR2,CHAR,NVARCHAR2,NCHAR,LONG,ROWID,UROWID"),
            (Form::Decimal, "NUMBER,FLOAT,INTEGER"),
            (Form::Float, "BINARY_FLOAT,BINARY_DOUBLE"),
            (Form::Date, "DATE"),
            (Form::Timestamp, "TIMESTAMP(6)"),
            (Form::ZonedTimestamp, "TIMESTAMP(9) WITH TIME ZONE"),
            (Form::LocalTimestamp, "TIMESTAMP(6) WITH LOCAL TIME ZONE"),
            (Form::YearToMonth, "INTERVAL YEAR(2) TO MONTH"),
            (Form::DayToSecond, "INTERVAL DAY(2) TO SECOND(6)"),
            (Form::Raw, "RAW,LONG RAW"),
            (Form::Clob, "CLOB,NCLOB"),
            (Form::Blob, "BLOB"),
            (Form::Xml, "XMLTYPE"),
            (Form::Unread, "BFILE,BOOLEAN,JSON,VECTOR,SDO_GEOMETRY"),
        ] {
            for name in names.split(',') {
                assert_eq!(Form::of(&column(name, None, None)), form_expected, "{name}");
            }
        }
        let number = |precision, scale| Form::of(&column("NUMBER", Some(precision), Some(scale)));
        assert_eq!(number(18, 0), Form::Integer);
        assert_eq!(number(19, 0), Form::Decimal);
        assert_eq!(number(10, 2), Form::Decimal);
    }

    fn written(form: Form, literal: &Literal<'_>) -> Result<String, Misfit> {
        let mut json = Json::default();
        form.write(&mut json, literal)?;
        Ok(String::from_utf8(json.finish().to_vec()).unwrap())
    }

    fn text(text: &str) -> Literal<'_> {
        Literal::Text(Cow::Borrowed(text))
    }

    #[test]
    fn each_type_has_its_json() {
        let national = |text| Literal::National(Cow::Borrowed(text));
        let raw = |hex| Literal::Raw(Cow::Borrowed(hex));
        let date = Literal::Date { value: "2024-05-06 07:08:09".into(), mask: DATE_MASK.into() };
        let timestamp =
            Literal::Timestamp { value: "2024-05-06 07:08:09.120000000".into(), mask: None };
        let zoned = Literal::TimestampTz {
            value: "2024-05-06 07:08:09.500000000 +02:00".into(),
            mask: Some(TIMESTAMP_TZ_MASK.into()),
        };
        let local =
            Literal::TimestampTz { value: "2024-05-06 05:08:09.500000000".into(), mask: None };
        let json = Literal::Json(Box::new(raw("7b7d")));
        for (form, literal, expected) in [
            (Form::Text, text("O'Brien \"x\"  "), r#""O'Brien \"x\"  ""#),
            (Form::Text, national("J\u{f6}rg"), "\"J\u{f6}rg\""),
            (Form::Integer, text("-101"), "-101"),
            (Form::Integer, text("1E+05"), "100000"),
            (Form::Decimal, text("-.25"), r#""-0.25""#),
            (Form::Float, text("1.50000005E+010"), "1.50000005E+010"),
            (Form::Float, text("Inf"), r#""Infinity""#),
            (Form::Date, date, r#""2024-05-06 07:08:09""#),
            (Form::Timestamp, timestamp, r#""2024-05-06 07:08:09.12""#),
            (Form::ZonedTimestamp, zoned, r#""2024-05-06 07:08:09.5+02:00""#),
            (Form::LocalTimestamp, local, r#""2024-05-06 05:08:09.5+00:00""#),
            (Form::YearToMonth, Literal::YearToMonth("-0001-11".into()), r#""-1-11""#),
            (
                Form::DayToSecond,
                Literal::DayToSecond("+00002 03:04:05.600000".into()),
                r#""2 03:04:05.6""#,
            ),
            (Form::Raw, raw("00ff10"), r#""AP8Q""#),
            (Form::Raw, raw("00FF"), r#""AP8=""#),
            (Form::Clob, text("short"), r#""short""#),
            (Form::Clob, Literal::EmptyClob, r#""""#),
            (Form::Blob, Literal::EmptyBlob, r#""""#),
            (Form::Blob, raw("00"), r#""AA==""#),
            (Form::Blob, json, r#""e30=""#),
            (Form::Date, Literal::Null, "null"),
        ] {
            assert_eq!(written(form, &literal).as_deref(), Ok(expected), "{form:?} {literal:?}");
        }
    }

    #[test]
    fn a_literal_of_another_type_is_refused_without_its_value() {
        let refused = |form, literal: &Literal<'_>| {
            let error = written(form, literal).unwrap_err();
            assert!(!error.to_string().contains("secret"), "{error}");
            error
        };
        assert_eq!(refused(Form::Integer, &text("secret")), Misfit::Text);
        assert_eq!(refused(Form::Integer, &text("1.5")), Misfit::Text);
        assert_eq!(refused(Form::Date, &text("secret")), Misfit::Kind("a quoted text"));
        assert_eq!(refused(Form::Text, &Literal::Raw("c102".into())), Misfit::Kind("HEXTORAW"));
        assert_eq!(refused(Form::Raw, &Literal::Raw("+f".into())), Misfit::Text);
        assert_eq!(refused(Form::Raw, &Literal::Raw("abc".into())), Misfit::Text);
        assert_eq!(refused(Form::Blob, &Literal::EmptyClob), Misfit::Kind("EMPTY_CLOB"));
        assert_eq!(refused(Form::Unread, &Literal::Null), Misfit::Unread);
        assert_eq!(refused(Form::Text, &Literal::Unsupported), Misfit::Kind("Unsupported Type"));
        let other = Literal::Other("MDSYS.SDO_POINT('secret')".into());
        assert_eq!(refused(Form::Text, &other), Misfit::Kind("the constructor of an object type"));
        let date = Literal::Date { value: "06-MAY-24".into(), mask: "DD-MON-RR".into() };
        assert_eq!(refused(Form::Date, &date), Misfit::Mask("DD-MON-RR".to_owned()));
        let mask = Some("DD-MON-RR HH.MI.SSXFF AM".into());
        let timestamp = Literal::Timestamp { value: "2024-05-06 07:08:09".into(), mask };
        assert_eq!(refused(Form::Timestamp, &timestamp), Misfit::Text);
    }
}
