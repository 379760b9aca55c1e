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
