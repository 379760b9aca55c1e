//! An open transaction.

use std::fmt;
use std::time::{Duration, Instant};

use super::emission::SurvivingChanges;
use super::meter::Held;
use super::spill_file::{SpillDirectory, SpillError};
use super::spill_log::{FrameLog, Frames};
use super::survivors::Survivors;
use super::undo::{ChangeKey, Undo, UndoCounts};
use crate::{Change, ClientSession, Committed, OracleError, RedoPoint, RedoThread, TransactionKey};

/// The START row of a transaction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Start {
    /// Where it stands.
    pub at: RedoPoint,
    /// User who began the transaction, where the redo says it.
    pub user: Option<String>,
    /// Session that began it.
    pub session: ClientSession,
}

/// A transaction with row changes, not ended so far.
///
/// # For the journal
/// Its frames are all its changes and undos in the order in which they were added, also changes that
/// were taken back since: [`frames_to_journal`](Self::frames_to_journal) gives those that were added
/// after the last flush, and `Buffer::journaled` says that they are all journaled now. Added in the
/// same order, by `Buffer::restore`, they make the same transaction: an undo needs no resolved target.
/// What is journaled holds no restart: from then on the transaction holds one at the first frame that
/// is not, and while there is none not at all, however long it is idle.
#[derive(Debug)]
pub struct Entry {
    key: TransactionKey,
    start: Option<Start>,
    opened: Instant,
    first: RedoPoint,
    last: RedoPoint,
    /// One a thread; nearly always one in all.
    spans: Vec<Span>,
    log: FrameLog,
    survivors: Survivors,
    journaled: Option<Journaled>,
    memory: Held,
}

/// What a transaction wrote in one redo thread.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// From where a restart has to read it: its first frame that is not journaled.
    bound: Option<RedoPoint>,
    last: RedoPoint,
}

/// How far a transaction is in the journal.
#[derive(Clone, Copy, Debug)]
struct Journaled {
    /// Bytes of the frames that are.
    frames: u64,
    last: RedoPoint,
}

/// A transaction in figures, for errors and operators.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EntrySummary {
    /// Its key.
    pub key: TransactionKey,
    /// User who began it, where the redo says it.
    pub user: Option<String>,
    /// Its first captured row.
    pub first: RedoPoint,
    /// When it was first seen.
    pub opened: Instant,
    /// Changes it holds, taken back or not.
    pub changes: u64,
    /// Bytes it holds in memory.
    pub memory_bytes: u64,
    /// Bytes it holds on disk.
    pub spilled_bytes: u64,
}

impl Entry {
    /// A transaction that its first captured row opens.
    pub(super) fn open(
        key: TransactionKey,
        first: RedoPoint,
        start: Option<Start>,
        opened: Instant,
        memory: Held,
    ) -> Self {
        Self {
            key,
            start,
            opened,
            first,
            last: first,
            spans: vec![Span { bound: Some(first), last: first }],
            log: FrameLog::default(),
            survivors: Survivors::default(),
            journaled: None,
            memory,
        }
    }

    /// Its key.
    pub const fn key(&self) -> TransactionKey {
        self.key
    }

    /// Its START row, where that was read.
    pub const fn start(&self) -> Option<&Start> {
        self.start.as_ref()
    }

    /// Its first captured row.
    pub const fn first(&self) -> RedoPoint {
        self.first
    }

    /// The last row that was added.
    pub const fn last(&self) -> RedoPoint {
        self.last
    }

    /// When it was first seen.
    pub const fn opened(&self) -> Instant {
        self.opened
    }

