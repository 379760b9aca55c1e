//! The batches of one partition on their way: being filled, waiting, in flight.
//!
//! A pure state machine for an idempotent producer (KIP-98): each batch bears the sequence number of
//! its first record, the broker takes a batch only behind the one before it, and knows one that it
//! has already. So a batch whose fate is unknown is sent again as it was, and nothing is sent past
//! a batch that failed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use highwater_protocol::records::{
    Batch, BatchBuilder, BatchError, Compression, DECOMPRESSED_MAX, Record,
};

use crate::OutgoingRecord;
use crate::delivery::Book;

/// From the oldest batch that is not known to be stored to the newest that was sent: brokers remember
/// as many of a producer (KIP-98), and what one of them was sent again must still be among them.
const IN_FLIGHT: usize = 5;

/// A partition that acknowledged nothing for so long begins with one batch alone: a broker that has
/// forgotten the producer takes any sequence number, and so would take what follows a batch that it
/// refuses.
const WARM: Duration = Duration::from_secs(60);

/// Who the broker takes us for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Producer {
    pub(crate) id: i64,
    pub(crate) epoch: i16,
    /// Whether what it sends is part of transactions.
    pub(crate) transactional: bool,
}

impl Producer {
    /// Finishes a batch as this producer's.
    fn seal(self, batch: BatchBuilder, sequence: i32) -> Result<Bytes, BatchError> {
        let batch = batch.producer(self.id, self.epoch, sequence);
        if self.transactional { batch.transactional() } else { batch }.build()
    }
}

/// Records of one book whose sequences follow each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Run {
    pub(crate) book: Book,
    pub(crate) first: u64,
    pub(crate) count: u64,
}

/// A batch that is being filled, or full.
#[derive(Debug)]
struct Filling {
    builder: BatchBuilder,
    runs: Vec<Run>,
    /// Timestamp of its records, in milliseconds since 1970.
    time: i64,
    began: Instant,
}

/// A batch as it is sent, however often.
#[derive(Debug)]
struct Sealed {
    sequence: i32,
    bytes: Bytes,
    runs: Vec<Run>,
    /// In flight, and since stored.
    sent: bool,
    stored: bool,
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Queue {
    pub(crate) topic: Arc<str>,
    pub(crate) partition: i32,
    /// Bytes of a batch at most, unless one record has more.
    limit: usize,
    filling: VecDeque<Filling>,
    sealed: VecDeque<Sealed>,
    /// Sequence number of the next batch.
    sequence: i32,
    in_flight: usize,
    /// A batch failed: nothing more is sent until the fate of all in flight is known.
    disturbed: bool,
    stored_at: Option<Instant>,
    /// What is being filled goes out at once.
    hurried: bool,
    /// Whether the open transaction has its partition.
    pub(crate) enlisted: bool,
    /// Whether it has taken offset records: each transaction ends with one.
    takes_offsets: bool,
    /// What keeps its batches from being stored, as far as that passes.
    pub(crate) trouble: Option<String>,
}

impl Queue {
    pub(crate) fn new(topic: Arc<str>, partition: i32, limit: usize) -> Self {
        Self {
            topic,
            partition,
            limit,
            filling: VecDeque::new(),
            sealed: VecDeque::new(),
            sequence: 0,
            in_flight: 0,
            disturbed: false,
            stored_at: None,
            hurried: false,
            enlisted: false,
            takes_offsets: false,
            trouble: None,
        }
    }

    /// Adds a record. Returns whether the sender has to look: a batch began or became full.
    pub(crate) fn push(
        &mut self,
        record: &OutgoingRecord,
        book: Book,
        sequence: u64,
        now: Instant,
    ) -> bool {
        self.takes_offsets |= book == Book::Offsets;
        let size = record.size();
        let fits = |filling: &Filling| filling.builder.size() + size <= self.limit;
        let fits = self.filling.back().is_some_and(fits);
        if !fits {
            self.filling.push_back(Filling::new(now));
        }
        if let Some(filling) = self.filling.back_mut() {
            filling.push(record, book, sequence);
        }
        !fits
    }

    /// What is being filled goes out without waiting to grow.
    pub(crate) fn hurry(&mut self) {
        self.hurried = !self.filling.is_empty();
    }

    /// Whether anything waits to be sent or is in flight.
    pub(crate) fn is_busy(&self) -> bool {
        !self.filling.is_empty() || !self.sealed.is_empty()
    }

