//! The buffer against what sessions really did: savepoints, rollbacks to them, and what a server then
//! writes into the redo.

use std::time::Instant;

use proptest::prelude::*;

use super::buffer_model::{Held, buffer, change, key, point, read, undo};
use super::lob_row_id::PLACEHOLDER;
use super::undo::UndoCounts;
use crate::{Change, Image, LobColumn, LobValue, Verb};

/// What a session does next. Rows are chosen among those that there are.
#[derive(Clone, Debug)]
enum Step {
    Insert {
        has_placeholder: bool,
    },
    Update {
        row: prop::sample::Index,
    },
    Delete {
        row: prop::sample::Index,
    },
    /// So many calls of `DBMS_LOB` on a large object of one row.
    Calls {
        row: prop::sample::Index,
        count: u8,
    },
    Savepoint,
    RollbackToSavepoint,
}

fn step() -> impl Strategy<Value = Step> {
    let row = any::<prop::sample::Index>;
    prop_oneof![
        4 => any::<bool>().prop_map(|has_placeholder| Step::Insert { has_placeholder }),
        3 => row().prop_map(|row| Step::Update { row }),
        2 => row().prop_map(|row| Step::Delete { row }),
        3 => (row(), 1..4u8).prop_map(|(row, count)| Step::Calls { row, count }),
        2 => Just(Step::Savepoint),
        2 => Just(Step::RollbackToSavepoint),
    ]
}

/// A change that stands in the database.
#[derive(Clone)]
struct Done {
    change: Change,
    row: Row,
    undos: u8,
}

/// A row that is there.
#[derive(Clone, Copy, PartialEq)]
struct Row {
    id: u8,
    /// Rows with large objects are written by calls alone: an UPDATE before calls on its row is not
    /// told apart from one of the calls when some of them are undone.
    has_lobs: bool,
}

/// Rows that are there when the transaction begins.
const FIRST: Row = Row { id: 100, has_lobs: false };
const SECOND: Row = Row { id: 101, has_lobs: true };

/// A transaction.
struct Session {
    held: Held,
    done: Vec<Done>,
    rows: Vec<Row>,
    free: Vec<u8>,
    savepoint: (usize, Vec<Row>),
    at: u64,
}

impl Session {
    fn new(memory_max_bytes: u64) -> Self {
        let rows = vec![FIRST, SECOND];
        Self {
            held: buffer(memory_max_bytes, u64::MAX),
            done: Vec::new(),
            savepoint: (0, rows.clone()),
            rows,
            free: Vec::new(),
            at: 0,
        }
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Insert { has_placeholder } => self.insert(*has_placeholder),
            Step::Update { row } => self.update(*row),
            Step::Delete { row } => self.delete(*row),
            Step::Calls { row, count } => self.calls(*row, *count),
            Step::Savepoint => self.savepoint = (self.done.len(), self.rows.clone()),
            Step::RollbackToSavepoint => self.roll_back(),
        }
    }

    /// Ids of rows that are gone are used again.
    fn insert(&mut self, has_placeholder: bool) {
        let used = self.done.len() as u8;
        let id = self.free.pop().unwrap_or(used);
        if self.rows.iter().all(|row| row.id != id) {
            let row = Row { id, has_lobs: self.at.is_multiple_of(2) };
            self.rows.push(row);
            let made = format!("{PLACEHOLDER}#{}", self.at);
            let row_id = if has_placeholder { made } else { row_id(row) };
            self.add(row, change(self.at, Verb::Insert, &row_id), 1);
        }
    }

    fn update(&mut self, row: prop::sample::Index) {
        if let Some(row) = self.chosen(row, |row| !row.has_lobs) {
            self.add(row, change(self.at, Verb::Update, &row_id(row)), 1);
        }
    }

    fn delete(&mut self, row: prop::sample::Index) {
        if let Some(row) = self.chosen(row, |_| true) {
            self.rows.retain(|kept| *kept != row);
            self.free.push(row.id);
            self.add(row, change(self.at, Verb::Delete, &row_id(row)), 1);
        }
    }

    /// Calls that follow calls on the same row are one change with them.
    fn calls(&mut self, row: prop::sample::Index, count: u8) {
        let newest = self.done.last().map(|done| done.row);
        let Some(row) = self.chosen(row, |row| row.has_lobs && newest != Some(row)) else { return };
        let (value, last) = (LobValue::Text(format!("after {}", self.at)), point(self.at));
        let lobs = vec![LobColumn { column: "NOTE".into(), value, last }];
        let change = change(self.at, Verb::Update, &row_id(row));
        self.add(row, Change { image: Image::Locator, lobs, ..change }, count);
    }

    fn chosen(&self, row: prop::sample::Index, is_wanted: impl Fn(Row) -> bool) -> Option<Row> {
        let rows: Vec<Row> = self.rows.iter().copied().filter(|row| is_wanted(*row)).collect();
        (!rows.is_empty()).then(|| rows[row.index(rows.len())])
    }

    fn add(&mut self, row: Row, change: Change, undos: u8) {
        self.held.buffer.add(key(1), change.clone(), Instant::now()).unwrap();
        self.done.push(Done { change, row, undos });
        self.at += 1;
    }

    /// The server takes every change back by itself, newest first, and each call.
    fn roll_back(&mut self) {
        for done in self.done.split_off(self.savepoint.0.min(self.done.len())).iter().rev() {
            for _ in 0..done.undos {
                self.at += 1;
                let undo = undo(self.at, done.change.verb.inverse(), &row_id(done.row));
                self.held.buffer.undo(key(1), &undo).unwrap();
            }
        }
        self.rows = self.savepoint.1.clone();
    }

    fn committed(&mut self) -> Vec<Change> {
        let committed = self.held.buffer.commit(key(1), point(self.at), 0).unwrap();
        committed.map(read).unwrap_or_default()
    }
}

