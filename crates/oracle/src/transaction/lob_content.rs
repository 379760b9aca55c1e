//! The value of one large object while its pieces come.

use super::lob_piece::{LobData, LobEdit, LobKind, LobLiteral};
use super::lob_ranges::KnownRanges;
use super::lob_run::{Blank, Characters, Run};
use crate::LobValue;

/// What is known of a large object.
#[derive(Clone, Debug)]
pub(crate) enum LobContent {
    /// No content is kept.
    NotKept,
    /// NULL.
    Null(LobKind),
    /// A CLOB or NCLOB.
    Text(KnownRanges<Characters>),
    /// A BLOB.
    Bytes(KnownRanges<Vec<u8>>),
    /// More was written than is kept; the ranges say whether the value would be known.
    TooLarge(KnownRanges<Blank>),
    /// Its redo is not understood: why.
    Undecodable(String),
}

impl LobContent {
    /// A value that was there before and is not seen.
    pub(crate) const fn unseen(kind: LobKind) -> Self {
        match kind {
            LobKind::Text => Self::Text(KnownRanges::unknown()),
            LobKind::Binary => Self::Bytes(KnownRanges::unknown()),
        }
    }

    /// An empty value.
    pub(crate) fn empty(kind: LobKind) -> Self {
        match kind {
            LobKind::Text => Self::Text(KnownRanges::whole(Characters::default())),
            LobKind::Binary => Self::Bytes(KnownRanges::whole(Vec::new())),
        }
    }

    /// The value of a literal.
    pub(crate) fn of(literal: LobLiteral, kind: LobKind, limit: u64) -> Self {
        let content = match (literal, kind) {
            (LobLiteral::Null, kind) => Self::Null(kind),
            (LobLiteral::Empty, kind) => Self::empty(kind),
            (LobLiteral::Text(text), LobKind::Text) => Self::Text(KnownRanges::whole(text.into())),
            (LobLiteral::Bytes(bytes), LobKind::Binary) => Self::Bytes(KnownRanges::whole(bytes)),
            (_, kind) => Self::Undecodable(wrong_kind(kind)),
        };
        content.within(limit)
    }

    /// Bytes of memory that it takes.
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Self::Text(ranges) => ranges.bytes(),
            Self::Bytes(ranges) => ranges.bytes(),
            _ => 0,
        }
    }

    /// The content after an edit, of which at most `limit` bytes are kept.
    pub(crate) fn edited(self, edit: LobEdit, limit: u64) -> Self {
        let content = match self {
            Self::NotKept | Self::Undecodable(_) => return self,
            Self::Null(kind) => Self::empty(kind),
            known => known.with_room(&edit, limit),
        };
        let edited = match content {
            Self::Text(ranges) => edit_ranges(ranges, edit, characters).map(Self::Text),
            Self::Bytes(ranges) => edit_ranges(ranges, edit, octets).map(Self::Bytes),
            Self::TooLarge(ranges) => edit_ranges(ranges, edit, blank).map(Self::TooLarge),
            other => Ok(other),
        };
        edited.unwrap_or_else(Self::Undecodable).within(limit)
    }

    /// The value.
    pub(crate) fn value(&self) -> LobValue {
        let known = match self {
            Self::NotKept => None,
            Self::Null(_) => Some(LobValue::Null),
            Self::Text(ranges) => ranges.value().map(|text| LobValue::Text(text.into_text())),
            Self::Bytes(ranges) => ranges.value().map(LobValue::Bytes),
            Self::TooLarge(ranges) => ranges.value().map(|_| LobValue::TooLarge),
            Self::Undecodable(why) => Some(LobValue::Undecodable(why.clone())),
        };
        known.unwrap_or(LobValue::Unavailable)
    }

    /// Lets go of the content before an edit would fill in more than is kept.
    fn with_room(self, edit: &LobEdit, limit: u64) -> Self {
        let filled = match &self {
            Self::Text(ranges) => filled(ranges, edit),
            Self::Bytes(ranges) => filled(ranges, edit),
            _ => 0,
        };
        if filled > limit { self.let_go() } else { self }
    }

    /// Lets go of the content if it is more than is kept.
    fn within(self, limit: u64) -> Self {
        if self.bytes() > limit { self.let_go() } else { self }
    }

    fn let_go(self) -> Self {
        match self {
            Self::Text(ranges) => Self::TooLarge(ranges.map(|run| Blank(run.units()))),
            Self::Bytes(ranges) => Self::TooLarge(ranges.map(|run| Blank(run.units()))),
            other => other,
        }
    }
}

