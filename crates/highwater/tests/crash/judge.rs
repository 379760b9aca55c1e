//! Whether what is there in the end fits what everybody was told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::ledger::{Ledger, Name, Outcome, Record, Transaction, View};
use crate::reading::Found;
use crate::topics::{AGED, COMPACTED, COPIES, Place, SOURCE};

/// What is there in the end.
#[derive(Clone)]
pub struct Ending {
    pub committed: Found,
    pub uncommitted: Found,
}

struct Judge<'a> {
    ledger: &'a Ledger,
    ending: &'a Ending,
    /// What a reader at read_committed was shown, ever.
    shown: BTreeSet<Arc<str>>,
    newest: BTreeMap<(Place, u64), i64>,
    faults: Vec<String>,
}

/// Everything that is wrong.
pub fn judge(ledger: &Ledger, ending: &Ending) -> Vec<String> {
    let mut judge = Judge {
        ledger,
        ending,
        shown: shown(ledger, &ending.committed),
        newest: newest(&ending.committed),
        faults: ledger.faults.clone(),
    };
    judge.nothing_acknowledged_is_lost();
    judge.an_offset_has_one_record();
    judge.each_record_is_there_once_and_in_order();
    judge.transactions_are_whole();
    judge.readers_that_went_along_saw_the_same();
    judge.each_source_record_has_one_copy();
    judge.what_was_deleted_stays_so();
    judge.faults
}

fn shown(ledger: &Ledger, committed: &Found) -> BTreeSet<Arc<str>> {
    let there = committed.records.values().flat_map(BTreeMap::values);
    let mut shown: BTreeSet<Arc<str>> = there.map(|record| Arc::clone(&record.id)).collect();
    for (place, offsets) in ledger.seen.get(&View::Committed).into_iter().flatten() {
        shown.extend(offsets.iter().map(|offset| Arc::clone(&ledger.known[place][offset].id)));
    }
    shown
}

fn newest(committed: &Found) -> BTreeMap<(Place, u64), i64> {
    let mut newest = BTreeMap::new();
    for (place, records) in &committed.records {
        for (offset, record) in records {
            newest.insert((*place, record.key), *offset);
        }
    }
    newest
}

/// Of an idempotent producer's record: whose, and its number.
fn numbered(record: &Record) -> Option<(&str, u64)> {
    let (who, number) = record.id.strip_prefix('i')?.split_once('/')?;
    Some((who, number.parse().ok()?))
}

