//! Transactional producers: some commit, some abort, some go away in the middle.

use std::time::{Duration, Instant};

use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::producer::Producer as _;

use crate::ledger::{Name, Outcome, Record};
use crate::load::{KEYS, Load, PATIENCE, Producer, Tag};
use crate::numbers::Numbers;
use crate::topics::{AGED, COMPACTED, PLAIN, WRITTEN, any_place};

/// What an operation on a transaction came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    Done,
    /// The transaction has to be aborted.
    Abort,
    /// The instance is of no use any more.
    Failed,
}

/// Tries until there is an answer, or nobody waits for it any more.
pub fn settle(load: &Load, what: &str, mut operation: impl FnMut() -> KafkaResult<()>) -> Verdict {
    let since = Instant::now();
    loop {
        let error = match operation() {
            Ok(()) => return Verdict::Done,
            Err(KafkaError::Transaction(error))
                if error.is_retriable() && since.elapsed() < PATIENCE =>
            {
                continue;
            }
            Err(KafkaError::Transaction(error)) if error.txn_requires_abort() => {
                return Verdict::Abort;
            }
            Err(error) => error,
        };
        load.ledger.lock().failures.push(format!("{what}: {error}"));
        return Verdict::Failed;
    }
}

impl Producer {
    /// A new instance of the transactional id, which ends what the one before left open.
    pub fn transactional(load: &Load, id: &str, time_out: &str) -> Self {
        let settings = [("transactional.id", id), ("transaction.timeout.ms", time_out)];
        let producer = Self::new(load, &settings);
        let begin = || producer.inner.init_transactions(PATIENCE);
        if settle(load, id, begin) != Verdict::Done {
            load.ledger.lock().fault(format!("{id} cannot begin"));
        }
        producer
    }

    pub fn begin(&self, load: &Load, name: Name) {
        load.ledger.lock().begin(name);
        if let Err(error) = self.inner.begin_transaction() {
            load.ledger.lock().fault(format!("{name:?} does not begin: {error}"));
        }
    }

    pub fn send_in(&self, load: &Load, name: Name, place: (&'static str, i32), record: Record) {
        let number = load.ledger.lock().send(name, place, record.clone());
        self.send(place, &record, Tag::In { name, number });
    }

    /// Ends it, or has it ended by the next instance. librdkafka 2.12 cannot always: a record on its way when
    /// the connection ended waits for its time-out, and an AddPartitionsToTxn that was not answered makes it
    /// end a transaction that the coordinator never saw, which Apache Kafka refuses, too.
    pub fn abort(&self, load: &Load, name: Name) -> Verdict {
        self.flush();
        let verdict = settle(load, "abort", || self.inner.abort_transaction(PATIENCE));
        load.ledger.lock().end(name, Outcome::Aborted);
        verdict
    }

    /// Commits it; what cannot be committed is aborted.
    pub fn commit(&self, load: &Load, name: Name) -> Verdict {
        let verdict = settle(load, "commit", || self.inner.commit_transaction(PATIENCE));
        let outcome = match verdict {
            Verdict::Done => Outcome::Committed,
            Verdict::Abort if self.abort(load, name) == Verdict::Done => return verdict,
            Verdict::Abort => return Verdict::Failed,
            Verdict::Failed => Outcome::Unknown,
        };
        load.ledger.lock().end(name, outcome);
        verdict
    }
}

fn send_some(producer: &Producer, load: &Load, numbers: &mut Numbers, name: Name) {
    let (who, number) = name;
    let count = numbers.below(12) + 1;
    for index in 0..count {
        let place = any_place(numbers, &WRITTEN);
        let id = format!("t{who}/{number}/{index}").into();
        producer.send_in(load, name, place, Record { id, key: numbers.below(KEYS) });
        if numbers.one_in(6) {
            std::thread::sleep(Duration::from_millis(numbers.below(10)));
        }
    }
}

/// Begins and ends transactions, under one transactional id.
pub fn run(load: &Load, who: u64) {
    let mut numbers = Numbers::new(load.seed ^ who);
    let id = format!("transactional-{who}");
    let instance = || Producer::transactional(load, &id, "20000");
    let mut producer = instance();
    for number in 0_u64.. {
        if load.is_stopped() {
            return;
        }
        let name = (who, number);
        producer.begin(load, name);
        send_some(&producer, load, &mut numbers, name);
        let lives = match numbers.below(20) {
            0 => {
                // Gone in the middle: its next instance ends it.
                load.ledger.lock().end(name, Outcome::Aborted);
                false
            }
            1 => {
                // Gone while it waits for the answer.
                producer.flush();
                let moment = Duration::from_millis(numbers.below(5));
                let ended = producer.inner.commit_transaction(moment).is_ok();
                let outcome = if ended { Outcome::Committed } else { Outcome::Unknown };
                load.ledger.lock().end(name, outcome);
                false
            }
            2..7 => producer.abort(load, name) == Verdict::Done,
            _ => producer.commit(load, name) != Verdict::Failed,
        };
        if !lives {
            drop(producer);
            producer = instance();
        }
    }
}

/// Transactions that nobody ends: the coordinator does when their time is over.
pub fn abandon(load: &Load, who: u64) {
    let mut numbers = Numbers::new(load.seed ^ who);
    for number in 0_u64.. {
        if load.is_stopped() {
            return;
        }
        let name = (who, number);
        let producer = Producer::transactional(load, &format!("abandoned-{number}"), "1500");
        producer.begin(load, name);
        for index in 0..3 {
            let place = any_place(&mut numbers, &[PLAIN, AGED, COMPACTED]);
            let id = format!("t{who}/{number}/{index}").into();
            producer.send_in(load, name, place, Record { id, key: numbers.below(KEYS) });
        }
        let _ = producer.inner.flush(Duration::from_secs(2));
        drop(producer);
        load.ledger.lock().end(name, Outcome::Aborted);
        std::thread::sleep(Duration::from_millis(500 + numbers.below(1000)));
    }
}