/// How many units an edit fills in.
fn filled<R: Run>(ranges: &KnownRanges<R>, edit: &LobEdit) -> u64 {
    match edit {
        LobEdit::Write { offset, .. } => ranges.padding(offset.saturating_sub(1)),
        LobEdit::Erase { offset, amount } => ranges.erased(offset.saturating_sub(1), *amount),
        _ => 0,
    }
}

/// Applies an edit; the error says what is wrong with it.
fn edit_ranges<R: Run>(
    mut ranges: KnownRanges<R>,
    edit: LobEdit,
    content: fn(LobData) -> Result<R, String>,
) -> Result<KnownRanges<R>, String> {
    match edit {
        LobEdit::Locator => {}
        LobEdit::Write { offset, amount, data } => {
            let data = content(data)?;
            let start = start(offset, amount)?;
            if data.units() != amount {
                return Err(wrong_amount(amount, data.units()));
            }
            ranges.write(start, data);
        }
        LobEdit::Trim { length } => ranges.trim(length),
        LobEdit::Erase { offset, amount } => ranges.erase(start(offset, amount)?, amount),
        LobEdit::NotUnderstood(why) => return Err(why),
    }
    Ok(ranges)
}

/// The offset, counted from 0.
fn start(offset: u64, amount: u64) -> Result<u64, String> {
    let start = offset.checked_sub(1).ok_or("an offset of a large object is 0; they begin at 1")?;
    match start.checked_add(amount) {
        Some(_) => Ok(start),
        None => Err(format!("a large object has no offset {offset} with {amount} units behind it")),
    }
}

fn characters(data: LobData) -> Result<Characters, String> {
    match data {
        LobData::Text(text) => Ok(text.into()),
        LobData::Bytes(_) => Err(wrong_kind(LobKind::Text)),
    }
}

fn octets(data: LobData) -> Result<Vec<u8>, String> {
    match data {
        LobData::Bytes(bytes) => Ok(bytes),
        LobData::Text(_) => Err(wrong_kind(LobKind::Binary)),
    }
}

/// What is not kept is counted all the same.
fn blank(data: LobData) -> Result<Blank, String> {
    Ok(match data {
        LobData::Text(text) => Blank(Characters::from(text).units()),
        LobData::Bytes(bytes) => Blank(bytes.units()),
    })
}

fn wrong_amount(amount: u64, units: u64) -> String {
    format!("a write to a large object says that it writes {amount} units and brings {units}")
}

