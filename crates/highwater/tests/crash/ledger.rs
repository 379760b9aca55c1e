//! What all clients together know: what was acknowledged, what was read, how each transaction ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::topics::Place;

pub type Shared = Arc<Mutex<Ledger>>;

/// A record's own name, and its key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    pub id: Arc<str>,
    pub key: u64,
}

/// Of a transaction: whose, and which.
pub type Name = (u64, u64);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    Open,
    Committed,
    Aborted,
    /// A commit was asked for, and nobody waited for the answer.
    Unknown,
}

#[derive(Clone, Debug)]
pub struct Sent {
    pub place: Place,
    pub record: Record,
    /// Once it was acknowledged.
    pub offset: Option<i64>,
}

#[derive(Clone, Debug)]
pub struct Transaction {
    pub sent: Vec<Sent>,
    pub outcome: Outcome,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum View {
    Committed,
    Uncommitted,
}

/// Offsets, and the records there.
pub type Records = BTreeMap<i64, Record>;

#[derive(Default)]
pub struct Ledger {
    /// Whatever was acknowledged or read, by anyone: an offset has one record for ever.
    pub known: BTreeMap<Place, Records>,
    /// What idempotent producers were acknowledged.
    pub acknowledged: Vec<(Place, i64)>,
    pub transactions: BTreeMap<Name, Transaction>,
    /// What readers that went along were shown.
    pub seen: BTreeMap<View, BTreeMap<Place, BTreeSet<i64>>>,
    /// Up to where DeleteRecords was answered.
    pub deleted: BTreeMap<Place, i64>,
    /// What a group was told that it has committed.
    pub group: BTreeMap<Place, i64>,
    /// What clients could not go on after, in their words.
    pub failures: Vec<String>,
    /// What must not happen, and did.
    pub faults: Vec<String>,
}

impl Ledger {
    pub fn fault(&mut self, what: String) {
        self.faults.push(what);
    }

    /// At this offset stands this record.
    fn know(&mut self, place: Place, offset: i64, record: &Record) {
        let known = self.known.entry(place).or_default();
        let before = known.entry(offset).or_insert_with(|| record.clone());
        if before != record {
            let fault = format!("{place:?} {offset}: {before:?} became {record:?}");
            self.faults.push(fault);
        }
    }

    pub fn acknowledge(&mut self, place: Place, offset: i64, record: &Record) {
        self.know(place, offset, record);
        self.acknowledged.push((place, offset));
    }

    pub fn begin(&mut self, name: Name) {
        self.transactions.insert(name, Transaction { sent: Vec::new(), outcome: Outcome::Open });
    }

    /// Answers its number in the transaction.
    pub fn send(&mut self, name: Name, place: Place, record: Record) -> usize {
        let sent = &mut self.transactions.get_mut(&name).unwrap().sent;
        sent.push(Sent { place, record, offset: None });
        sent.len() - 1
    }

    pub fn acknowledge_in(&mut self, name: Name, number: usize, offset: i64) {
        let sent = &mut self.transactions.get_mut(&name).unwrap().sent[number];
        sent.offset = Some(offset);
        let (place, record) = (sent.place, sent.record.clone());
        self.know(place, offset, &record);
    }

    pub fn end(&mut self, name: Name, outcome: Outcome) {
        self.transactions.get_mut(&name).unwrap().outcome = outcome;
    }

    pub fn see(&mut self, view: View, place: Place, offset: i64, record: &Record) {
        self.know(place, offset, record);
        self.seen.entry(view).or_default().entry(place).or_default().insert(offset);
    }

    pub fn has_seen(&self, view: View, place: Place, offset: i64) -> bool {
        let places = self.seen.get(&view);
        places.and_then(|places| places.get(&place)).is_some_and(|seen| seen.contains(&offset))
    }

    pub fn ended(&self, outcome: Outcome) -> usize {
        self.transactions.values().filter(|one| one.outcome == outcome).count()
    }
}
