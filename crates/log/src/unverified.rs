//! The transactional batches of a partition whose transactions had to be asked for, and that are not in the log
//! (KIP-890). One that is refused comes again; until then none of a higher sequence number may be taken first, else
//! the producer would hear of its lower one that it is out of order, for ever.

use std::collections::HashMap;

use crate::LogError;
use crate::producer::Sequenced;

/// Producers remembered; a refused batch may name any id. Without an entry a producer may begin anywhere.
const MOST: usize = 1_000;

/// Of one producer.
#[derive(Clone, Copy, Debug)]
struct Lowest {
    epoch: i16,
    sequence: i32,
    since_ms: i64,
}

/// The lowest sequence number that each producer sent since it last had a batch or a marker in the log.
#[derive(Clone, Default, Debug)]
pub(crate) struct Unverified(HashMap<i64, Lowest>);

impl Unverified {
    /// Notes a batch. A new epoch begins anew; what an older one sends changes nothing.
    pub(crate) fn note(&mut self, producer_id: i64, epoch: i16, sequence: i32, now_ms: i64) {
        if self.0.len() >= MOST && !self.0.contains_key(&producer_id) {
            self.0.clear();
        }
        let entry = Lowest { epoch, sequence, since_ms: now_ms };
        let known = self.0.entry(producer_id).or_insert(entry);
        if epoch > known.epoch {
            (known.epoch, known.sequence) = (epoch, sequence);
        } else if epoch == known.epoch {
            known.sequence = known.sequence.min(sequence);
        }
    }

    /// Refuses what does not come first.
    pub(crate) fn check(&self, batch: &Sequenced) -> Result<(), LogError> {
        let Sequenced { producer_id, first: found, .. } = *batch;
        match self.0.get(&producer_id) {
            Some(Lowest { sequence: expected, .. }) if found > *expected => {
                Err(LogError::OutOfOrderSequence { producer_id, expected: *expected, found })
            }
            _ => Ok(()),
        }
    }

    /// Something transactional of the producer is in the log.
    pub(crate) fn forget(&mut self, producer_id: i64) {
        self.0.remove(&producer_id);
    }

    /// Forgets those that did not come again for so long.
    pub(crate) fn expire(&mut self, now_ms: i64, after_ms: i64) {
        self.0.retain(|_, lowest| now_ms.saturating_sub(lowest.since_ms) < after_ms);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(producer_id: i64, first: i32) -> Sequenced {
        Sequenced {
            producer_id,
            epoch: 0,
            first,
            last: first,
            base_offset: 0,
            last_offset: 0,
            timestamp: 0,
            is_transactional: true,
        }
    }

    #[test]
    fn no_batch_goes_before_a_lower_one_that_is_to_come_again() {
        let mut unverified = Unverified::default();
        unverified.note(7, 0, 4, 0);
        unverified.note(7, 0, 2, 0);
        unverified.note(7, 0, 6, 0);
        assert!(matches!(
            unverified.check(&batch(7, 4)),
            Err(LogError::OutOfOrderSequence { producer_id: 7, expected: 2, found: 4 })
        ));
        unverified.check(&batch(7, 2)).unwrap();
        unverified.check(&batch(8, 4)).unwrap();
        unverified.forget(7);
        unverified.check(&batch(7, 4)).unwrap();
    }

    #[test]
    fn a_new_epoch_begins_anew() {
        let mut unverified = Unverified::default();
        unverified.note(7, 1, 2, 0);
        unverified.note(7, 2, 5, 0);
        unverified.note(7, 1, 0, 0);
        unverified.check(&batch(7, 5)).unwrap();
        assert!(unverified.check(&batch(7, 6)).is_err());
    }

    #[test]
    fn they_are_bounded_and_expire() {
        let mut unverified = Unverified::default();
        let most = i64::try_from(MOST).unwrap();
        (0..most).for_each(|id| unverified.note(id, 0, 0, id));
        unverified.note(0, 0, 0, 0);
        assert_eq!(unverified.0.len(), MOST, "it is known");
        unverified.expire(most, 2);
        assert_eq!(unverified.0.len(), 1);
        (0..=most).for_each(|id| unverified.note(id, 0, 0, 0));
        assert!(unverified.0.len() <= MOST);
    }
}
