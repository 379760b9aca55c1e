//! The producers of a partition that number their batches: so that a batch sent again is not appended
//! again, a producer that was replaced is refused, and transactions have a beginning and an end.

use std::collections::{BTreeMap, HashMap};

use crate::end_marker::{EndMarker, MarkerKind};
use crate::producer::{Kept, Producer, Sequenced, Verdict};
use crate::transaction_index::{Aborted, Entry};
use crate::unverified::Unverified;
use crate::{LogError, Origin};

/// Producers that a partition remembers; whoever writes may name as many ids as it likes.
pub(crate) const MOST: usize = 100_000;

/// So many are forgotten when there is room for no more.
const FORGOTTEN_AT_ONCE: usize = MOST / 10;

/// What a partition knows of a producer, as DescribeProducers tells it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProducerState {
    /// Its id.
    pub producer_id: i64,
    /// The newest epoch seen.
    pub producer_epoch: i16,
    /// The sequence number of its last record; -1 if none is known in this epoch.
    pub last_sequence: i32,
    /// The timestamp of its last batch or marker, in milliseconds since 1970.
    pub last_timestamp_ms: i64,
    /// The epoch of the coordinator that ended its last transaction; -1 if none is known.
    pub coordinator_epoch: i32,
    /// The first offset of its open transaction.
    pub transaction_start: Option<i64>,
}

/// A transaction that a marker ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Ended {
    pub(crate) kind: MarkerKind,
    /// Its entry in the transaction index, if it is aborted.
    pub(crate) entry: Entry,
}

/// The producers of one partition.
#[derive(Clone, Default, Debug)]
pub(crate) struct Producers {
    by_id: HashMap<i64, Producer>,
    /// Whose transactions are open, by their first offsets.
    open: BTreeMap<i64, i64>,
    unverified: Unverified,
}

impl Producers {
    /// Decides about a batch. A producer that is not known may begin anywhere, since it may have been
    /// forgotten; not above what it sent before and is to send again.
    pub(crate) fn check(&self, batch: &Sequenced, origin: Origin) -> Result<Verdict, LogError> {
        let known = self.by_id.get(&batch.producer_id);
        let verdict = known.map_or(Ok(Verdict::New), |producer| producer.check(batch, origin))?;
        if verdict == Verdict::New && origin != Origin::Coordinator {
            self.unverified.check(batch)?;
        }
        Ok(verdict)
    }

    /// Notes a transactional batch before its coordinator is asked whether its transaction is open, unless one
    /// is open here.
    pub(crate) fn begin_verification(
        &mut self,
        batch: &Sequenced,
        now_ms: i64,
    ) -> Result<(), LogError> {
        let Sequenced { producer_id, epoch, first, .. } = *batch;
        self.check_epoch(producer_id, epoch)?;
        let known = self.by_id.get(&producer_id);
        if !known.is_some_and(|producer| producer.open.is_some() && producer.epoch == epoch) {
            self.unverified.note(producer_id, epoch, first, now_ms);
        }
        Ok(())
    }

    /// Refuses an epoch older than the newest one seen.
    pub(crate) fn check_epoch(&self, producer_id: i64, epoch: i16) -> Result<(), LogError> {
        let known = self.by_id.get(&producer_id);
        known.map_or(Ok(()), |producer| producer.check_epoch(producer_id, epoch))
    }

    /// Decides about a marker.
    pub(crate) fn check_marker(&self, marker: &EndMarker) -> Result<(), LogError> {
        let known = self.by_id.get(&marker.producer_id);
        known.map_or(Ok(()), |producer| producer.check_marker(marker))
    }

    /// Remembers a batch that is in the log; true if a transaction begins with it.
    pub(crate) fn record(&mut self, batch: Sequenced, now_ms: i64) -> bool {
        if batch.is_transactional {
            self.unverified.forget(batch.producer_id);
        }
        let producer = self.entry(batch.producer_id, batch.epoch, now_ms);
        let begins = producer.record(batch, now_ms);
        if begins {
            self.open.insert(batch.base_offset, batch.producer_id);
        }
        begins
    }

    /// The transaction that a marker at `offset` ends, if there is one.
    pub(crate) fn ended_by(&self, marker: &EndMarker, offset: i64) -> Option<Ended> {
        let producer_id = marker.producer_id;
        let first_offset = self.by_id.get(&producer_id)?.open?;
        // The oldest one that stays open holds the last stable offset back from here on.
        let others = self.open.iter().find(|(_, whose)| **whose != producer_id);
        let entry = Entry {
            aborted: Aborted { producer_id, first_offset, last_offset: offset },
            last_stable_offset: others.map_or(offset + 1, |(first, _)| *first),
        };
        Some(Ended { kind: marker.kind, entry })
    }

