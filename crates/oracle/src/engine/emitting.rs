//! A commit: its transaction is taken out of the buffer and delivered.

use super::house::now_ms;
use super::{Engine, Stopped};
use crate::delivery::Delivered;
use crate::outlet::Outlet;
use crate::position::{CommitPoint, Skip, TransactionPositions};
use crate::{Committed, RedoPoint, RedoRow};

impl<O: Outlet> Engine<O> {
    pub(super) fn commit(&mut self, row: &RedoRow) -> Result<(), Stopped> {
        if self.is_of_earlier(row) {
            return Ok(());
        }
        let key = row.transaction;
        self.close_large_objects(key)?;
        self.progress.check_released(key)?;
        let Some(committed) = self.buffer.commit(key, row.at, row.time_us)? else { return Ok(()) };
        let commit = CommitPoint { key, at: row.at };
        let Some((skip, positions)) = self.passed(commit, committed.first, committed.count)? else {
            return Ok(());
        };
        self.deliver(committed, skip, positions)
    }

    /// Passes a commit whose `size` changes begin at `first`: how many of them are safe already, and the
    /// positions of the others. `None` where nothing is to be delivered.
    pub(super) fn passed(
        &mut self,
        commit: CommitPoint,
        first: RedoPoint,
        size: u64,
    ) -> Result<Option<(u64, TransactionPositions)>, Stopped> {
        let skip = match self.progress.skip(&commit, size)? {
            Skip::Whole => return Ok(None),
            Skip::First(changes) => changes,
            Skip::Nothing => 0,
        };
        if skip >= size {
            return Ok(None);
        }
        let open = self.open_work();
        let positions = self.progress.emit(commit, first, size, &open, self.miner.cursor())?;
        Ok(Some((skip, positions)))
    }

    fn deliver(
        &mut self,
        committed: Committed,
        skip: u64,
        positions: TransactionPositions,
    ) -> Result<(), Stopped> {
        let at = Box::new(move |changes| positions.at(changes));
        let mut emission = self.delivery.begin(committed, skip, at);
        let now_ms = now_ms();
        loop {
            let delivered =
                self.delivery.deliver(&mut emission, &self.layouts, now_ms, &mut self.records)?;
            if delivered == Delivered::Whole {
                return Ok(());
            }
            self.flush_if_full()?;
        }
    }
}
