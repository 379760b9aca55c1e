//! Single decisions of the journal. What restarts may tear is tried in `journal_restart`.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::buffer::{Buffer, BufferSettings};
use super::entry::Start;
use super::journal::{End, Journal, JournalSettings};
use super::journal_load::{JournalIndex, JournalPlan, StaleChunks, StoredPosition};
use super::journal_record::{ChunkHead, ChunkKey, JournalRecord};
use super::spill_frame::Frame;
use super::undo::Undo;
use crate::{
    Change, ClientSession, Code, Image, LobColumn, LobValue, OracleError, RedoAddress, RedoPoint,
    RedoThread, Scn, TableName, TransactionKey, Verb,
};

const GENERATION: u64 = 4;

fn at(block: u64) -> RedoPoint {
    let address = RedoAddress { sequence: 7, block, byte: 16, ssn: 0 };
    RedoPoint { thread: RedoThread(1), scn: Scn(block), address: Some(address) }
}

fn key(sequence: u32) -> TransactionKey {
    format!("3:5.1.{sequence}").parse().unwrap()
}

fn insert(block: u64) -> Change {
    let table = TableName { pdb: Some("PDB1".into()), owner: "SHOP".into(), table: "BOOK".into() };
    Change {
        at: at(block),
        verb: Verb::Insert,
        table: Arc::new(table),
        table_version: 1,
        row_id: format!("AAAR9zAAHAAAACrA{block:02}").into(),
        image: Image::Statement,
        sql: "insert".into(),
        lobs: Vec::new(),
    }
}

fn undo(block: u64, of: u64) -> Undo {
    let Change { table, row_id, .. } = insert(of);
    Undo { at: at(block), verb: Verb::Delete, table, row_id }
}

/// A buffer and a journal as a task has them.
struct Held {
    buffer: Buffer,
    journal: Journal,
    now: Instant,
    _directory: tempfile::TempDir,
}

fn settings(chunk_bytes: usize) -> JournalSettings {
    JournalSettings {
        server: "shop".to_owned(),
        threshold: Duration::from_secs(300),
        threshold_changes: 3,
        chunk_bytes,
    }
}

impl Held {
    fn new(chunk_bytes: usize) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let buffer = BufferSettings {
            memory_max_bytes: 1 << 20,
            spill_dir: directory.path().to_owned(),
            spill_max_bytes: 1 << 20,
        };
        Self {
            buffer: Buffer::new(&buffer).unwrap(),
            journal: Journal::new(settings(chunk_bytes), GENERATION),
            now: Instant::now(),
            _directory: directory,
        }
    }

    fn add(&mut self, sequence: u32, blocks: impl IntoIterator<Item = u64>) {
        for block in blocks {
            self.buffer.add(key(sequence), insert(block), self.now).unwrap();
        }
    }

    fn is_due(&self, sequence: u32, after: u64) -> bool {
        let entry = self.buffer.get(key(sequence)).unwrap();
        self.journal.is_due(entry, self.now + Duration::from_secs(after))
    }

    fn flush(&mut self, sequence: u32) -> Vec<JournalRecord> {
        let entry = self.buffer.get(key(sequence)).unwrap();
        let chunks = self.journal.flush(entry, self.now).unwrap();
        let chunks = chunks.map(Result::unwrap).collect();
        self.buffer.journaled(key(sequence));
        chunks
    }

    fn commit(&mut self, sequence: u32, block: u64) {
        self.journal.committed(self.buffer.get(key(sequence)).unwrap(), at(block));
        self.buffer.commit(key(sequence), at(block), 0).unwrap();
    }
}

/// Numbers of the chunks that records name, and whether each is a chunk.
fn numbers(records: &[JournalRecord]) -> Vec<(u32, bool)> {
    let number = |record: &JournalRecord| {
        (ChunkKey::decode(&record.key).unwrap().number, record.value.is_some())
    };
    records.iter().map(number).collect()
}

