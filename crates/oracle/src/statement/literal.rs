//! The values of columns, as LogMiner writes them.

use std::borrow::Cow;

use super::error::StatementError;
use super::national::National;
use super::scanner::{Quoted, Scanner};

/// A value of a column. Text stays text: no number, date or byte is converted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Literal<'a> {
    /// `NULL`, and `IS NULL` in a WHERE clause.
    Null,
    /// `Unsupported Type`: LogMiner has no form for the value.
    Unsupported,
    /// `'text'`; numbers have this form too.
    Text(Cow<'a, str>),
    /// `UNISTR('text')` with its escapes read: NCHAR and NVARCHAR2.
    National(Cow<'a, str>),
    /// `TO_DATE('value', 'mask')`.
    Date {
        /// The date in words of the mask.
        value: Cow<'a, str>,
        /// How the value is written.
        mask: Cow<'a, str>,
    },
    /// `TO_TIMESTAMP('value')`, with a mask on some releases.
    Timestamp {
        /// The timestamp in the session's format, or in words of the mask.
        value: Cow<'a, str>,
        /// How the value is written.
        mask: Option<Cow<'a, str>>,
    },
    /// `TO_TIMESTAMP_TZ('value')`; without an offset for a column WITH LOCAL TIME ZONE.
    TimestampTz {
        /// The timestamp in the session's format, or in words of the mask.
        value: Cow<'a, str>,
        /// How the value is written.
        mask: Option<Cow<'a, str>>,
    },
    /// `TO_YMINTERVAL('+YYYY-MM')`.
    YearToMonth(Cow<'a, str>),
    /// `TO_DSINTERVAL('+DDDDD HH:MM:SS.ffffff')`.
    DayToSecond(Cow<'a, str>),
    /// `HEXTORAW('hex')`: whole bytes in hexadecimal digits, of which there may be none.
    Raw(Cow<'a, str>),
    /// `EMPTY_CLOB()`: what the object holds is in later rows.
    EmptyClob,
    /// `EMPTY_BLOB()`: what the object holds is in later rows.
    EmptyBlob,
    /// A value that is marked `/* JSON */`.
    Json(Box<Self>),
    /// The call of an object type's constructor, as it is written.
    Other(Cow<'a, str>),
}

impl Literal<'_> {
    /// The same value, apart from the text that it was read from.
    #[must_use]
    pub fn into_owned(self) -> Literal<'static> {
        fn own(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        match self {
            Self::Null => Literal::Null,
            Self::Unsupported => Literal::Unsupported,
            Self::Text(text) => Literal::Text(own(text)),
            Self::National(text) => Literal::National(own(text)),
            Self::Date { value, mask } => Literal::Date { value: own(value), mask: own(mask) },
            Self::Timestamp { value, mask } => {
                Literal::Timestamp { value: own(value), mask: mask.map(own) }
            }
            Self::TimestampTz { value, mask } => {
                Literal::TimestampTz { value: own(value), mask: mask.map(own) }
            }
            Self::YearToMonth(text) => Literal::YearToMonth(own(text)),
            Self::DayToSecond(text) => Literal::DayToSecond(own(text)),
            Self::Raw(hex) => Literal::Raw(own(hex)),
            Self::EmptyClob => Literal::EmptyClob,
            Self::EmptyBlob => Literal::EmptyBlob,
            Self::Json(value) => Literal::Json(Box::new(value.into_owned())),
            Self::Other(text) => Literal::Other(own(text)),
        }
    }
}

/// Reads the value that is next.
pub(super) fn literal<'a>(scanner: &mut Scanner<'a>) -> Result<Literal<'a>, StatementError> {
    match scanner.peek() {
        Some(b'\'') => {
            let text = Literal::Text(scanner.data(false)?.text());
            if scanner.peek() == Some(b'|') { joined(scanner, text) } else { Ok(text) }
        }
        Some(b'/') => {
            hint(scanner)?;
            Ok(Literal::Json(Box::new(unhinted(scanner)?)))
        }
        _ if scanner.keyword("NULL") => Ok(Literal::Null),
        _ => call(scanner),
    }
}

/// A value behind its hint, which has none itself: so nothing is nested.
fn unhinted<'a>(scanner: &mut Scanner<'a>) -> Result<Literal<'a>, StatementError> {
    match scanner.peek() {
        Some(b'/') => Err(value_expected(scanner.at())),
        _ => literal(scanner),
    }
}

const fn value_expected(at: usize) -> StatementError {
    StatementError::unexpected(at, "a value")
}

fn hint(scanner: &mut Scanner<'_>) -> Result<(), StatementError> {
    let at = scanner.at();
    if scanner.eat_all("/*") && scanner.keyword("json") && scanner.eat_all("*/") {
        Ok(())
    } else {
        Err(StatementError::unexpected(at, "a value, or the hint JSON before it"))
    }
}

