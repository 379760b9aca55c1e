//! What compaction must know of transactions as it goes through a log: whose batches are aborted, and which
//! marker has no batch of its transaction left. Pure; as Kafka's `CleanedTransactionMetadata`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};

use highwater_protocol::records::BatchHeader;

use crate::MarkerKind;
use crate::transaction_index::Entry;

/// A transaction that was aborted, whose marker was not met yet.
#[derive(Clone, Copy, Debug)]
struct Ongoing {
    entry: Entry,
    /// Whether a batch of it was met.
    is_seen: bool,
}

/// The transactions of a walk from the front to the back of a log.
#[derive(Debug, Default)]
pub(crate) struct CleanedTransactions {
    /// By first offset, the lowest first; those that the walk has not reached.
    ahead: BinaryHeap<Reverse<(i64, i64, i64, i64)>>,
    aborted: HashMap<i64, Ongoing>,
    committed: HashSet<i64>,
}

/// What becomes of a marker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MarkerFate {
    /// A batch of its transaction is there: it stays, with its entry in the index if it aborts.
    Stays(Option<Entry>),
    /// Nothing is left of its transaction: it may go, once its time is over.
    MayGo,
}

impl CleanedTransactions {
    /// A walk over a log with these aborted transactions.
    pub(crate) fn new(aborted: &[Entry]) -> Self {
        let key = |entry: &Entry| {
            let of = entry.aborted;
            Reverse((of.first_offset, of.last_offset, of.producer_id, entry.last_stable_offset))
        };
        Self { ahead: aborted.iter().map(key).collect(), ..Self::default() }
    }

    /// Takes a batch of records; true if it belongs to a transaction that is aborted.
    pub(crate) fn meets_batch(&mut self, header: &BatchHeader) -> bool {
        self.reach(header.last_offset());
        if !header.is_transactional() {
            return false;
        }
        match self.aborted.get_mut(&header.producer_id) {
            Some(ongoing) => {
                ongoing.is_seen = true;
                true
            }
            None => {
                self.committed.insert(header.producer_id);
                false
            }
        }
    }

    /// Takes a marker; `kind` is None for a control batch without a record, whose transaction is gone, and
    /// for one of another sort, which stays.
    pub(crate) fn meets_marker(
        &mut self,
        header: &BatchHeader,
        kind: Option<MarkerKind>,
    ) -> MarkerFate {
        self.reach(header.last_offset());
        match kind {
            Some(MarkerKind::Abort) => match self.aborted.remove(&header.producer_id) {
                Some(Ongoing { entry, is_seen: true }) => MarkerFate::Stays(Some(entry)),
                _ => MarkerFate::MayGo,
            },
            Some(MarkerKind::Commit) if self.committed.remove(&header.producer_id) => {
                MarkerFate::Stays(None)
            }
            Some(MarkerKind::Commit) => MarkerFate::MayGo,
            None if header.record_count == 0 => MarkerFate::MayGo,
            None => MarkerFate::Stays(None),
        }
    }

    /// Takes up the transactions that begin up to `offset`.
    fn reach(&mut self, offset: i64) {
        while let Some(Reverse((first_offset, last_offset, producer_id, last_stable_offset))) =
            self.ahead.peek().copied().filter(|Reverse(next)| next.0 <= offset)
        {
            self.ahead.pop();
            let aborted = crate::Aborted { producer_id, first_offset, last_offset };
            let entry = Entry { aborted, last_stable_offset };
            self.aborted.entry(producer_id).or_insert(Ongoing { entry, is_seen: false });
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use highwater_protocol::records::{BatchBuilder, Compression};

    use super::*;
    use crate::Aborted;

    fn header(base: i64, producer_id: i64, control: bool) -> BatchHeader {
        let builder = BatchBuilder::new(Compression::None).base_offset(base);
        let builder = builder.producer(producer_id, 0, 0).transactional();
        let mut builder = if control { builder.control() } else { builder };
        builder.push(1, Some(b"key"), Some(b"value"), &[]);
        let bytes: Bytes = builder.build().unwrap();
        BatchHeader::parse(&bytes).unwrap()
    }

    fn entry(producer_id: i64, first_offset: i64, last_offset: i64) -> Entry {
        let aborted = Aborted { producer_id, first_offset, last_offset };
        Entry { aborted, last_stable_offset: last_offset + 1 }
    }

    #[test]
    fn a_transaction_is_aborted_from_its_beginning_to_its_marker() {
        let aborted = entry(7, 3, 6);
        let mut walk = CleanedTransactions::new(&[aborted, entry(7, 20, 21)]);
        assert!(!walk.meets_batch(&header(1, 7, false)), "an earlier one, which was committed");
        let commit = walk.meets_marker(&header(2, 7, true), Some(MarkerKind::Commit));
        assert_eq!(commit, MarkerFate::Stays(None));
        assert!(walk.meets_batch(&header(3, 7, false)));
        assert!(!walk.meets_batch(&header(4, 8, false)), "another producer");
        let abort = walk.meets_marker(&header(6, 7, true), Some(MarkerKind::Abort));
        assert_eq!(abort, MarkerFate::Stays(Some(aborted)));
        assert!(!walk.meets_batch(&header(7, 7, false)));
    }

    #[test]
    fn a_marker_may_go_when_no_batch_is_left() {
        let mut walk = CleanedTransactions::new(&[entry(7, 3, 6)]);
        let abort = walk.meets_marker(&header(6, 7, true), Some(MarkerKind::Abort));
        assert_eq!(abort, MarkerFate::MayGo);
        let commit = walk.meets_marker(&header(9, 7, true), Some(MarkerKind::Commit));
        assert_eq!(commit, MarkerFate::MayGo);
        assert_eq!(walk.meets_marker(&header(9, 7, true), None), MarkerFate::Stays(None));
        let empty = BatchHeader { record_count: 0, ..header(9, 7, true) };
        assert_eq!(walk.meets_marker(&empty, None), MarkerFate::MayGo);
    }
}
