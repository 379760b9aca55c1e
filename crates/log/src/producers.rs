//! Idempotent producers: what each sent last, so that a batch sent again is not appended again.

use std::collections::{HashMap, VecDeque};

use highwater_protocol::records::BatchHeader;

use crate::LogError;

/// Batches remembered for each producer; a client has at most as many in flight (KIP-98).
const REMEMBERED: usize = 5;

/// A producer silent for so long is forgotten (Kafka's `producer.id.expiration.ms`).
const EXPIRES_AFTER_MS: i64 = 24 * 60 * 60 * 1000;

/// What of a batch counts for its producer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sequenced {
    pub(crate) producer_id: i64,
    pub(crate) epoch: i16,
    pub(crate) first: i32,
    pub(crate) last: i32,
    pub(crate) base_offset: i64,
    pub(crate) last_offset: i64,
    pub(crate) timestamp: i64,
}

impl Sequenced {
    /// None for a batch of a producer without an id.
    pub(crate) fn of(header: &BatchHeader) -> Option<Self> {
        (header.producer_id >= 0).then(|| Self {
            producer_id: header.producer_id,
            epoch: header.producer_epoch,
            first: header.base_sequence,
            last: advance(header.base_sequence, header.last_offset_delta),
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            timestamp: header.max_timestamp,
        })
    }
}

/// Whether a batch is to be appended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    New,
    /// It is there already; these are its offsets (base -1 and the last at most, if nobody knows).
    Duplicate {
        base_offset: i64,
        last_offset: i64,
        timestamp: i64,
    },
}

#[derive(Clone, Debug)]
struct Producer {
    epoch: i16,
    batches: VecDeque<Sequenced>,
    /// True if the oldest batch comes from a snapshot, which keeps no more than one: all that the
    /// producer sent before it is in the log too.
    restored: bool,
    /// When it was last heard of, by the log's clock: a producer's timestamps may be years old.
    seen_ms: i64,
}

/// The producers of one partition.
#[derive(Clone, Default, Debug)]
pub(crate) struct Producers {
    by_id: HashMap<i64, Producer>,
}

impl Producers {
    /// Decides about a batch, by Kafka's rules. A producer that is not known may begin anywhere, since
    /// it may have been forgotten.
    pub(crate) fn check(&self, batch: &Sequenced) -> Result<Verdict, LogError> {
        let Some(producer) = self.by_id.get(&batch.producer_id) else { return Ok(Verdict::New) };
        if batch.epoch < producer.epoch {
            return Err(LogError::InvalidProducerEpoch {
                producer_id: batch.producer_id,
                current: producer.epoch,
                found: batch.epoch,
            });
        }
        let expected = match producer.batches.back() {
            _ if batch.epoch > producer.epoch => 0,
            Some(newest) => after(newest.last),
            None => batch.first,
        };
        if batch.first == expected {
            return Ok(Verdict::New);
        }
        producer.duplicate_of(batch).ok_or(LogError::OutOfOrderSequence {
            producer_id: batch.producer_id,
            expected,
            found: batch.first,
        })
    }

    /// Remembers a batch that is in the log.
    pub(crate) fn record(&mut self, batch: Sequenced, now_ms: i64) {
        let producer = self.by_id.entry(batch.producer_id).or_insert_with(|| Producer {
            epoch: batch.epoch,
            batches: VecDeque::with_capacity(REMEMBERED),
            restored: false,
            seen_ms: now_ms,
        });
        if producer.epoch != batch.epoch {
            producer.epoch = batch.epoch;
            producer.batches.clear();
            producer.restored = false;
        }
        if producer.batches.len() == REMEMBERED {
            producer.batches.pop_front();
            producer.restored = false;
        }
        producer.batches.push_back(batch);
        producer.seen_ms = now_ms;
    }

    /// Remembers a batch of which a snapshot tells.
    pub(crate) fn restore(&mut self, batch: Sequenced, seen_ms: i64) {
        self.record(batch, seen_ms);
        if let Some(producer) = self.by_id.get_mut(&batch.producer_id) {
            producer.restored = true;
        }
    }

    /// Forgets producers that have been silent too long.
    pub(crate) fn expire(&mut self, now_ms: i64) {
        self.by_id.retain(|_, producer| now_ms - producer.seen_ms < EXPIRES_AFTER_MS);
    }

    /// The greatest id that is remembered.
    pub(crate) fn greatest_id(&self) -> Option<i64> {
        self.by_id.keys().copied().max()
    }

    /// The newest batch of each producer with the time it came, by producer id.
    pub(crate) fn newest(&self) -> Vec<(Sequenced, i64)> {
        let newest = |producer: &Producer| Some((*producer.batches.back()?, producer.seen_ms));
        let mut all: Vec<_> = self.by_id.values().filter_map(newest).collect();
        all.sort_unstable_by_key(|(batch, _)| batch.producer_id);
        all
    }
}