fn head(record: &JournalRecord) -> ChunkHead {
    let key = ChunkKey::decode(&record.key).unwrap();
    ChunkHead::decode(&key, record.value.as_ref().unwrap()).unwrap().0
}

struct Stored {
    generation: u64,
    resume: RedoPoint,
    released: BTreeSet<TransactionKey>,
}

impl StoredPosition for Stored {
    fn generation(&self) -> u64 {
        self.generation
    }

    fn resume(&self, _thread: RedoThread) -> RedoPoint {
        self.resume
    }

    fn is_released(&self, key: TransactionKey) -> bool {
        self.released.contains(&key)
    }
}

fn stored(resume: RedoPoint) -> Stored {
    Stored { generation: GENERATION, resume, released: BTreeSet::new() }
}

fn plan(records: &[JournalRecord], stored: &Stored) -> Result<JournalPlan, OracleError> {
    let mut index = JournalIndex::new("shop");
    for (record, place) in records.iter().zip(0..) {
        index.add(place, record)?;
    }
    index.plan(stored, Instant::now())
}

/// Blocks of the changes that a plan gives.
fn read(mut plan: JournalPlan, records: &[JournalRecord]) -> (Vec<u64>, Journal) {
    let mut blocks = Vec::new();
    for (record, place) in records.iter().zip(0..) {
        if let Some((_, frames)) = plan.frames(place, record).unwrap() {
            blocks.extend(frames.iter().map(|frame| match frame {
                Frame::Change(change) => change.at.scn.0,
                Frame::Undo(undo) => undo.at.scn.0,
            }));
        }
    }
    (blocks, plan.into_journal(settings(1), GENERATION + 1).unwrap())
}

/// The same record under another key.
fn under(record: &JournalRecord, change: impl FnOnce(&mut ChunkKey)) -> JournalRecord {
    let mut key = ChunkKey::decode(&record.key).unwrap();
    change(&mut key);
    JournalRecord { key: key.encode(), value: record.value.clone() }
}

#[test]
fn a_transaction_is_due_by_age_and_by_size() {
    let mut held = Held::new(1 << 20);
    held.add(1, [1]);
    assert!(!held.is_due(1, 299) && held.is_due(1, 300));
    held.add(1, [2, 3]);
    assert!(!held.is_due(1, 0));
    held.add(1, [4]);
    assert!(held.is_due(1, 0), "more than three");
}

#[test]
fn a_journaled_transaction_is_due_by_what_is_new() {
    let mut held = Held::new(1 << 20);
    held.add(1, 1..=4);
    held.now += Duration::from_secs(100);
    held.flush(1);
    assert!(!held.is_due(1, 1000), "nothing is new");
    held.add(1, 5..=7);
    assert!(!held.is_due(1, 299) && held.is_due(1, 300), "by the last chunk");
    held.add(1, [8]);
    assert!(held.is_due(1, 0));
}

#[test]
fn a_journaled_transaction_holds_a_restart_by_what_is_new() {
    let mut held = Held::new(1 << 20);
    held.add(1, [1, 2]);
    let bounds = |held: &Held| held.buffer.open_bounds().collect::<Vec<_>>();
    assert_eq!(bounds(&held), [at(1)]);
    held.flush(1);
    assert_eq!(bounds(&held), []);
    held.add(1, [5, 6]);
    assert_eq!(bounds(&held), [at(5)]);
    held.buffer.undo(key(1), &undo(7, 6)).unwrap();
    held.flush(1);
    assert_eq!(bounds(&held), []);
    held.buffer.undo(key(1), &undo(8, 5)).unwrap();
    assert_eq!(bounds(&held), [at(8)]);
    held.buffer.rollback(key(1));
    assert_eq!(bounds(&held), []);
}

