//! Which changes of a transaction stand after its rollbacks, found with bounded memory however many
//! there are.
//!
//! Rollbacks take changes back from the newest on, so the newest standing change is nearly always the
//! one that is meant, and only the end of the log is held. An undo of an older change waits until that
//! change is the newest of those that stand, or until all is settled at the commit. Undos of one row
//! say nothing about other rows, so waiting changes no result.

use std::collections::{HashMap, VecDeque};
use std::ops::Range;

use super::fates::{Fate, Fates};
use super::sweep::sweep;
use super::undo::{ChangeKey, Undo, UndoCounts, Verdict, verdict};
use crate::{Image, OracleError, Verb};

/// So many changes are held at most; then they are read again from the log when they are needed.
const HELD: usize = if cfg!(test) { 6 } else { 4096 };

/// So many undos wait at most; then they are settled by reading the log once.
const WAITING: usize = if cfg!(test) { 5 } else { 1 << 16 };

/// About what a change that is held, or an undo that waits, costs.
const COST: usize = 200;

/// What names a frame in a log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    /// A change.
    Change(ChangeKey),
    /// An undo, by the verb of its row.
    Undo {
        /// Its verb.
        verb: Verb,
        /// Its row's id.
        row_id: Box<str>,
    },
}

impl Mark {
    /// The id of the row that it names.
    pub(super) fn row_id(&self) -> &str {
        match self {
            Self::Change(key) => &key.row_id,
            Self::Undo { row_id, .. } => row_id,
        }
    }
}

/// A log that can be read from its end in blocks.
pub(super) trait Blocks {
    /// How many blocks there are.
    fn blocks(&self) -> usize;

    /// Numbers of the changes in a block.
    fn numbers(&self, block: usize) -> Range<u64>;

    /// The frames of a block, oldest first.
    fn marks(&self, block: usize) -> Result<Vec<Mark>, OracleError>;
}

/// Which changes of a transaction stand.
#[derive(Debug, Default)]
pub(super) struct Survivors {
    fates: Fates,
    unmatched: u64,
    /// From the first undo on.
    newest: Option<Newest>,
    waiting: Waiting,
    /// Row of the change that was downgraded last, while its undos may go on.
    downgraded: Option<Box<str>>,
}

/// The newest changes that stand, oldest first.
#[derive(Debug)]
struct Newest {
    keys: Vec<ChangeKey>,
    /// How many blocks are not read.
    unread: usize,
}

impl Survivors {
    /// What became of the undos so far.
    pub(super) const fn counts(&self) -> UndoCounts {
        UndoCounts {
            removed: self.fates.removed(),
            downgraded: self.fates.downgraded(),
            unmatched: self.unmatched,
        }
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        let held = self.newest.as_ref().map_or(0, |newest| newest.keys.len());
        self.fates.memory() + (held + self.waiting.count) * COST
    }

    /// The fates of all changes, once settled.
    pub(super) fn into_fates(self) -> Fates {
        self.fates
    }

    /// Notes a change that was added to the log.
    pub(super) fn added(&mut self, key: impl FnOnce() -> ChangeKey) {
        self.downgraded = None;
        let Some(newest) = &mut self.newest else { return };
        if newest.keys.len() < HELD {
            newest.keys.push(key());
        } else {
            self.newest = None;
        }
    }

    /// Takes back what an undo means. `changes` is how many changes precede it.
    pub(super) fn undo(
        &mut self,
        undo: &Undo,
        changes: u64,
        log: &impl Blocks,
    ) -> Result<(), OracleError> {
        let is_left_over = self.downgraded.as_ref() == Some(&undo.row_id);
        self.downgraded = None;
        while let Some(top) = self.surface(log)? {
            if undo.takes_placeholder(&top) {
                self.take_newest(&top, undo);
                return Ok(());
            }
            if top.row_id != undo.row_id {
                self.hold(top);
                return self.older(undo, is_left_over, changes, log);
            }
            match verdict(undo.verb, top.verb) {
                Verdict::Takes => {
                    self.take_newest(&top, undo);
                    return Ok(());
                }
                Verdict::Surplus => {
                    self.hold(top);
                    break;
                }
                Verdict::Voids => self.fates.remove(top.number),
            }
        }
        self.unmatched += 1;
        Ok(())
    }

    fn take_newest(&mut self, newest: &ChangeKey, undo: &Undo) {
        self.take(newest);
        if newest.image == Image::Locator {
            self.downgraded = Some(undo.row_id.clone());
        }
    }

