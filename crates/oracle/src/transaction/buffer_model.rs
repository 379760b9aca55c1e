//! The buffer against a model that holds everything in one list and looks for each undo's change by
//! walking it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use proptest::prelude::*;

use super::buffer::{Buffer, BufferSettings};
use super::lob_row_id::PLACEHOLDER;
use super::spill_frame::Frame;
use super::undo::{Undo, UndoCounts};
use crate::{
    Change, Committed, Image, LobColumn, LobValue, RedoAddress, RedoPoint, RedoThread, Scn,
    TableName, TransactionKey, Verb,
};

/// The place of the `n`th row of the redo.
pub(super) fn point(n: u64) -> RedoPoint {
    let address = RedoAddress { sequence: 9, block: n, byte: 16, ssn: 0 };
    RedoPoint { thread: RedoThread(1), scn: Scn(1_000 + n), address: Some(address) }
}

pub(super) fn key(number: u8) -> TransactionKey {
    format!("3:5.{number}.614").parse().unwrap()
}

pub(super) fn table(name: &str) -> Arc<TableName> {
    Arc::new(TableName { pdb: Some("SALES".into()), owner: "SHOP".into(), table: name.into() })
}

/// A change of a row, with a text of its own.
pub(super) fn change(n: u64, verb: Verb, row_id: &str) -> Change {
    Change {
        at: point(n),
        verb,
        table: table("ORDERS"),
        table_version: 2,
        row_id: row_id.into(),
        image: Image::Statement,
        sql: format!("change {n} of {row_id}").into(),
        lobs: Vec::new(),
    }
}

pub(super) fn undo(n: u64, verb: Verb, row_id: &str) -> Undo {
    Undo { at: point(n), verb, table: table("ORDERS"), row_id: row_id.into() }
}

/// A buffer whose directory lives as long as it does.
pub(super) struct Held {
    pub(super) buffer: Buffer,
    pub(super) directory: tempfile::TempDir,
}

pub(super) fn buffer(memory_max_bytes: u64, spill_max_bytes: u64) -> Held {
    let directory = tempfile::tempdir().unwrap();
    let spill_dir = directory.path().to_owned();
    let settings = BufferSettings { memory_max_bytes, spill_dir, spill_max_bytes };
    Held { buffer: Buffer::new(&settings).unwrap(), directory }
}

pub(super) fn read(committed: Committed) -> Vec<Change> {
    let count = committed.count;
    let changes: Vec<Change> = committed.changes.map(Result::unwrap).collect();
    assert_eq!(changes.len() as u64, count);
    changes
}

/// What happens to one of three transactions.
#[derive(Clone, Debug)]
enum Event {
    Change {
        verb: Verb,
        row: u8,
        is_placeholder: bool,
        is_locator: bool,
        is_other_table: bool,
    },
    /// An undo of any row, with any verb.
    Undo {
        verb: Verb,
        row: u8,
        is_other_table: bool,
    },
    /// Undoes of so many changes, as a server writes them.
    Savepoint(u8),
    Journal,
    PartialRollback,
    Rollback,
    Commit,
}

fn verb() -> impl Strategy<Value = Verb> {
    prop_oneof![Just(Verb::Insert), Just(Verb::Delete), Just(Verb::Update)]
}

