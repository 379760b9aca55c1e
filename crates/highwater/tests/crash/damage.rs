//! A judge that finds nothing proves something only if it finds what is there: an ending is damaged in each
//! way that a log could go wrong, and the judge has to say so.

use std::fs;
use std::path::Path;

use crate::indexes;
use crate::judge::{Ending, judge};
use crate::ledger::{Ledger, Outcome, Record, Sent};
use crate::topics::{AGED, COPIES, PLAIN, Place};

/// Behind everything.
const FAR: i64 = 1 << 40;

const PLACE: Place = (PLAIN.name, 0);

type Damage = fn(&Ledger, &mut Ending);

/// What the judge has to say, and how it comes to that.
const DAMAGES: [(&str, Damage); 8] = [
    ("was acknowledged and is lost", |ledger, ending| {
        let of_plain = ledger.acknowledged.iter().find(|(place, _)| *place == PLACE);
        ending.committed.records.get_mut(&PLACE).unwrap().remove(&of_plain.unwrap().1);
    }),
    ("was shown and is lost", |_, ending| {
        ending.uncommitted.records.get_mut(&PLACE).unwrap().pop_first();
    }),
    ("became", |_, ending| {
        let mut first = ending.uncommitted.records.get_mut(&PLACE).unwrap().first_entry().unwrap();
        first.get_mut().id = "another".into();
    }),
    ("and at", |_, ending| {
        let records = ending.uncommitted.records.get_mut(&PLACE).unwrap();
        let first = records.values().next().unwrap().clone();
        records.insert(FAR, first);
    }),
    ("was aborted, and", |ledger, ending| {
        let sent = of_plain(ledger, Outcome::Aborted);
        let records = ending.committed.records.get_mut(&sent.place).unwrap();
        records.insert(sent.offset.unwrap(), sent.record);
    }),
    ("was committed, ", |ledger, ending| {
        let sent = of_plain(ledger, Outcome::Committed);
        ending.committed.records.get_mut(&sent.place).unwrap().remove(&sent.offset.unwrap());
    }),
    ("has 2 copies", |_, ending| {
        let records = ending.committed.records.get_mut(&(COPIES.name, 0)).unwrap();
        let Record { id, key } = records.values().next().unwrap().clone();
        records.insert(FAR, Record { id: format!("{id}/again").into(), key });
    }),
    ("was deleted up to", |_, ending| {
        for place in AGED.places() {
            ending.committed.ranges.get_mut(&place).unwrap().low = 0;
        }
    }),
];

/// A record of a transaction that ended so.
fn of_plain(ledger: &Ledger, outcome: Outcome) -> Sent {
    let ended = ledger.transactions.values().filter(|one| one.outcome == outcome);
    let mut sent = ended.flat_map(|one| &one.sent);
    sent.find(|sent| sent.place.0 == PLAIN.name && sent.offset.is_some()).unwrap().clone()
}

pub fn is_noticed(ledger: &Ledger, ending: &Ending) {
    for (words, damage) in DAMAGES {
        let mut damaged = ending.clone();
        damage(ledger, &mut damaged);
        let faults = judge(ledger, &damaged);
        assert!(faults.iter().any(|fault| fault.contains(words)), "not {words}: {faults:#?}");
    }
}

/// An entry in the middle of an index points to a place where no batch begins: a start believes it.
pub fn of_an_index_is_noticed(data: &Path) {
    let index = data.join("plain-0/00000000000000000000.index");
    let mut content = fs::read(&index).unwrap();
    let middle = content.len() / 16 * 8 + 7;
    content[middle] ^= 1;
    fs::write(&index, content).unwrap();
    let different = indexes::compare(data).different;
    assert!(different.len() == 1 && different[0].contains("plain-0"), "{different:#?}");
}