    /// The newest standing change is not meant. An undo that follows those of a downgraded change of
    /// its row takes one more call of that change back: anything else on the row is older than the
    /// newest.
    fn older(
        &mut self,
        undo: &Undo,
        is_left_over: bool,
        changes: u64,
        log: &impl Blocks,
    ) -> Result<(), OracleError> {
        if is_left_over && undo.verb == Verb::Update {
            self.downgraded = Some(undo.row_id.clone());
            self.unmatched += 1;
            return Ok(());
        }
        self.waiting.add(undo, changes);
        if self.waiting.count > WAITING { self.settle_waiting(log) } else { Ok(()) }
    }

    /// Takes the newest standing change out of those held, after the undos that wait for it.
    fn surface(&mut self, log: &impl Blocks) -> Result<Option<ChangeKey>, OracleError> {
        while let Some(top) = self.pop(log)? {
            if self.stands(&top) {
                return Ok(Some(top));
            }
        }
        Ok(None)
    }

    fn pop(&mut self, log: &impl Blocks) -> Result<Option<ChangeKey>, OracleError> {
        let unread = log.blocks();
        let newest = self.newest.get_or_insert(Newest { keys: Vec::new(), unread });
        while newest.keys.is_empty() && newest.unread > 0 {
            let block = newest.unread - 1;
            if log.numbers(block).any(|number| self.fates.get(number) == Fate::Stands) {
                newest.keys = standing(log.marks(block)?, &self.fates);
            }
            newest.unread = block;
        }
        Ok(newest.keys.pop())
    }

    fn hold(&mut self, top: ChangeKey) {
        if let Some(newest) = &mut self.newest {
            newest.keys.push(top);
        }
    }

    /// Applies the undos that wait for a change, and says whether it stands.
    fn stands(&mut self, key: &ChangeKey) -> bool {
        while let Some((place, undo)) = self.waiting.first_for(key) {
            match verdict(undo, key.verb) {
                Verdict::Takes => {
                    self.waiting.remove(key, place);
                    self.take(key);
                    return false;
                }
                Verdict::Surplus => {
                    self.waiting.remove(key, place);
                    self.unmatched += 1;
                }
                Verdict::Voids => {
                    self.fates.remove(key.number);
                    return false;
                }
            }
        }
        true
    }

    /// One change of large objects may be several calls, and an undo takes one of them back.
    fn take(&mut self, key: &ChangeKey) {
        match key.image {
            Image::Statement => self.fates.remove(key.number),
            Image::Locator => self.fates.downgrade(key.number),
        }
    }

    /// Finds out what became of every change.
    pub(super) fn settle(&mut self, log: &impl Blocks) -> Result<(), OracleError> {
        self.settle_waiting(log)?;
        sweep(&mut self.fates, log)
    }

    /// Finds the changes that waiting undos mean; afterwards none waits.
    fn settle_waiting(&mut self, log: &impl Blocks) -> Result<(), OracleError> {
        for block in (0..log.blocks()).rev() {
            if self.waiting.count == 0 {
                return Ok(());
            }
            for key in standing(log.marks(block)?, &self.fates).iter().rev() {
                if !self.stands(key) {
                    self.newest = None;
                }
            }
        }
        self.unmatched += self.waiting.clear();
        Ok(())
    }
}

fn standing(marks: Vec<Mark>, fates: &Fates) -> Vec<ChangeKey> {
    let change = |mark| match mark {
        Mark::Change(key) if fates.get(key.number) == Fate::Stands => Some(key),
        _ => None,
    };
    marks.into_iter().filter_map(change).collect()
}

/// Undos whose change was not the newest of those that stood.
#[derive(Debug, Default)]
struct Waiting {
    rows: HashMap<Box<str>, VecDeque<WaitingUndo>>,
    count: usize,
}

#[derive(Clone, Copy, Debug)]
struct WaitingUndo {
    /// How many changes precede it.
    changes: u64,
    verb: Verb,
}

impl Waiting {
    fn add(&mut self, undo: &Undo, changes: u64) {
        let row = self.rows.entry(undo.row_id.clone()).or_default();
        row.push_back(WaitingUndo { changes, verb: undo.verb });
        self.count += 1;
    }

    /// The first undo of the row after the change: its place among those of the row, and its verb.
    fn first_for(&self, key: &ChangeKey) -> Option<(usize, Verb)> {
        let row = self.rows.get(&key.row_id)?;
        let place = row.partition_point(|undo| undo.changes <= key.number);
        row.get(place).map(|undo| (place, undo.verb))
    }

    fn remove(&mut self, key: &ChangeKey, place: usize) {
        if let Some(row) = self.rows.get_mut(&key.row_id) {
            row.remove(place);
            self.count -= 1;
            if row.is_empty() {
                self.rows.remove(&key.row_id);
            }
        }
    }

    fn clear(&mut self) -> u64 {
        self.rows.clear();
        std::mem::take(&mut self.count) as u64
    }
}
