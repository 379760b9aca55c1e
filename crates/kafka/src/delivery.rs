//! What a writer and its sender share: the queues, what was sent and what came back.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::ledger::{Bounds, Ledger, StoredAt};
use crate::queue::{Producer, Queue, Run};
use crate::{KafkaError, Lease, OutgoingRecord};

/// Which of a writer's two ledgers a record stands in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Book {
    /// What was given to `send`, reported by its sequence.
    Records,
    /// What was given to `offsets`, waited for there.
    Offsets,
}

/// The two ledgers, the queues behind them, and what broke the writer.
#[derive(Debug)]
pub(crate) struct State {
    records: Ledger,
    offsets: Ledger,
    pub(crate) queues: Vec<Queue>,
    places: HashMap<(Arc<str>, i32), usize>,
    /// The queue of the record before: mostly the next one's too.
    last: usize,
    batch_limit: usize,
    /// Who we are, once the cluster has said it.
    pub(crate) producer: Option<Producer>,
    /// What keeps the writer from being known to its cluster, as far as that passes.
    pub(crate) trouble: Option<String>,
    /// While it holds, records are sent; none: always.
    lease: Option<Lease>,
    /// The first failure. Once it is set nothing that still waits will ever be called safe.
    failure: Option<KafkaError>,
}

impl State {
    pub(crate) const fn ledger(&mut self, book: Book) -> &mut Ledger {
        match book {
            Book::Records => &mut self.records,
            Book::Offsets => &mut self.offsets,
        }
    }

    /// The failure, if the writer is broken.
    pub(crate) fn check(&self) -> Result<(), KafkaError> {
        self.failure.clone().map_or(Ok(()), Err)
    }

    /// Breaks the writer when a record has waited for longer than `patience`, or its lease has ended.
    pub(crate) fn expire(&mut self, now: Instant, patience: Duration) {
        if self.lease.as_ref().is_some_and(|lease| !lease.holds()) {
            self.failure.get_or_insert(KafkaError::LeaseEnded);
        }
        let overdue =
            self.records.overdue(now, patience).or_else(|| self.offsets.overdue(now, patience));
        if let Some(topic) = overdue {
            let its = self.queues.iter().filter(|queue| queue.topic == topic);
            let trouble = its.filter_map(|queue| queue.trouble.as_ref()).next();
            let trouble = trouble.or(self.trouble.as_ref());
            let trouble = trouble.map_or_else(String::new, |what| format!(": {what}"));
            let waited = patience.as_millis();
            self.fail(&topic, None, format!("not acknowledged within {waited} ms{trouble}"));
        }
    }

    /// Breaks the writer; `code` is what the cluster refused with.
    pub(crate) fn fail(&mut self, topic: &str, code: Option<i16>, detail: String) {
        if self.failure.is_none() {
            tracing::warn!(topic, detail, "the writer is broken");
            let topic = topic.to_owned();
            self.failure = Some(KafkaError::Write { topic, code, detail, fatal: true });
        }
    }

    /// Takes a record; `None` while the bounds are reached. Says whether the sender has to look.
    pub(crate) fn enter(
        &mut self,
        book: Book,
        record: &OutgoingRecord,
        partition: i32,
        now: Instant,
    ) -> Option<(u64, bool)> {
        let sequence = self.ledger(book).enter(&record.topic, record.size(), now)?;
        let at = self.queue_of(&record.topic, partition);
        let queue = self.queues.get_mut(at)?;
        Some((sequence, queue.push(record, book, sequence, now)))
    }

    fn queue_of(&mut self, topic: &Arc<str>, partition: i32) -> usize {
        let is_last = |last: &Queue| last.partition == partition && last.topic == *topic;
        if !self.queues.get(self.last).is_some_and(is_last) {
            let Self { queues, places, batch_limit, .. } = self;
            self.last = *places.entry((Arc::clone(topic), partition)).or_insert_with(|| {
                queues.push(Queue::new(Arc::clone(topic), partition, *batch_limit));
                queues.len() - 1
            });
        }
        self.last
    }

    /// Notes where records are stored. After a failure nothing counts any more: a record that
    /// arrives at the log then is delivered again by the writer's successor.
    pub(crate) fn settle(&mut self, runs: &[Run], partition: i32, base_offset: i64) {
        if self.failure.is_some() {
            return;
        }
        let mut offset = base_offset;
        for run in runs {
            for sequence in run.first..run.first + run.count {
                self.ledger(run.book).store(sequence, StoredAt { partition, offset });
                offset += 1;
            }
        }
    }

    /// Whether the transaction that is open has anything.
    pub(crate) fn has_transaction(&self) -> bool {
        self.queues.iter().any(|queue| queue.enlisted)
    }

    /// The transaction is committed: what comes next belongs to another.
    pub(crate) fn end_transaction(&mut self) {
        for queue in &mut self.queues {
            queue.enlisted = false;
        }
    }

