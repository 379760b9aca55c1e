//! What was sent, what is acknowledged, what may be stored and what the source may be told.
//!
//! A pure state machine for rules P1 and P2. It keeps three promises whatever order its inputs
//! come in: an offset to store never lies beyond the acknowledged prefix of what was sent; a
//! position is given out for `committed` only after its offset record was acknowledged; after a
//! failure nothing is given out any more, since the outcome of what was in flight is unknown.
//!
//! Where records and offset share a transaction, the offset covers all of it: none is given out
//! while a record of it is in flight, and `stored` is said once the transaction is committed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use highwater_connector::{Hw, Position, SourceOffset, Tail, TailEntry};
use highwater_kafka::Acknowledgement;

/// Offset-only writes are at most one a second (rule P1).
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// One record on its way.
#[derive(Debug)]
struct InFlight {
    sequence: u64,
    hw: Option<Hw>,
    position: Arc<dyn Position>,
}

/// The last record that a partition was given since the offset record before.
#[derive(Debug)]
struct Touched {
    topic: Arc<str>,
    partition: i32,
    offset: i64,
    hw: Option<Hw>,
}

/// An offset record to write.
#[derive(Debug)]
pub(crate) struct Pending {
    /// Its value.
    pub(crate) offset: SourceOffset,
    /// Its header `hw.tail`.
    pub(crate) tail: Tail,
}

/// The log acknowledged something that was not next in line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the log acknowledged record {acknowledged}, but the next one sent is {expected:?}")]
pub(crate) struct OutOfOrder {
    acknowledged: u64,
    expected: Option<u64>,
}

#[derive(Debug)]
enum Phase {
    /// Nothing is being written.
    Open,
    /// An offset record is on its way; its position is told to the source once it is safe.
    Storing(Option<Arc<dyn Position>>),
    /// An outcome is unknown.
    Failed,
}

/// What an offset record has to cover.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Cover {
    /// What is acknowledged: what is not is delivered again after a crash.
    Acknowledged,
    /// All that was sent, since it becomes visible with the offset.
    All,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Ledger {
    cover: Cover,
    phase: Phase,
    in_flight: VecDeque<InFlight>,
    /// Newest acknowledged position that no offset record covers.
    safe: Option<Arc<dyn Position>>,
    /// Newest position that came without a record, behind everything sent.
    idle: Option<Arc<dyn Position>>,
    touched: Vec<Touched>,
    /// Header of the newest offset record, repeated by offset-only writes.
    tail: Tail,
    stored_at: Instant,
    /// See [`Self::commit_time_us`].
    commit_time_us: Option<i64>,
}

impl Ledger {
    /// A ledger for a run that begins at an offset record with this `tail`.
    pub(crate) const fn new(cover: Cover, tail: Tail, now: Instant) -> Self {
        Self {
            cover,
            phase: Phase::Open,
            in_flight: VecDeque::new(),
            safe: None,
            idle: None,
            touched: Vec::new(),
            tail,
            stored_at: now,
            commit_time_us: None,
        }
    }

    /// A record was given to the writer as number `sequence`.
    pub(crate) fn sent(&mut self, sequence: u64, hw: Option<Hw>, position: Arc<dyn Position>) {
        self.idle = None;
        self.in_flight.push_back(InFlight { sequence, hw, position });
    }

    /// The source moved on to `position` without a record.
    pub(crate) fn idle(&mut self, position: Arc<dyn Position>) {
        self.idle = Some(position);
    }

    /// A record was left out: it counts as acknowledged once all before it is. So its position is that
    /// of the last record before it.
    pub(crate) fn left_out(&mut self, position: Arc<dyn Position>) {
        self.idle = None;
        match self.in_flight.back_mut() {
            Some(last) => last.position = position,
            None => self.safe = Some(position),
        }
    }