#[test]
fn chunks_are_cut_at_their_size_and_hold_one_frame_at_least() {
    let count = |chunk_bytes| {
        let mut held = Held::new(chunk_bytes);
        held.add(1, 1..=10);
        let chunks = held.flush(1);
        let heads: Vec<ChunkHead> = chunks.iter().map(head).collect();
        assert!(heads.windows(2).all(|pair| pair[1].after == Some(pair[0].last)));
        assert_eq!(heads[0].after, None);
        assert_eq!(heads.iter().map(|head| head.events).sum::<u64>(), 10);
        heads.len()
    };
    assert_eq!((count(1), count(1 << 20)), (10, 1));
    assert!((3..=6).contains(&count(150)), "{}", count(150));
}

#[test]
fn a_chunk_says_what_it_holds() {
    let mut held = Held::new(1 << 20);
    let session = ClientSession { number: 7, serial: 9, client_id: None };
    let start = Start { at: at(1), user: Some("ANN".to_owned()), session };
    held.buffer.start(key(1), start.clone());
    let mut large = insert(3);
    let value = LobValue::Text("x".to_owned());
    large.lobs = vec![LobColumn { column: "C".to_owned(), value, last: at(9) }];
    held.add(1, [2]);
    held.buffer.add(key(1), large, held.now).unwrap();
    let chunks = held.flush(1);
    let expected = ChunkHead {
        first: at(2),
        last: at(9),
        after: None,
        events: 2,
        undos: 0,
        first_captured: at(2),
        start: Some(start.clone()),
    };
    assert_eq!(chunks.iter().map(head).collect::<Vec<_>>(), [expected]);
    held.buffer.undo(key(1), &undo(10, 2)).unwrap();
    let second = held.flush(1);
    let counts = |record| (head(record).events, head(record).undos, head(record).after);
    assert_eq!(second.iter().map(counts).collect::<Vec<_>>(), [(0, 1, Some(at(9)))]);
    let all = [chunks, second].concat();
    let plan = plan(&all, &stored(at(20))).unwrap();
    assert_eq!(plan.starts(), [(key(1), start)]);
}

#[test]
fn the_end_of_a_commit_is_waited_for() {
    let mut held = Held::new(1);
    held.add(1, [1, 2]);
    held.flush(1);
    held.add(1, [5]);
    held.commit(1, 8);
    assert_eq!(held.journal.ended().collect::<Vec<_>>(), [(key(1), End::Committed(at(8)))]);
    // All of the transaction is needed until its chunks are gone.
    assert_eq!(held.journal.open_bounds().collect::<Vec<_>>(), [at(5), at(8)]);
    assert!(held.journal.tombstones(|_, _| false).is_empty());
    let tombstones = held.journal.tombstones(|_, end| end == End::Committed(at(8)));
    assert_eq!(numbers(&tombstones), [(1, false), (0, false)]);
    assert_eq!(held.journal.open_bounds().count() + held.journal.ended().count(), 0);
}

#[test]
fn the_tombstones_of_a_rollback_come_at_once() {
    let mut held = Held::new(1);
    held.add(1, [1, 2, 3]);
    held.flush(1);
    assert!(held.journal.contains(key(1)));
    assert_eq!(numbers(&held.journal.rolled_back(key(1))), [(2, false), (1, false), (0, false)]);
    assert!(held.journal.is_empty() && held.journal.rolled_back(key(2)).is_empty());
}

#[test]
fn the_end_of_what_is_released_is_waited_for() {
    let mut held = Held::new(1);
    held.add(1, [1]);
    held.flush(1);
    held.journal.released(key(1));
    assert_eq!(held.journal.ended().collect::<Vec<_>>(), [(key(1), End::Released)]);
    assert_eq!(held.journal.open_bounds().count(), 0);
    // Its name is not used for chunks before the old ones are gone.
    held.add(1, 2..=9);
    assert!(!held.is_due(1, 1000));
    assert_eq!(numbers(&held.journal.tombstones(|_, _| true)), [(0, false)]);
    assert!(held.is_due(1, 0));
}

