//! The transactions that are open, by their keys.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::Instant;

use super::bounds::OpenBounds;
use super::entry::{Entry, EntrySummary, Start};
use super::meter::Meter;
use super::spill_file::{SpillDirectory, SpillError};
use super::spill_frame::Frame;
use super::undo::{Undo, UndoCounts};
use crate::{Change, Code, Committed, OracleError, RedoPoint, TransactionKey, Xid};

/// How much open transactions may hold, and where.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BufferSettings {
    /// `cdc.buffer.memory.max.bytes`: above it the largest transactions move to disk.
    pub memory_max_bytes: u64,
    /// `cdc.buffer.spill.dir`: a directory that no other connector uses.
    pub spill_dir: PathBuf,
    /// `cdc.buffer.spill.max.bytes`: above it the task stops.
    pub spill_max_bytes: u64,
}

/// What the buffer has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BufferCounts {
    /// Transactions that were opened.
    pub opened: u64,
    /// Transactions that committed.
    pub committed: u64,
    /// Transactions that were dropped: rolled back, released or discarded.
    pub dropped: u64,
    /// Transactions that were moved to disk.
    pub spilled: u64,
    /// What became of rows of rollbacks, in transactions that have ended.
    pub undo: UndoCounts,
}

/// Open transactions. Their changes wait here, in memory up to a bound and on disk beyond it.
#[derive(Debug)]
pub struct Buffer {
    entries: HashMap<TransactionKey, Entry>,
    starts: Starts,
    bounds: OpenBounds,
    memory: Meter,
    memory_max: u64,
    directory: SpillDirectory,
    counts: BufferCounts,
}

impl Buffer {
    /// An empty buffer. Files that an earlier start left in the directory are removed.
    ///
    /// # Errors
    /// CDC-4001 when the directory cannot be made or cleared.
    pub fn new(settings: &BufferSettings) -> Result<Self, OracleError> {
        let directory = SpillDirectory::open(&settings.spill_dir, settings.spill_max_bytes)
            .map_err(|error| exhausted(&error, &[]))?;
        Ok(Self {
            entries: HashMap::new(),
            starts: Starts::default(),
            bounds: OpenBounds::default(),
            memory: Meter::default(),
            memory_max: settings.memory_max_bytes,
            directory,
            counts: BufferCounts::default(),
        })
    }

    /// Remembers a START row. It opens nothing: most transactions change no captured row.
    pub fn start(&mut self, key: TransactionKey, start: Start) {
        if !key.xid.is_zero() {
            self.starts.put(key, start);
        }
    }

    /// Adds a change to its transaction, which its first change opens.
    ///
    /// # Errors
    /// CDC-3002 when the key is no transaction's; CDC-4001 when the disk is full.
    pub fn add(
        &mut self,
        key: TransactionKey,
        change: Change,
        now: Instant,
    ) -> Result<(), OracleError> {
        let at = change.at;
        let entry = match self.entries.get_mut(&key) {
            Some(entry) => entry,
            None => self.open(key, at, now)?,
        };
        let is_new_thread = !entry.has_thread(at.thread);
        entry.add(change);
        let is_write_due = entry.is_write_due();
        if is_new_thread {
            self.bounds.insert(key, &at);
        }
        self.keep_bound(key, is_write_due)
    }

    fn open(
        &mut self,
        key: TransactionKey,
        first: RedoPoint,
        now: Instant,
    ) -> Result<&mut Entry, OracleError> {
        if key.xid.is_zero() || key.xid.is_partial() {
            return Err(no_transaction(key, first));
        }
        let start = self.starts.get(key).cloned();
        let entry = Entry::open(key, first, start, now, self.memory.holder());
        self.bounds.insert(key, &first);
        self.counts.opened += 1;
        Ok(self.entries.entry(key).or_insert(entry))
    }

