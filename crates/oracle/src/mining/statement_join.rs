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
        match self.unfinished.get(&chain(&row)).copied() {
            Some(number) => self.append(number, row, goes_on),
            None => self.begin(row, goes_on),
        }
    }

    fn begin(&mut self, row: RedoRow, goes_on: bool) {
        if goes_on {
            self.unfinished.insert(chain(&row), self.first + self.waiting.len() as u64);
        }
        self.bytes += row.bytes();
        self.waiting.push_back(Waiting { row, is_whole: !goes_on });
    }

    fn append(&mut self, number: u64, piece: RedoRow, goes_on: bool) {
        let index = usize::try_from(number - self.first).unwrap_or(usize::MAX);
        let Some(statement) = self.waiting.get_mut(index) else { return };
        let text = statement.row.sql_redo.get_or_insert_default();
        let more = piece.sql_redo.as_deref().unwrap_or_default();
        text.push_str(more);
        self.bytes += more.len();
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mining::fake::{row, transaction};
    use crate::row::Operation;
    use proptest::prelude::*;

    fn piece(block: u64, text: &str, is_continued: bool) -> RedoRow {
        let row = row(1, block, block, Operation::Insert, transaction(1));
        RedoRow { sql_redo: Some(text.to_owned()), is_continued, ..row }
    }

    fn taken(join: &mut StatementJoin) -> Vec<String> {
        std::iter::from_fn(|| join.pop()).map(|row| row.sql_redo.unwrap()).collect()
    }

    #[test]
    fn pieces_become_one_row_and_what_is_behind_waits() {
        let mut join = StatementJoin::default();
        join.push(piece(1, "a", true));
        join.push(piece(2, "x", false));
        assert!(taken(&mut join).is_empty());
        assert_eq!(join.unfinished().unwrap().scn.0, 1);
        join.push(piece(1, "b", true));
        join.push(piece(1, "c", false));
        assert_eq!(taken(&mut join), ["abc", "x"]);
        assert_eq!((join.unfinished(), join.bytes()), (None, 0));
    }

    #[test]
    fn rows_of_one_address_are_statements_of_their_own_unless_they_go_on() {
        let mut join = StatementJoin::default();
        for text in ["a", "b"] {
            join.push(piece(1, text, false));
        }
        assert_eq!(taken(&mut join), ["a", "b"]);
    }

    #[test]
    fn threads_and_transactions_have_chains_of_their_own() {
        let mut join = StatementJoin::default();
        join.push(piece(1, "a", true));
        let mut other = piece(1, "x", true);
        other.at.thread = RedoThread(2);
        join.push(other.clone());
        join.push(RedoRow {
            transaction: transaction(2),
            is_continued: false,
            ..piece(1, "y", false)
        });
        join.push(RedoRow { is_continued: false, ..other });
        join.push(piece(1, "b", false));
        assert_eq!(taken(&mut join), ["ab", "xx", "y"]);
    }

    #[test]
    fn a_piece_without_text_adds_nothing() {
        let mut join = StatementJoin::default();
        join.push(RedoRow { sql_redo: None, ..piece(1, "", true) });
        join.push(piece(1, "b", true));
        join.push(RedoRow { sql_redo: None, ..piece(1, "", false) });
        assert_eq!(taken(&mut join), ["b"]);
    }

    proptest! {
        /// Statements of 1 to 4 pieces, interleaved at random.
        #[test]
        fn statements_come_whole_and_in_the_order_of_their_first_pieces(
            counts in prop::collection::vec(1_usize..5, 1..12),
            picks in prop::collection::vec(any::<prop::sample::Index>(), 60),
        ) {
            let mut left = counts.clone();
            let mut begun: Vec<usize> = Vec::new();
            let (mut join, mut got) = (StatementJoin::default(), Vec::new());
            for pick in picks {
                let open: Vec<usize> = (0..left.len()).filter(|it| left[*it] > 0).collect();
                let Some(number) = open.get(pick.index(open.len().max(1))).copied() else { break };
                if left[number] == counts[number] {
                    begun.push(number);
                }
                left[number] -= 1;
                join.push(piece(number as u64, &format!("{number};"), left[number] > 0));
                got.extend(taken(&mut join));
            }
            let whole: Vec<String> = begun.iter().take_while(|it| left[**it] == 0)
                .map(|it| format!("{it};").repeat(counts[*it])).collect();
            prop_assert_eq!(got, whole);
        }
    }
}
