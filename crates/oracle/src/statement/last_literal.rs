//! A literal that ends with the last quote of its text, so that its end is plain though the quotes inside
//! may stand alone.

use std::borrow::Cow;

use memchr::memchr_iter;

use super::error::StatementError;
use super::scanner::Quoted;

/// The literal as it is meant. XML pieces and extended strings have their inner quotes doubled or not; the
/// amount that the text gives tells which. Where it fits neither, or is not there, quotes that can be pairs
/// are pairs, as SQL has it.
pub(super) fn meant(
    written: Quoted<'_>,
    amount: Option<u64>,
) -> Result<Cow<'_, str>, StatementError> {
    let as_it_stands = Cow::Borrowed(written.raw);
    let in_pairs = in_pairs(written.raw).then(|| Quoted { is_doubled: true, ..written }.text());
    let fits = |text: &str| amount.is_none_or(|amount| is_long(text, amount));
    match in_pairs {
        Some(in_pairs) if fits(&in_pairs) || !fits(&as_it_stands) => Ok(in_pairs),
        None if !fits(&as_it_stands) => {
            Err(StatementError::unexpected(written.from, "text of the amount that is said"))
        }
        _ => Ok(as_it_stands),
    }
}

/// Amounts count characters, or bytes; the manual leaves it open.
fn is_long(text: &str, amount: u64) -> bool {
    [text.len(), text.chars().count()].iter().any(|length| u64::try_from(*length) == Ok(amount))
}

/// Whether every quote has its partner beside it.
fn in_pairs(raw: &str) -> bool {
    let mut quotes = memchr_iter(b'\'', raw.as_bytes());
    while let Some(first) = quotes.next() {
        if quotes.next() != Some(first + 1) {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(raw: &str, amount: Option<u64>) -> Option<String> {
        meant(Quoted { raw, from: 1, is_doubled: false }, amount).ok().map(Cow::into_owned)
    }

    #[test]
    fn the_amount_tells_pairs_from_two_quotes() {
        assert_eq!(read("a''b", Some(3)).as_deref(), Some("a'b"));
        assert_eq!(read("a''b", Some(4)).as_deref(), Some("a''b"));
        assert_eq!(read("é''b", Some(4)).as_deref(), Some("é'b"), "bytes");
    }

    #[test]
    fn without_help_quotes_are_pairs_if_they_can_be() {
        assert_eq!(read("a''b", None).as_deref(), Some("a'b"));
        assert_eq!(read("a''b", Some(9)).as_deref(), Some("a'b"));
        assert_eq!(read("a'b''c", None).as_deref(), Some("a'b''c"));
        assert_eq!(read("a'''b", None).as_deref(), Some("a'''b"));
    }

    #[test]
    fn quotes_that_stand_alone_need_the_amount_to_fit() {
        assert_eq!(read("d'une", Some(5)).as_deref(), Some("d'une"));
        assert_eq!(read("d'une", Some(6)), None);
    }
}
