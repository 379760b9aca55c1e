//! Statements that LogMiner gives in pieces.

use std::collections::{HashMap, VecDeque};

use crate::{RedoAddress, RedoPoint, RedoRow, RedoThread, TransactionKey};

/// What the pieces of one statement have in common. Pieces of other statements may stand between them.
type Chain = (RedoThread, TransactionKey, Option<RedoAddress>);

const fn chain(row: &RedoRow) -> Chain {
    (row.at.thread, row.transaction, row.at.address)
}

/// A statement, or what came of it so far.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Waiting {
    row: RedoRow,
    is_whole: bool,
}

/// Joins statements of more than 4,000 characters, which come in several rows (`CSF`), and gives rows in
/// the order of their first piece: what comes behind an unfinished statement waits for it. All but the
/// text is as in the first piece.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StatementJoin {
    waiting: VecDeque<Waiting>,
    /// Number of the first that waits, counted from the start.
    first: u64,
    /// The unfinished ones, by their number.
    unfinished: HashMap<Chain, u64>,
    bytes: usize,
}

impl StatementJoin {
    /// Takes the next row of LogMiner.
    pub fn push(&mut self, mut row: RedoRow) {
        let goes_on = std::mem::take(&mut row.is_continued);
        self.bytes += row.bytes();
        match self.unfinished.get(&chain(&row)).copied() {
            Some(number) => self.append(number, row, goes_on),
            None => self.begin(row, goes_on),
        }
    }

    fn begin(&mut self, row: RedoRow, goes_on: bool) {
        if goes_on {
            self.unfinished.insert(chain(&row), self.first + self.waiting.len() as u64);
        }
        self.waiting.push_back(Waiting { row, is_whole: !goes_on });
    }

    fn append(&mut self, number: u64, piece: RedoRow, goes_on: bool) {
        let index = usize::try_from(number - self.first).unwrap_or(usize::MAX);
        let Some(statement) = self.waiting.get_mut(index) else { return };
        let text = statement.row.sql_redo.get_or_insert_default();
        text.push_str(piece.sql_redo.as_deref().unwrap_or_default());
        if !goes_on {
            statement.is_whole = true;
            self.unfinished.remove(&chain(&piece));
        }
    }

    /// Whether a row is a piece of a statement that has begun.
    pub fn awaits(&self, row: &RedoRow) -> bool {
        self.unfinished.contains_key(&chain(row))
    }

    /// The next row, unless its statement is unfinished.
    pub fn pop(&mut self) -> Option<RedoRow> {
        self.waiting.front().filter(|front| front.is_whole)?;
        let front = self.waiting.pop_front()?;
        self.first += 1;
        self.bytes = self.bytes.saturating_sub(front.row.bytes());
        Some(front.row)
    }

    /// The first statement that is unfinished, once all before it were taken; what is behind it waits.
    pub fn unfinished(&self) -> Option<&RedoPoint> {
        self.waiting.front().filter(|front| !front.is_whole).map(|front| &front.row.at)
    }

    /// Bytes of memory that waiting rows take.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }
}
