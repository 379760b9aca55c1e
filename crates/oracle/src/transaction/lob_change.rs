//! A change that is open for the pieces of its large objects.

use super::lob_content::LobContent;
use super::lob_image::{ImageValue, RowImage};
use super::lob_piece::{LobAssignment, LobEdit, LobHead, LobLiteral, LobTarget, RowPiece};
use super::lob_row_id::{is_placeholder, synthetic};
use crate::{Change, LobColumn, RedoPoint, Verb};

/// How much of large objects is kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keeping {
    /// No content.
    Nothing,
    /// Values up to so many bytes.
    UpTo(u64),
}

/// A row change with its large objects, or large objects of a row alone.
#[derive(Debug)]
pub(crate) struct OpenChange {
    change: Change,
    /// What names the row before the change, and what it sets there.
    before: RowImage,
    after: RowImage,
    /// Large objects that the statement sets.
    set: Vec<LobAssignment>,
    written: Vec<WrittenLob>,
    keeping: Keeping,
}

/// A large object that rows of its own write.
#[derive(Debug)]
struct WrittenLob {
    column: String,
    content: LobContent,
    /// Whether content was written, and not only cut or blanked.
    has_writes: bool,
    last: RedoPoint,
}

impl OpenChange {
    /// A row change whose redo does not tell its row id.
    pub(crate) fn row(piece: RowPiece, keeping: Keeping) -> Self {
        let RowPiece { change, before, after, lobs } = piece;
        Self { change, before, after, set: lobs, written: Vec::new(), keeping }
    }

    /// Large objects of a row alone, which their first row opens.
    pub(crate) fn lobs(change: Change, row: RowImage, keeping: Keeping) -> Self {
        let (after, set, written) = (RowImage::default(), Vec::new(), Vec::new());
        Self { change, before: row, after, set, written, keeping }
    }

    /// Where it begins.
    pub(crate) const fn at(&self) -> RedoPoint {
        self.change.at
    }

    /// Its row id.
    pub(crate) fn row_id(&self) -> &str {
        &self.change.row_id
    }

    /// Bytes of memory that its texts and values take.
    pub(crate) fn bytes(&self) -> u64 {
        let texts = self.change.sql.len() + self.change.row_id.len();
        texts as u64 + self.written.iter().map(|lob| lob.content.bytes()).sum::<u64>()
    }

    /// Whether a row of large objects belongs to it. `change` is that of the row.
    ///
    /// A write from the first unit into what was written before is another statement's.
    pub(crate) fn takes(&self, change: &Change, head: &LobHead, edit: &LobEdit) -> bool {
        let is_rewrite = matches!(edit, LobEdit::Write { offset: 1, .. })
            && self.has_writes(&head.target.column);
        change.table == self.change.table
            && change.row_id == self.change.row_id
            && self.is_same_row(&head.row)
            && !is_rewrite
    }

    fn has_writes(&self, column: &str) -> bool {
        self.written.iter().any(|lob| lob.column == column && lob.has_writes)
    }

    /// Whether the image names this row: as it is after the change, or as it was before it.
    fn is_same_row(&self, row: &RowImage) -> bool {
        row.all(|column, value| self.value(column).is_some_and(|own| own.is_same(value)))
            || row
                .all(|column, value| self.before.get(column).is_some_and(|own| own.is_same(value)))
    }

    /// The value of a column after the change. What an INSERT does not name is NULL.
    fn value(&self, column: &str) -> Option<&ImageValue> {
        let named = self.after.get(column).or_else(|| self.before.get(column));
        named.or_else(|| self.is_insert().then_some(&ImageValue::Null))
    }

    fn is_insert(&self) -> bool {
        self.change.verb == Verb::Insert
    }

    /// Applies a row of large objects.
    pub(crate) fn edit(&mut self, target: LobTarget, edit: LobEdit, at: RedoPoint) {
        let limit = self.limit();
        let has_writes = matches!(edit, LobEdit::Write { .. });
        let lob = self.written(target, at);
        lob.has_writes |= has_writes;
        lob.last = at;
        let content = std::mem::replace(&mut lob.content, LobContent::NotKept);
        lob.content = content.edited(edit, limit);
    }

    fn limit(&self) -> u64 {
        match self.keeping {
            Keeping::Nothing => 0,
            Keeping::UpTo(limit) => limit,
        }
    }

    fn written(&mut self, target: LobTarget, at: RedoPoint) -> &mut WrittenLob {
        let known = self.written.iter().position(|lob| lob.column == target.column);
        let place = known.unwrap_or_else(|| {
            let (content, column) = (self.base(&target), target.column);
            self.written.push(WrittenLob { column, content, has_writes: false, last: at });
            self.written.len() - 1
        });
        &mut self.written[place]
    }

    /// The value before the first row of a large object.
    fn base(&self, target: &LobTarget) -> LobContent {
        let set = self.set.iter().find(|set| set.target.column == target.column);
        match set {
            _ if !self.is_kept(target) => LobContent::NotKept,
            Some(set) => LobContent::of(set.value.clone(), target.kind, self.limit()),
            None if self.is_insert() => LobContent::empty(target.kind),
            None => LobContent::unseen(target.kind),
        }
    }

    fn is_kept(&self, target: &LobTarget) -> bool {
        target.is_captured && matches!(self.keeping, Keeping::UpTo(_))
    }

    /// Whether an UPDATE is the second half of this INSERT: it names the inserted row, and sets large
    /// objects alone, one of which at least no row has written.
    pub(crate) fn is_completed_by(&self, update: &RowPiece) -> bool {
        let is_unwritten = |set: &LobAssignment| !self.has_writes(&set.target.column);
        let is_locator = |set: &LobAssignment| is_unwritten(set) || set.value == LobLiteral::Empty;
        self.is_insert()
            && update.change.verb == Verb::Update
            && update.change.table == self.change.table
            && !is_placeholder(&update.change.row_id)
            && update.after.is_empty()
            && update.lobs.iter().any(is_unwritten)
            && update.lobs.iter().all(is_locator)
            && self.is_same_row(&update.before)
    }

    /// Takes the values and the row id of the UPDATE that completes it. What rows have written stays:
    /// there the UPDATE has the locator alone.
    pub(crate) fn complete(&mut self, update: RowPiece) {
        self.change.row_id = update.change.row_id;
        for LobAssignment { target, value } in update.lobs {
            if self.has_writes(&target.column) {
                continue;
            }
            let (kind, limit, is_kept) = (target.kind, self.limit(), self.is_kept(&target));
            let lob = self.written(target, update.change.at);
            lob.last = update.change.at;
            if is_kept {
                lob.content = LobContent::of(value, kind, limit);
            }
        }
    }

    /// The change. A row id that the redo does not tell is made.
    pub(crate) fn close(self) -> Change {
        let mut change = self.change;
        if is_placeholder(&change.row_id) {
            change.row_id = synthetic(&change.at);
        }
        change.lobs = self.written.into_iter().map(WrittenLob::into_column).collect();
        change
    }
}

impl WrittenLob {
    fn into_column(self) -> LobColumn {
        LobColumn { value: self.content.value(), column: self.column, last: self.last }
    }
}