    /// Everything goes out without waiting to grow.
    pub(crate) fn hurry(&mut self) {
        for queue in &mut self.queues {
            queue.hurry();
        }
    }
}

/// See the module's text.
#[derive(Debug)]
pub(crate) struct Deliveries {
    state: Mutex<State>,
    /// Wakes the writer.
    pub(crate) progress: Notify,
    /// Wakes the sender.
    pub(crate) work: Notify,
}

impl Deliveries {
    pub(crate) fn new(bounds: Bounds, batch_limit: usize, lease: Option<Lease>) -> Self {
        let state = State {
            records: Ledger::new(bounds),
            offsets: Ledger::new(bounds),
            queues: Vec::new(),
            places: HashMap::new(),
            last: 0,
            batch_limit,
            producer: None,
            trouble: None,
            lease,
            failure: None,
        };
        Self { state: Mutex::new(state), progress: Notify::new(), work: Notify::new() }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Waits for news since the last call, but no longer than `at_most`.
    pub(crate) async fn progress(&self, at_most: Duration) {
        // Running out of time is no error: the caller looks at the state in any case.
        let _ = tokio::time::timeout(at_most, self.progress.notified()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn deliveries() -> Deliveries {
        Deliveries::new(Bounds { records: 10, bytes: 1000 }, 1000, None)
    }

    fn send(state: &mut State, book: Book) -> u64 {
        state.ledger(book).enter(&Arc::from("trail"), 1, Instant::now()).unwrap()
    }

    #[test]
    fn nothing_after_a_failure_is_reported() {
        let deliveries = deliveries();
        let mut state = deliveries.state();
        for _ in 0..3 {
            send(&mut state, Book::Records);
        }
        let run = |first| [Run { book: Book::Records, first, count: 1 }];
        state.settle(&run(1), 0, 7);
        state.fail("trail", None, "too large".to_owned());
        state.settle(&run(2), 0, 8);
        let reported: Vec<u64> = state.records.report().iter().map(|ack| ack.sequence).collect();
        assert_eq!(reported, [1]);
        assert!(matches!(state.check(), Err(KafkaError::Write { fatal: true, .. })));
    }

    #[test]
    fn the_first_failure_is_kept() {
        let deliveries = deliveries();
        let mut state = deliveries.state();
        state.fail("trail", None, "first".to_owned());
        state.fail("trail", None, "second".to_owned());
        assert!(state.check().unwrap_err().to_string().contains("first"));
    }

    #[test]
    fn an_overdue_offset_record_breaks_the_writer_and_says_what_was_in_the_way() {
        let deliveries = deliveries();
        let mut state = deliveries.state();
        send(&mut state, Book::Offsets);
        state.trouble = Some("no leader".to_owned());
        state.expire(Instant::now() + Duration::from_secs(2), Duration::from_secs(5));
        assert!(state.check().is_ok());
        state.expire(Instant::now() + Duration::from_secs(6), Duration::from_secs(5));
        assert!(state.check().unwrap_err().to_string().contains("5000 ms: no leader"));
    }

    #[test]
    fn an_overdue_record_is_not_laid_to_a_trouble_that_is_over_or_another_topics() {
        let deliveries = deliveries();
        let mut state = deliveries.state();
        let now = Instant::now();
        for topic in ["trail", "other"] {
            let record = OutgoingRecord {
                topic: Arc::from(topic),
                partition: Some(0),
                key: None,
                value: None,
                headers: Vec::new(),
            };
            state.enter(Book::Records, &record, 0, now).unwrap();
        }
        let producer = Producer { id: 1, epoch: 0, transactional: false };
        let trail = state.queues.first_mut().unwrap();
        trail.trouble = Some("no leader".to_owned());
        let (sequence, _) = trail.next(producer, now, Duration::ZERO).unwrap().unwrap();
        trail.stored(sequence, now);
        state.queues.get_mut(1).unwrap().trouble = Some("cut".to_owned());
        state.expire(now + Duration::from_secs(6), Duration::from_secs(5));
        assert!(state.check().unwrap_err().to_string().ends_with("within 5000 ms"));
    }

    #[test]
    fn offsets_of_a_batch_count_up_over_both_books() {
        let deliveries = deliveries();
        let mut state = deliveries.state();
        send(&mut state, Book::Records);
        send(&mut state, Book::Offsets);
        send(&mut state, Book::Records);
        let run = |book, first| Run { book, first, count: 1 };
        let runs = [run(Book::Records, 1), run(Book::Offsets, 1), run(Book::Records, 2)];
        state.settle(&runs, 0, 40);
        let offsets: Vec<i64> = state.records.report().iter().map(|ack| ack.offset).collect();
        assert_eq!(offsets, [40, 42]);
    }
}