    /// Takes a marker that is in the log.
    pub(crate) fn end(&mut self, marker: &EndMarker, offset: i64, timestamp: i64, now_ms: i64) {
        self.unverified.forget(marker.producer_id);
        let producer = self.entry(marker.producer_id, marker.producer_epoch, now_ms);
        let open = producer.open;
        producer.end(marker, offset, timestamp, now_ms);
        if let Some(first) = open {
            self.open.remove(&first);
        }
    }

    /// The producer, remembered from now on if need be.
    fn entry(&mut self, producer_id: i64, epoch: i16, now_ms: i64) -> &mut Producer {
        if self.by_id.len() >= MOST && !self.by_id.contains_key(&producer_id) {
            self.forget_some();
        }
        self.by_id.entry(producer_id).or_insert_with(|| Producer::new(epoch, now_ms))
    }

    /// Forgets those that have been silent for longest, as if their time were over.
    fn forget_some(&mut self) {
        let at_rest = self.by_id.values().filter(|producer| producer.open.is_none());
        let mut seen: Vec<i64> = at_rest.map(|producer| producer.seen_ms).collect();
        let mut going = FORGOTTEN_AT_ONCE.min(seen.len());
        let Some(last) = going.checked_sub(1) else { return };
        let (_, silent_since, _) = seen.select_nth_unstable(last);
        let silent_since = *silent_since;
        tracing::warn!(
            most = MOST,
            forgotten = going,
            "a partition has as many producers as it remembers: those silent for longest are forgotten"
        );
        self.by_id.retain(|_, producer| {
            let goes = going > 0 && producer.open.is_none() && producer.seen_ms <= silent_since;
            going -= usize::from(goes);
            !goes
        });
    }

    /// Remembers a producer of which a snapshot tells.
    pub(crate) fn restore(&mut self, kept: &Kept) {
        if let Some(first) = kept.open {
            self.open.insert(first, kept.producer_id);
        }
        self.by_id.insert(kept.producer_id, Producer::restored(kept));
    }

    /// Forgets producers that have been silent for so long; never one whose transaction is open.
    pub(crate) fn expire(&mut self, now_ms: i64, after_ms: i64) {
        self.unverified.expire(now_ms, after_ms);
        self.by_id.retain(|_, producer| {
            producer.open.is_some() || now_ms.saturating_sub(producer.seen_ms) < after_ms
        });
    }

    /// The greatest id that is remembered.
    pub(crate) fn greatest_id(&self) -> Option<i64> {
        self.by_id.keys().copied().max()
    }

    /// Whether the producer's transaction is open.
    pub(crate) fn is_open(&self, producer_id: i64) -> bool {
        self.by_id.get(&producer_id).is_some_and(|producer| producer.open.is_some())
    }

    /// The producers whose transactions are open: first offset, id and state.
    pub(crate) fn open(&self) -> impl Iterator<Item = (i64, i64, &Producer)> {
        let state = |(first, id): (&i64, &i64)| Some((*first, *id, self.by_id.get(id)?));
        self.open.iter().filter_map(state)
    }

    /// What a snapshot keeps, by producer id.
    pub(crate) fn kept(&self) -> Vec<Kept> {
        let mut all: Vec<_> = self.by_id.iter().map(|(id, producer)| producer.kept(*id)).collect();
        all.sort_unstable_by_key(|kept| kept.producer_id);
        all
    }

