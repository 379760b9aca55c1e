//! A task in small for tests of the journal: redo of two threads, the topics that records go to, and
//! starts that begin from the position that was stored last.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::buffer::{Buffer, BufferSettings};
use super::journal::{End, Journal, JournalSettings};
use super::journal_load::{JournalIndex, StoredPosition};
use super::journal_record::JournalRecord;
use super::lob_assembler::{LobAssembler, LobMode, LobSettings};
use super::lob_image::{ImageValue, RowImage};
use super::lob_piece::{LobData, LobEdit, LobHead, LobKind, LobPiece, LobTarget};
use super::undo::Undo;
use crate::{
    Change, Image, RedoAddress, RedoPoint, RedoThread, Scn, TableName, TransactionKey, Verb,
};

pub(super) const SERVER: &str = "shop";

/// What a row of the redo does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Action {
    Insert {
        row: u8,
    },
    /// A piece of a large object; several in a row are one change.
    Lob {
        row: u8,
    },
    /// Takes back the newest change of the row.
    Undo {
        row: u8,
        is_insert: bool,
    },
    Commit,
    Rollback,
}

/// A row of the redo.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub(super) key: TransactionKey,
    pub(super) at: RedoPoint,
    pub(super) action: Action,
}

/// Puts actions into the redo: those of transactions with an even number into thread 1, and of the
/// others into thread 2. A number stands for another transaction once one has ended.
pub(super) fn redo(actions: &[(u8, Action)]) -> Vec<Row> {
    let (mut blocks, mut ended) = ([0, 0], [0_u32; 4]);
    let mut rows = Vec::new();
    for (&(number, action), scn) in actions.iter().zip(1..) {
        let (number, thread) = (usize::from(number), usize::from(number % 2));
        blocks[thread] += 1;
        let block = blocks[thread];
        // Sequences of two threads overlap.
        let address = RedoAddress { sequence: 7, block, byte: 16, ssn: 0 };
        let thread = RedoThread(thread as u32 + 1);
        let key = format!("{number}.1.{}", ended[number]).parse().unwrap();
        rows.push(Row {
            key,
            at: RedoPoint { thread, scn: Scn(scn), address: Some(address) },
            action,
        });
        ended[number] += u32::from(matches!(action, Action::Commit | Action::Rollback));
    }
    rows
}

/// How far the commits of a thread were acknowledged.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Mark {
    commit: Option<RedoAddress>,
    changes: u64,
    of: u64,
}

/// A position as far as it matters here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Position {
    pub(super) generation: u64,
    resume: BTreeMap<RedoThread, RedoPoint>,
    marks: BTreeMap<RedoThread, Mark>,
}

impl Position {
    /// From an SCN, before any redo.
    pub(super) fn first() -> Self {
        let begin = |thread| RedoPoint { thread, scn: Scn(0), address: None };
        let none = Mark { commit: None, changes: 0, of: 0 };
        let threads = [RedoThread(1), RedoThread(2)];
        Self {
            generation: 0,
            resume: threads.map(|thread| (thread, begin(thread))).into(),
            marks: threads.map(|thread| (thread, none)).into(),
        }
    }

    /// Whether all changes of a commit were acknowledged.
    fn has(&self, commit: &RedoPoint) -> bool {
        let mark = self.marks[&commit.thread];
        mark.commit > commit.address || (mark.commit == commit.address && mark.changes >= mark.of)
    }

    /// How many changes of a commit are skipped.
    fn skip(&self, commit: &RedoPoint, size: u64) -> u64 {
        let mark = self.marks[&commit.thread];
        match mark.commit.cmp(&commit.address) {
            std::cmp::Ordering::Greater => size,
            std::cmp::Ordering::Equal if mark.changes >= mark.of => size,
            std::cmp::Ordering::Equal => mark.changes.min(size),
            std::cmp::Ordering::Less => 0,
        }
    }
}

impl StoredPosition for Position {
    fn generation(&self) -> u64 {
        self.generation
    }

    fn resume(&self, thread: RedoThread) -> RedoPoint {
        self.resume[&thread]
    }

    fn is_released(&self, _key: TransactionKey) -> bool {
        false
    }
}

/// A record that a task gives out, with the position it carries.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) position: Position,
    pub(super) record: Record,
}

#[derive(Clone, Debug)]
pub(super) enum Record {
    Heartbeat,
    Change(RedoThread, String),
    Journal(JournalRecord),
}

/// Rules that a test may break, to see that they are needed.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Broken {
    pub(super) counts_chunks_at_once: bool,
    pub(super) removes_before_stored: bool,
    pub(super) takes_rows_again: bool,
    pub(super) forgets_ended: bool,
}

