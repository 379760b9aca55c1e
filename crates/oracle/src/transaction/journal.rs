//! The journal of long transactions: what of them a restart need not find in the redo any more.
//!
//! Without it the oldest open transaction holds the point from which redo is read again. A transaction
//! that is open for long, or large, is therefore written to a topic, in chunks, and what is there holds
//! nothing.
//!
//! # Why a restart loses and doubles nothing
//! The records of a task are acknowledged in their order, and a position is stored only after all
//! records before it. Three rules follow from what may be torn:
//!
//! - A chunk carries the position from before it counts. So whenever a stored position lies behind the
//!   rows of a chunk, the chunk was written.
//! - The tombstones of a transaction that committed wait until a stored position has all its changes, and
//!   it counts as open until they are given out. Otherwise a start from an older position would miss
//!   its chunks, or one from a newer position its COMMIT row.
//! - Tombstones of one transaction go from the last chunk to the first, so that what is left of them
//!   is always a beginning, and never a hole.
//!
//! # Generations
//! Each start counts the generation of the stored position up by one and writes chunks under that. A
//! chunk of a later generation than the stored one is of a start of which no position was stored: none
//! of its records counts, and its successor, which has the same generation since it begins from the
//! same position, removes it before it writes anything else. So the two never mix, however often
//! the task is started in a row. A chunk of the stored generation or an earlier one was written by a
//! start of which a position was stored; whether the chunk itself was acknowledged, the resume point
//! says: behind one that was not, it never lies.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use super::entry::Entry;
use super::journal_flush::ChunkRecords;
use super::journal_record::{ChunkKey, JournalRecord};
use crate::{OracleError, RedoAddress, RedoPoint, RedoThread, TransactionKey};

/// What is journaled, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JournalSettings {
    /// `cdc.topic.prefix`, by which connectors that share a topic are told apart.
    pub server: String,
    /// `cdc.txjournal.threshold.ms`: a transaction that is open for so long is journaled, and again
    /// when its last chunk is so old.
    pub threshold: Duration,
    /// `cdc.txjournal.threshold.events`: so is one with more changes that are not in the journal.
    pub threshold_changes: u64,
    /// `cdc.txjournal.chunk.max.bytes`: about the size of a chunk, before it is written as text.
    pub chunk_bytes: usize,
}

/// The transactions that are in the journal.
#[derive(Debug)]
pub struct Journal {
    settings: JournalSettings,
    /// The one of this start.
    generation: u64,
    open: HashMap<TransactionKey, Journaled>,
    ended: BTreeMap<TransactionKey, Ended>,
}

/// An open transaction that is in the journal.
#[derive(Clone, Debug)]
pub(super) struct Journaled {
    /// The generation that wrote each chunk, by its number.
    pub(super) chunks: Vec<u64>,
    /// Where the last chunk ends.
    pub(super) last: RedoPoint,
    /// How many changes are in the journal.
    pub(super) changes: u64,
    /// When the last chunk was written, or the task began.
    pub(super) written: Instant,
    /// Up to where the journal gave its rows at the start, by thread.
    pub(super) restored: BTreeMap<RedoThread, RedoAddress>,
}

/// How a transaction ended whose chunks are no longer needed once that is stored.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    /// It committed, by this row. Stored: a position with this commit, all changes of it.
    Committed(RedoPoint),
    /// It was released or discarded. Stored: a position with it in the ledger.
    Released,
}

#[derive(Debug)]
struct Ended {
    end: End,
    chunks: Vec<u64>,
    /// From where a restart has to read it, as long as it has its chunks.
    bounds: Vec<RedoPoint>,
}

impl Journal {
    /// A journal without transactions.
    pub fn new(settings: JournalSettings, generation: u64) -> Self {
        Self::with(settings, generation, HashMap::new())
    }

    pub(super) const fn with(
        settings: JournalSettings,
        generation: u64,
        open: HashMap<TransactionKey, Journaled>,
    ) -> Self {
        Self { settings, generation, open, ended: BTreeMap::new() }
    }

    /// Whether a transaction is in the journal. One that is, a rollback row without its sequence does not
    /// end: its chunks cannot be removed at once.
    pub fn contains(&self, key: TransactionKey) -> bool {
        self.open.contains_key(&key)
    }

    /// How many open transactions are in the journal.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Whether no open transaction is in the journal.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Whether a row of a transaction came from the journal at the start, so that it is left out now
    /// that it is mined again.
    pub fn has_row(&self, key: TransactionKey, row: &RedoPoint) -> bool {
        let restored = self.open.get(&key).map(|journaled| &journaled.restored);
        let restored = restored.and_then(|restored| restored.get(&row.thread));
        restored.is_some_and(|through| row.address.is_some_and(|address| address <= *through))
    }

