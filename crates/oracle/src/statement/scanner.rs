//! The tokens of what LogMiner writes, read from bytes. Every token may have blanks before it.

use std::borrow::Cow;

use memchr::{memchr_iter, memrchr};

use super::error::StatementError;
use super::relaxed::Closing;
use super::search::find;

/// Reads tokens of a text, one after the other.
#[derive(Clone)]
pub(super) struct Scanner<'a> {
    text: &'a str,
    at: usize,
    /// How the end of a literal is told when quotes inside may be undoubled; `None` reads strictly.
    pub(super) closing: Option<Closing<'a>>,
}

const QUOTED: &str = "a literal in single quotes";

/// What stands between two quotes.
#[derive(Clone, Copy)]
pub(super) struct Quoted<'a> {
    /// The text as it is written.
    pub(super) raw: &'a str,
    /// Where it begins, in bytes.
    pub(super) from: usize,
    /// Whether a pair of quotes in it stands for one.
    pub(super) is_doubled: bool,
}

impl<'a> Quoted<'a> {
    /// The text as it is meant.
    #[inline]
    pub(super) fn text(self) -> Cow<'a, str> {
        if self.is_doubled { Cow::Owned(single(self.raw, b'\'')) } else { Cow::Borrowed(self.raw) }
    }
}

/// A text in which each pair of a quote becomes one.
fn single(raw: &str, quote: u8) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut from = 0;
    let mut quotes = memchr_iter(quote, raw.as_bytes());
    while let (Some(first), Some(_)) = (quotes.next(), quotes.next()) {
        text.push_str(&raw[from..=first]);
        from = first + 2;
    }
    text.push_str(&raw[from..]);
    text
}

impl<'a> Scanner<'a> {
    pub(super) const fn new(text: &'a str) -> Self {
        Self { text, at: 0, closing: None }
    }

    pub(super) const fn relaxed(text: &'a str) -> Self {
        Self { text, at: 0, closing: Some(Closing::new()) }
    }

    /// Where the next token begins.
    #[inline]
    pub(super) fn at(&mut self) -> usize {
        self.blanks();
        self.at
    }

