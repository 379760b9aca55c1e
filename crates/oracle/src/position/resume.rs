//! From where redo is read again after a restart.

use std::collections::BTreeMap;

use crate::{Cursor, Marks, RedoAddress, RedoPoint, RedoThread, Scn};

/// From where redo of a thread is read, inclusive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ResumePoint {
    /// Selects logs, and rows where there is no address.
    pub scn: Scn,
    /// Selects rows.
    pub address: Option<RedoAddress>,
}

impl From<RedoPoint> for ResumePoint {
    fn from(at: RedoPoint) -> Self {
        Self { scn: at.scn, address: at.address }
    }
}

impl ResumePoint {
    /// The point at or before both that one and open work. The open work's address alone is enough:
    /// all that lies before it in the thread has been applied and has ended. Without it there is none,
    /// even if this point has one, which may lie behind.
    #[must_use]
    pub(super) fn with_open(self, open: Self) -> Self {
        let address = match (self.address, open.address) {
            (Some(address), Some(open)) => Some(address.min(open)),
            (_, open) => open,
        };
        Self { scn: self.scn.min(open.scn), address }
    }

    /// The further of two points that are both right: a later one never moves backwards. An address
    /// is better than none, whatever the SCNs: it alone catches redo that reaches the log late.
    #[must_use]
    pub(super) fn advanced_to(self, next: Self) -> Self {
        let is_behind = match (self.address, next.address) {
            (Some(address), Some(next)) => next < address,
            (None, None) => next.scn < self.scn,
            (address, _) => address.is_some(),
        };
        if is_behind { self } else { next }
    }

    /// Whether a row stands before it: by address where both have one, else by SCN.
    pub(super) fn is_after(&self, row: &RedoPoint) -> bool {
        match (self.address, row.address) {
            (Some(address), Some(row)) => row < address,
            _ => row.scn < self.scn,
        }
    }
}

/// For each thread a point at or before all of its open work: the first captured row of each open
/// transaction, the last journaled row of one that is in the journal, and what the assembly of large
/// objects holds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct OpenBounds(BTreeMap<RedoThread, ResumePoint>);

impl OpenBounds {
    /// Adds open work.
    pub fn add(&mut self, work: RedoPoint) {
        let bound = self.0.entry(work.thread).or_insert_with(|| work.into());
        let earlier = |(bound, work): (RedoAddress, RedoAddress)| bound.min(work);
        bound.scn = bound.scn.min(work.scn);
        bound.address = bound.address.zip(work.address).map(earlier);
    }

    fn of(&self, thread: RedoThread) -> Option<ResumePoint> {
        self.0.get(&thread).copied()
    }
}

impl FromIterator<RedoPoint> for OpenBounds {
    fn from_iter<T: IntoIterator<Item = RedoPoint>>(work: T) -> Self {
        let mut bounds = Self::default();
        work.into_iter().for_each(|work| bounds.add(work));
        bounds
    }
}

/// How far a thread was read.
pub(super) fn read_to(cursor: &Cursor, thread: RedoThread) -> ResumePoint {
    let address = match &cursor.marks {
        Marks::None => None,
        Marks::AnyThread(address) => Some(*address),
        Marks::Threads(threads) => threads.get(&thread).copied(),
    };
    ResumePoint { scn: cursor.scn, address }
}

/// From where a thread that was read to `read` is read again.
pub(super) fn resume(read: ResumePoint, open: &OpenBounds, thread: RedoThread) -> ResumePoint {
    open.of(thread).map_or(read, |open| read.with_open(open))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(block: u64) -> RedoAddress {
        RedoAddress { sequence: 7, block, byte: 16, ssn: 0 }
    }

    fn point(scn: u64, block: Option<u64>) -> ResumePoint {
        ResumePoint { scn: Scn(scn), address: block.map(address) }
    }

    fn row(scn: u64, block: Option<u64>) -> RedoPoint {
        RedoPoint { thread: RedoThread(1), scn: Scn(scn), address: block.map(address) }
    }

    #[test]
    fn without_open_work_reading_goes_on_at_the_cursor() {
        let marks = Marks::Threads([(RedoThread(1), address(9))].into());
        let cursor = Cursor { scn: Scn(50), marks };
        let resume = |thread| {
            resume(read_to(&cursor, RedoThread(thread)), &OpenBounds::default(), RedoThread(thread))
        };
        assert_eq!(resume(1), point(50, Some(9)));
        assert_eq!(resume(2), point(50, None));
    }

    #[test]
    fn open_work_holds_its_own_thread_back_in_both_numbers() {
        let late: OpenBounds = [row(40, Some(5)), row(30, Some(6))].into_iter().collect();
        assert_eq!(resume(point(50, Some(9)), &late, RedoThread(1)), point(30, Some(5)));
        assert_eq!(resume(point(50, Some(9)), &late, RedoThread(2)), point(50, Some(9)));
        let ahead: OpenBounds = [row(60, Some(12))].into_iter().collect();
        assert_eq!(resume(point(50, Some(9)), &ahead, RedoThread(1)), point(50, Some(9)));
    }

    #[test]
    fn where_one_side_has_no_address_that_of_the_open_work_decides() {
        let open: OpenBounds = [row(40, Some(5))].into_iter().collect();
        assert_eq!(resume(point(50, None), &open, RedoThread(1)), point(40, Some(5)));
        let bare: OpenBounds = [row(40, Some(5)), row(45, None)].into_iter().collect();
        assert_eq!(resume(point(50, Some(9)), &bare, RedoThread(1)), point(40, None));
    }

    #[test]
    fn it_never_moves_backwards() {
        let at = point(50, Some(9));
        assert_eq!(at.advanced_to(point(60, Some(8))), at);
        assert_eq!(at.advanced_to(point(70, None)), at);
        assert_eq!(point(50, None).advanced_to(point(49, None)), point(50, None));
    }

    #[test]
    fn a_later_address_is_forward_under_a_lower_scn_too() {
        for late in [point(40, Some(10)), point(40, Some(9))] {
            assert_eq!(point(50, Some(9)).advanced_to(late), late);
        }
        assert_eq!(point(50, None).advanced_to(point(40, Some(9))), point(40, Some(9)));
    }
}
