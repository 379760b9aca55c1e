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
        let is_bound = entry.is_bound_in(at.thread);
        entry.add(change);
        let is_write_due = entry.is_write_due();
        if !is_bound {
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
        let is_bound = entry.is_bound_in(undo.at.thread);
        entry.undo(undo)?;
        let is_write_due = entry.is_write_due();
        if !is_bound {
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

    /// Adds frames of a transaction again as the journal has them. Its START row precedes the first;
    /// [`journaled`](Self::journaled) follows the last.
    ///
    /// # Errors
    /// As [`add`](Self::add) and [`undo`](Self::undo).
    pub fn restore(
        &mut self,
        key: TransactionKey,
        frames: impl IntoIterator<Item = Frame>,
        now: Instant,
    ) -> Result<(), OracleError> {
        for frame in frames {
            match frame {
                Frame::Change(change) => self.add(key, change, now)?,
                Frame::Undo(undo) => self.undo(key, &undo)?,
            }
        }
        Ok(())
    }

    /// All frames of a transaction are in the journal: it holds no restart until the next one.
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

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::super::buffer_model::{Held, buffer, change, key, point, read, undo};
    use super::*;
    use crate::{ClientSession, RedoThread, Verb};

    const ROW: &str = "AAAR3qAAEAAAACXAA1";

    fn insert(held: &mut Held, transaction: u8, at: u64) {
        let change = change(at, Verb::Insert, ROW);
        held.buffer.add(key(transaction), change, Instant::now()).unwrap();
    }

    fn start(user: &str) -> Start {
        Start { at: point(0), user: Some(user.to_owned()), session: ClientSession::default() }
    }

    fn commit(held: &mut Held, transaction: u8, at: u64) -> Option<Committed> {
        held.buffer.commit(key(transaction), point(at), 1_700_000_000_000_000).unwrap()
    }

    #[test]
    fn a_commit_says_what_it_knows() {
        let mut held = buffer(u64::MAX, 0);
        held.buffer.start(key(1), start("SCOTT"));
        assert!(held.buffer.is_empty(), "a START row opens nothing");
        insert(&mut held, 1, 4);
        insert(&mut held, 1, 5);
        let committed = commit(&mut held, 1, 6).unwrap();
        assert_eq!((committed.key, committed.count), (key(1), 2));
        assert_eq!((committed.first, committed.commit), (point(4), point(6)));
        assert_eq!(committed.time_us, 1_700_000_000_000_000);
        assert_eq!(committed.user.as_deref(), Some("SCOTT"));
        assert!(commit(&mut held, 1, 7).is_none(), "it is out");
    }

    #[test]
    fn a_start_row_is_that_of_the_last_transaction_of_its_slot() {
        let mut held = buffer(u64::MAX, 0);
        let later: TransactionKey = "3:5.1.700".parse().unwrap();
        held.buffer.start(key(1), start("SCOTT"));
        held.buffer.start(later, start("ADAMS"));
        insert(&mut held, 1, 4);
        held.buffer.rollback(key(1));
        held.buffer.add(later, change(5, Verb::Insert, ROW), Instant::now()).unwrap();
        let user = |key| held.buffer.get(key).unwrap().start().unwrap().user.clone();
        assert_eq!(user(later).as_deref(), Some("ADAMS"));
        assert_eq!(held.buffer.starts.0.len(), 1, "START rows do not gather");
    }

    #[test]
    fn what_names_no_transaction_opens_nothing() {
        let mut held = buffer(u64::MAX, 0);
        for (zero, is_partial) in [("3:0.0.0", false), ("3:5.0.4294967295", true)] {
            let zero: TransactionKey = zero.parse().unwrap();
            held.buffer.start(zero, start("SYS"));
            assert_eq!(held.buffer.starts.0.len(), usize::from(is_partial));
            let change = change(4, Verb::Insert, ROW);
            let error = held.buffer.add(zero, change, Instant::now()).unwrap_err();
            assert_eq!(error.code, Code::Corruption);
            assert!(error.what.contains("SCN 1004, 0x000009.00000004.0010/0, names no"), "{error}");
            held.buffer.undo(zero, &undo(5, Verb::Delete, ROW)).unwrap();
            assert!(held.buffer.commit(zero, point(6), 0).unwrap().is_none());
            assert!(held.buffer.rollback(zero).is_none());
        }
        assert_eq!((held.buffer.len(), held.buffer.open_bounds().count()), (0, 0));
        assert_eq!(held.buffer.counts().undo.unmatched, 2);
    }

    #[test]
    fn a_transaction_holds_a_restart_at_its_first_row_that_is_not_in_the_journal() {
        let mut held = buffer(u64::MAX, 0);
        let bounds = |held: &Held| held.buffer.open_bounds().collect::<Vec<_>>();
        insert(&mut held, 1, 3);
        insert(&mut held, 2, 4);
        insert(&mut held, 1, 8);
        assert_eq!(bounds(&held), [point(3)]);
        held.buffer.journaled(key(1));
        assert_eq!(bounds(&held), [point(4)]);
        assert_eq!(held.buffer.get(key(1)).unwrap().last_journaled(), Some(point(8)));
        insert(&mut held, 1, 9);
        drop(commit(&mut held, 2, 10));
        assert_eq!(bounds(&held), [point(9)]);
        held.buffer.rollback(key(1));
        assert_eq!(bounds(&held), []);
    }

    #[test]
    fn undo_that_another_thread_writes_holds_a_restart_there_too() {
        let mut held = buffer(u64::MAX, 0);
        insert(&mut held, 1, 3);
        let at = |at| RedoPoint { thread: RedoThread(2), ..point(at) };
        let recovery = Undo { at: at(7), ..undo(7, Verb::Delete, ROW) };
        held.buffer.undo(key(1), &recovery).unwrap();
        held.buffer.undo(key(1), &Undo { at: at(9), ..recovery }).unwrap();
        assert_eq!(held.buffer.open_bounds().collect::<Vec<_>>(), [point(3), at(7)]);
        held.buffer.journaled(key(1));
        assert_eq!(held.buffer.open_bounds().count(), 0);
        insert(&mut held, 1, 10);
        assert_eq!(held.buffer.open_bounds().collect::<Vec<_>>(), [point(10)]);
        held.buffer.rollback(key(1));
        assert_eq!(held.buffer.open_bounds().count(), 0);
    }

    #[test]
    fn a_transaction_comes_back_from_the_journal_as_it_was() {
        let mut before = buffer(u64::MAX, 0);
        before.buffer.start(key(1), start("SCOTT"));
        for at in 3..9 {
            insert(&mut before, 1, at);
        }
        before.buffer.undo(key(1), &undo(9, Verb::Delete, ROW)).unwrap();
        let entry = before.buffer.get(key(1)).unwrap();
        let mut frames = entry.frames_to_journal().unwrap().map(Result::unwrap);
        let mut after = buffer(0, u64::MAX);
        after.buffer.start(key(1), start("SCOTT"));
        let first: Vec<Frame> = frames.by_ref().take(4).collect();
        after.buffer.restore(key(1), first, Instant::now()).unwrap();
        after.buffer.restore(key(1), frames, Instant::now()).unwrap();
        after.buffer.journaled(key(1));
        let entry = after.buffer.get(key(1)).unwrap();
        assert!(!entry.has_frames_to_journal());
        assert_eq!((entry.first(), entry.last_journaled()), (point(3), Some(point(9))));
        assert_eq!(after.buffer.open_bounds().count(), 0);
        let committed = commit(&mut after, 1, 10).unwrap();
        assert_eq!((committed.first, committed.user.as_deref()), (point(3), Some("SCOTT")));
        let expected: Vec<Change> = (3..8).map(|at| change(at, Verb::Insert, ROW)).collect();
        assert_eq!(read(committed), expected);
    }

    #[test]
    fn memory_stays_within_its_bound() {
        let mut held = buffer(40_000, u64::MAX);
        for at in 0..4_000 {
            insert(&mut held, (at % 7) as u8, at);
            let bytes = held.buffer.memory_bytes();
            assert!(bytes <= 40_000, "{bytes} after {at}");
        }
        assert!(held.buffer.spilled_bytes() > 200_000);
        let committed = commit(&mut held, 3, 9_999).unwrap();
        let spilled = held.buffer.spilled_bytes();
        assert_eq!(read(committed).len(), 4_000 / 7);
        assert!(held.buffer.spilled_bytes() < spilled, "given back when it was read");
    }

    #[test]
    fn the_largest_move_first_and_small_ones_stay() {
        let mut held = buffer(6_000, u64::MAX);
        for at in 0..3 {
            insert(&mut held, 1, at);
        }
        for at in 3..60 {
            insert(&mut held, 2, at);
        }
        assert_eq!(held.buffer.get(key(1)).unwrap().spilled_bytes(), 0);
        assert!(held.buffer.get(key(2)).unwrap().spilled_bytes() > 0);
        assert_eq!(held.buffer.counts().spilled, 1);
    }

    #[test]
    fn a_full_disk_names_the_ten_largest() {
        let mut held = buffer(0, 12_000);
        held.buffer.start(key(12), start("SCOTT"));
        let mut add = |transaction: u8, at| {
            let change = change(at, Verb::Insert, ROW);
            held.buffer.add(key(transaction), change, Instant::now())
        };
        for transaction in 1..=12 {
            for at in 0..u64::from(transaction) {
                add(transaction, at).unwrap();
            }
        }
        let error = (0..999).find_map(|at| add(12, at).err()).unwrap();
        assert_eq!(error.code, Code::BufferExhausted);
        assert!(error.what.contains(" of 12000 bytes; the largest: 3:5.12.614 (user SCOTT, "));
        let places = (3..=12).map(|n| error.what.find(&format!("3:5.{n}.614 ")));
        let places: Vec<usize> = places.map(Option::unwrap).collect();
        assert!(places.is_sorted_by(|a, b| a > b), "largest first: {error}");
        assert!(!error.what.contains("3:5.2.614 "), "ten: {error}");
        assert!(error.remedy.contains("raise cdc.buffer.spill.max.bytes"));
        let file = held.directory.path().read_dir().unwrap().next();
        assert!(file.is_some());
    }

    #[test]
    fn a_disk_that_fails_stops_the_task() {
        let mut held = buffer(0, u64::MAX);
        fs::remove_dir_all(held.directory.path()).unwrap();
        let row = change(1, Verb::Insert, ROW);
        let error = held.buffer.add(key(1), row, Instant::now()).unwrap_err();
        assert_eq!(error.code, Code::BufferExhausted);
        assert!(error.what.contains("failed: ") && error.what.contains("-1.spill: "), "{error}");
        fs::create_dir_all(held.directory.path()).unwrap();
        insert(&mut held, 1, 2);
        let read = read(commit(&mut held, 1, 3).unwrap());
        assert_eq!(read, [change(1, Verb::Insert, ROW), change(2, Verb::Insert, ROW)]);
    }

    #[test]
    fn a_directory_that_cannot_be_made_is_told_at_the_start() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "").unwrap();
        let settings =
            BufferSettings { memory_max_bytes: 0, spill_dir: file.join("x"), spill_max_bytes: 0 };
        let error = Buffer::new(&settings).unwrap_err();
        assert_eq!(error.code, Code::BufferExhausted);
    }

    /// A spilled transaction of some changes and one undo, and its file.
    fn spilled() -> (Held, PathBuf) {
        let mut held = buffer(0, u64::MAX);
        for at in 0..12 {
            insert(&mut held, 1, at);
        }
        held.buffer.undo(key(1), &undo(12, Verb::Delete, ROW)).unwrap();
        let file = held.directory.path().read_dir().unwrap().next().unwrap().unwrap().path();
        (held, file)
    }

    fn is_damage(committed: Result<Option<Committed>, OracleError>) -> bool {
        let read = committed
            .and_then(|committed| committed.unwrap().changes.collect::<Result<Vec<_>, _>>());
        read.is_err_and(|error| error.code == Code::Corruption)
    }

    proptest! {
        #[test]
        fn a_damaged_file_is_told(at in any::<prop::sample::Index>(), flip in 1..=255u8) {
            let (mut held, file) = spilled();
            let mut bytes = fs::read(&file).unwrap();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            fs::write(&file, bytes).unwrap();
            prop_assert!(is_damage(held.buffer.commit(key(1), point(13), 0)));
        }

        #[test]
        fn a_file_that_was_cut_is_told(at in any::<prop::sample::Index>()) {
            let (mut held, file) = spilled();
            let bytes = fs::read(&file).unwrap();
            fs::write(&file, &bytes[..at.index(bytes.len())]).unwrap();
            prop_assert!(is_damage(held.buffer.commit(key(1), point(13), 0)));
        }
    }

    #[test]
    fn a_file_that_is_gone_is_told_also_when_an_undo_needs_it() {
        let (mut held, file) = spilled();
        fs::remove_file(file).unwrap();
        assert!(is_damage(held.buffer.commit(key(1), point(13), 0)));
        let (mut held, file) = spilled();
        fs::write(file, "").unwrap();
        let mut undos = (13..30).map(|at| held.buffer.undo(key(1), &undo(at, Verb::Delete, ROW)));
        assert_eq!(undos.find_map(Result::err).unwrap().code, Code::Corruption);
    }

    #[test]
    fn after_an_error_there_is_nothing_more() {
        let (mut held, file) = spilled();
        let length = fs::metadata(&file).unwrap().len() as usize;
        fs::write(&file, vec![0; length]).unwrap();
        let committed = held.buffer.commit(key(1), point(13), 0).unwrap().unwrap();
        assert_eq!(committed.changes.count(), 1);
        let (held, file) = spilled();
        fs::write(&file, vec![0; length]).unwrap();
        let entry = held.buffer.get(key(1)).unwrap();
        assert_eq!(entry.frames_to_journal().unwrap().count(), 1);
    }
}