fn event() -> impl Strategy<Value = Event> {
    let change =
        (verb(), 0..4u8, prop::bool::weighted(0.2), prop::bool::weighted(0.2), any::<bool>());
    prop_oneof![
        12 => change.prop_map(|(verb, row, is_placeholder, is_locator, is_other_table)| {
            Event::Change { verb, row, is_placeholder, is_locator, is_other_table }
        }),
        5 => (verb(), 0..5u8, any::<bool>())
            .prop_map(|(verb, row, is_other_table)| Event::Undo { verb, row, is_other_table }),
        3 => (1..9u8).prop_map(Event::Savepoint),
        1 => Just(Event::Journal),
        1 => Just(Event::PartialRollback),
        1 => Just(Event::Rollback),
        2 => Just(Event::Commit),
    ]
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Fate {
    Stands,
    Downgraded,
    Gone,
}

/// One transaction as the model has it.
#[derive(Default)]
struct Model {
    changes: Vec<(Change, Fate)>,
    unmatched: u64,
    /// Row of the newest change where the last event downgraded it.
    downgraded: Option<Box<str>>,
    /// Since the last flush of the journal, and all.
    frames: Vec<Frame>,
    all: Vec<Frame>,
}

impl Model {
    fn note(&mut self, frame: Frame) {
        self.frames.push(frame.clone());
        self.all.push(frame);
    }

    fn newest(&self, is_meant: impl Fn(&Change) -> bool) -> Option<usize> {
        self.changes.iter().rposition(|(change, fate)| *fate == Fate::Stands && is_meant(change))
    }

    fn undo(&mut self, undo: &Undo) {
        let is_left_over = self.downgraded.take().as_ref() == Some(&undo.row_id);
        while let Some(meant) = self.meant(undo) {
            let newest = self.newest(|_| true);
            let (change, fate) = &mut self.changes[meant];
            match (undo.verb, change.verb) {
                (Verb::Update, _) if is_left_over && newest != Some(meant) => {
                    self.downgraded = Some(undo.row_id.clone());
                    break;
                }
                (Verb::Delete, Verb::Insert)
                | (Verb::Insert, Verb::Delete)
                | (Verb::Update, Verb::Update) => {
                    let is_locator = change.image == Image::Locator;
                    *fate = if is_locator { Fate::Downgraded } else { Fate::Gone };
                    if is_locator && newest == Some(meant) {
                        self.downgraded = Some(undo.row_id.clone());
                    }
                    return;
                }
                (Verb::Update, _) => break,
                _ => *fate = Fate::Gone,
            }
        }
        self.unmatched += 1;
    }

    fn meant(&self, undo: &Undo) -> Option<usize> {
        let placeholder = self.newest(|_| true).filter(|&newest| {
            let change = &self.changes[newest].0;
            change.row_id.starts_with(PLACEHOLDER)
                && change.table == undo.table
                && change.verb.inverse() == undo.verb
        });
        placeholder.or_else(|| self.newest(|change| change.row_id == undo.row_id))
    }

    /// Downgraded changes go with the insert of their row.
    fn settle(&mut self) {
        for row in (0..5).map(row_id) {
            let (mut history, mut number) = (Vec::new(), 0);
            for frame in &self.all {
                match frame {
                    Frame::Change(change) => {
                        let is_downgraded = self.changes[number].1 == Fate::Downgraded;
                        let is_event = change.verb != Verb::Update || is_downgraded;
                        if *change.row_id == *row && is_event {
                            history.push((change.verb, number));
                        }
                        number += 1;
                    }
                    Frame::Undo(undo) if *undo.row_id == *row => {
                        for number in undone(&mut history, undo.verb) {
                            self.changes[number].1 = Fate::Gone;
                        }
                    }
                    Frame::Undo(_) => {}
                }
            }
        }
    }

    fn surviving(&self) -> Vec<Change> {
        let standing = self.changes.iter().filter(|(_, fate)| *fate != Fate::Gone);
        let mut surviving = Vec::new();
        for (change, fate) in standing {
            let mut change = change.clone();
            if *fate == Fate::Downgraded {
                change.lobs.iter_mut().for_each(|lob| lob.value = LobValue::Unavailable);
            }
            surviving.push(change);
        }
        surviving
    }

    fn count(&self, wanted: Fate) -> u64 {
        self.changes.iter().filter(|(_, fate)| *fate == wanted).count() as u64
    }
}

/// Takes the downgraded changes out of a row's history that go with what an undo takes back.
fn undone(history: &mut Vec<(Verb, usize)>, undo: Verb) -> Vec<usize> {
    let last_of = |verb| history.iter().rposition(|(other, _)| *other == verb);
    let cut = match undo {
        Verb::Insert => last_of(Verb::Delete).unwrap_or(history.len()),
        Verb::Delete => match last_of(Verb::Insert).max(last_of(Verb::Delete)) {
            Some(place) if history[place].0 == Verb::Delete => place + 1,
            last => last.unwrap_or(0),
        },
        Verb::Update => history.len(),
    };
    let cut = history.split_off(cut);
    cut.into_iter().filter(|(verb, _)| *verb == Verb::Update).map(|(_, number)| number).collect()
}

struct Compared {
    held: Held,
    now: Instant,
    models: BTreeMap<u8, Model>,
    counts: UndoCounts,
    at: u64,
}

impl Compared {
    fn new(memory_max_bytes: u64) -> Self {
        let held = buffer(memory_max_bytes, u64::MAX);
        let counts = UndoCounts::default();
        Self { held, now: Instant::now(), models: BTreeMap::new(), counts, at: 0 }
    }

    fn apply(&mut self, transaction: u8, event: &Event) {
        self.at += 1;
        match event {
            Event::Change { .. } => self.change(transaction, event),
            Event::Undo { verb, row, is_other_table } => {
                let table = table(if *is_other_table { "LINES" } else { "ORDERS" });
                self.undo(transaction, Undo { table, ..undo(self.at, *verb, &row_id(*row)) });
            }
            Event::Savepoint(changes) => self.savepoint(transaction, *changes),
            Event::Journal => self.journal(transaction),
            Event::PartialRollback => self.partial_rollback(transaction),
            Event::Rollback => self.rollback(transaction),
            Event::Commit => self.commit(transaction),
        }
        self.check_open();
    }

    fn change(&mut self, transaction: u8, event: &Event) {
        let &Event::Change { verb, row, is_placeholder, is_locator, is_other_table } = event else {
            return;
        };
        let mut change = change(self.at, verb, &row_id(row));
        if is_placeholder {
            change.row_id = format!("{PLACEHOLDER}#R{}", self.at).into();
        }
        if is_locator {
            let value = LobValue::Text("x".repeat(usize::from(row) * 30));
            change.lobs = vec![LobColumn { column: "NOTE".into(), value, last: point(self.at) }];
            (change.image, change.verb) = (Image::Locator, Verb::Update);
        }
        if is_other_table {
            change.table = table("LINES");
        }
        self.held.buffer.add(key(transaction), change.clone(), self.now).unwrap();
        let model = self.models.entry(transaction).or_default();
        model.downgraded = None;
        model.note(Frame::Change(change.clone()));
        model.changes.push((change, Fate::Stands));
    }

    fn undo(&mut self, transaction: u8, undo: Undo) {
        self.held.buffer.undo(key(transaction), &undo).unwrap();
        match self.models.get_mut(&transaction) {
            Some(model) => {
                model.undo(&undo);
                model.note(Frame::Undo(undo));
            }
            None => self.counts.unmatched += 1,
        }
    }

    fn savepoint(&mut self, transaction: u8, changes: u8) {
        for _ in 0..changes {
            let Some(model) = self.models.get(&transaction) else { return };
            let Some(newest) = model.newest(|_| true) else { return };
            let change = model.changes[newest].0.clone();
            self.at += 1;
            let verb = change.verb.inverse();
            let row_id = if change.row_id.starts_with(PLACEHOLDER) {
                row_id(9)
            } else {
                change.row_id.to_string()
            };
            self.undo(transaction, Undo { table: change.table, ..undo(self.at, verb, &row_id) });
        }
    }

    fn journal(&mut self, transaction: u8) {
        let Some(model) = self.models.get_mut(&transaction) else { return };
        let entry = self.held.buffer.get(key(transaction)).unwrap();
        assert_eq!(entry.has_frames_to_journal(), !model.frames.is_empty());
        let frames: Vec<Frame> = entry.frames_to_journal().unwrap().map(Result::unwrap).collect();
        assert_eq!(frames, std::mem::take(&mut model.frames));
        self.held.buffer.journaled(key(transaction));
    }

    fn partial_rollback(&mut self, transaction: u8) {
        let dropped = self.held.buffer.partial_rollback(key(transaction)).unwrap();
        let model = self.models.get_mut(&transaction);
        let is_undone = model.is_some_and(|model| {
            model.settle();
            model.surviving().is_empty()
        });
        assert_eq!(dropped.is_some(), is_undone);
        if is_undone {
            self.end(transaction);
        }
    }

    fn rollback(&mut self, transaction: u8) {
        // So that no undo waits, which would not be counted.
        self.partial_rollback(transaction);
        let dropped = self.held.buffer.rollback(key(transaction));
        assert_eq!(dropped.is_some(), self.models.contains_key(&transaction));
        self.end(transaction);
    }

    fn commit(&mut self, transaction: u8) {
        let committed = self.held.buffer.commit(key(transaction), point(self.at), 7).unwrap();
        assert_eq!(committed.is_some(), self.models.contains_key(&transaction));
        if let Some(committed) = committed {
            let model = self.models.get_mut(&transaction).unwrap();
            model.settle();
            assert_eq!(committed.first, model.changes[0].0.at);
            assert_eq!(read(committed), model.surviving());
            self.end(transaction);
        }
    }

    fn end(&mut self, transaction: u8) {
        if let Some(model) = self.models.remove(&transaction) {
            self.counts.removed += model.count(Fate::Gone);
            self.counts.downgraded += model.count(Fate::Downgraded);
            self.counts.unmatched += model.unmatched;
        }
    }

    fn check_open(&self) {
        let buffer = &self.held.buffer;
        assert_eq!(buffer.len(), self.models.len());
        assert_eq!(buffer.counts().undo, self.counts);
        for (&transaction, model) in &self.models {
            let entry = buffer.get(key(transaction)).unwrap();
            assert_eq!(entry.changes(), model.changes.len() as u64);
        }
        let files = std::fs::read_dir(self.held.directory.path()).unwrap().count();
        let spilled = buffer.entries().filter(|entry| entry.spilled_bytes() > 0).count();
        assert_eq!(files, spilled);
    }
}

fn row_id(row: u8) -> String {
    format!("AAAR3qAAEAAAACXAA{row}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn the_same_changes_survive_as_in_the_model(
        events in prop::collection::vec((0..3u8, event()), 1..120),
        memory_max_bytes in prop_oneof![Just(0), 500..6_000u64, Just(u64::MAX)],
    ) {
        let mut compared = Compared::new(memory_max_bytes);
        for (transaction, event) in &events {
            compared.apply(*transaction, event);
        }
        for transaction in 0..3 {
            compared.apply(transaction, &Event::Commit);
        }
        prop_assert_eq!(compared.held.buffer.memory_bytes(), 0);
        prop_assert_eq!(compared.held.buffer.spilled_bytes(), 0);
        prop_assert_eq!(compared.held.buffer.open_bounds().count(), 0);
    }
}