    /// Whether a transaction has to be written to the journal now.
    pub fn is_due(&self, entry: &Entry, now: Instant) -> bool {
        if self.ended.contains_key(&entry.key()) || !entry.has_frames_to_journal() {
            return false;
        }
        let journaled = self.open.get(&entry.key());
        let since = journaled.map_or(entry.opened(), |journaled| journaled.written);
        let written = journaled.map_or(0, |journaled| journaled.changes);
        let changes = entry.changes().saturating_sub(written);
        now.saturating_duration_since(since) >= self.settings.threshold
            || changes > self.settings.threshold_changes
    }

    /// The chunks with what of a transaction is not in the journal so far. Once all are given out, the
    /// transaction counts as journaled (`Buffer::journaled`).
    ///
    /// # Errors
    /// When its frames cannot be read back from disk; so, too, may each chunk.
    pub fn flush<'a>(
        &'a mut self,
        entry: &'a Entry,
        now: Instant,
    ) -> Result<ChunkRecords<'a>, OracleError> {
        let frames = entry.frames_to_journal()?;
        let journaled = self.open.entry(entry.key()).or_insert_with(|| Journaled {
            chunks: Vec::new(),
            last: entry.first(),
            changes: 0,
            written: now,
            restored: BTreeMap::new(),
        });
        journaled.written = now;
        journaled.changes = entry.changes();
        Ok(ChunkRecords::new(&self.settings, self.generation, journaled, entry, frames))
    }

    /// A transaction is about to commit. Its chunks stay until that is stored.
    pub fn committed(&mut self, entry: &Entry, commit: RedoPoint) {
        let Some(journaled) = self.open.remove(&entry.key()) else { return };
        let bounds = entry.bounds().chain([commit]).collect();
        let ended = Ended { end: End::Committed(commit), chunks: journaled.chunks, bounds };
        self.ended.insert(entry.key(), ended);
    }

    /// A transaction was released or discarded. Its chunks stay until that is stored.
    pub fn released(&mut self, key: TransactionKey) {
        let Some(journaled) = self.open.remove(&key) else { return };
        let ended = Ended { end: End::Released, chunks: journaled.chunks, bounds: Vec::new() };
        self.ended.insert(key, ended);
    }

    /// A transaction was rolled back: the tombstones of its chunks. They carry the position from before
    /// its ROLLBACK row counts, so that a start which finds some of the chunks finds the row, too.
    pub fn rolled_back(&mut self, key: TransactionKey) -> Vec<JournalRecord> {
        let journaled = self.open.remove(&key);
        journaled.map_or_else(Vec::new, |journaled| self.tombstones_of(key, &journaled.chunks))
    }

    /// Transactions whose end has to be stored before their chunks are removed.
    pub fn ended(&self) -> impl Iterator<Item = (TransactionKey, End)> + '_ {
        self.ended.iter().map(|(key, ended)| (*key, ended.end))
    }

    /// The tombstones of transactions whose end is stored now.
    pub fn tombstones(
        &mut self,
        mut is_stored: impl FnMut(TransactionKey, End) -> bool,
    ) -> Vec<JournalRecord> {
        let stored: Vec<TransactionKey> =
            self.ended().filter(|(key, end)| is_stored(*key, *end)).map(|(key, _)| key).collect();
        let removed = stored.into_iter().filter_map(|key| Some((key, self.ended.remove(&key)?)));
        let removed: Vec<_> = removed.collect();
        let tombstones =
            removed.iter().flat_map(|(key, ended)| self.tombstones_of(*key, &ended.chunks));
        tombstones.collect()
    }

    /// From where a restart has to read transactions that have ended and still have their chunks: open
    /// work, although they have left the buffer.
    pub fn open_bounds(&self) -> impl Iterator<Item = RedoPoint> + '_ {
        self.ended.values().flat_map(|ended| ended.bounds.iter().copied())
    }

    fn tombstones_of(&self, key: TransactionKey, chunks: &[u64]) -> Vec<JournalRecord> {
        let chunk = |(number, generation): (u32, &u64)| ChunkKey {
            server: self.settings.server.clone(),
            transaction: key,
            number,
            generation: *generation,
        };
        let mut tombstones: Vec<_> =
            (0..).zip(chunks).map(|numbered| chunk(numbered).tombstone()).collect();
        tombstones.reverse();
        tombstones
    }
}