/// A value that begins with a word.
fn call<'a>(scanner: &mut Scanner<'a>) -> Result<Literal<'a>, StatementError> {
    let at = scanner.at();
    let Some(function) = Function::named(scanner.peek_word()) else { return constructor(scanner) };
    scanner.word();
    match function {
        Function::Unsupported if scanner.keyword("type") => Ok(Literal::Unsupported),
        Function::Unsupported => Err(value_expected(at)),
        Function::ToDate => dated(scanner),
        Function::ToTimestamp => {
            masked(scanner).map(|(value, mask)| Literal::Timestamp { value, mask })
        }
        Function::ToTimestampTz => {
            masked(scanner).map(|(value, mask)| Literal::TimestampTz { value, mask })
        }
        Function::ToYmInterval => argument(scanner).map(|text| Literal::YearToMonth(text.text())),
        Function::ToDsInterval => argument(scanner).map(|text| Literal::DayToSecond(text.text())),
        Function::HexToRaw => {
            let raw = hexadecimal(argument(scanner)?)?;
            joined(scanner, Literal::Raw(Cow::Borrowed(raw)))
        }
        Function::Unistr => national(scanner),
        Function::EmptyClob => no_argument(scanner).map(|()| Literal::EmptyClob),
        Function::EmptyBlob => no_argument(scanner).map(|()| Literal::EmptyBlob),
        Function::Chr => {
            let text = character(scanner)?;
            joined(scanner, Literal::Text(Cow::Owned(text)))
        }
    }
}

/// The words that a value may begin with.
#[derive(Clone, Copy)]
enum Function {
    Unsupported,
    ToDate,
    ToTimestamp,
    ToTimestampTz,
    ToYmInterval,
    ToDsInterval,
    HexToRaw,
    Unistr,
    EmptyClob,
    EmptyBlob,
    Chr,
}

impl Function {
    const NAMES: [(&str, Self); 11] = [
        ("TO_DATE", Self::ToDate),
        ("TO_TIMESTAMP", Self::ToTimestamp),
        ("TO_TIMESTAMP_TZ", Self::ToTimestampTz),
        ("UNISTR", Self::Unistr),
        ("HEXTORAW", Self::HexToRaw),
        ("TO_YMINTERVAL", Self::ToYmInterval),
        ("TO_DSINTERVAL", Self::ToDsInterval),
        ("EMPTY_CLOB", Self::EmptyClob),
        ("EMPTY_BLOB", Self::EmptyBlob),
        ("Unsupported", Self::Unsupported),
        ("CHR", Self::Chr),
    ];

    fn named(word: &str) -> Option<Self> {
        let find = |is: fn(&str, &str) -> bool| {
            Self::NAMES.iter().find(|(name, _)| is(name, word)).map(|(_, function)| *function)
        };
        find(|name, word| name == word).or_else(|| find(str::eq_ignore_ascii_case))
    }
}

fn open(scanner: &mut Scanner<'_>) -> Result<(), StatementError> {
    scanner.expect(b'(', "an opening bracket")
}

fn close(scanner: &mut Scanner<'_>) -> Result<(), StatementError> {
    scanner.expect(b')', "a closing bracket")
}

fn no_argument(scanner: &mut Scanner<'_>) -> Result<(), StatementError> {
    open(scanner)?;
    close(scanner)
}

fn argument<'a>(scanner: &mut Scanner<'a>) -> Result<Quoted<'a>, StatementError> {
    open(scanner)?;
    let argument = scanner.quoted()?;
    close(scanner)?;
    Ok(argument)
}

fn dated<'a>(scanner: &mut Scanner<'a>) -> Result<Literal<'a>, StatementError> {
    open(scanner)?;
    let value = scanner.quoted()?.text();
    scanner.expect(b',', "a comma and the mask of the date")?;
    let mask = scanner.quoted()?.text();
    close(scanner)?;
    Ok(Literal::Date { value, mask })
}

type Masked<'a> = (Cow<'a, str>, Option<Cow<'a, str>>);

fn masked<'a>(scanner: &mut Scanner<'a>) -> Result<Masked<'a>, StatementError> {
    open(scanner)?;
    let value = scanner.quoted()?.text();
    let mask = if scanner.eat(b',') { Some(scanner.quoted()?.text()) } else { None };
    close(scanner)?;
    Ok((value, mask))
}

fn hexadecimal(digits: Quoted<'_>) -> Result<&str, StatementError> {
    let wrong = digits.raw.bytes().position(|byte| !byte.is_ascii_hexdigit());
    match wrong {
        Some(wrong) => Err(StatementError::hex(digits.from + wrong)),
        None if digits.raw.len() % 2 == 1 => {
            Err(StatementError::hex(digits.from + digits.raw.len()))
        }
        None => Ok(digits.raw),
    }
}

