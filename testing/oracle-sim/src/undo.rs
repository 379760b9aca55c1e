//! Undo segments, which give transactions their ids.

use std::collections::{BTreeMap, BTreeSet};

use highwater_oracle::{RedoThread, TransactionKey, Xid};

use crate::quirk::Quirk;
use crate::random::Random;
use crate::settings::SimulationSettings;

/// Undo segments of an instance in a container.
const SEGMENTS: u64 = 6;
/// Slots of a segment.
const SLOTS: u64 = 4;
const FIRST_SEQUENCE: u32 = 600;

/// The slots of all undo segments. A slot has one transaction at a time, and its sequence rises with
/// each.
#[derive(Clone, Debug, Default)]
pub(crate) struct UndoSegments {
    sequences: BTreeMap<(u32, u32, u32), u32>,
    open: BTreeSet<TransactionKey>,
    /// Slots whose last transaction has no end in the redo.
    abandoned: BTreeSet<(u32, u32, u32)>,
}

impl UndoSegments {
    /// An id for a transaction of this thread's instance.
    pub(crate) fn open(
        &mut self,
        container: u32,
        thread: RedoThread,
        settings: &SimulationSettings,
        random: &mut Random,
    ) -> TransactionKey {
        let twin = settings.has(Quirk::SamePdbXids).then(|| self.twin(container, thread)).flatten();
        let (usn, slot) = self.free_slot(container, thread, random);
        let xid = match twin {
            Some(xid) => xid,
            None => {
                let is_reused = settings.has(Quirk::ReusedXid) && random.one_in(4);
                Xid { usn, slot, sequence: self.next_sequence((container, usn, slot), is_reused) }
            }
        };
        let place = (container, xid.usn, xid.slot);
        self.sequences.insert(place, xid.sequence);
        self.abandoned.remove(&place);
        let key = TransactionKey { container, xid };
        self.open.insert(key);
        key
    }

    /// An XID that is open in another container and that this one may give, too.
    fn twin(&self, container: u32, thread: RedoThread) -> Option<Xid> {
        let (first, last) = segments(thread);
        let others = self.open.iter().filter(|key| key.container != container).map(|key| key.xid);
        let mut fitting = others.filter(|xid| {
            let last_given = self.sequences.get(&(container, xid.usn, xid.slot)).copied();
            (first..=last).contains(&u64::from(xid.usn))
                && !self.is_taken(container, xid.usn, xid.slot)
                && last_given.unwrap_or(FIRST_SEQUENCE) < xid.sequence
        });
        fitting.next()
    }

    /// The sequence after the last one of a slot, or that again, unless nobody knows that it has ended.
    fn next_sequence(&self, place: (u32, u32, u32), is_reused: bool) -> u32 {
        match self.sequences.get(&place) {
            Some(last) if is_reused && !self.abandoned.contains(&place) => *last,
            last => last.copied().unwrap_or(FIRST_SEQUENCE) + 1,
        }
    }

    /// The first free slot from a random one on: there are more of them than clients.
    fn free_slot(&self, container: u32, thread: RedoThread, random: &mut Random) -> (u32, u32) {
        let from = random.below(SEGMENTS * SLOTS);
        let (first, _) = segments(thread);
        let slots = (from..from + SEGMENTS * SLOTS).map(|place| {
            let place = place % (SEGMENTS * SLOTS);
            let (usn, slot) = (first + place / SLOTS, place % SLOTS);
            (u32::try_from(usn).unwrap_or(1), u32::try_from(slot).unwrap_or(0))
        });
        let is_free = |(usn, slot): &(u32, u32)| !self.is_taken(container, *usn, *slot);
        slots.clone().find(is_free).or_else(|| slots.clone().next()).unwrap_or((1, 0))
    }

    fn is_taken(&self, container: u32, usn: u32, slot: u32) -> bool {
        let is_it = |key: &TransactionKey| {
            key.container == container && key.xid.usn == usn && key.xid.slot == slot
        };
        self.open.iter().any(is_it)
    }

    /// The transaction is gone without an end in the redo.
    pub(crate) fn abandon(&mut self, key: &TransactionKey) {
        self.abandoned.insert((key.container, key.xid.usn, key.xid.slot));
        self.close(key);
    }

    /// The transaction has ended.
    pub(crate) fn close(&mut self, key: &TransactionKey) {
        self.open.remove(key);
    }
}

/// The first and the last undo segment of a thread's instance.
fn segments(thread: RedoThread) -> (u64, u64) {
    let first = u64::from(thread.0.saturating_sub(1)) * SEGMENTS + 1;
    (first, first + SEGMENTS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_one_open_transaction() {
        let (mut undo, mut random) = (UndoSegments::default(), Random::new(1));
        let settings = SimulationSettings::default();
        let mut open = |thread| undo.open(0, RedoThread(thread), &settings, &mut random);
        let keys: BTreeSet<_> =
            (0..24).map(|_| open(1)).map(|key| (key.xid.usn, key.xid.slot)).collect();
        assert_eq!(keys.len(), 24);
        assert!(open(2).xid.usn > 6);
    }

    #[test]
    fn the_sequence_of_a_slot_rises() {
        let (mut undo, mut random) = (UndoSegments::default(), Random::new(1));
        let settings = SimulationSettings::default();
        let mut seen = BTreeSet::new();
        for _ in 0..100 {
            let key = undo.open(0, RedoThread(1), &settings, &mut random);
            assert!(seen.insert(key), "{key} twice");
            undo.close(&key);
        }
    }
}
