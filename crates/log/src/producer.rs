//! One producer in one partition: what it sent last, and its transaction. Pure; the rules are Kafka's
//! (KIP-98, KIP-360).

use std::collections::VecDeque;

use highwater_protocol::records::BatchHeader;

use crate::end_marker::EndMarker;
use crate::sequence::{advance, after, go_back};
use crate::{LogError, Origin};

/// Batches remembered for each producer; a client has at most as many in flight (KIP-98).
const REMEMBERED: usize = 5;

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
    pub(crate) is_transactional: bool,
}

impl Sequenced {
    /// None for a batch of a producer without an id, and for a marker.
    pub(crate) fn of(header: &BatchHeader) -> Option<Self> {
        (header.producer_id >= 0 && !header.is_control()).then(|| Self {
            producer_id: header.producer_id,
            epoch: header.producer_epoch,
            first: header.base_sequence,
            last: advance(header.base_sequence, header.last_offset_delta),
            base_offset: header.base_offset,
            last_offset: header.last_offset(),
            timestamp: header.max_timestamp,
            is_transactional: header.is_transactional(),
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

/// What a snapshot keeps of a producer: the newest batch alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Kept {
    pub(crate) producer_id: i64,
    pub(crate) epoch: i16,
    /// Of the newest batch; -1 where there is none or it has none.
    pub(crate) last_sequence: i32,
    /// Of the newest batch; -1 where there is none.
    pub(crate) last_offset: i64,
    /// Records of the newest batch, less one.
    pub(crate) offset_delta: i32,
    pub(crate) seen_ms: i64,
    pub(crate) coordinator_epoch: i32,
    /// First offset of the open transaction.
    pub(crate) open: Option<i64>,
}

#[derive(Clone, Debug)]
pub(crate) struct Producer {
    pub(crate) epoch: i16,
    batches: VecDeque<Sequenced>,
    /// True if the oldest batch comes from a snapshot, which keeps no more than one: all that the
    /// producer sent before it is in the log too.
    restored: bool,
    /// When it was last heard of, by the log's clock: a producer's timestamps may be years old.
    pub(crate) seen_ms: i64,
    /// The timestamp of its newest batch or marker; after a start from a snapshot the time of that.
    pub(crate) last_timestamp: i64,
    /// The greatest epoch of a coordinator that ended a transaction of it; -1 as long as none did.
    pub(crate) coordinator_epoch: i32,
    /// First offset of the open transaction.
    pub(crate) open: Option<i64>,
    /// Offset of the newest marker; None as long as this process saw none.
    marker: Option<i64>,
}

impl Producer {
    /// One of which nothing is in the log.
    pub(crate) fn new(epoch: i16, now_ms: i64) -> Self {
        Self {
            epoch,
            batches: VecDeque::new(),
            restored: false,
            seen_ms: now_ms,
            last_timestamp: -1,
            coordinator_epoch: -1,
            open: None,
            marker: None,
        }
    }

    pub(crate) fn restored(kept: &Kept) -> Self {
        let mut producer = Self::new(kept.epoch, kept.seen_ms);
        producer.last_timestamp = kept.seen_ms;
        producer.coordinator_epoch = kept.coordinator_epoch;
        producer.open = kept.open;
        if kept.last_offset >= 0 {
            producer.restored = true;
            producer.batches.push_back(Sequenced {
                producer_id: kept.producer_id,
                epoch: kept.epoch,
                first: go_back(kept.last_sequence, kept.offset_delta),
                last: kept.last_sequence,
                base_offset: kept.last_offset.saturating_sub(i64::from(kept.offset_delta)),
                last_offset: kept.last_offset,
                timestamp: -1,
                is_transactional: kept.open.is_some(),
            });
        }
        producer
    }

    pub(crate) fn kept(&self, producer_id: i64) -> Kept {
        let newest = self.batches.back();
        let delta = newest.map_or(0, |batch| batch.last_offset - batch.base_offset);
        Kept {
            producer_id,
            epoch: self.epoch,
            last_sequence: self.last_sequence(),
            last_offset: newest.map_or(-1, |batch| batch.last_offset),
            offset_delta: i32::try_from(delta).unwrap_or(i32::MAX),
            seen_ms: self.seen_ms,
            coordinator_epoch: self.coordinator_epoch,
            open: self.open,
        }
    }

    /// Of the newest batch, or -1.
    pub(crate) fn last_sequence(&self) -> i32 {
        self.batches.back().map_or(-1, |batch| batch.last)
    }

    /// Decides about a batch.
    pub(crate) fn check(&self, batch: &Sequenced, origin: Origin) -> Result<Verdict, LogError> {
        self.check_epoch(batch.producer_id, batch.epoch)?;
        if origin != Origin::Coordinator
            && let Some(duplicate) = self.check_sequence(batch)?
        {
            return Ok(duplicate);
        }
        if self.open.is_some() && !batch.is_transactional {
            let reason = "its transaction is open and the batch does not belong to it";
            return Err(invalid_state(batch.producer_id, reason));
        }
        if let Origin::Verified { at } = origin
            && self.open.is_none()
            && self.marker.is_some_and(|marker| marker >= at)
        {
            let reason = "the transaction for which it was verified has ended meanwhile";
            return Err(invalid_state(batch.producer_id, reason));
        }
        Ok(Verdict::New)
    }

    pub(crate) fn check_epoch(&self, producer_id: i64, found: i16) -> Result<(), LogError> {
        let current = self.epoch;
        if found < current {
            return Err(LogError::InvalidProducerEpoch { producer_id, current, found });
        }
        Ok(())
    }

    /// None if the batch is the next one.
    fn check_sequence(&self, batch: &Sequenced) -> Result<Option<Verdict>, LogError> {
        let expected = match self.batches.back() {
            Some(newest) if batch.epoch == self.epoch => after(newest.last),
            // A new epoch begins at 0, also where only a marker has brought it.
            _ => 0,
        };
        if batch.first == expected {
            return Ok(None);
        }
        let producer_id = batch.producer_id;
        let gap = LogError::OutOfOrderSequence { producer_id, expected, found: batch.first };
        self.duplicate_of(batch).map(Some).ok_or(gap)
    }

    /// Decides about a marker. One of the same epoch is in order, also where no transaction is open: the
    /// coordinator may not know that it wrote it.
    pub(crate) fn check_marker(&self, marker: &EndMarker) -> Result<(), LogError> {
        self.check_epoch(marker.producer_id, marker.producer_epoch)?;
        if marker.coordinator_epoch < self.coordinator_epoch {
            return Err(LogError::CoordinatorFenced {
                producer_id: marker.producer_id,
                current: self.coordinator_epoch,
                found: marker.coordinator_epoch,
            });
        }
        Ok(())
    }

    /// Remembers a batch that is in the log; true if a transaction begins with it.
    pub(crate) fn record(&mut self, batch: Sequenced, now_ms: i64) -> bool {
        self.move_to(batch.epoch);
        if self.batches.len() == REMEMBERED {
            self.batches.pop_front();
            self.restored = false;
        }
        self.batches.push_back(batch);
        self.seen_ms = now_ms;
        self.last_timestamp = batch.timestamp;
        let begins = batch.is_transactional && self.open.is_none();
        if begins {
            self.open = Some(batch.base_offset);
        }
        begins
    }

    /// Takes a marker that is in the log.
    pub(crate) fn end(&mut self, marker: &EndMarker, offset: i64, timestamp: i64, now_ms: i64) {
        self.move_to(marker.producer_epoch);
        self.coordinator_epoch = marker.coordinator_epoch;
        self.open = None;
        self.marker = Some(offset);
        self.seen_ms = now_ms;
        self.last_timestamp = timestamp;
    }

    fn move_to(&mut self, epoch: i16) {
        if self.epoch != epoch {
            self.epoch = epoch;
            self.batches.clear();
            self.restored = false;
        }
    }

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

fn invalid_state(producer_id: i64, reason: &str) -> LogError {
    LogError::InvalidTxnState { producer_id, reason: reason.to_owned() }
}