    /// For how long it is open.
    pub fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.opened)
    }

    /// How many changes it holds, taken back or not.
    pub const fn changes(&self) -> u64 {
        self.log.changes()
    }

    /// How many rows of rollbacks it holds.
    pub const fn undos(&self) -> u64 {
        self.log.undos()
    }

    /// Bytes it holds on disk; 0 if it was not spilled.
    pub fn spilled_bytes(&self) -> u64 {
        self.log.spilled()
    }

    /// The last row that is in the journal; `None` if nothing of it is.
    pub fn last_journaled(&self) -> Option<RedoPoint> {
        self.journaled.map(|journaled| journaled.last)
    }

    /// Frames that are not in the journal so far, oldest first.
    ///
    /// # Errors
    /// When they cannot be read back from disk; so, too, may each of them.
    pub fn frames_to_journal(&self) -> Result<Frames<'_>, OracleError> {
        self.log.read(self.journaled.map_or(0, |journaled| journaled.frames))
    }

    /// Whether there are frames that are not in the journal.
    pub fn has_frames_to_journal(&self) -> bool {
        self.journaled.map_or(0, |journaled| journaled.frames) < self.log.len()
    }

    /// The transaction in figures.
    pub fn summary(&self) -> EntrySummary {
        EntrySummary {
            key: self.key,
            user: self.user(),
            first: self.first,
            opened: self.opened,
            changes: self.changes(),
            memory_bytes: self.memory.bytes(),
            spilled_bytes: self.spilled_bytes(),
        }
    }

    /// Bytes it holds in memory and on disk.
    pub(super) fn bytes(&self) -> u64 {
        self.memory.bytes() + self.spilled_bytes()
    }

    fn user(&self) -> Option<String> {
        self.start.as_ref().and_then(|start| start.user.clone())
    }

    /// From where a restart has to read it, one point at most a thread.
    pub(super) fn bounds(&self) -> impl Iterator<Item = RedoPoint> + '_ {
        self.spans.iter().filter_map(|span| span.bound)
    }

    /// Whether a restart has to read rows of this thread.
    pub(super) fn is_bound_in(&self, thread: RedoThread) -> bool {
        self.bounds().any(|bound| bound.thread == thread)
    }

    /// Adds a change.
    pub(super) fn add(&mut self, change: Change) {
        let number = self.log.changes();
        self.log.push(&change);
        self.reach(change.at);
        self.survivors.added(|| ChangeKey {
            number,
            verb: change.verb,
            image: change.image,
            table: change.table,
            row_id: change.row_id,
        });
        self.count_memory();
    }

    /// Adds an undo, and takes back the change that it means.
    pub(super) fn undo(&mut self, undo: &Undo) -> Result<(), OracleError> {
        self.log.push_undo(undo);
        self.reach(undo.at);
        let undone = self.survivors.undo(undo, self.log.changes(), &self.log);
        self.count_memory();
        undone
    }

    fn reach(&mut self, at: RedoPoint) {
        self.last = at;
        match self.spans.iter_mut().find(|span| span.last.thread == at.thread) {
            Some(span) => {
                span.last = at;
                span.bound.get_or_insert(at);
            }
            None => self.spans.push(Span { bound: Some(at), last: at }),
        }
    }

    /// All its frames are in the journal.
    pub(super) fn journaled(&mut self) {
        self.journaled = Some(Journaled { frames: self.log.len(), last: self.last });
        for span in &mut self.spans {
            span.bound = None;
        }
    }

    /// Bytes that spilling would free.
    pub(super) const fn spillable(&self) -> usize {
        self.log.spillable()
    }

    /// Whether it was spilled and has gathered enough to write.
    pub(super) const fn is_write_due(&self) -> bool {
        self.log.is_write_due()
    }

    /// Moves its frames to disk.
    pub(super) fn spill(&mut self, directory: &mut SpillDirectory) -> Result<(), SpillError> {
        let spilled = self.log.spill(self.key, directory);
        self.count_memory();
        spilled
    }

    /// Finds out what all undos mean.
    pub(super) fn settle(&mut self) -> Result<(), OracleError> {
        let settled = self.survivors.settle(&self.log);
        self.count_memory();
        settled
    }

    /// What became of its undos; exact once settled.
    pub(super) const fn undo_counts(&self) -> UndoCounts {
        self.survivors.counts()
    }

    /// Whether every change was taken back, once settled.
    pub(super) const fn is_undone(&self) -> bool {
        self.survivors.counts().removed == self.log.changes()
    }

    /// The settled transaction as it commits.
    pub(super) fn into_committed(
        self,
        commit: RedoPoint,
        time_us: i64,
    ) -> Result<Committed, OracleError> {
        let (logged, user) = (self.changes(), self.user());
        let fates = self.survivors.into_fates();
        let count = logged - fates.removed();
        let log = self.log.into_changes()?;
        let changes = SurvivingChanges::new(log, fates, logged, self.memory);
        let (key, first, changes) = (self.key, self.first, Box::new(changes));
        Ok(Committed { key, commit, first, time_us, user, count, changes })
    }

    fn count_memory(&mut self) {
        let bytes = size_of::<Self>() + self.log.memory() + self.survivors.memory();
        self.memory.set(bytes as u64);
    }
}

impl fmt::Display for EntrySummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_deref().unwrap_or("unknown");
        write!(f, "{} (user {user}, from SCN {}, ", self.key, self.first.scn)?;
        write!(f, "{} changes, {} bytes in memory, ", self.changes, self.memory_bytes)?;
        write!(f, "{} bytes on disk)", self.spilled_bytes)
    }
}
