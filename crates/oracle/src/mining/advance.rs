//! How the cursor moves.

use std::collections::BTreeSet;

use crate::session::{RedoLog, RowMark};
use crate::{Cursor, Marks, RedoAddress, RedoPoint, RedoThread, Scn};

/// Whose marks name a row that is still to be applied.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Unread {
    /// The mark that names no thread.
    Any,
    /// The marks of these threads.
    Threads(BTreeSet<RedoThread>),
}

/// A cursor, and which of its marks are inclusive. After a restart the row at a mark is wanted, too; it
/// may come only some steps later, so a mark stays inclusive until a row of its thread was applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Advance {
    cursor: Cursor,
    unread: Unread,
}

impl Advance {
    /// After a restart: the rows at the marks are wanted.
    pub fn resume(cursor: Cursor) -> Self {
        let unread = match &cursor.marks {
            Marks::None => Unread::Threads(BTreeSet::new()),
            Marks::AnyThread(_) => Unread::Any,
            Marks::Threads(marks) => Unread::Threads(marks.keys().copied().collect()),
        };
        Self { cursor, unread }
    }

    /// How far redo was read.
    pub const fn cursor(&self) -> &Cursor {
        &self.cursor
    }

    /// The marks of a query.
    pub fn row_marks(&self) -> Vec<RowMark> {
        match &self.cursor.marks {
            Marks::None => Vec::new(),
            Marks::AnyThread(address) => {
                let is_inclusive = self.unread == Unread::Any;
                vec![RowMark { thread: None, address: *address, is_inclusive }]
            }
            Marks::Threads(marks) => {
                let mark = |(thread, address): (&RedoThread, &RedoAddress)| RowMark {
                    thread: Some(*thread),
                    address: *address,
                    is_inclusive: self.is_inclusive(*thread),
                };
                marks.iter().map(mark).collect()
            }
        }
    }

    /// Whether a row was applied before: it lies at or before the mark of its thread, or, where no mark
    /// decides, below the SCN. Of a row without an address that is never known; such rows only begin
    /// and end transactions, which may be applied twice.
    pub fn is_applied(&self, at: &RedoPoint) -> bool {
        let Some(address) = at.address else { return false };
        match self.cursor.mark(at.thread) {
            Some(mark) => address < mark || (address == mark && !self.is_inclusive(at.thread)),
            None => at.scn < self.cursor.scn,
        }
    }

    fn is_inclusive(&self, thread: RedoThread) -> bool {
        match &self.unread {
            Unread::Any => true,
            Unread::Threads(threads) => threads.contains(&thread),
        }
    }

    /// A row is applied with the step: raises the mark of its thread. The mark is the greatest address
    /// and not that of the last row, as LogMiner may give the pieces of a row after others.
    pub fn apply(&mut self, at: &RedoPoint) {
        let Some(address) = at.address else { return };
        if let Unread::Threads(unread) = &mut self.unread {
            unread.remove(&at.thread);
        } else {
            self.unread = Unread::Threads(BTreeSet::new());
        }
        self.raise(at.thread, address);
    }

    fn raise(&mut self, thread: RedoThread, address: RedoAddress) {
        let known = self.cursor.mark(thread);
        let address = known.map_or(address, |known| known.max(address));
        match &mut self.cursor.marks {
            Marks::Threads(marks) => {
                marks.insert(thread, address);
            }
            marks => *marks = Marks::Threads([(thread, address)].into()),
        }
    }

    /// The step was read up to `end`: of each thread, the logs that end at or below it are done with. So
    /// its mark is at least where the next one begins. A thread without rows is marked like this, too:
    /// without a mark its rows would be selected by SCN, and a late one would be lost when it wakes.
    pub fn complete(&mut self, end: Scn, logs: &[RedoLog]) {
        self.cursor.scn = self.cursor.scn.max(end);
        let threads: BTreeSet<_> = logs.iter().map(|log| log.thread).collect();
        for thread in threads {
            let own = logs.iter().filter(|log| log.thread == thread);
            let next = own.clone().find(|log| log.next > self.cursor.scn).map(|log| log.sequence);
            let last = own.map(|log| log.sequence).max();
            let sequence = next.or(last.map(|last| last.saturating_add(1)));
            if let Some(sequence) = sequence {
                self.mark_log(thread, sequence);
            }
        }
    }

