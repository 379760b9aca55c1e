//! Where a literal ends whose inner quotes LogMiner has not doubled, as it does with extended strings.
//!
//! A quote ends a literal only if what LogMiner writes next stands behind it, in its own spacing. That is a
//! guess: a value that imitates it is cut there. So this reading is tried only where the strict one failed.

use super::literal::constructor_name;
use super::scanner::Scanner;

/// The list that a literal stands in.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum List {
    /// Behind VALUES.
    Values,
    /// Behind SET.
    Assignments,
    /// Behind WHERE.
    Terms,
}

/// What may stand behind the closing quote of a literal.
#[derive(Clone, Copy)]
pub(super) struct Closing<'a> {
    /// See [`List`].
    pub(super) list: List,
    /// What stands for the table before its columns.
    pub(super) alias: Option<&'a str>,
}

impl<'a> Closing<'a> {
    pub(super) const fn new() -> Self {
        Self { list: List::Values, alias: None }
    }

    /// Whether a literal can have ended where the scanner stands.
    pub(super) fn closes(self, mut behind: Scanner<'a>, in_call: bool) -> bool {
        if in_call && !behind.eat(b')') {
            return false;
        }
        let rest = behind.rest();
        if let Some(part) = rest.strip_prefix(" || ").or_else(|| rest.strip_prefix("||")) {
            return is_literal(part);
        }
        match self.list {
            List::Values => match rest.strip_prefix(',') {
                Some(next) => is_literal(next),
                None => behind.eat(b')') && behind.end().is_ok(),
            },
            List::Assignments => match rest.strip_prefix(", ") {
                Some(next) => self.is_column(next, &[" = "]),
                None => self.is_condition(rest, " where ") || behind.end().is_ok(),
            },
            List::Terms => self.is_condition(rest, " and ") || behind.end().is_ok(),
        }
    }

    /// Whether a term of the WHERE clause begins behind a word.
    fn is_condition(self, rest: &str, word: &str) -> bool {
        let Some(term) = rest.strip_prefix(word) else { return false };
        let is_row_id = self.unaliased(term).is_some_and(|term| term.starts_with("ROWID = '"));
        is_row_id || self.is_column(term, &[" = ", " IS NULL"])
    }

    fn is_column(self, text: &str, behind: &[&str]) -> bool {
        let name = self.unaliased(text).and_then(|text| text.strip_prefix('"'));
        let Some((_, rest)) = name.and_then(|name| name.split_once('"')) else { return false };
        behind.iter().any(|mark| rest.starts_with(mark))
    }

    fn unaliased(self, text: &str) -> Option<&str> {
        match self.alias {
            Some(alias) => text.strip_prefix(alias)?.strip_prefix('.'),
            None => Some(text),
        }
    }
}

/// Whether a text begins as a literal does that LogMiner writes.
fn is_literal(text: &str) -> bool {
    const BEGINNINGS: [&str; 9] = [
        "'",
        "NULL",
        "TO_",
        "UNISTR(",
        "HEXTORAW(",
        "EMPTY_CLOB(",
        "EMPTY_BLOB(",
        "CHR(",
        "Unsupported Type",
    ];
    let text = text.strip_prefix("/* JSON */ ").unwrap_or(text);
    BEGINNINGS.iter().any(|beginning| text.starts_with(beginning)) || {
        let mut scanner = Scanner::new(text);
        constructor_name(&mut scanner) && scanner.eat(b'(')
    }
}
