//! National text: the escapes of UNISTR.

use memchr::memchr2;

use super::error::StatementError;
use super::scanner::Quoted;

/// National text as it is put together from pieces. A piece may end between the halves of a surrogate
/// pair.
#[derive(Default)]
pub(super) struct National {
    text: String,
    /// First half of a pair whose second has not come, and where it is written.
    high: Option<(u16, usize)>,
}

impl National {
    /// Adds the argument of a UNISTR: a backslash and four hexadecimal digits are one UTF-16 code unit, two
    /// backslashes are one.
    pub(super) fn push(&mut self, piece: Quoted<'_>) -> Result<(), StatementError> {
        let raw = piece.raw;
        let mut from = 0;
        while let Some(found) = memchr2(b'\\', b'\'', &raw.as_bytes()[from..]) {
            let mark = from + found;
            self.push_plain(&raw[from..mark])?;
            let is_quote = raw.as_bytes()[mark] == b'\'';
            from = mark
                + match (raw.as_bytes().get(mark + 1), is_quote) {
                    (_, true) => {
                        self.push_plain("'")?;
                        1 + usize::from(piece.is_doubled)
                    }
                    (Some(b'\\'), false) => {
                        self.push_plain("\\")?;
                        2
                    }
                    _ => {
                        self.push_unit(raw.get(mark + 1..mark + 5), piece.from + mark)?;
                        5
                    }
                };
        }
        self.push_plain(&raw[from..])
    }

    /// Adds text that has no escapes.
    pub(super) fn push_plain(&mut self, text: &str) -> Result<(), StatementError> {
        match self.high {
            Some((_, at)) if !text.is_empty() => Err(StatementError::unistr(at)),
            _ => {
                self.text.push_str(text);
                Ok(())
            }
        }
    }

    fn push_unit(&mut self, digits: Option<&str>, at: usize) -> Result<(), StatementError> {
        let wrong = StatementError::unistr(at);
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let unit = digits.and_then(|digits| u16::from_str_radix(digits, 16).ok()).ok_or(wrong)?;
        match self.high.take() {
            None if (0xd800..0xdc00).contains(&unit) => self.high = Some((unit, at)),
            None => self.text.push(char::from_u32(unit.into()).ok_or(wrong)?),
            Some((high, high_at)) => {
                let pair = char::decode_utf16([high, unit]).next();
                let pair = pair.and_then(Result::ok).ok_or(StatementError::unistr(high_at))?;
                self.text.push(pair);
            }
        }
        Ok(())
    }

    /// The whole.
    pub(super) fn finish(self) -> Result<String, StatementError> {
        match self.high {
            Some((_, at)) => Err(StatementError::unistr(at)),
            None => Ok(self.text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(raw: &str) -> Result<String, usize> {
        let piece = Quoted { raw, from: 100, is_doubled: raw.contains("''") };
        let mut text = National::default();
        text.push(piece).and_then(|()| text.finish()).map_err(|error| error.at)
    }

    #[test]
    fn escapes_are_code_units() {
        assert_eq!(read("").as_deref(), Ok(""));
        assert_eq!(read("a\\00E9b").as_deref(), Ok("aéb"));
        assert_eq!(read("\\00e9\\00E9").as_deref(), Ok("éé"));
        assert_eq!(read("\\D83D\\DEA2").as_deref(), Ok("🚢"));
        assert_eq!(read("\\\\0041").as_deref(), Ok("\\0041"));
        assert_eq!(read("it''s").as_deref(), Ok("it's"));
        assert_eq!(read("né").as_deref(), Ok("né"));
    }

    #[test]
    fn a_fault_is_said_where_its_escape_begins() {
        assert_eq!(read("ab\\00"), Err(102));
        assert_eq!(read("\\00Eg"), Err(100));
        assert_eq!(read("\\+0E9"), Err(100));
        assert_eq!(read("a\\"), Err(101));
        assert_eq!(read("\\00é"), Err(100));
        assert_eq!(read("a\\D83D"), Err(101));
        assert_eq!(read("\\D83Dx"), Err(100));
        assert_eq!(read("\\D83D\\0041"), Err(100));
        assert_eq!(read("\\DEA2"), Err(100));
    }

    #[test]
    fn a_pair_may_be_split_between_pieces() {
        let mut text = National::default();
        for (raw, from) in [("x\\D83D", 0), ("\\DEA2y", 20)] {
            assert!(text.push(Quoted { raw, from, is_doubled: false }).is_ok());
        }
        assert_eq!(text.finish().as_deref(), Ok("x🚢y"));
    }
}