    /// Whether it shall join the open transaction: it has something to send, or will have.
    pub(crate) fn is_to_enlist(&self) -> bool {
        !self.enlisted && (self.is_busy() || self.takes_offsets)
    }

    /// When the batch that is being filled has waited long enough; `None` without one.
    pub(crate) fn due(&self, linger: Duration) -> Option<Instant> {
        let first = self.filling.front()?;
        let now = self.hurried || self.filling.len() > 1;
        Some(if now { first.began } else { first.began + linger })
    }

    /// Whether the next batch may go out now, as far as those before it are concerned.
    fn has_room(&self, now: Instant) -> bool {
        let warm = self.stored_at.is_some_and(|at| now.saturating_duration_since(at) < WARM);
        // Stored ones between those that are not count too: the broker remembers them as well.
        let next = self.sealed.iter().position(|batch| !batch.sent).unwrap_or(self.sealed.len());
        !self.disturbed && if warm { next < IN_FLIGHT } else { self.in_flight == 0 }
    }

    /// Whether [`Self::next`] would give a batch.
    pub(crate) fn is_ready(&self, now: Instant, linger: Duration) -> bool {
        let waits = self.sealed.iter().any(|batch| !batch.sent);
        self.has_room(now) && (waits || self.due(linger).is_some_and(|due| due <= now))
    }

    /// The next batch to send, with its sequence number.
    ///
    /// # Errors
    /// When a batch cannot be made.
    pub(crate) fn next(
        &mut self,
        producer: Producer,
        now: Instant,
        linger: Duration,
    ) -> Result<Option<(i32, Bytes)>, BatchError> {
        if !self.is_ready(now, linger) {
            return Ok(None);
        }
        if self.sealed.iter().all(|batch| batch.sent)
            && let Some(filling) = self.filling.pop_front()
        {
            self.hurried &= !self.filling.is_empty();
            let batch = filling.seal(producer, self.sequence)?;
            self.sequence = after(self.sequence, batch.records());
            self.sealed.push_back(batch);
        }
        let Some(batch) = self.sealed.iter_mut().find(|batch| !batch.sent) else { return Ok(None) };
        batch.sent = true;
        self.in_flight += 1;
        Ok(Some((batch.sequence, batch.bytes.clone())))
    }

    /// A batch is stored. Gives its records once.
    pub(crate) fn stored(&mut self, sequence: i32, now: Instant) -> Vec<Run> {
        let Some(batch) = self.answered(sequence) else { return Vec::new() };
        batch.stored = true;
        let runs = std::mem::take(&mut batch.runs);
        self.stored_at = Some(now);
        self.trouble = None;
        while self.sealed.front().is_some_and(|batch| batch.stored) {
            self.sealed.pop_front();
        }
        self.settle();
        runs
    }

    /// A batch failed in a way that passes, or its fate is unknown: it is sent again, and so are
    /// those behind it.
    pub(crate) fn failed(&mut self, sequence: i32) {
        self.answered(sequence);
        self.disturbed = true;
        self.settle();
    }

    /// A batch that [`Self::next`] gave did not go out, and is the next one still.
    pub(crate) fn unsent(&mut self, sequence: i32) {
        if let Some(batch) = self.answered(sequence) {
            batch.sent = false;
        }
    }

    /// A batch has more bytes than its topic takes: nothing of it is stored, and it is sent again in
    /// halves. Its records keep their sequence numbers, and so do those behind it. Returns whether
    /// it has halves: a single record has none.
    ///
    /// # Errors
    /// When a half cannot be made.
    pub(crate) fn halve(&mut self, sequence: i32) -> Result<bool, BatchError> {
        let its = |batch: &Sealed| batch.sequence == sequence && !batch.stored;
        let Some(at) = self.sealed.iter().position(its) else { return Ok(true) };
        let Some(batch) = self.sealed.get(at).filter(|batch| batch.records() > 1) else {
            return Ok(false);
        };
        let halves = batch.halves()?;
        self.limit = self.limit.min(batch.bytes.len() / 2);
        self.sealed.remove(at);
        for half in halves.into_iter().rev() {
            self.sealed.insert(at, half);
        }
        self.failed(sequence);
        Ok(true)
    }