    /// The log holds a record, and all that were sent before it.
    ///
    /// # Errors
    /// When it is not the next one; the ledger has then failed.
    pub(crate) fn acknowledged(&mut self, ack: &Acknowledgement) -> Result<(), OutOfOrder> {
        match self.in_flight.pop_front() {
            Some(next) if next.sequence == ack.sequence => {
                let commit_time = next.hw.as_ref().and_then(|hw| hw.commit_time_us);
                self.commit_time_us = commit_time.or(self.commit_time_us);
                self.touch(ack, next.hw);
                self.safe = Some(next.position);
                Ok(())
            }
            other => {
                self.phase = Phase::Failed;
                let expected = other.map(|next| next.sequence);
                Err(OutOfOrder { acknowledged: ack.sequence, expected })
            }
        }
    }

    fn touch(&mut self, ack: &Acknowledgement, hw: Option<Hw>) {
        let entry = self
            .touched
            .iter_mut()
            .find(|entry| entry.partition == ack.partition && entry.topic == ack.topic);
        match entry {
            Some(entry) => (entry.offset, entry.hw) = (ack.offset, hw),
            None => self.touched.push(Touched {
                topic: Arc::clone(&ack.topic),
                partition: ack.partition,
                offset: ack.offset,
                hw,
            }),
        }
    }

    /// When the newest acknowledged record was committed at the source, as far as records say it.
    pub(crate) const fn commit_time_us(&self) -> Option<i64> {
        self.commit_time_us
    }

    /// Number of records whose acknowledgement is outstanding.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    /// Whether an offset record is due: something acknowledged waits since `interval`, or an idle
    /// position does while nothing is in flight.
    pub(crate) fn is_due(&self, now: Instant, interval: Duration) -> bool {
        let waited = now.saturating_duration_since(self.stored_at);
        (self.safe.is_some() && waited >= interval)
            || (self.idle_ready() && waited >= interval.max(IDLE_INTERVAL))
    }

    fn idle_ready(&self) -> bool {
        self.idle.is_some() && self.in_flight.is_empty()
    }

    /// Whether acknowledged records wait for an offset record.
    pub(crate) fn is_waiting(&self) -> bool {
        self.safe.is_some()
    }

    /// Takes the offset that covers the acknowledged prefix, if there is one that is not stored.
    /// [`Self::stored`] or [`Self::failed`] must follow.
    pub(crate) fn store(&mut self) -> Option<Pending> {
        let covers = self.cover == Cover::Acknowledged || self.in_flight.is_empty();
        if !matches!(self.phase, Phase::Open) || !covers {
            return None;
        }
        let idle = if self.idle_ready() { self.idle.take() } else { None };
        let position = idle.or_else(|| self.safe.take())?;
        self.safe = None;
        let offset = position.offset();
        Some(self.begin(offset, Some(position)))
    }

    /// An offset of the connector's own, without a record (an intent, a new slot). Nothing may be
    /// in flight; it replaces what waits to be stored.
    pub(crate) fn store_explicit(&mut self, offset: SourceOffset) -> Option<Pending> {
        if !matches!(self.phase, Phase::Open) || !self.in_flight.is_empty() {
            return None;
        }
        (self.safe, self.idle) = (None, None);
        Some(self.begin(offset, None))
    }

    fn begin(&mut self, offset: SourceOffset, position: Option<Arc<dyn Position>>) -> Pending {
        self.phase = Phase::Storing(position);
        if !self.touched.is_empty() {
            self.tail = Tail(self.touched.drain(..).map(Touched::entry).collect());
        }
        Pending { offset, tail: self.tail.clone() }
    }

    /// The offset record is safe: returns the position that the source may be told.
    pub(crate) fn stored(&mut self, now: Instant) -> Option<Arc<dyn Position>> {
        let Phase::Storing(position) = &mut self.phase else { return None };
        let position = position.take();
        self.phase = Phase::Open;
        self.stored_at = now;
        position
    }

    /// Whether an outcome is unknown.
    pub(crate) const fn has_failed(&self) -> bool {
        matches!(self.phase, Phase::Failed)
    }

    /// An outcome is unknown: nothing of this ledger may be reported as safe any more.
    pub(crate) fn failed(&mut self) {
        self.phase = Phase::Failed;
    }
}

impl Touched {
    fn entry(self) -> TailEntry {
        let id = self.hw.map(|hw| hw.record_id().to_string()).unwrap_or_default();
        TailEntry {
            topic: self.topic.as_ref().to_owned(),
            partition: self.partition,
            offset: self.offset,
            id,
        }
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