    /// Takes back the change that a row of a rollback means. Without an open transaction it means
    /// nothing that is held.
    ///
    /// # Errors
    /// CDC-3002 when spilled changes cannot be read back; CDC-4001 when the disk is full.
    pub fn undo(&mut self, key: TransactionKey, undo: &Undo) -> Result<(), OracleError> {
        let Some(entry) = self.entries.get_mut(&key) else {
            self.counts.undo.unmatched += 1;
            return Ok(());
        };
        let is_new_thread = !entry.has_thread(undo.at.thread);
        entry.undo(undo)?;
        let is_write_due = entry.is_write_due();
        if is_new_thread {
            self.bounds.insert(key, &undo.at);
        }
        self.keep_bound(key, is_write_due)
    }

    /// Takes out a transaction as its COMMIT row says; `None` if it has no captured change. Where all
    /// its changes were taken back, it comes with none. Its memory and its file are given back when it
    /// is dropped.
    ///
    /// # Errors
    /// CDC-3002 when spilled changes cannot be read back; so, too, may each change.
    pub fn commit(
        &mut self,
        key: TransactionKey,
        commit: RedoPoint,
        time_us: i64,
    ) -> Result<Option<Committed>, OracleError> {
        self.starts.remove(key);
        let Some(entry) = self.entries.get_mut(&key) else { return Ok(None) };
        entry.settle()?;
        let Some(entry) = self.take(key) else { return Ok(None) };
        self.counts.committed += 1;
        entry.into_committed(commit, time_us).map(Some)
    }

    /// Drops a transaction: it was rolled back, released or discarded. Says which; `None` if it has no
    /// captured change.
    pub fn rollback(&mut self, key: TransactionKey) -> Option<EntrySummary> {
        self.starts.remove(key);
        let entry = self.take(key)?;
        self.counts.dropped += 1;
        Some(entry.summary())
    }

    /// A ROLLBACK row without the sequence of its transaction ends a rollback, and perhaps only one to
    /// a savepoint: the transaction is dropped if every change of it was taken back. Says which was
    /// dropped.
    ///
    /// # Errors
    /// CDC-3002 when spilled changes cannot be read back.
    pub fn partial_rollback(
        &mut self,
        key: TransactionKey,
    ) -> Result<Option<EntrySummary>, OracleError> {
        let Some(entry) = self.entries.get_mut(&key) else { return Ok(None) };
        entry.settle()?;
        if !entry.is_undone() {
            return Ok(None);
        }
        let dropped = self.take(key);
        self.counts.dropped += 1;
        Ok(dropped.map(|entry| entry.summary()))
    }

    fn take(&mut self, key: TransactionKey) -> Option<Entry> {
        let entry = self.entries.remove(&key)?;
        entry.bounds().for_each(|bound| self.bounds.remove(key, &bound));
        self.counts.undo.add(entry.undo_counts());
        Some(entry)
    }

    /// Adds a transaction again as the journal has it: all of it is journaled.
    ///
    /// # Errors
    /// As [`add`](Self::add) and [`undo`](Self::undo), and those that the frames bring.
    pub fn restore(
        &mut self,
        key: TransactionKey,
        first: RedoPoint,
        start: Option<Start>,
        frames: impl IntoIterator<Item = Result<Frame, OracleError>>,
        now: Instant,
    ) -> Result<(), OracleError> {
        if let Some(start) = start {
            self.start(key, start);
        }
        self.open(key, first, now)?;
        for frame in frames {
            match frame? {
                Frame::Change(change) => self.add(key, change, now)?,
                Frame::Undo(undo) => self.undo(key, &undo)?,
            }
        }
        self.journaled(key);
        Ok(())
    }