impl Producer {
    fn duplicate_of(&self, batch: &Sequenced) -> Option<Verdict> {
        let same = |known: &&Sequenced| {
            (known.epoch, known.first, known.last) == (batch.epoch, batch.first, batch.last)
        };
        let known = self.batches.iter().find(same).map(|known| Verdict::Duplicate {
            base_offset: known.base_offset,
            last_offset: known.last_offset,
            timestamp: known.timestamp,
        });
        known.or_else(|| self.duplicate_before(batch))
    }

    /// A batch from before a snapshot is in the log, at offsets that nobody remembers.
    fn duplicate_before(&self, batch: &Sequenced) -> Option<Verdict> {
        let oldest = self.batches.front().filter(|_| self.restored)?;
        let before = batch.epoch == oldest.epoch && batch.last < oldest.first;
        (before && batch.first <= batch.last).then_some(Verdict::Duplicate {
            base_offset: -1,
            last_offset: oldest.last_offset,
            timestamp: -1,
        })
    }
}

/// The sequence number after `sequence`; after the greatest comes 0.
fn after(sequence: i32) -> i32 {
    sequence.checked_add(1).unwrap_or(0)
}

/// The sequence number `count` further; after the greatest comes 0.
pub(crate) fn advance(sequence: i32, count: i32) -> i32 {
    sequence.wrapping_add(count) & i32::MAX
}

/// The sequence number `count` before.
pub(crate) fn go_back(sequence: i32, count: i32) -> i32 {
    sequence.wrapping_sub(count) & i32::MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(epoch: i16, first: i32, count: i32, base_offset: i64) -> Sequenced {
        Sequenced {
            producer_id: 7,
            epoch,
            first,
            last: advance(first, count - 1),
            base_offset,
            last_offset: base_offset + i64::from(count) - 1,
            timestamp: 0,
        }
    }

    fn after_batches(batches: &[Sequenced]) -> Producers {
        let mut producers = Producers::default();
        for batch in batches {
            producers.record(*batch, 0);
        }
        producers
    }

    #[test]
    fn the_last_five_batches_are_known_again() {
        let sent: Vec<_> = (0..7).map(|n| batch(0, n * 2, 2, i64::from(n) * 2)).collect();
        let producers = after_batches(&sent);
        for known in &sent[2..] {
            assert_eq!(
                producers.check(known).unwrap(),
                Verdict::Duplicate {
                    base_offset: known.base_offset,
                    last_offset: known.last_offset,
                    timestamp: 0
                }
            );
        }
        assert!(matches!(
            producers.check(&sent[1]),
            Err(LogError::OutOfOrderSequence { expected: 14, found: 2, .. })
        ));
    }

    #[test]
    fn what_came_before_a_snapshot_is_known_without_its_offsets() {
        let mut producers = Producers::default();
        producers.restore(batch(0, 10, 5, 100), 0);
        let unknown = Verdict::Duplicate { base_offset: -1, last_offset: 104, timestamp: -1 };
        assert_eq!(producers.check(&batch(0, 5, 5, 0)).unwrap(), unknown);
        assert!(producers.check(&batch(0, 8, 5, 0)).is_err(), "it overlaps");
        assert_eq!(producers.check(&batch(0, 15, 1, 0)).unwrap(), Verdict::New);
    }

    #[test]
    fn a_gap_and_a_batch_of_another_size_are_out_of_order() {
        let producers = after_batches(&[batch(0, 0, 3, 0)]);
        assert!(producers.check(&batch(0, 4, 1, 0)).is_err());
        assert!(producers.check(&batch(0, 0, 2, 0)).is_err());
        assert_eq!(producers.check(&batch(0, 3, 1, 0)).unwrap(), Verdict::New);
    }

    #[test]
    fn a_new_epoch_begins_at_zero_and_fences_the_old() {
        let mut producers = after_batches(&[batch(1, 0, 3, 0)]);
        assert!(matches!(
            producers.check(&batch(2, 3, 1, 0)),
            Err(LogError::OutOfOrderSequence { expected: 0, .. })
        ));
        assert_eq!(producers.check(&batch(2, 0, 3, 3)).unwrap(), Verdict::New);
        producers.record(batch(2, 0, 3, 3), 0);
        assert!(matches!(
            producers.check(&batch(1, 3, 1, 0)),
            Err(LogError::InvalidProducerEpoch { current: 2, found: 1, .. })
        ));
    }

    #[test]
    fn sequences_go_round() {
        let producers = after_batches(&[batch(0, i32::MAX - 1, 2, 0)]);
        assert_eq!(producers.check(&batch(0, 0, 1, 2)).unwrap(), Verdict::New);
        assert_eq!(advance(i32::MAX, 1), 0);
        assert_eq!(go_back(0, 1), i32::MAX);
        assert_eq!(batch(0, i32::MAX, 3, 0).last, 1);
    }

    #[test]
    fn a_producer_with_old_timestamps_is_not_forgotten_early() {
        let mut producers = after_batches(&[]);
        let now = 1_800_000_000_000;
        producers.record(batch(0, 0, 1, 0), now);
        producers.expire(now + EXPIRES_AFTER_MS - 1);
        assert_eq!(producers.newest().len(), 1);
        producers.expire(now + EXPIRES_AFTER_MS);
        assert!(producers.newest().is_empty());
    }
}