    /// What has not been read.
    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// What was read since an offset.
    pub(super) fn since(&self, from: usize) -> &'a str {
        &self.text[from..self.at]
    }

    #[inline]
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    fn blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.byte() {
            self.at += 1;
        }
    }

    /// The first byte of the next token.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        self.blanks();
        self.byte()
    }

    /// Takes a mark if it is next.
    #[inline]
    pub(super) fn eat(&mut self, mark: u8) -> bool {
        let is_next = self.peek() == Some(mark);
        self.at += usize::from(is_next);
        is_next
    }

    /// Takes marks that stand together, if they are next.
    pub(super) fn eat_all(&mut self, marks: &str) -> bool {
        self.blanks();
        let is_next = self.rest().starts_with(marks);
        self.at += if is_next { marks.len() } else { 0 };
        is_next
    }

    /// Passes over everything up to these marks, and them; up to the end where they are not.
    pub(super) fn pass(&mut self, marks: &str) {
        let rest = self.rest();
        self.at += rest.find(marks).map_or(rest.len(), |found| found + marks.len());
    }

    /// Passes over one character.
    pub(super) fn skip(&mut self) {
        self.at += self.rest().chars().next().map_or(0, char::len_utf8);
    }

    #[inline]
    pub(super) fn expect(
        &mut self,
        mark: u8,
        expected: &'static str,
    ) -> Result<(), StatementError> {
        if self.eat(mark) { Ok(()) } else { Err(StatementError::unexpected(self.at, expected)) }
    }

    /// The word that is next: letters, digits and what else an unquoted name may have; empty if
    /// something else is next.
    pub(super) fn peek_word(&mut self) -> &'a str {
        self.blanks();
        let rest = self.rest();
        let end = rest.bytes().position(|byte| !is_word(byte)).unwrap_or(rest.len());
        &rest[..end]
    }

    /// Takes the word that is next; it may be empty.
    pub(super) fn word(&mut self) -> &'a str {
        let word = self.peek_word();
        self.at += word.len();
        word
    }

    /// Takes a keyword if it is next, in any case; that of LogMiner is told soonest.
    #[inline]
    pub(super) fn keyword(&mut self, keyword: &str) -> bool {
        self.blanks();
        let bytes = self.text.as_bytes();
        let end = self.at + keyword.len();
        let is_next = bytes.get(self.at..end).is_some_and(|word| {
            word == keyword.as_bytes() || word.eq_ignore_ascii_case(keyword.as_bytes())
        }) && !bytes.get(end).copied().is_some_and(is_word);
        if is_next {
            self.at = end;
        }
        is_next
    }

    pub(super) fn expect_keyword(&mut self, keyword: &'static str) -> Result<(), StatementError> {
        if self.keyword(keyword) {
            Ok(())
        } else {
            Err(StatementError::unexpected(self.at, keyword))
        }
    }

    /// Takes a quoted name.
    pub(super) fn name(&mut self) -> Result<Cow<'a, str>, StatementError> {
        const EXPECTED: &str = "a name in double quotes";
        self.blanks();
        let open = self.at;
        self.expect(b'"', EXPECTED)?;
        let name = self.until(b'"').ok_or(StatementError::unexpected(open, EXPECTED))?;
        match name {
            Quoted { raw: "", .. } => Err(StatementError::unexpected(open, EXPECTED)),
            Quoted { raw, is_doubled: true, .. } => Ok(Cow::Owned(single(raw, b'"'))),
            Quoted { raw, .. } => Ok(Cow::Borrowed(raw)),
        }
    }

    /// Takes a quoted literal, whose inner quotes are doubled.
    #[inline]
    pub(super) fn quoted(&mut self) -> Result<Quoted<'a>, StatementError> {
        self.blanks();
        let open = self.at;
        self.expect(b'\'', QUOTED)?;
        self.until(b'\'').ok_or(StatementError::unterminated(open))
    }

    /// Takes quoted data of a column. Under the relaxed reading its inner quotes may stand alone.
    /// `in_call` says that a bracket must close behind it.
    #[inline]
    pub(super) fn data(&mut self, in_call: bool) -> Result<Quoted<'a>, StatementError> {
        let Some(closing) = self.closing else { return self.quoted() };
        let open = self.at();
        self.expect(b'\'', QUOTED)?;
        let from = self.at;
        let strict = self.until(b'\'').filter(|_| closing.closes(self.clone(), in_call));
        strict
            .or_else(|| self.undoubled(closing, from, in_call))
            .ok_or(StatementError::unterminated(open))
    }

    /// Takes data from an offset to the first quote that can close it.
    fn undoubled(
        &mut self,
        closing: Closing<'a>,
        from: usize,
        in_call: bool,
    ) -> Option<Quoted<'a>> {
        let data = &self.text[from..];
        let end = memchr_iter(b'\'', data.as_bytes()).find(|quote| {
            self.at = from + quote + 1;
            closing.closes(self.clone(), in_call)
        })?;
        Some(Quoted { raw: &data[..end], from, is_doubled: false })
    }

    /// Takes a literal that ends with the last quote of the text.
    pub(super) fn quoted_to_last(&mut self) -> Result<Quoted<'a>, StatementError> {
        self.blanks();
        let open = self.at;
        self.expect(b'\'', QUOTED)?;
        let rest = self.rest();
        let end = memrchr(b'\'', rest.as_bytes()).ok_or(StatementError::unterminated(open))?;
        let from = self.at;
        self.at += end + 1;
        Ok(Quoted { raw: &rest[..end], from, is_doubled: false })
    }

    /// Takes what stands before a quote that is not doubled, and the quote; `None` if there is none.
    #[inline]
    fn until(&mut self, quote: u8) -> Option<Quoted<'a>> {
        let (from, bytes) = (self.at, self.text.as_bytes());
        let mut is_doubled = false;
        loop {
            let end = find(quote, bytes, self.at)?;
            if bytes.get(end + 1) != Some(&quote) {
                self.at = end + 1;
                return Some(Quoted { raw: &self.text[from..end], from, is_doubled });
            }
            is_doubled = true;
            self.at = end + 2;
        }
    }

    /// Takes a whole number without a sign.
    pub(super) fn number(&mut self) -> Result<u64, StatementError> {
        let at = self.at();
        let word = self.word();
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        let number = word.parse().ok().filter(|_| is_number);
        number.ok_or(StatementError::unexpected(at, "a whole number"))
    }

    /// The text is over; a semicolon may stand before its end.
    pub(super) fn end(&mut self) -> Result<(), StatementError> {
        self.eat(b';');
        self.expect_end()
    }

    pub(super) fn expect_end(&mut self) -> Result<(), StatementError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(StatementError::unexpected(self.at, "the end of the text")),
        }
    }
}

/// Letters of an unquoted name. Those beyond ASCII may be in it too.
const fn is_word(byte: u8) -> bool {
    WORD[byte as usize]
}

const WORD: [bool; 256] = {
    let mut word = [false; 256];
    let mut byte = 0_u8;
    loop {
        word[byte as usize] =
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#') || byte >= 0x80;
        match byte.checked_add(1) {
            Some(next) => byte = next,
            None => break word,
        }
    }
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_quotes_become_one() {
        for (raw, text) in
            [("a''b", "a'b"), ("''", "'"), ("''''x", "''x"), ("x''", "x'"), ("é''é", "é'é")]
        {
            assert_eq!(single(raw, b'\''), text);
        }
    }

    #[test]
    fn a_keyword_is_a_whole_word_in_any_case() {
        assert!(Scanner::new("  AnD\"A\"").keyword("and"));
        assert!(!Scanner::new("android").keyword("and"));
        assert!(!Scanner::new("an").keyword("and"));
    }

    #[test]
    fn a_word_ends_where_no_name_goes_on() {
        assert_eq!(Scanner::new(" é_1$#.x").peek_word(), "é_1$#");
        assert_eq!(Scanner::new("'x'").peek_word(), "");
    }

    #[test]
    fn a_number_is_digits_alone_and_fits() {
        assert_eq!(Scanner::new(" 18446744073709551615,").number(), Ok(u64::MAX));
        for wrong in ["", "+1", "-1", "1e3", "18446744073709551616"] {
            assert!(Scanner::new(wrong).number().is_err(), "{wrong}");
        }
    }
}