    /// All frames of a transaction are in the journal: a restart reads it from its last row only.
    pub fn journaled(&mut self, key: TransactionKey) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.bounds().for_each(|bound| self.bounds.remove(key, &bound));
            entry.journaled();
            entry.bounds().for_each(|bound| self.bounds.insert(key, &bound));
        }
    }

    /// From where a restart has to read, one point for each thread with open work. Its SCN and its
    /// address are the lowest there, perhaps of two transactions.
    pub fn open_bounds(&self) -> impl Iterator<Item = RedoPoint> + '_ {
        self.bounds.oldest()
    }

    /// An open transaction.
    pub fn get(&self, key: TransactionKey) -> Option<&Entry> {
        self.entries.get(&key)
    }

    /// All open transactions, in no order.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.entries.values()
    }

    /// How many transactions are open.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is open.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of memory, those of committed transactions that are still read among them.
    pub fn memory_bytes(&self) -> u64 {
        self.memory.bytes()
    }

    /// Bytes on disk, those of committed transactions that are still read among them.
    pub fn spilled_bytes(&self) -> u64 {
        self.directory.bytes()
    }

    /// What was done so far.
    pub const fn counts(&self) -> BufferCounts {
        self.counts
    }

    /// The transactions that hold most, largest first.
    pub fn largest(&self, count: usize) -> Vec<EntrySummary> {
        let mut all: Vec<&Entry> = self.entries.values().collect();
        all.sort_by_key(|entry| std::cmp::Reverse(entry.bytes()));
        all.into_iter().take(count).map(Entry::summary).collect()
    }

    /// Moves transactions to disk, those that hold most first, until the memory is within its bound.
    fn keep_bound(&mut self, key: TransactionKey, is_write_due: bool) -> Result<(), OracleError> {
        if is_write_due {
            self.spill(key)?;
        }
        while self.memory.bytes() > self.memory_max {
            let largest = self.entries.values().max_by_key(|entry| entry.spillable());
            match largest.filter(|entry| entry.spillable() > 0) {
                Some(largest) => self.spill(largest.key())?,
                None => return Ok(()),
            }
        }
        Ok(())
    }

    fn spill(&mut self, key: TransactionKey) -> Result<(), OracleError> {
        let Some(entry) = self.entries.get_mut(&key) else { return Ok(()) };
        self.counts.spilled += u64::from(entry.spilled_bytes() == 0);
        let spilled = entry.spill(&mut self.directory);
        spilled.map_err(|error| exhausted(&error, &self.largest(10)))
    }
}

/// START rows of transactions that may be open. An undo slot serves one transaction at a time, so a
/// later START in it says that the earlier one has ended, whether or not its end was read.
#[derive(Debug, Default)]
struct Starts(HashMap<TransactionKey, (u32, Start)>);

impl Starts {
    fn slot(key: TransactionKey) -> TransactionKey {
        TransactionKey { xid: Xid { sequence: 0, ..key.xid }, ..key }
    }

    fn put(&mut self, key: TransactionKey, start: Start) {
        self.0.insert(Self::slot(key), (key.xid.sequence, start));
    }

    fn get(&self, key: TransactionKey) -> Option<&Start> {
        let (sequence, start) = self.0.get(&Self::slot(key))?;
        (*sequence == key.xid.sequence).then_some(start)
    }

    fn remove(&mut self, key: TransactionKey) {
        if self.get(key).is_some() {
            self.0.remove(&Self::slot(key));
        }
    }
}

fn exhausted(error: &SpillError, largest: &[EntrySummary]) -> OracleError {
    let (what, setting) = match error {
        SpillError::Full { .. } => ("is at its bound", "raise cdc.buffer.spill.max.bytes"),
        SpillError::Io { .. } => {
            ("failed", "free the volume of cdc.buffer.spill.dir, or name another")
        }
    };
    let largest: Vec<String> = largest.iter().map(EntrySummary::to_string).collect();
    let largest = if largest.is_empty() { "none".to_owned() } else { largest.join(", ") };
    OracleError::new(
        Code::BufferExhausted,
        format!("the disk of open transactions {what}: {error}; the largest: {largest}"),
        format!("end the transactions that are named, or {setting}, then restart the task"),
    )
}

fn no_transaction(key: TransactionKey, at: RedoPoint) -> OracleError {
    let place = at.address.map_or_else(|| "no address".to_owned(), |address| address.to_string());
    OracleError::new(
        Code::Corruption,
        format!("a row change at SCN {}, {place}, names no transaction but {key}", at.scn),
        "restore an intact copy of the log that holds it, or skip past it and reload the tables",
    )
}