fn row_id(row: Row) -> String {
    format!("AAAR3qAAEAAAACX{:03}", row.id)
}

fn is_unavailable(change: &Change) -> bool {
    change.lobs.iter().any(|lob| lob.value == LobValue::Unavailable)
}

impl Done {
    fn inserts(&self, change: &Change) -> bool {
        let is_of_row = row_id(self.row) == *change.row_id;
        is_of_row && self.change.verb == Verb::Insert && self.change.at.scn < change.at.scn
    }
}

/// Whether a row is there in which a change was made.
fn has_row(change: &Change, done: &[Done]) -> bool {
    let was_there = [FIRST, SECOND].iter().any(|row| row_id(*row) == *change.row_id);
    was_there || done.iter().any(|done| done.inserts(change))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn what_was_rolled_back_is_gone_and_nothing_else(
        steps in prop::collection::vec(step(), 1..60),
        memory_max_bytes in prop_oneof![Just(0), 500..4_000u64, Just(u64::MAX)],
    ) {
        let mut session = Session::new(memory_max_bytes);
        steps.iter().for_each(|step| session.run(step));
        let done: Vec<Change> = session.done.iter().map(|done| done.change.clone()).collect();
        let (kept, rest): (Vec<Change>, Vec<Change>) =
            session.committed().into_iter().partition(|change| !is_unavailable(change));
        prop_assert_eq!(kept, done);
        for change in rest {
            prop_assert_eq!(change.image, Image::Locator);
            prop_assert!(has_row(&change, &session.done), "{:?}", change);
        }
    }
}

#[test]
fn calls_that_are_undone_take_neither_their_row_nor_older_calls() {
    let now = Instant::now();
    let mut held = buffer(u64::MAX, 0);
    let calls = |at, row: &str| {
        let (value, last) = (LobValue::Text("new".into()), point(at));
        let lobs = vec![LobColumn { column: "NOTE".into(), value, last }];
        Change { image: Image::Locator, lobs, ..change(at, Verb::Update, row) }
    };
    let changes =
        [change(1, Verb::Insert, "row 1"), calls(2, "row 1"), change(3, Verb::Insert, "row 2")];
    for change in changes.iter().cloned().chain([calls(4, "row 1")]) {
        held.buffer.add(key(1), change, now).unwrap();
    }
    for at in 5..8 {
        held.buffer.undo(key(1), &undo(at, Verb::Update, "row 1")).unwrap();
    }
    let read = read(held.buffer.commit(key(1), point(8), 0).unwrap().unwrap());
    assert_eq!(read[..3], changes);
    assert!(is_unavailable(&read[3]));
    let counts = UndoCounts { removed: 0, downgraded: 1, unmatched: 2 };
    assert_eq!(held.buffer.counts().undo, counts);
}

#[test]
fn calls_go_with_the_insert_of_their_row() {
    let now = Instant::now();
    let mut held = buffer(u64::MAX, 0);
    let insert = change(1, Verb::Insert, &format!("{PLACEHOLDER}#1"));
    let calls = Change { image: Image::Locator, ..change(2, Verb::Update, "row 1") };
    let other = change(3, Verb::Insert, "row 2");
    for change in [insert, calls, other.clone()] {
        held.buffer.add(key(1), change, now).unwrap();
    }
    let undos = [(Verb::Delete, "row 2"), (Verb::Update, "row 1"), (Verb::Delete, "row 1")];
    for (at, (verb, row)) in (4..).zip(undos) {
        held.buffer.undo(key(1), &undo(at, verb, row)).unwrap();
    }
    held.buffer.add(key(1), other.clone(), now).unwrap();
    assert_eq!(read(held.buffer.commit(key(1), point(8), 0).unwrap().unwrap()), [other]);
    let counts = UndoCounts { removed: 3, downgraded: 0, unmatched: 0 };
    assert_eq!(held.buffer.counts().undo, counts);
}