#[test]
fn frames_come_back_in_order_and_their_rows_are_left_out() {
    let mut held = Held::new(150);
    held.add(1, 1..=5);
    held.buffer.undo(key(1), &undo(6, 5)).unwrap();
    let mut records = held.flush(1);
    held.add(1, [7, 8]);
    records.extend(held.flush(1));
    let plan = plan(&records, &stored(at(8))).unwrap();
    assert_eq!(plan.transactions().collect::<Vec<_>>(), [key(1)]);
    let (blocks, journal) = read(plan, &records);
    assert_eq!(blocks, [1, 2, 3, 4, 5, 6, 7, 8]);
    assert!(journal.has_row(key(1), &at(8)) && !journal.has_row(key(1), &at(9)));
    let other_thread = RedoPoint { thread: RedoThread(2), ..at(3) };
    assert!(!journal.has_row(key(2), &at(3)) && !journal.has_row(key(1), &other_thread));
    assert!(!journal.has_row(key(1), &RedoPoint { address: None, ..at(3) }));
}

#[test]
fn a_restored_transaction_goes_on_with_its_numbers() {
    let mut held = Held::new(1);
    held.add(1, [1, 2]);
    let records = held.flush(1);
    let (_, journal) = read(plan(&records, &stored(at(9))).unwrap(), &records);
    let mut again = Held { journal, ..Held::new(1) };
    again.add(1, [1, 2]);
    again.buffer.journaled(key(1));
    again.add(1, [5]);
    let chunks = again.flush(1);
    assert_eq!(numbers(&chunks), [(2, true)]);
    assert_eq!(ChunkKey::decode(&chunks[0].key).unwrap().generation, GENERATION + 1);
    assert_eq!(head(&chunks[0]).after, Some(at(2)));
    let tombstones = again.journal.rolled_back(key(1));
    let generation = |record: &JournalRecord| ChunkKey::decode(&record.key).unwrap().generation;
    assert_eq!(tombstones.iter().map(generation).collect::<Vec<_>>(), [5, 4, 4]);
}

#[test]
fn a_chunk_of_a_start_that_never_counted_is_not_used() {
    let mut held = Held::new(1);
    held.add(1, [1, 2]);
    let records = held.flush(1);
    let stored = Stored { generation: GENERATION - 1, ..stored(at(9)) };
    let plan = plan(&records, &stored).unwrap();
    assert_eq!(plan.stale(), StaleChunks { unacknowledged: 2, ..StaleChunks::default() });
    assert_eq!(numbers(plan.tombstones()), [(1, false), (0, false)]);
    assert_eq!(read(plan, &records).0, Vec::<u64>::new());
}

#[test]
fn a_chunk_whose_rows_are_mined_again_is_not_used() {
    let mut held = Held::new(1);
    held.add(1, [1, 2, 3]);
    let records = held.flush(1);
    let by_address = plan(&records, &stored(at(2))).unwrap();
    assert_eq!(by_address.stale(), StaleChunks { mined_again: 2, ..StaleChunks::default() });
    assert_eq!(numbers(by_address.tombstones()), [(2, false), (1, false)]);
    assert_eq!(read(by_address, &records).0, [1]);
    // An SCN says nothing about places in the redo: rows that come again are left out instead.
    let by_scn = RedoPoint { address: None, ..at(2) };
    let (blocks, journal) = read(plan(&records, &stored(by_scn)).unwrap(), &records);
    assert_eq!(blocks, [1, 2, 3]);
    assert!(journal.has_row(key(1), &at(2)));
}

#[test]
fn of_two_generations_the_later_one_that_counted_is_used() {
    let mut held = Held::new(1 << 20);
    held.add(1, [1]);
    let chunk = held.flush(1).remove(0);
    let of = |generation| under(&chunk, |key| key.generation = generation);
    let records = [of(3), of(5), of(4)];
    let plan = plan(&records, &stored(at(9))).unwrap();
    let stale = StaleChunks { unacknowledged: 1, superseded: 1, ..StaleChunks::default() };
    assert_eq!(plan.stale(), stale);
    assert_eq!(
        plan.tombstones(),
        [of(5), of(3)].map(|record| JournalRecord { value: None, ..record })
    );
    let (blocks, mut journal) = read(plan, &records);
    assert_eq!(blocks, [1]);
    let kept = JournalRecord { value: None, ..of(4) };
    assert_eq!(journal.rolled_back(key(1)), [kept]);
}

