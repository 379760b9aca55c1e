//! A JSON writer into one buffer that is used again and again: the keys and values of
//! [`SourceRecord`](crate::SourceRecord)s are made with it.

use std::fmt::Write as _;

use bytes::{BufMut as _, Bytes, BytesMut};

/// Room made at once, so that many records share one allocation.
const BLOCK: usize = 64 * 1024;

/// Writes one JSON text after the other.
#[derive(Debug, Default)]
pub struct Json {
    out: BytesMut,
    /// Whether strings are escaped as Jackson does.
    java: bool,
}

impl Json {
    /// A writer whose strings are, byte for byte, those of Kafka Connect's converter.
    pub fn java() -> Self {
        Self { java: true, ..Self::default() }
    }

    /// Text that already is JSON.
    pub fn raw(&mut self, json: &str) {
        self.out.extend_from_slice(json.as_bytes());
    }

    /// A whole number.
    pub fn int(&mut self, number: i128) {
        self.raw(itoa::Buffer::new().format(number));
    }

    /// A string.
    pub fn string(&mut self, text: &str) {
        self.out.put_u8(b'"');
        if self.java {
            self.escaped_as_jackson(text);
        } else {
            self.escaped(text.as_bytes());
        }
        self.out.put_u8(b'"');
    }

    /// A number in the source's own digits, or a string where they are no JSON number.
    pub fn number(&mut self, digits: &str) {
        if is_number(digits.as_bytes()) {
            self.raw(digits);
        } else {
            self.string(digits);
        }
    }

    /// Drops what was written since the last [`Json::finish`].
    pub fn discard(&mut self) {
        self.out.clear();
    }

    /// What was written, without a copy.
    pub fn finish(&mut self) -> Bytes {
        let text = self.out.split().freeze();
        if self.out.capacity() < 1024 {
            self.out.reserve(BLOCK);
        }
        text
    }

    fn escaped(&mut self, text: &[u8]) {
        let mut rest = text;
        while let Some(at) = first_special(rest)
            && let Some((plain, [special, behind @ ..])) = rest.split_at_checked(at)
        {
            self.out.extend_from_slice(plain);
            self.escape(*special);
            rest = behind;
        }
        self.out.extend_from_slice(rest);
    }

    /// Short forms, upper-case digits, and surrogates for what 16 bits do not hold
    /// (`UTF8JsonGenerator`).
    fn escaped_as_jackson(&mut self, text: &str) {
        let plain = |c: char| c >= ' ' && c != '"' && c != '\\' && c.len_utf16() == 1;
        if text.chars().all(plain) {
            return self.raw(text);
        }
        let mut buffer = [0; 4];
        for c in text.chars() {
            match c {
                '\u{8}' => self.raw("\\b"),
                '\u{c}' => self.raw("\\f"),
                '"' | '\\' | '\n' | '\r' | '\t' => self.escape(c as u8),
                c if plain(c) => self.raw(c.encode_utf8(&mut buffer)),
                c => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        let _ = write!(self.out, "\\u{unit:04X}");
                    }
                }
            }
        }
    }

    fn escape(&mut self, byte: u8) {
        match byte {
            b'"' => self.raw("\\\""),
            b'\\' => self.raw("\\\\"),
            b'\n' => self.raw("\\n"),
            b'\r' => self.raw("\\r"),
            b'\t' => self.raw("\\t"),
            other => {
                let _ = write!(self.out, "\\u{other:04x}");
            }
        }
    }
}

/// Where the first byte stands that JSON escapes in a string.
fn first_special(text: &[u8]) -> Option<usize> {
    let (words, _) = text.as_chunks::<8>();
    let plain = words.iter().take_while(|word| is_plain(u64::from_ne_bytes(**word))).count() * 8;
    let special = |byte: &u8| *byte < 0x20 || *byte == b'"' || *byte == b'\\';
    Some(plain + text.get(plain..)?.iter().position(special)?)
}

/// Whether none of eight bytes is to be escaped: `x - 1 & !x & 0x80` is set for a byte that is zero
/// (and, through a borrow, perhaps for the byte above one that is).
const fn is_plain(word: u64) -> bool {
    const ONES: u64 = u64::MAX / 0xff;
    const HIGH: u64 = ONES << 7;
    let control = word.wrapping_sub(ONES * 0x20) & !word;
    let quote = word ^ (ONES * b'"' as u64);
    let slash = word ^ (ONES * b'\\' as u64);
    let special =
        control | (quote.wrapping_sub(ONES) & !quote) | (slash.wrapping_sub(ONES) & !slash);
    special & HIGH == 0
}

/// Whether a text is a JSON number (RFC 8259, section 6).
fn is_number(text: &[u8]) -> bool {
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let (whole, rest) = digits(text);
    if whole.is_empty() || (whole.len() > 1 && whole.starts_with(b"0")) {
        return false;
    }
    let rest = match rest.strip_prefix(b".").map(digits) {
        Some(([], _)) => return false,
        Some((_, rest)) => rest,
        None => rest,
    };
    match rest {
        [] => true,
        [b'e' | b'E', b'+' | b'-', exponent @ ..] | [b'e' | b'E', exponent @ ..] => {
            matches!(digits(exponent), ([_, ..], []))
        }
        _ => false,
    }
}

/// The leading digits and what follows them.
fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_string_is_read_back(text in ".*", control in "[\\x00-\\x1f\"\\\\]{0,8}") {
            let text = format!("{text}{control}");
            let mut json = Json::default();
            json.string(&text);
            let back: String = serde_json::from_slice(&json.finish()).unwrap();
            prop_assert_eq!(&back, &text);
            let mut java = Json::java();
            java.string(&text);
            let back: String = serde_json::from_slice(&java.finish()).unwrap();
            prop_assert_eq!(back, text);
        }

        #[test]
        fn any_digits_give_valid_json(text in "[-+0-9.eE]{0,10}") {
            let mut json = Json::default();
            json.number(&text);
            let written = json.finish();
            prop_assert!(serde_json::from_slice::<serde_json::Value>(&written).is_ok());
            let number = serde_json::from_str::<serde_json::Number>(&text).is_ok();
            prop_assert_eq!(written.as_ref() == text.as_bytes(), number);
        }
    }

    #[test]
    fn numbers_keep_their_digits() {
        for text in ["0", "-0", "1e-40", "1e+308", "0.1", "1234567890123456789"] {
            assert!(is_number(text.as_bytes()), "{text}");
        }
        for text in ["", "-", "NaN", "Infinity", "-Infinity", "01", "1.", ".5", "1e", "1e+"] {
            assert!(!is_number(text.as_bytes()), "{text}");
        }
    }
}