    /// Whether a batch before this one is not stored, so that the broker may rightly miss it.
    pub(crate) fn is_behind(&self, sequence: i32) -> bool {
        self.sealed.front().is_some_and(|first| first.sequence != sequence)
    }

    /// Whether the fate of a batch in flight is known no longer, and none is in flight any more.
    pub(crate) const fn is_quiet(&self) -> bool {
        self.in_flight == 0
    }

    fn answered(&mut self, sequence: i32) -> Option<&mut Sealed> {
        let in_flight = |batch: &&mut Sealed| batch.sequence == sequence && batch.sent;
        let batch = self.sealed.iter_mut().find(in_flight).filter(|batch| !batch.stored)?;
        self.in_flight = self.in_flight.saturating_sub(1);
        Some(batch)
    }

    /// Once nothing is in flight, what is not stored goes out again, the first of it alone.
    fn settle(&mut self) {
        if self.disturbed && self.in_flight == 0 {
            self.disturbed = false;
            self.stored_at = None;
            for batch in self.sealed.iter_mut().filter(|batch| !batch.stored) {
                batch.sent = false;
            }
        }
    }
}

impl Filling {
    fn new(now: Instant) -> Self {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let time = since.map_or(0, |since| i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
        let builder = BatchBuilder::new(Compression::None);
        Self { builder, runs: Vec::new(), time, began: now }
    }

    fn push(&mut self, record: &OutgoingRecord, book: Book, sequence: u64) {
        let headers =
            record.headers.iter().map(|(name, value)| (name.as_bytes(), Some(value.as_ref())));
        let OutgoingRecord { key, value, .. } = record;
        self.builder.push_parts(self.time, key.as_deref(), value.as_deref(), headers);
        match self.runs.last_mut() {
            Some(run) if run.book == book && run.first + run.count == sequence => run.count += 1,
            _ => self.runs.push(Run { book, first: sequence, count: 1 }),
        }
    }

    fn seal(self, producer: Producer, sequence: i32) -> Result<Sealed, BatchError> {
        let bytes = producer.seal(self.builder, sequence)?;
        Ok(Sealed { sequence, bytes, runs: self.runs, sent: false, stored: false })
    }
}

impl Sealed {
    fn records(&self) -> u64 {
        self.runs.iter().map(|run| run.count).sum()
    }

    fn halves(&self) -> Result<[Self; 2], BatchError> {
        let batch = Batch::parse(&self.bytes)?;
        let producer = Producer {
            id: batch.header.producer_id,
            epoch: batch.header.producer_epoch,
            transactional: batch.header.is_transactional(),
        };
        let records = batch.records(DECOMPRESSED_MAX)?.collect::<Result<Vec<_>, _>>()?;
        let (first, second) = records.split_at(records.len() / 2);
        let behind = after(self.sequence, first.len() as u64);
        let [before, rest] = split(&self.runs, first.len() as u64);
        Ok([
            Self::anew(first, before, producer, self.sequence)?,
            Self::anew(second, rest, producer, behind)?,
        ])
    }

    /// A batch in the place of one in flight.
    fn anew(
        records: &[Record],
        runs: Vec<Run>,
        producer: Producer,
        sequence: i32,
    ) -> Result<Self, BatchError> {
        let mut builder = BatchBuilder::new(Compression::None);
        for Record { timestamp, key, value, headers, .. } in records {
            builder.push(*timestamp, key.as_deref(), value.as_deref(), headers);
        }
        let bytes = producer.seal(builder, sequence)?;
        Ok(Self { sequence, bytes, runs, sent: true, stored: false })
    }
}

/// The first `count` records, and the rest.
fn split(runs: &[Run], count: u64) -> [Vec<Run>; 2] {
    let (mut before, mut behind, mut left) = (Vec::new(), Vec::new(), count);
    for Run { book, first, count } in runs.iter().cloned() {
        let here = count.min(left);
        left -= here;
        if here > 0 {
            before.push(Run { book, first, count: here });
        }
        if here < count {
            behind.push(Run { book, first: first + here, count: count - here });
        }
    }
    [before, behind]
}

/// The sequence number `records` further on; after the greatest comes 0.
fn after(sequence: i32, records: u64) -> i32 {
    const NUMBERS: u64 = 1 << 31;
    i32::try_from((sequence.unsigned_abs() as u64 + records) % NUMBERS).unwrap_or(0)
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