/// A running task.
pub(super) struct Task {
    buffer: Buffer,
    lobs: LobAssembler,
    journal: Journal,
    position: Position,
    /// Rows that are not applied.
    rows: std::vec::IntoIter<Row>,
    pub(super) given: Vec<Given>,
    /// How many records were stored, as the task knows.
    pub(super) stored: usize,
    now: Instant,
    broken: Broken,
    /// Places of the chunks that came back.
    pub(super) restored: Vec<u64>,
}

fn settings() -> JournalSettings {
    JournalSettings {
        server: SERVER.to_owned(),
        threshold: Duration::from_secs(300),
        threshold_changes: 100,
        chunk_bytes: 150,
    }
}

impl Task {
    /// Starts from a stored position and what is in the topic of the journal.
    pub(super) fn start(
        redo: &[Row],
        position: &Position,
        topic: &[JournalRecord],
        directory: &Path,
        broken: Broken,
    ) -> Self {
        let now = Instant::now();
        let mut index = JournalIndex::new(SERVER);
        topic.iter().zip(0..).for_each(|(record, place)| index.add(place, record).unwrap());
        let mut plan = index.plan(position, now).unwrap();
        let tombstones = plan.tombstones().to_vec();
        let buffer = Buffer::new(&BufferSettings {
            memory_max_bytes: 1 << 20,
            spill_dir: directory.to_owned(),
            spill_max_bytes: 1 << 20,
        });
        let mut buffer = buffer.unwrap();
        let mut restored = Vec::new();
        for (record, place) in topic.iter().zip(0..) {
            if let Some((key, frames)) = plan.frames(place, record).unwrap() {
                restored.push(place);
                buffer.restore(key, frames, now).unwrap();
            }
        }
        plan.transactions().for_each(|key| buffer.journaled(key));
        let generation = position.generation + 1;
        let journal = plan.into_journal(settings(), generation).unwrap();
        let is_read = |row: &&Row| row.at.address >= position.resume[&row.at.thread].address;
        let rows: Vec<Row> = redo.iter().filter(is_read).copied().collect();
        let mut task = Self {
            buffer,
            lobs: LobAssembler::new(LobSettings { mode: LobMode::Inline, max_bytes: 1000 }),
            journal,
            position: position.clone(),
            rows: rows.into_iter(),
            given: Vec::new(),
            stored: 0,
            now,
            broken,
            restored,
        };
        task.give_journal(tombstones, position);
        task.position.generation = generation;
        task.heartbeat();
        task
    }

    fn give(&mut self, record: Record, position: Position) {
        self.given.push(Given { position, record });
    }

    fn give_journal(&mut self, records: Vec<JournalRecord>, position: &Position) {
        for record in records {
            self.give(Record::Journal(record), position.clone());
        }
    }

    /// The position of a record outside of transactions.
    fn safe(&self) -> Position {
        let mut position = self.position.clone();
        let work = self.buffer.open_bounds().chain(self.lobs.open().map(|(_, at)| at));
        let ended = self.journal.open_bounds().filter(|_| !self.broken.forgets_ended);
        for bound in work.chain(ended) {
            hold(&mut position, bound);
        }
        position
    }

    pub(super) fn heartbeat(&mut self) {
        let position = self.safe();
        self.give(Record::Heartbeat, position);
    }

    /// Applies the next rows; false where there are none.
    pub(super) fn mine(&mut self, count: usize) -> bool {
        for _ in 0..count {
            let Some(row) = self.rows.next() else { return false };
            self.apply(&row);
        }
        true
    }

    fn apply(&mut self, row: &Row) {
        if !self.broken.takes_rows_again && self.journal.has_row(row.key, &row.at) {
            return;
        }
        match row.action {
            Action::Insert { row: number } => {
                self.close(row.key);
                self.add(row.key, insert(row.at, number));
            }
            Action::Lob { row: number } => {
                let whole = self.lobs.lob(row.key, lob(row.at, number));
                whole.into_iter().for_each(|change| self.add(row.key, change));
            }
            Action::Undo { row: number, is_insert } => {
                self.close(row.key);
                self.buffer.undo(row.key, &undo(row.at, number, is_insert)).unwrap();
            }
            Action::Commit => self.commit(row),
            Action::Rollback => self.roll_back(row),
        }
        self.position.resume.insert(row.at.thread, row.at);
    }

    fn close(&mut self, key: TransactionKey) {
        if let Some(change) = self.lobs.close(key) {
            self.add(key, change);
        }
    }

    fn add(&mut self, key: TransactionKey, change: Change) {
        self.buffer.add(key, change, self.now).unwrap();
    }