impl Judge<'_> {
    fn fault(&mut self, what: String) {
        self.faults.push(what);
    }

    /// Whether a committed record may be gone: by retention, or since a later one has its key.
    fn may_be_gone(&self, place: Place, offset: i64, record: &Record) -> bool {
        if place.0 == AGED.name {
            return offset < self.ending.committed.ranges[&place].low;
        }
        let newest = self.newest.get(&(place, record.key));
        place.0 == COMPACTED.name && newest.is_some_and(|newest| *newest > offset)
    }

    fn is_there(&self, place: Place, offset: i64) -> bool {
        self.ending.committed.records[&place].contains_key(&offset)
    }

    fn nothing_acknowledged_is_lost(&mut self) {
        for (place, offset) in &self.ledger.acknowledged {
            let record = &self.ledger.known[place][offset];
            if !self.is_there(*place, *offset) && !self.may_be_gone(*place, *offset, record) {
                self.fault(format!("{place:?} {offset}: {record:?} was acknowledged and is lost"));
            }
        }
    }

    fn an_offset_has_one_record(&mut self) {
        let ending = self.ending;
        for found in [&ending.committed, &ending.uncommitted] {
            for (place, records) in &found.records {
                for (offset, record) in records {
                    let known = self.ledger.known.get(place).and_then(|known| known.get(offset));
                    if known.is_some_and(|known| known != record) {
                        self.fault(format!("{place:?} {offset}: {known:?} became {record:?}"));
                    }
                }
            }
        }
    }

    fn each_record_is_there_once_and_in_order(&mut self) {
        let ending = self.ending;
        let mut places: BTreeMap<&str, (Place, i64)> = BTreeMap::new();
        for (place, records) in &ending.uncommitted.records {
            let mut last: BTreeMap<&str, u64> = BTreeMap::new();
            for (offset, record) in records {
                if let Some(first) = places.insert(&record.id, (*place, *offset)) {
                    self.fault(format!("{record:?} at {first:?} and at {place:?} {offset}"));
                }
                let Some((who, number)) = numbered(record) else { continue };
                if last.insert(who, number).is_some_and(|last| last >= number) {
                    self.fault(format!("{place:?} {offset}: {record:?} is out of order"));
                }
            }
        }
    }

    fn transactions_are_whole(&mut self) {
        let ledger = self.ledger;
        for (name, transaction) in &ledger.transactions {
            match transaction.outcome {
                Outcome::Committed => self.is_whole(*name, transaction),
                Outcome::Aborted => self.is_hidden(*name, transaction),
                Outcome::Unknown => {
                    let mut ids = transaction.sent.iter().map(|sent| &sent.record.id);
                    if ids.any(|id| self.shown.contains(id)) {
                        self.is_whole(*name, transaction);
                    }
                }
                Outcome::Open => self.fault(format!("nobody ended {name:?}")),
            }
        }
    }

    fn is_whole(&mut self, name: Name, transaction: &Transaction) {
        for sent in &transaction.sent {
            let (place, record) = (sent.place, &sent.record);
            let Some(offset) = sent.offset else {
                self.fault(format!("{name:?} was committed without {record:?}"));
                continue;
            };
            if !self.is_there(place, offset) && !self.may_be_gone(place, offset, record) {
                self.fault(format!(
                    "{name:?} was committed, {place:?} {offset} {record:?} is lost"
                ));
            }
        }
    }

    fn is_hidden(&mut self, name: Name, transaction: &Transaction) {
        for sent in &transaction.sent {
            if self.shown.contains(&sent.record.id) {
                self.fault(format!("{name:?} was aborted, and {:?} was shown", sent.record));
            }
        }
    }

    /// What is there in the end was there when they passed, and what was there when they passed still is.
    fn readers_that_went_along_saw_the_same(&mut self) {
        let ending = self.ending;
        for (view, found) in
            [(View::Committed, &ending.committed), (View::Uncommitted, &ending.uncommitted)]
        {
            for (place, records) in &found.records {
                for (offset, record) in records {
                    if !self.ledger.has_seen(view, *place, *offset) {
                        self.fault(format!("{view:?} {place:?} {offset} {record:?} came up later"));
                    }
                }
                // Compaction takes away what was aborted.
                if view == View::Committed || place.0 != COMPACTED.name {
                    self.nothing_shown_is_lost(view, *place, found);
                }
            }
        }
    }

    fn nothing_shown_is_lost(&mut self, view: View, place: Place, found: &Found) {
        let ledger = self.ledger;
        let seen = ledger.seen.get(&view).and_then(|places| places.get(&place));
        for offset in seen.into_iter().flatten() {
            let record = &ledger.known[&place][offset];
            let there = found.records[&place].contains_key(offset);
            if !there && !self.may_be_gone(place, *offset, record) {
                self.fault(format!("{view:?} {place:?} {offset} {record:?} was shown and is lost"));
            }
        }
    }

    fn each_source_record_has_one_copy(&mut self) {
        let records = &self.ending.committed.records;
        let mut copies: BTreeMap<&str, u64> = BTreeMap::new();
        for record in COPIES.places().flat_map(|place| records[&place].values()) {
            let source = record.id.split('/').next().unwrap_or_default();
            *copies.entry(source).or_default() += 1;
        }
        for (name, partition) in SOURCE.places() {
            for offset in records[&(name, partition)].keys() {
                let count = copies.remove(format!("c{partition}@{offset}").as_str()).unwrap_or(0);
                if count != 1 {
                    self.fault(format!("{name} {partition} {offset} has {count} copies"));
                }
            }
        }
        copies.keys().for_each(|copy| self.faults.push(format!("{copy} is the copy of nothing")));
    }

    fn what_was_deleted_stays_so(&mut self) {
        for (place, until) in &self.ledger.deleted {
            let low = self.ending.committed.ranges[place].low;
            if low < *until {
                self.fault(format!("{place:?} was deleted up to {until} and begins at {low}"));
            }
        }
    }
}
