//! The transactions that hold the last stable offset back: those that are open, and those whose marker is
//! not shown yet. Pure.

use std::collections::BTreeMap;

use crate::marks::Mark;

/// The oldest transaction that is open in a partition (rule L8).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenTransaction {
    /// Whose.
    pub producer_id: i64,
    /// The epoch under which it began.
    pub producer_epoch: i16,
    /// Its first offset; a reader at read_committed sees nothing from here on.
    pub first_offset: i64,
    /// When it began, in milliseconds since 1970; after a start as the record's timestamp tells.
    pub since_ms: i64,
}

#[derive(Clone, Copy, Debug)]
struct Held {
    transaction: OpenTransaction,
    first: Mark,
    /// Offset of the marker that has ended it.
    ended_at: Option<i64>,
}

/// The transactions that are not settled, by their first offsets.
#[derive(Clone, Default, Debug)]
pub(crate) struct Unsettled(BTreeMap<i64, Held>);

impl Unsettled {
    /// `first` is where its first batch lies.
    pub(crate) fn begin(&mut self, transaction: OpenTransaction, first: Mark) {
        self.0.insert(transaction.first_offset, Held { transaction, first, ended_at: None });
    }

    pub(crate) fn end(&mut self, first_offset: i64, marker: i64) {
        if let Some(held) = self.0.get_mut(&first_offset) {
            held.ended_at = Some(marker);
        }
    }

    /// Forgets those whose marker lies below `shown`; the answer is where the first of the others begins.
    pub(crate) fn settle(&mut self, shown: i64) -> Option<Mark> {
        while let Some(first) = self.0.first_entry() {
            if first.get().ended_at.is_none_or(|marker| marker >= shown) {
                return Some(first.get().first);
            }
            first.remove();
        }
        None
    }

    /// The oldest one that has not ended.
    pub(crate) fn oldest_open(&self) -> Option<OpenTransaction> {
        self.0.values().find(|held| held.ended_at.is_none()).map(|held| held.transaction)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin(unsettled: &mut Unsettled, producer_id: i64, first_offset: i64) {
        let transaction =
            OpenTransaction { producer_id, producer_epoch: 0, first_offset, since_ms: 5 };
        unsettled.begin(transaction, Mark::start(first_offset));
    }

    #[test]
    fn a_transaction_holds_until_its_marker_is_shown() {
        let mut unsettled = Unsettled::default();
        begin(&mut unsettled, 1, 10);
        begin(&mut unsettled, 2, 12);
        assert_eq!(unsettled.oldest_open().unwrap().producer_id, 1);
        unsettled.end(10, 15);
        assert_eq!(unsettled.settle(15), Some(Mark::start(10)), "its marker is not shown");
        assert_eq!(unsettled.oldest_open().unwrap().producer_id, 2);
        assert_eq!(unsettled.settle(16), Some(Mark::start(12)));
        unsettled.end(12, 16);
        assert_eq!((unsettled.settle(17), unsettled.oldest_open()), (None, None));
    }

    #[test]
    fn one_that_ended_waits_for_an_older_one_and_no_longer() {
        let mut unsettled = Unsettled::default();
        begin(&mut unsettled, 1, 10);
        begin(&mut unsettled, 2, 12);
        unsettled.end(12, 13);
        assert_eq!(unsettled.settle(14), Some(Mark::start(10)));
        unsettled.end(10, 14);
        assert_eq!(unsettled.settle(15), None);
    }
}