    fn commit(&mut self, row: &Row) {
        self.close(row.key);
        let Some(entry) = self.buffer.get(row.key) else { return };
        let bounds: Vec<RedoPoint> = entry.bounds().collect();
        self.journal.committed(entry, row.at);
        let committed = self.buffer.commit(row.key, row.at, 0).unwrap().unwrap();
        let (size, key) = (committed.count, row.key);
        let skipped = self.position.skip(&row.at, size);
        if !self.position.has(&row.at) {
            let mark = Mark { commit: row.at.address, changes: size, of: size };
            self.position.marks.insert(row.at.thread, mark);
        }
        self.position.resume.insert(row.at.thread, row.at);
        for (change, number) in committed.changes.zip(1..) {
            let change = change.unwrap();
            if number > skipped {
                let position = self.inside(row, &bounds, number, size);
                let text =
                    format!("{key} {:?} {:?} {:?}", change.at.scn, change.row_id, change.lobs);
                self.give(Record::Change(row.at.thread, text), position);
            }
        }
    }

    /// The position of a record of a transaction. Until its last one, all of it is needed.
    fn inside(&self, row: &Row, bounds: &[RedoPoint], changes: u64, of: u64) -> Position {
        let mut position = self.safe();
        position.marks.insert(row.at.thread, Mark { commit: row.at.address, changes, of });
        if changes < of {
            bounds.iter().for_each(|bound| hold(&mut position, *bound));
        }
        position
    }

    fn roll_back(&mut self, row: &Row) {
        self.lobs.forget(row.key);
        let position = self.safe();
        let tombstones = self.journal.rolled_back(row.key);
        self.give_journal(tombstones, &position);
        self.buffer.rollback(row.key);
    }

    /// Writes a transaction to the journal; `number` is one of those that are open.
    pub(super) fn flush(&mut self, number: usize) {
        let mut keys: Vec<TransactionKey> =
            self.buffer.entries().map(|entry| entry.key()).collect();
        keys.sort();
        let Some(&key) = keys.get(number) else { return };
        let before = self.safe();
        let entry = self.buffer.get(key).unwrap();
        let chunks: Result<Vec<_>, _> = self.journal.flush(entry, self.now).unwrap().collect();
        self.buffer.journaled(key);
        let position = if self.broken.counts_chunks_at_once { self.safe() } else { before };
        self.give_journal(chunks.unwrap(), &position);
    }

    /// The worker says that the position of a record is stored.
    pub(super) fn stored(&mut self, number: usize) {
        let Some(given) = self.given.get(number) else { return };
        self.stored = self.stored.max(number + 1);
        let (stored, is_early) = (given.position.clone(), self.broken.removes_before_stored);
        let before = self.safe();
        let tombstones = self.journal.tombstones(|_, end| match end {
            End::Committed(commit) => is_early || stored.has(&commit),
            End::Released => false,
        });
        self.give_journal(tombstones, &before);
    }

    /// Reads all the redo, and has all that is given out stored.
    pub(super) fn finish(&mut self) {
        while self.mine(1) {}
        self.heartbeat();
        self.stored(self.given.len() - 1);
        self.heartbeat();
        self.stored(self.given.len() - 1);
    }

    /// How many transactions are open.
    pub(super) fn open(&self) -> usize {
        self.buffer.len()
    }
}

fn hold(position: &mut Position, bound: RedoPoint) {
    if let Some(resume) = position.resume.get_mut(&bound.thread) {
        resume.address = resume.address.min(bound.address);
        resume.scn = resume.scn.min(bound.scn);
    }
}

fn row_id(row: u8) -> Box<str> {
    format!("AAAR9zAAHAAAACrAA{row}").into()
}

fn table() -> Arc<TableName> {
    Arc::new(TableName { pdb: None, owner: "SHOP".into(), table: "BOOK".into() })
}

fn insert(at: RedoPoint, row: u8) -> Change {
    Change {
        at,
        verb: Verb::Insert,
        table: table(),
        table_version: 1,
        row_id: row_id(row),
        image: Image::Statement,
        sql: "insert".into(),
        lobs: Vec::new(),
    }
}

fn lob(at: RedoPoint, row: u8) -> LobPiece {
    let target = LobTarget { column: "C".to_owned(), kind: LobKind::Text, is_captured: true };
    let id = ImageValue::Text(row.to_string());
    let head = LobHead { target, row: RowImage::from_iter([("ID".to_owned(), id)]) };
    let change = Change { verb: Verb::Update, image: Image::Locator, ..insert(at, row) };
    let data = LobData::Text("x".to_owned());
    LobPiece { change, head: Some(head), edit: LobEdit::Write { offset: 2, amount: 1, data } }
}

fn undo(at: RedoPoint, row: u8, is_insert: bool) -> Undo {
    let verb = if is_insert { Verb::Delete } else { Verb::Update };
    Undo { at, verb, table: table(), row_id: row_id(row) }
}