/// `CHR(n)`, with which some releases write line breaks. Beyond ASCII its meaning depends on the
/// character set of the database.
fn character(scanner: &mut Scanner<'_>) -> Result<String, StatementError> {
    open(scanner)?;
    let at = scanner.at();
    let code = u8::try_from(scanner.number()?).ok().filter(u8::is_ascii);
    let code = code.ok_or(StatementError::unexpected(at, "the code of an ASCII character"))?;
    close(scanner)?;
    Ok(char::from(code).to_string())
}

/// `UNISTR('text')`, and what is joined to it: a long value comes in pieces.
fn national<'a>(scanner: &mut Scanner<'a>) -> Result<Literal<'a>, StatementError> {
    let piece = unistr_argument(scanner)?;
    if !piece.raw.contains('\\') && scanner.peek() != Some(b'|') {
        return Ok(Literal::National(piece.text()));
    }
    let mut text = National::default();
    text.push(piece)?;
    pieces(scanner, text)
}

fn unistr_argument<'a>(scanner: &mut Scanner<'a>) -> Result<Quoted<'a>, StatementError> {
    open(scanner)?;
    let piece = scanner.data(true)?;
    close(scanner)?;
    Ok(piece)
}

/// What `||` joins to a national text, and the whole.
fn pieces<'a>(
    scanner: &mut Scanner<'a>,
    mut text: National,
) -> Result<Literal<'a>, StatementError> {
    while scanner.eat_all("||") {
        let at = scanner.at();
        if scanner.keyword("unistr") {
            text.push(unistr_argument(scanner)?)?;
        } else if scanner.keyword("chr") {
            text.push_plain(&character(scanner)?)?;
        } else if scanner.peek() == Some(b'\'') {
            text.push_plain(&scanner.data(false)?.text())?;
        } else {
            return Err(StatementError::unexpected(at, "a text to join"));
        }
    }
    Ok(Literal::National(Cow::Owned(text.finish()?)))
}

/// What `||` joins to a text or to bytes, and the whole.
fn joined<'a>(
    scanner: &mut Scanner<'a>,
    mut whole: Literal<'a>,
) -> Result<Literal<'a>, StatementError> {
    while scanner.peek() == Some(b'|') {
        if !scanner.eat_all("||") {
            return Err(StatementError::unexpected(scanner.at(), "two bars"));
        }
        let at = scanner.at();
        match &mut whole {
            Literal::Raw(bytes) if scanner.keyword("hextoraw") => {
                bytes.to_mut().push_str(hexadecimal(argument(scanner)?)?);
            }
            Literal::Text(text) if scanner.peek() == Some(b'\'') => {
                text.to_mut().push_str(&scanner.data(false)?.text());
            }
            Literal::Text(text) if scanner.keyword("chr") => {
                text.to_mut().push_str(&character(scanner)?);
            }
            Literal::Text(text) if scanner.keyword("unistr") => {
                let mut national = National::default();
                national.push_plain(text)?;
                national.push(unistr_argument(scanner)?)?;
                return pieces(scanner, national);
            }
            _ => return Err(StatementError::unexpected(at, "a value to join, of the same kind")),
        }
    }
    Ok(whole)
}

/// Whether the name of an object type's constructor is next, such as `MDSYS.SDO_GEOMETRY`; it is taken.
/// Only XMLTYPE is written without its owner. Other functions are none: nothing would know their value.
pub(super) fn constructor_name(scanner: &mut Scanner<'_>) -> bool {
    let is_xml = scanner.peek_word().eq_ignore_ascii_case("xmltype");
    let mut parts = 0;
    loop {
        let is_part = match scanner.peek() {
            Some(b'"') => scanner.name().is_ok(),
            _ => !scanner.word().is_empty(),
        };
        if !is_part {
            return false;
        }
        parts += 1;
        if !scanner.eat(b'.') {
            return parts > 1 || is_xml;
        }
    }
}

/// A constructor with its arguments, up to the bracket that closes them.
fn constructor<'a>(scanner: &mut Scanner<'a>) -> Result<Literal<'a>, StatementError> {
    let from = scanner.at();
    if !constructor_name(scanner) || !scanner.eat(b'(') {
        return Err(value_expected(from));
    }
    let mut depth = 1_u32;
    while depth > 0 {
        match scanner.peek() {
            Some(b'\'') => drop(scanner.quoted()?),
            Some(b'"') => drop(scanner.name()?),
            Some(b'(') => depth += u32::from(scanner.eat(b'(')),
            Some(b')') => depth -= u32::from(scanner.eat(b')')),
            Some(_) => scanner.skip(),
            None => return Err(StatementError::unexpected(scanner.at(), "a closing bracket")),
        }
    }
    Ok(Literal::Other(Cow::Borrowed(scanner.since(from))))
}