    /// A mark at the start of a log names no row. An inclusive mark that is above it stays so.
    fn mark_log(&mut self, thread: RedoThread, sequence: u64) {
        let start = RedoAddress::start_of_log(sequence);
        let is_unread = self.unread == Unread::Any;
        self.raise(thread, start);
        let is_at_start = self.cursor.mark(thread) == Some(start);
        match &mut self.unread {
            Unread::Threads(unread) if is_at_start => {
                unread.remove(&thread);
            }
            Unread::Threads(_) => {}
            Unread::Any if is_unread && !is_at_start => {
                self.unread = Unread::Threads([thread].into());
            }
            Unread::Any => self.unread = Unread::Threads(BTreeSet::new()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::LogPlace;

    const ONE: RedoThread = RedoThread(1);
    const TWO: RedoThread = RedoThread(2);

    fn address(sequence: u64, block: u64) -> RedoAddress {
        RedoAddress { sequence, block, byte: 16, ssn: 0 }
    }

    fn at(thread: RedoThread, scn: u64, address: RedoAddress) -> RedoPoint {
        RedoPoint { thread, scn: Scn(scn), address: Some(address) }
    }

    fn log(thread: RedoThread, sequence: u64, first: u64, next: Scn) -> RedoLog {
        RedoLog {
            thread,
            sequence,
            first: Scn(first),
            next,
            name: String::new(),
            place: LogPlace::Online,
            begins_dictionary: false,
            ends_dictionary: false,
        }
    }

    fn resume(marks: Marks) -> Advance {
        Advance::resume(Cursor { scn: Scn(100), marks })
    }

    fn threads(marks: &[(RedoThread, RedoAddress)]) -> Marks {
        Marks::Threads(marks.iter().copied().collect())
    }

    #[test]
    fn a_mark_is_inclusive_until_a_row_of_its_thread_was_applied() {
        let mut advance = resume(threads(&[(ONE, address(5, 9)), (TWO, address(3, 4))]));
        assert!(!advance.is_applied(&at(ONE, 50, address(5, 9))));
        assert!(advance.is_applied(&at(ONE, 500, address(5, 8))));
        advance.apply(&at(ONE, 50, address(5, 9)));
        assert!(advance.is_applied(&at(ONE, 50, address(5, 9))));
        let inclusive: Vec<bool> =
            advance.row_marks().iter().map(|mark| mark.is_inclusive).collect();
        assert_eq!(inclusive, [false, true]);
    }

    #[test]
    fn a_step_that_ends_before_the_row_at_the_mark_leaves_it_inclusive() {
        for marks in [Marks::AnyThread(address(5, 9)), threads(&[(ONE, address(5, 9))])] {
            let mut advance = resume(marks);
            advance.complete(Scn(110), &[log(ONE, 5, 90, Scn::MAX)]);
            assert!(!advance.is_applied(&at(ONE, 120, address(5, 9))));
            assert_eq!(advance.cursor().mark(ONE), Some(address(5, 9)));
            advance.complete(Scn(200), &[log(ONE, 5, 90, Scn(150)), log(ONE, 6, 150, Scn::MAX)]);
            assert_eq!(
                advance.row_marks(),
                [RowMark {
                    thread: Some(ONE),
                    address: RedoAddress::start_of_log(6),
                    is_inclusive: false
                }]
            );
        }
    }

    #[test]
    fn a_mark_without_a_thread_becomes_that_of_the_first_row() {
        let mut advance = resume(Marks::AnyThread(address(5, 9)));
        let inclusive = RowMark { thread: None, address: address(5, 9), is_inclusive: true };
        assert_eq!(advance.row_marks(), [inclusive]);
        advance.apply(&at(ONE, 100, address(5, 9)));
        assert_eq!(advance.cursor().marks, threads(&[(ONE, address(5, 9))]));
        assert!(advance.is_applied(&at(ONE, 100, address(5, 9))));
    }

    #[test]
    fn a_thread_without_a_mark_is_told_by_scn() {
        let advance = resume(threads(&[(ONE, address(5, 9))]));
        assert!(advance.is_applied(&at(TWO, 99, address(900, 1))));
        assert!(!advance.is_applied(&at(TWO, 100, address(1, 1))));
    }

    #[test]
    fn the_mark_is_the_greatest_address_and_not_the_last() {
        let mut advance = resume(Marks::None);
        advance.apply(&at(ONE, 100, address(5, 9)));
        advance.apply(&at(ONE, 101, address(5, 7)));
        advance.apply(&RedoPoint { thread: ONE, scn: Scn(102), address: None });
        assert_eq!(advance.cursor().mark(ONE), Some(address(5, 9)));
    }

    #[test]
    fn a_quiet_thread_is_marked_where_its_log_begins() {
        let mut advance = resume(Marks::None);
        advance.apply(&at(ONE, 100, address(5, 9)));
        let logs =
            [log(ONE, 5, 90, Scn::MAX), log(TWO, 2, 90, Scn(105)), log(TWO, 3, 105, Scn::MAX)];
        advance.complete(Scn(110), &logs);
        let expected = threads(&[(ONE, address(5, 9)), (TWO, RedoAddress::start_of_log(3))]);
        assert_eq!(*advance.cursor(), Cursor { scn: Scn(110), marks: expected });
        // It wakes with a change from before, whose redo was held back.
        assert!(!advance.is_applied(&at(TWO, 101, address(3, 1))));
    }

    #[test]
    fn a_thread_whose_logs_were_read_to_their_end_waits_for_the_next() {
        let mut advance = resume(Marks::None);
        advance.complete(Scn(110), &[log(ONE, 5, 90, Scn(110))]);
        assert_eq!(advance.cursor().mark(ONE), Some(RedoAddress::start_of_log(6)));
    }

    #[test]
    fn the_scn_never_goes_back() {
        let mut advance = resume(Marks::None);
        advance.complete(Scn(40), &[]);
        assert_eq!(advance.cursor().scn, Scn(100));
    }
}
