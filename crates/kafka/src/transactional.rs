//! The writer of [`writer`](crate::writer()) that writes in transactions (KIP-98).
//!
//! All that was sent since the last commit becomes visible with the next one, or not at all. The
//! outcome of a commit that nobody answered is unknown and never told as one (rule P1).

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use highwater_protocol::ErrorCode;

use crate::accumulator::{self, Accumulator};
use crate::delivery::Book;
use crate::queue::Producer;
use crate::transaction_coordinator::TransactionCoordinator;
use crate::{
    Acknowledgement, KafkaError, OutgoingRecord, TransactionSettings, Writer, WriterSettings,
};

/// How a transaction stands for its writer.
#[derive(Clone, Copy, Debug)]
enum Phase {
    /// Nothing was sent since the last one.
    Empty,
    /// Since when it is open, or a little before.
    Open(Instant),
    /// Its end was asked for and is not answered.
    Ending(Instant),
}

/// See the module's text.
pub(crate) struct Transactional {
    transactions: TransactionSettings,
    delivery_timeout: Duration,
    coordinator: Arc<TransactionCoordinator>,
    accumulator: Accumulator,
    phase: Phase,
}

impl Transactional {
    pub(crate) fn start(settings: &WriterSettings, transactions: &TransactionSettings) -> Self {
        let cluster = accumulator::cluster(settings);
        let TransactionSettings { id, timeout } = transactions;
        let coordinator = TransactionCoordinator::new(Arc::clone(&cluster), id, *timeout);
        let coordinator = Arc::new(coordinator);
        let accumulator = Accumulator::start(settings, cluster, Some(Arc::clone(&coordinator)));
        Self {
            transactions: transactions.clone(),
            delivery_timeout: settings.delivery_timeout,
            coordinator,
            accumulator,
            phase: Phase::Empty,
        }
    }

    /// Fails where the end of a transaction was given up before its answer came.
    fn check(&self) -> Result<(), KafkaError> {
        match self.phase {
            Phase::Ending(_) => Err(self.unknown("it was not waited for".to_owned())),
            Phase::Empty | Phase::Open(_) => Ok(()),
        }
    }

    fn unknown(&self, detail: String) -> KafkaError {
        KafkaError::CommitUnknown { transactional_id: self.transactions.id.clone(), detail }
    }

    /// The first record opens the transaction.
    fn open(&mut self) {
        if matches!(self.phase, Phase::Empty) {
            self.phase = Phase::Open(Instant::now());
        }
    }

    /// The error with what its code means for a transaction: the cluster says a time-out and another
    /// producer by the same.
    fn explained(&self, error: KafkaError) -> KafkaError {
        let fenced = [ErrorCode::PRODUCER_FENCED, ErrorCode::INVALID_PRODUCER_EPOCH];
        if !fenced.into_iter().any(|code| error.is(code)) {
            return error;
        }
        let TransactionSettings { id, timeout } = &self.transactions;
        let (transactional_id, detail) = (id.clone(), error.to_string());
        match self.open_for() {
            Some(open) if open >= *timeout => KafkaError::TransactionTimedOut {
                transactional_id,
                open_ms: open.as_millis(),
                timeout_ms: timeout.as_millis(),
                detail,
            },
            _ => KafkaError::Fenced { transactional_id, detail },
        }
    }

    fn open_for(&self) -> Option<Duration> {
        match self.phase {
            Phase::Empty => None,
            Phase::Open(since) | Phase::Ending(since) => Some(since.elapsed()),
        }
    }

    /// Waits until the transactional id is ours.
    async fn introduced(&self) -> Result<Producer, KafkaError> {
        let deadline = Instant::now() + self.delivery_timeout;
        loop {
            {
                let mut state = self.accumulator.state();
                state.check()?;
                if let Some(producer) = state.producer {
                    return Ok(producer);
                }
                if Instant::now() >= deadline {
                    let why = state.trouble.clone();
                    let why = why.unwrap_or_else(|| "the cluster did not answer".to_owned());
                    let what = format!("no transactional id in time: {why}");
                    state.fail("all topics", None, what);
                }
            }
            self.accumulator.progress().await;
        }
    }

    /// Ends the transaction: once all of it is answered the coordinator is asked until it answers,
    /// within the delivery time-out.
    async fn end(&mut self, committed: bool) -> Result<(), KafkaError> {
        self.check()?;
        for book in [Book::Records, Book::Offsets] {
            self.accumulator.settle(book).await.map_err(|error| self.explained(error))?;
        }
        let Phase::Open(since) = self.phase else { return Ok(()) };
        // A future that is dropped from here on leaves the outcome unknown.
        self.phase = Phase::Ending(since);
        if self.accumulator.state().has_transaction() {
            let producer = self.introduced().await?;
            self.ask_for_end(producer, committed).await?;
            self.accumulator.state().end_transaction();
        }
        self.phase = Phase::Empty;
        Ok(())
    }

    async fn ask_for_end(&self, producer: Producer, committed: bool) -> Result<(), KafkaError> {
        let ended = self.coordinator.persist(|| self.coordinator.end(producer, committed)).await;
        ended.map_err(|error| match &error {
            KafkaError::Refused { code, .. } if !ErrorCode(*code).is_retriable() => {
                self.explained(error)
            }
            _ => self.unknown(error.to_string()),
        })
    }
}

#[async_trait]
impl Writer for Transactional {
    async fn begin(&mut self) -> Result<(), KafkaError> {
        self.check()?;
        self.introduced().await.map(drop).map_err(|error| self.explained(error))
    }

    async fn send(&mut self, record: OutgoingRecord) -> Result<u64, KafkaError> {
        self.check()?;
        self.open();
        self.accumulator.send(&record).await.map_err(|error| self.explained(error))
    }

    fn try_send(&mut self, record: &OutgoingRecord) -> Result<Option<u64>, KafkaError> {
        self.check()?;
        self.open();
        self.accumulator.try_send(record).map_err(|error| self.explained(error))
    }

    fn acknowledged(&mut self) -> Result<Vec<Acknowledgement>, KafkaError> {
        self.accumulator.acknowledged().map_err(|error| self.explained(error))
    }

    async fn ready(&mut self) -> Result<(), KafkaError> {
        self.accumulator.ready().await.map_err(|error| self.explained(error))
    }

    async fn offsets(&mut self, records: Vec<OutgoingRecord>) -> Result<(), KafkaError> {
        self.check()?;
        self.open();
        self.accumulator.offsets(&records).await.map_err(|error| self.explained(error))
    }

    async fn commit(&mut self) -> Result<(), KafkaError> {
        self.end(true).await
    }

    async fn abort(&mut self) -> Result<(), KafkaError> {
        self.end(false).await
    }
}
