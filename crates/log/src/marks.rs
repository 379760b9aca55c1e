//! How far a partition has come: written, synced, shown. Pure.

use crate::{Flush, PartitionState, Watermarks};

/// An offset and where it lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mark {
    pub(crate) offset: i64,
    /// First offset of the segment.
    pub(crate) segment: i64,
    /// Position in the segment.
    pub(crate) position: u64,
}

/// The marks of one partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Marks {
    pub(crate) log_start: i64,
    /// Behind the last record.
    pub(crate) log_end: Mark,
    /// Behind the last record that an fsync covers.
    pub(crate) synced: Mark,
    /// Behind the last record that is shown. It never goes back, save by a cut.
    pub(crate) shown: Mark,
    /// Behind the last record that a reader at read_committed is shown: before the first transaction
    /// that is not settled, or `shown`.
    pub(crate) stable: Mark,
    pub(crate) leader_epoch: i32,
    pub(crate) state: PartitionState,
}

impl Mark {
    pub(crate) fn start(offset: i64) -> Self {
        Self { offset, segment: offset, position: 0 }
    }
}

impl Marks {
    /// Those of a partition in which everything is synced.
    pub(crate) fn all_at(end: Mark, log_start: i64, leader_epoch: i32) -> Self {
        let state = PartitionState::Online;
        Self { log_start, log_end: end, synced: end, shown: end, stable: end, leader_epoch, state }
    }

    /// Those of a partition that could not be opened.
    pub(crate) fn offline() -> Self {
        let state = PartitionState::Offline;
        Self { state, ..Self::all_at(Mark::start(0), 0, 0) }
    }

    /// Shows what the flush policy allows (rule L1).
    pub(crate) fn show(&mut self, flush: Flush) {
        let end = match flush {
            Flush::Durable => self.synced,
            Flush::Interval | Flush::Os => self.log_end,
        };
        if (end.offset, end.segment) > (self.shown.offset, self.shown.segment) {
            self.shown = end;
        }
    }

    /// Holds readers at read_committed before the first transaction that is not settled. A log start
    /// that was moved into that transaction is where they are held then.
    pub(crate) fn hold(&mut self, unsettled: Option<Mark>) {
        self.stable = match unsettled {
            Some(first) if first.offset < self.shown.offset => {
                Mark { offset: first.offset.max(self.log_start), ..first }
            }
            _ => self.shown,
        };
    }

    /// Takes a sync that was begun when the marks were `then`. One that ends after the partition was
    /// poisoned counts for nothing.
    pub(crate) fn synced_since(&mut self, then: &Self) {
        if self.state == PartitionState::Online && self.synced.offset < then.log_end.offset {
            self.synced = then.log_end;
        }
    }

    /// Nothing lies behind `to` any more. What lies before it is synced no further than it was.
    pub(crate) fn cut(&mut self, to: Mark) {
        for mark in [&mut self.log_end, &mut self.synced, &mut self.shown] {
            if mark.offset > to.offset {
                *mark = to;
            }
        }
    }

    pub(crate) fn is_synced(&self) -> bool {
        self.synced.offset >= self.log_end.offset
    }

    pub(crate) fn watermarks(&self) -> Watermarks {
        Watermarks {
            log_start: self.log_start,
            high_watermark: self.shown.offset,
            last_stable_offset: self.stable.offset,
            log_end: self.log_end.offset,
            leader_epoch: self.leader_epoch,
            state: self.state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(offset: i64) -> Mark {
        Mark { offset, segment: 0, position: offset.unsigned_abs() * 10 }
    }

    fn written(log_end: i64, synced: i64) -> Marks {
        let mut marks = Marks::all_at(at(synced), 0, 0);
        marks.log_end = at(log_end);
        marks
    }

    #[test]
    fn durable_shows_what_is_synced_and_the_others_the_log_end() {
        for (flush, shown) in [(Flush::Durable, 3), (Flush::Interval, 8), (Flush::Os, 8)] {
            let mut marks = written(8, 3);
            marks.show(flush);
            assert_eq!(marks.watermarks().high_watermark, shown, "{flush:?}");
        }
    }

    #[test]
    fn what_was_shown_stays_shown_when_the_policy_gets_stricter() {
        let mut marks = written(8, 3);
        marks.show(Flush::Os);
        marks.show(Flush::Durable);
        assert_eq!(marks.watermarks().high_watermark, 8);
    }

    #[test]
    fn an_open_transaction_holds_what_is_stable_within_what_is_kept_and_shown() {
        let mut marks = written(8, 5);
        for (first, log_start, stable) in
            [(Some(3), 0, 3), (Some(6), 0, 5), (Some(3), 4, 4), (None, 0, 5)]
        {
            marks.log_start = log_start;
            marks.hold(first.map(at));
            assert_eq!(marks.watermarks().last_stable_offset, stable, "{first:?} from {log_start}");
        }
    }

    #[test]
    fn a_sync_that_ends_after_the_poison_says_nothing() {
        let then = written(8, 3);
        let mut marks = Marks { state: PartitionState::Poisoned, ..then };
        marks.synced_since(&then);
        assert_eq!(marks.synced, at(3));
    }

    #[test]
    fn a_sync_covers_what_was_there_when_it_began() {
        let mut grown = written(9, 3);
        grown.synced_since(&written(5, 3));
        assert_eq!(grown.synced, at(5), "what was appended during the sync is not covered");
        let older = written(5, 3);
        let mut marks = written(9, 7);
        marks.synced_since(&older);
        assert_eq!(marks.synced, at(7));
    }
}
