//! Which of the fetched records are committed (KIP-98): the filter of a read_committed reader.

use std::collections::HashSet;

use highwater_protocol::AbortedTransaction;
use highwater_protocol::records::Marker;

/// Follows the transactions of the batches of one fetch, in order.
///
/// The broker lists the aborted transactions that touch the fetched range, each by its producer
/// and first offset. From that offset on the producer's batches are aborted, until its abort
/// marker: then it may write a transaction that is committed.
#[derive(Debug)]
pub(crate) struct Transactions {
    /// Aborted transactions not reached yet, by falling first offset.
    ahead: Vec<AbortedTransaction>,
    aborted: HashSet<i64>,
}

impl Transactions {
    pub(crate) fn new(mut listed: Vec<AbortedTransaction>) -> Self {
        listed.sort_by_key(|aborted| std::cmp::Reverse(aborted.first_offset));
        Self { ahead: listed, aborted: HashSet::new() }
    }

    /// Takes note of all that began at or below `last_offset`.
    fn reach(&mut self, last_offset: i64) {
        while let Some(next) = self.ahead.pop_if(|next| next.first_offset <= last_offset) {
            self.aborted.insert(next.producer_id);
        }
    }

    /// Whether a transactional data batch is aborted.
    pub(crate) fn is_aborted(&mut self, producer_id: i64, last_offset: i64) -> bool {
        self.reach(last_offset);
        self.aborted.contains(&producer_id)
    }

    /// Passes a control batch. An abort marker ends the aborted transaction of its producer.
    pub(crate) fn mark(&mut self, producer_id: i64, last_offset: i64, marker: Option<Marker>) {
        self.reach(last_offset);
        if marker == Some(Marker::Abort) {
            self.aborted.remove(&producer_id);
        }
    }
}

#[cfg(test)]
mod tests {
    use Marker::{Abort, Commit};

    use super::*;

    fn aborted(producer_id: i64, first_offset: i64) -> AbortedTransaction {
        AbortedTransaction { producer_id, first_offset }
    }

    #[test]
    fn an_aborted_transaction_lasts_until_its_marker() {
        let mut transactions = Transactions::new(vec![aborted(7, 10)]);
        assert!(!transactions.is_aborted(7, 9));
        assert!(transactions.is_aborted(7, 12));
        assert!(!transactions.is_aborted(8, 13));
        transactions.mark(7, 14, Some(Abort));
        assert!(!transactions.is_aborted(7, 15));
    }

    #[test]
    fn the_next_transaction_of_a_producer_may_be_aborted_too() {
        let mut transactions = Transactions::new(vec![aborted(7, 20), aborted(7, 10)]);
        assert!(transactions.is_aborted(7, 10));
        transactions.mark(7, 11, Some(Abort));
        assert!(!transactions.is_aborted(7, 15));
        transactions.mark(7, 16, Some(Commit));
        assert!(transactions.is_aborted(7, 20));
    }

    #[test]
    fn another_producers_marker_or_one_that_cannot_be_read_changes_nothing() {
        let mut transactions = Transactions::new(vec![aborted(7, 10)]);
        assert!(transactions.is_aborted(7, 10));
        transactions.mark(8, 11, Some(Abort));
        transactions.mark(7, 12, Some(Marker::Other(3)));
        transactions.mark(7, 13, None);
        assert!(transactions.is_aborted(7, 14));
    }
}