#[test]
fn the_last_record_of_a_key_counts() {
    let mut held = Held::new(1 << 20);
    held.add(1, [1]);
    let first = held.flush(1).remove(0);
    let tombstone = JournalRecord { value: None, ..first.clone() };
    let gone = [first.clone(), tombstone.clone()];
    assert_eq!(plan(&gone, &stored(at(9))).unwrap().transactions().count(), 0);
    let again = [first.clone(), tombstone, first];
    let mut plan = plan(&again, &stored(at(9))).unwrap();
    assert!(plan.frames(0, &again[0]).unwrap().is_none());
    assert!(plan.frames(2, &again[2]).unwrap().is_some());
}

#[test]
fn others_are_left_alone() {
    let mut held = Held::new(1);
    held.add(1, [1]);
    held.add(2, [2]);
    let other = under(&held.flush(1)[0], |key| key.server = "other".to_owned());
    let released = held.flush(2).remove(0);
    let ledger = Stored { released: [key(2)].into(), ..stored(at(9)) };
    let plan = plan(&[other, released], &ledger).unwrap();
    assert_eq!(plan.stale(), StaleChunks { released: 1, ..StaleChunks::default() });
    assert_eq!((plan.tombstones().len(), plan.transactions().count()), (1, 0));
}

#[test]
fn a_hole_stops_the_start() {
    let mut held = Held::new(1);
    held.add(1, [1, 2, 3]);
    let records = held.flush(1);
    let error = plan(&[records[0].clone(), records[2].clone()], &stored(at(9))).unwrap_err();
    assert_eq!(error.code, Code::JournalCorruption);
    assert!(error.what.contains("chunk 1 before it is missing"), "{error}");
    assert!(plan(&records[1..], &stored(at(9))).is_err());
    // What is mined again is not missed.
    assert!(plan(&[records[0].clone(), records[2].clone()], &stored(at(2))).is_ok());
    let wrong = under(&records[2], |key| key.number = 1);
    let error = plan(&[records[0].clone(), wrong], &stored(at(9))).unwrap_err();
    assert!(error.what.contains("does not go on where"), "{error}");
}

#[test]
fn a_topic_that_changes_between_the_passes_stops_the_start() {
    let mut held = Held::new(1);
    held.add(1, [1, 2]);
    let records = held.flush(1);
    let mut lost = plan(&records, &stored(at(9))).unwrap();
    assert!(lost.frames(0, &records[0]).unwrap().is_some());
    assert_eq!(lost.into_journal(settings(1), 5).unwrap_err().code, Code::JournalCorruption);
    let mut turned = plan(&records, &stored(at(9))).unwrap();
    let error = turned.frames(1, &records[1]).unwrap_err();
    assert!(error.what.contains("stands before chunk 0"), "{error}");
}

#[test]
fn a_damaged_payload_is_found() {
    let mut held = Held::new(1 << 20);
    held.add(1, [1, 2]);
    let records = held.flush(1);
    let head = ChunkHead { events: 3, ..head(&records[0]) };
    let key = ChunkKey::decode(&records[0].key).unwrap();
    let (_, mut payload) = ChunkHead::decode(&key, records[0].value.as_ref().unwrap()).unwrap();
    let check = |payload: &[u8]| {
        let records = [JournalRecord { value: Some(head.encode(payload)), ..records[0].clone() }];
        let error = plan(&records, &stored(at(9))).unwrap().frames(0, &records[0]).unwrap_err();
        assert_eq!(error.code, Code::JournalCorruption);
        error.what
    };
    assert!(check(&payload).contains("2 changes and 0 undos"));
    *payload.last_mut().unwrap() ^= 1;
    assert!(check(&payload).contains("checksum"));
    payload.pop();
    assert!(check(&payload).contains("ends inside"));
}
