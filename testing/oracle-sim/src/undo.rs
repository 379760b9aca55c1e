//! Undo segments, which give transactions their ids.

use std::collections::{BTreeMap, BTreeSet};

use highwater_oracle::{RedoThread, TransactionKey, Xid};

use crate::random::Random;

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
}

impl UndoSegments {
    /// An id for a transaction of this thread's instance.
    pub(crate) fn open(
        &mut self,
        container: u32,
        thread: RedoThread,
        random: &mut Random,
    ) -> TransactionKey {
        let (usn, slot) = self.free_slot(container, thread, random);
        let sequence = self.sequences.entry((container, usn, slot)).or_insert(FIRST_SEQUENCE);
        *sequence += 1;
        let key = TransactionKey { container, xid: Xid { usn, slot, sequence: *sequence } };
        self.open.insert(key);
        key
    }

    /// The first free slot from a random one on: there are more of them than clients.
    fn free_slot(&self, container: u32, thread: RedoThread, random: &mut Random) -> (u32, u32) {
        let from = random.below(SEGMENTS * SLOTS);
        let first = u64::from(thread.0 - 1) * SEGMENTS + 1;
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

    /// The transaction has ended.
    pub(crate) fn close(&mut self, key: &TransactionKey) {
        self.open.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_has_one_open_transaction() {
        let (mut undo, mut random) = (UndoSegments::default(), Random::new(1));
        let mut open = |thread| undo.open(0, RedoThread(thread), &mut random);
        let keys: BTreeSet<_> =
            (0..24).map(|_| open(1)).map(|key| (key.xid.usn, key.xid.slot)).collect();
        assert_eq!(keys.len(), 24);
        assert!(open(2).xid.usn > 6);
    }

    #[test]
    fn the_sequence_of_a_slot_rises() {
        let (mut undo, mut random) = (UndoSegments::default(), Random::new(1));
        let mut seen = BTreeSet::new();
        for _ in 0..100 {
            let key = undo.open(0, RedoThread(1), &mut random);
            assert!(seen.insert(key), "{key} twice");
            undo.close(&key);
        }
    }
}