    /// What DescribeProducers tells, by producer id.
    pub(crate) fn states(&self) -> Vec<ProducerState> {
        let state = |(id, producer): (&i64, &Producer)| ProducerState {
            producer_id: *id,
            producer_epoch: producer.epoch,
            last_sequence: producer.last_sequence(),
            last_timestamp_ms: producer.last_timestamp,
            coordinator_epoch: producer.coordinator_epoch,
            transaction_start: producer.open,
        };
        let mut all: Vec<_> = self.by_id.iter().map(state).collect();
        all.sort_unstable_by_key(|state| state.producer_id);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequence::advance;

    const DAY_MS: i64 = 24 * 60 * 60 * 1000;

    fn batch(epoch: i16, first: i32, count: i32, base_offset: i64) -> Sequenced {
        Sequenced {
            producer_id: 7,
            epoch,
            first,
            last: advance(first, count - 1),
            base_offset,
            last_offset: base_offset + i64::from(count) - 1,
            timestamp: 0,
            is_transactional: false,
        }
    }

    fn part(producer_id: i64, first: i32, base_offset: i64) -> Sequenced {
        let batch = batch(0, first, 1, base_offset);
        Sequenced { producer_id, is_transactional: true, ..batch }
    }

    fn marker(producer_id: i64, producer_epoch: i16, coordinator_epoch: i32) -> EndMarker {
        EndMarker { producer_id, producer_epoch, kind: MarkerKind::Abort, coordinator_epoch }
    }

    fn after_batches(batches: &[Sequenced]) -> Producers {
        let mut producers = Producers::default();
        for batch in batches {
            producers.record(*batch, 0);
        }
        producers
    }

    fn check(producers: &Producers, batch: &Sequenced) -> Result<Verdict, LogError> {
        producers.check(batch, Origin::Client)
    }

    #[test]
    fn the_last_five_batches_are_known_again() {
        let sent: Vec<_> = (0..7).map(|n| batch(0, n * 2, 2, i64::from(n) * 2)).collect();
        let producers = after_batches(&sent);
        for known in &sent[2..] {
            assert_eq!(
                check(&producers, known).unwrap(),
                Verdict::Duplicate {
                    base_offset: known.base_offset,
                    last_offset: known.last_offset,
                    timestamp: 0
                }
            );
        }
        assert!(matches!(
            check(&producers, &sent[1]),
            Err(LogError::OutOfOrderSequence { expected: 14, found: 2, .. })
        ));
    }

    #[test]
    fn what_came_before_a_snapshot_is_known_without_its_offsets() {
        let mut producers = Producers::default();
        producers.restore(&after_batches(&[batch(0, 10, 5, 100)]).kept()[0]);
        let unknown = Verdict::Duplicate { base_offset: -1, last_offset: 104, timestamp: -1 };
        assert_eq!(check(&producers, &batch(0, 5, 5, 0)).unwrap(), unknown);
        assert!(check(&producers, &batch(0, 8, 5, 0)).is_err(), "it overlaps");
        assert_eq!(check(&producers, &batch(0, 15, 1, 0)).unwrap(), Verdict::New);
    }

    #[test]
    fn a_gap_and_a_batch_of_another_size_are_out_of_order() {
        let producers = after_batches(&[batch(0, 0, 3, 0)]);
        assert!(check(&producers, &batch(0, 4, 1, 0)).is_err());
        assert!(check(&producers, &batch(0, 0, 2, 0)).is_err());
        assert_eq!(check(&producers, &batch(0, 3, 1, 0)).unwrap(), Verdict::New);
        assert_eq!(check(&producers, &part(8, 77, 3)).unwrap(), Verdict::New, "nobody knows it");
    }

    #[test]
    fn a_new_epoch_begins_at_zero_and_fences_the_old() {
        let mut producers = after_batches(&[batch(1, 0, 3, 0)]);
        assert!(matches!(
            check(&producers, &batch(2, 3, 1, 0)),
            Err(LogError::OutOfOrderSequence { expected: 0, .. })
        ));
        assert_eq!(check(&producers, &batch(2, 0, 3, 3)).unwrap(), Verdict::New);
        producers.record(batch(2, 0, 3, 3), 0);
        assert!(matches!(
            check(&producers, &batch(1, 3, 1, 0)),
            Err(LogError::InvalidProducerEpoch { current: 2, found: 1, .. })
        ));
    }

    #[test]
    fn sequences_go_round() {
        let producers = after_batches(&[batch(0, i32::MAX - 1, 2, 0)]);
        assert_eq!(check(&producers, &batch(0, 0, 1, 2)).unwrap(), Verdict::New);
        assert_eq!(batch(0, i32::MAX, 3, 0).last, 1);
    }

    #[test]
    fn a_transaction_begins_with_its_first_batch_and_ends_with_a_marker() {
        let mut producers = Producers::default();
        assert!(producers.record(part(7, 0, 10), 0));
        assert!(!producers.record(part(7, 1, 11), 0));
        assert!(producers.record(part(8, 0, 12), 0));
        assert_eq!(
            producers.open().map(|open| (open.0, open.1)).collect::<Vec<_>>(),
            [(10, 7), (12, 8)]
        );
        let plain = Sequenced { is_transactional: false, ..part(7, 2, 0) };
        assert!(matches!(check(&producers, &plain), Err(LogError::InvalidTxnState { .. })));

        let ended = producers.ended_by(&marker(7, 0, 0), 13).unwrap();
        assert_eq!(
            ended.entry,
            Entry {
                aborted: Aborted { producer_id: 7, first_offset: 10, last_offset: 13 },
                last_stable_offset: 12
            }
        );
        producers.end(&marker(7, 0, 0), 13, 0, 0);
        assert_eq!(producers.ended_by(&marker(7, 0, 0), 14), None, "it has ended");
        assert_eq!(check(&producers, &plain).unwrap(), Verdict::New, "the sequence goes on");
        assert_eq!(producers.ended_by(&marker(8, 0, 0), 14).unwrap().entry.last_stable_offset, 15);
    }

    #[test]
    fn a_marker_fences_by_both_epochs() {
        let mut producers = after_batches(&[batch(1, 0, 3, 0)]);
        assert!(matches!(
            producers.check_marker(&marker(7, 0, 5)),
            Err(LogError::InvalidProducerEpoch { current: 1, found: 0, .. })
        ));
        producers.check_marker(&marker(7, 1, 5)).unwrap();
        producers.check_marker(&marker(9, 3, 0)).unwrap();
        producers.end(&marker(7, 2, 5), 3, 0, 0);
        assert!(matches!(
            producers.check_marker(&marker(7, 2, 4)),
            Err(LogError::CoordinatorFenced { current: 5, found: 4, .. })
        ));
        producers.check_marker(&marker(7, 2, 5)).unwrap();
        assert!(matches!(
            check(&producers, &batch(1, 3, 1, 4)),
            Err(LogError::InvalidProducerEpoch { .. })
        ));
        assert!(matches!(
            check(&producers, &batch(2, 3, 1, 4)),
            Err(LogError::OutOfOrderSequence { expected: 0, .. })
        ));
        assert_eq!(check(&producers, &batch(2, 0, 1, 4)).unwrap(), Verdict::New);
    }

    #[test]
    fn a_coordinator_needs_no_sequence_but_the_epoch() {
        let unnumbered = Sequenced { first: -1, last: -1, epoch: 3, ..part(7, 0, 5) };
        let mut producers = after_batches(&[unnumbered]);
        assert_eq!(producers.check(&unnumbered, Origin::Coordinator).unwrap(), Verdict::New);
        let old = Sequenced { epoch: 2, ..unnumbered };
        assert!(producers.check(&old, Origin::Coordinator).is_err());
        producers.restore(&producers.kept()[0].clone());
        assert_eq!(producers.states()[0].last_sequence, -1);
        assert_eq!(producers.check(&unnumbered, Origin::Coordinator).unwrap(), Verdict::New);
    }

    #[test]
    fn what_was_verified_for_a_transaction_that_has_ended_is_refused() {
        let mut producers = after_batches(&[part(7, 0, 5)]);
        producers.end(&marker(7, 0, 0), 6, 0, 0);
        let late = part(7, 1, 0);
        let verified = |at| producers.check(&late, Origin::Verified { at });
        assert!(matches!(verified(6), Err(LogError::InvalidTxnState { .. })));
        assert_eq!(verified(7).unwrap(), Verdict::New);
    }

    #[test]
    fn a_producer_with_old_timestamps_is_not_forgotten_early() {
        let mut producers = after_batches(&[]);
        let now = 1_800_000_000_000;
        producers.record(batch(0, 0, 1, 0), now);
        producers.record(part(8, 0, 1), now);
        producers.expire(now + DAY_MS - 1, DAY_MS);
        assert_eq!(producers.kept().len(), 2);
        producers.expire(now + DAY_MS, DAY_MS);
        let left: Vec<_> = producers.kept().iter().map(|kept| kept.producer_id).collect();
        assert_eq!(left, [8], "one whose transaction is open is never forgotten");
    }

    #[test]
    fn those_silent_for_longest_make_room_and_no_open_transaction_does() {
        let mut producers = Producers::default();
        let plain = |producer_id| Sequenced { producer_id, ..batch(0, 0, 1, producer_id) };
        producers.record(part(0, 0, 0), 0);
        let most = i64::try_from(MOST).unwrap();
        for id in 1..most {
            producers.record(plain(id), id);
        }
        assert_eq!(producers.kept().len(), MOST);
        producers.record(plain(5), most);
        assert_eq!(producers.kept().len(), MOST, "it is known");
        producers.record(plain(most), most);
        let kept: Vec<i64> = producers.kept().iter().map(|kept| kept.producer_id).collect();
        assert_eq!(kept.len(), MOST - FORGOTTEN_AT_ONCE + 1);
        let forgotten = i64::try_from(FORGOTTEN_AT_ONCE).unwrap();
        // The first has its transaction open, the fifth was heard of again.
        assert_eq!(kept[..3], [0, 5, forgotten + 2]);
    }
}
