//! Removes what was kept of large objects of rows that are not there any more.
//!
//! A change of large objects is downgraded by an undo, not removed, as it may be several calls. Where
//! the insert of its row was taken back, too, all its calls were.

use std::collections::HashMap;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};

use super::fates::{Fate, Fates};
use super::survivors::{Blocks, Mark};
use super::undo::ChangeKey;
use crate::{OracleError, Verb};

/// The log is read once for about so many changes.
const SWEPT: u64 = if cfg!(test) { 2 } else { 1 << 16 };

/// Removes downgraded changes whose row was taken back.
pub(super) fn sweep(fates: &mut Fates, log: &impl Blocks) -> Result<(), OracleError> {
    if fates.downgraded() == 0 {
        return Ok(());
    }
    let parts = fates.downgraded() / SWEPT + 1;
    for part in 0..parts {
        let mut rows = downgraded_rows(fates, log, |row_id| hash(row_id) % parts == part)?;
        for block in 0..log.blocks() {
            for mark in log.marks(block)? {
                if let Some(row) = rows.get_mut(mark.row_id()) {
                    row.pass(&mark, fates);
                }
            }
        }
    }
    Ok(())
}

fn hash(row_id: &str) -> u64 {
    BuildHasherDefault::<DefaultHasher>::default().hash_one(row_id)
}

fn downgraded_rows(
    fates: &Fates,
    log: &impl Blocks,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<HashMap<Box<str>, RowHistory>, OracleError> {
    let is_downgraded = |number| fates.get(number) == Fate::Downgraded;
    let mut rows = HashMap::new();
    for block in (0..log.blocks()).filter(|&block| log.numbers(block).any(is_downgraded)) {
        for mark in log.marks(block)? {
            if let Mark::Change(key) = mark
                && is_downgraded(key.number)
                && is_wanted(&key.row_id)
            {
                rows.insert(key.row_id, RowHistory::default());
            }
        }
    }
    Ok(rows)
}

/// What was done to a row and not undone so far, oldest first.
#[derive(Default)]
struct RowHistory(Vec<Event>);

#[derive(Clone, Copy, PartialEq, Eq)]
enum Event {
    Insert,
    Delete,
    /// A downgraded change, by its number.
    Downgraded(u64),
}

impl RowHistory {
    fn pass(&mut self, mark: &Mark, fates: &mut Fates) {
        match mark {
            Mark::Change(key) => self.0.extend(event(key, fates)),
            Mark::Undo { verb: Verb::Delete, .. } => self.undo_insert(fates),
            Mark::Undo { verb: Verb::Insert, .. } => self.undo_delete(fates),
            Mark::Undo { verb: Verb::Update, .. } => {}
        }
    }

    /// All that was done to the row since its insert goes. An insert that lacked its row's id is not
    /// among the events: then it was the first of them, or the first after the last delete.
    fn undo_insert(&mut self, fates: &mut Fates) {
        while let Some(Event::Downgraded(number)) = self.0.last() {
            fates.remove(*number);
            self.0.pop();
        }
        self.0.pop_if(|event| *event == Event::Insert);
    }

    fn undo_delete(&mut self, fates: &mut Fates) {
        let Some(delete) = self.0.iter().rposition(|event| *event == Event::Delete) else { return };
        for event in self.0.drain(delete..) {
            if let Event::Downgraded(number) = event {
                fates.remove(number);
            }
        }
    }
}

fn event(key: &ChangeKey, fates: &Fates) -> Option<Event> {
    match key.verb {
        Verb::Insert => Some(Event::Insert),
        Verb::Delete => Some(Event::Delete),
        Verb::Update => {
            let is_downgraded = fates.get(key.number) == Fate::Downgraded;
            is_downgraded.then_some(Event::Downgraded(key.number))
        }
    }
}