fn wrong_kind(kind: LobKind) -> String {
    let (wanted, got) = match kind {
        LobKind::Text => ("text", "bytes"),
        LobKind::Binary => ("bytes", "text"),
    };
    format!("a large object of {wanted} is written with {got}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 10;

    fn write(offset: u64, text: &str) -> LobEdit {
        let amount = text.chars().count() as u64;
        LobEdit::Write { offset, amount, data: LobData::Text(text.to_owned()) }
    }

    fn after(base: LobContent, edits: impl IntoIterator<Item = LobEdit>) -> LobValue {
        let edited = edits.into_iter().fold(base, |content, edit| content.edited(edit, LIMIT));
        assert!(edited.bytes() <= LIMIT);
        edited.value()
    }

    fn text(value: &str) -> LobValue {
        LobValue::Text(value.to_owned())
    }

    #[test]
    fn offsets_count_from_one() {
        let base = || LobContent::empty(LobKind::Text);
        assert_eq!(after(base(), [write(1, "ab"), write(3, "c")]), text("abc"));
        let wrong =
            LobValue::Undecodable("an offset of a large object is 0; they begin at 1".to_owned());
        assert_eq!(after(base(), [write(0, "ab")]), wrong);
        assert_eq!(after(base(), [LobEdit::Erase { offset: 0, amount: 1 }]), wrong);
    }

    #[test]
    fn an_amount_unlike_the_buffer_is_an_error() {
        let data = LobData::Text("a\u{1f600}".to_owned());
        let wrong = LobEdit::Write { offset: 1, amount: 3, data: data.clone() };
        let right = LobEdit::Write { offset: 1, amount: 2, data };
        let base = || LobContent::empty(LobKind::Text);
        assert_eq!(after(base(), [right]), text("a\u{1f600}"));
        let why = "a write to a large object says that it writes 3 units and brings 2";
        let undecodable = LobValue::Undecodable(why.to_owned());
        assert_eq!(after(base(), [wrong, write(1, "x")]), undecodable, "nothing mends it");
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        let edit = LobEdit::NotUnderstood("an undo".to_owned());
        let undecodable = LobValue::Undecodable("an undo".to_owned());
        assert_eq!(after(LobContent::empty(LobKind::Text), [edit]), undecodable);
        let bytes = LobEdit::Write { offset: 1, amount: 1, data: LobData::Bytes(vec![1]) };
        let value = after(LobContent::unseen(LobKind::Text), [bytes]);
        assert!(matches!(value, LobValue::Undecodable(_)));
        let value = after(LobContent::unseen(LobKind::Binary), [write(u64::MAX, "ab")]);
        assert!(matches!(value, LobValue::Undecodable(_)));
    }

    #[test]
    fn a_value_up_to_the_limit_is_kept_and_one_above_is_not() {
        let base = || LobContent::empty(LobKind::Text);
        assert_eq!(after(base(), [write(1, "0123456789")]), text("0123456789"));
        assert_eq!(after(base(), [write(1, "0123456789"), write(1, "9")]), text("9123456789"));
        assert_eq!(after(base(), [write(1, "01234"), write(6, "56789a")]), LobValue::TooLarge);
        assert_eq!(after(base(), [write(1, "ééééé")]), text("ééééé"));
        assert_eq!(after(base(), [write(1, "ééééé"), write(6, "é")]), LobValue::TooLarge);
        let literal = LobLiteral::Bytes(vec![0; 11]);
        assert_eq!(LobContent::of(literal, LobKind::Binary, LIMIT).value(), LobValue::TooLarge);
    }

    #[test]
    fn what_would_not_be_known_is_unavailable_and_not_too_large() {
        let edits = [write(3, "0123456789a")];
        assert_eq!(after(LobContent::unseen(LobKind::Text), edits), LobValue::Unavailable);
        let edits = [write(1, "0123456789a"), LobEdit::Trim { length: 11 }];
        assert_eq!(after(LobContent::unseen(LobKind::Text), edits), LobValue::TooLarge);
    }

    #[test]
    fn a_write_far_behind_the_end_takes_no_memory() {
        let far = write(1 << 60, "a");
        assert_eq!(after(LobContent::empty(LobKind::Text), [far.clone()]), LobValue::TooLarge);
        assert_eq!(after(LobContent::unseen(LobKind::Text), [far]), LobValue::Unavailable);
        let erase = LobEdit::Erase { offset: 1, amount: 1 << 60 };
        assert_eq!(after(LobContent::unseen(LobKind::Text), [erase]), LobValue::Unavailable);
    }

    #[test]
    fn null_is_a_value_until_something_is_written() {
        let null = || LobContent::of(LobLiteral::Null, LobKind::Text, LIMIT);
        assert_eq!(null().value(), LobValue::Null);
        assert_eq!(after(null(), [write(1, "ab")]), text("ab"));
    }

    #[test]
    fn content_that_is_not_kept_stays_unavailable() {
        let edits = [write(1, "ab"), LobEdit::Trim { length: 0 }];
        assert_eq!(after(LobContent::NotKept, edits), LobValue::Unavailable);
    }
}
