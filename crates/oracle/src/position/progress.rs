//! The position as it moves while a task runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::resume::{read_to, resume};
use super::transaction_positions::Emitted;
use super::{
    Acknowledged, Base, CommitMark, CommitPoint, Lane, Lanes, OpenBounds, Position, Skip,
    TransactionPositions, skip,
};
use crate::{Code, Cursor, OracleError, RedoAddress, RedoPoint, RedoThread, Scn, TransactionKey};

/// How far a task has come. Whatever it makes is right once the record that carries it is
/// acknowledged, if all records before that one are: records must be acknowledged in order.
#[derive(Debug)]
pub struct Progress {
    /// With the marks of what was emitted, which begins with what was acknowledged.
    position: Position,
    /// As they were loaded.
    acknowledged: Lanes,
    /// The greatest address of each thread that was applied since the start.
    applied: BTreeMap<RedoThread, RedoAddress>,
}

impl Progress {
    /// Begins at a position, under a new journal generation, one above the stored one.
    ///
    /// # Errors
    /// CDC-5001 when the position does not say how far each of the captured `threads` is.
    pub fn start(
        mut position: Position,
        threads: &BTreeSet<RedoThread>,
    ) -> Result<Self, OracleError> {
        position.lanes = position.lanes.captured(threads)?;
        let base = Arc::make_mut(&mut position.base);
        base.journal_generation = base.journal_generation.saturating_add(1);
        Ok(Self { acknowledged: position.lanes.clone(), position, applied: BTreeMap::new() })
    }

    /// The position as it is now: right for a record at the start, before anything was read.
    pub const fn position(&self) -> &Position {
        &self.position
    }

    /// The generation of chunks that this task writes to the journal.
    pub fn generation(&self) -> u64 {
        self.position.base.journal_generation
    }

    /// Which changes of a commit are left out, since they were acknowledged. The rule of a first start
    /// ends for a thread with its first commit that is emitted.
    ///
    /// # Errors
    /// CDC-5001 when its thread is not captured; CDC-7003 when some of its changes may not have been
    /// read.
    pub fn skip(&self, commit: &CommitPoint, size: u64) -> Result<Skip, OracleError> {
        let lane = self.lane(commit.at.thread)?;
        let floor = self.position.floor().map(|floor| floor.scn);
        let is_checked = self.position.lanes.are_several();
        let resumed = self.acknowledged.get(commit.at.thread).filter(|_| is_checked);
        skip::rule(commit, size, lane, floor, resumed.map(|lane| lane.resume))
    }

    /// Whether a transaction that commits was given up before. Asked before any of it is published.
    ///
    /// # Errors
    /// CDC-7001 when it was.
    pub fn check_released(&self, key: TransactionKey) -> Result<(), OracleError> {
        if !self.position.base.released.contains(key) {
            return Ok(());
        }
        Err(OracleError::new(
            Code::OrphanReleaseViolation,
            format!(
                "transaction {key} commits, but was given up before, by orphan detection or by its \
                 age: its earlier changes are gone"
            ),
            "move resume_scn below the transaction's first change and take it out of released_xids \
             with highwater offsets set --allow-skip, or read its tables again with a snapshot",
        ))
    }

    /// Passes a transaction that is about to be published, `size` changes with those that are skipped,
    /// of which `first` is its first captured row. `open` is the work that stays open without it.
    /// `cursor` is at or before what was applied; the commit row itself counts as applied.
    ///
    /// # Errors
    /// CDC-5001 when its thread is not captured.
    pub fn emit(
        &mut self,
        commit: CommitPoint,
        first: RedoPoint,
        size: u64,
        open: &OpenBounds,
        cursor: &Cursor,
    ) -> Result<TransactionPositions, OracleError> {
        let thread = commit.at.thread;
        self.lane(thread)?;
        self.advance(open, cursor);
        let before = read_to(cursor, thread);
        // A row without an address never becomes the point to resume from.
        let read = if commit.at.address.is_some() { commit.at.into() } else { before };
        let mut inside = read;
        if let Some(lane) = self.position.lanes.get_mut(thread) {
            let applied = self.applied.get(&thread).copied().max(before.address);
            let marked = placed(commit, applied, lane.mark.as_ref());
            lane.resume = lane.resume.advanced_to(resume(read, open, thread));
            inside = lane.resume.with_open(first.into());
            let acknowledged = Acknowledged::First { changes: size, of: Some(size) };
            lane.mark = Some(CommitMark { commit: marked, acknowledged });
        }
        self.position.lanes.set_last(Some(thread));
        let Position { base, lanes } = self.position.clone();
        Ok(TransactionPositions::new(Emitted { base, lanes, commit, inside, size }))
    }

    /// The position of a record outside of transactions: all that was emitted before it, and the
    /// present resume points. A chunk of the journal takes its position before its transaction counts
    /// as journaled, so that only a later record passes its rows.
    pub fn safe(
        &mut self,
        open: &OpenBounds,
        cursor: &Cursor,
    ) -> Arc<dyn highwater_connector::Position> {
        self.advance(open, cursor);
        Arc::new(self.position.clone())
    }

    /// A row of the present step was applied. A commit without an address stands behind it, and so must
    /// the mark that such a commit leaves.
    pub fn applied(&mut self, at: &RedoPoint) {
        let Some(address) = at.address else { return };
        let applied = self.applied.entry(at.thread).or_insert(address);
        *applied = address.max(*applied);
    }

    fn advance(&mut self, open: &OpenBounds, cursor: &Cursor) {
        for lane in self.position.lanes.iter_mut() {
            let next = resume(read_to(cursor, lane.thread), open, lane.thread);
            lane.resume = lane.resume.advanced_to(next);
        }
    }

    /// The least SCN that a restart reads from, once what was emitted is acknowledged.
    pub fn resume_scn(&self) -> Scn {
        self.position.lanes.lowest().scn
    }

    /// Enters a transaction that is given up in the ledger.
    pub fn release(&mut self, key: TransactionKey) {
        self.base().released.add(key);
    }

    /// The snapshot's progress as JSON text.
    pub fn set_snapshot(&mut self, snapshot: Option<String>) {
        self.base().snapshot = snapshot;
    }

    /// The last signal that was handled.
    pub fn set_signal_offset(&mut self, offset: u64) {
        self.base().signal_offset = Some(offset);
    }

    /// Tables that wait for a snapshot.
    pub fn set_snapshot_pending(&mut self, tables: Option<String>) {
        self.base().snapshot_pending = tables;
    }

    /// Positions that were given out keep what they said.
    fn base(&mut self) -> &mut Base {
        Arc::make_mut(&mut self.position.base)
    }

    fn lane(&self, thread: RedoThread) -> Result<&Lane, OracleError> {
        self.position.lanes.get(thread).ok_or_else(|| {
            let captured: Vec<_> =
                self.position.lanes.iter().map(|l| l.thread.to_string()).collect();
            OracleError::new(
                Code::Topology,
                format!(
                    "redo thread {thread} wrote a COMMIT; captured are redo threads {}",
                    captured.join(", ")
                ),
                "restart the connector once the threads of the database are as they shall be; \
                 several need cdc.rac.enabled=true",
            )
        })
    }
}

/// The commit, at the place of the row before it where it has no address of its own.
fn placed(
    mut commit: CommitPoint,
    applied: Option<RedoAddress>,
    last: Option<&CommitMark>,
) -> CommitPoint {
    let last = last.and_then(|mark| mark.commit.at.address);
    commit.at.address = commit.at.address.or(applied.max(last));
    commit
}

#[cfg(test)]
mod tests;
