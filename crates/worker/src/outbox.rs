//! Sends records and stores the offsets behind them: the I/O around the ledger.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use highwater_connector::{
    ConnectorError, ErrorKind, GenerationMark, Hw, OwnRecord, Position, RecordKind, SourceOffset,
    SourceRecord, TaskStore,
};
use highwater_kafka::{KafkaError, OutgoingRecord, ReadRecord, Reader, Writer};
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::boundary::Boundaries;
use crate::cluster::{Sending, log_error};
use crate::ledger::{Ledger, Pending};
use crate::meter::TaskMeter;
use crate::offsets;
use crate::outgoing::{RecordLimit, outgoing, size_of, too_large, without_key};
use crate::pulse::Pulse;
use crate::task_topics::TaskTopics;

/// How much longer than the writer's own time-out the log may take to acknowledge what is in flight:
/// that one says more about the cause.
const SETTLE_GRACE: Duration = Duration::from_secs(60);

/// Where and how offset records of a task are written.
#[derive(Clone, Debug)]
pub(crate) struct OffsetSlot {
    pub(crate) topic: String,
    pub(crate) key: Bytes,
    pub(crate) mark: GenerationMark,
}

/// Under what contract records and offsets are sent.
pub(crate) enum Contract {
    AtLeastOnce,
    /// In one transaction, which ends where these say.
    ExactlyOnce(Boundaries),
}

/// See the module's text.
pub(crate) struct Outbox {
    writer: Box<dyn Writer>,
    contract: Contract,
    ledger: Ledger,
    slot: OffsetSlot,
    sending: Sending,
    topics: TaskTopics,
    /// Records acknowledged that nobody has asked for yet.
    acknowledged: u64,
    stored: Option<SourceOffset>,
    pulse: Pulse,
    meter: Arc<TaskMeter>,
}

impl Outbox {
    pub(crate) fn new(
        writer: Box<dyn Writer>,
        contract: Contract,
        ledger: Ledger,
        slot: OffsetSlot,
        sending: Sending,
        topics: TaskTopics,
    ) -> Self {
        let pulse = Pulse::default();
        let (acknowledged, stored) = (0, None);
        let meter = Arc::default();
        Self { writer, contract, ledger, slot, sending, topics, acknowledged, stored, pulse, meter }
    }

    /// Counts there from now on.
    pub(crate) fn metered(mut self, meter: &Arc<TaskMeter>) -> Self {
        self.meter = Arc::clone(meter);
        self
    }

    /// Sends a record. A table description is acknowledged on return, so that nothing behind it
    /// can be sooner in the log (rule R4).
    ///
    /// # Errors
    /// `RECORD_TOO_LARGE` and `RECORD_WITHOUT_KEY` by name (rules R5, R2); a topic that cannot be
    /// used; what the log says when it fails.
    pub(crate) async fn accept(&mut self, record: SourceRecord) -> Result<(), ConnectorError> {
        let kind = record.kind;
        let (outgoing, hw, position) = outgoing(record);
        self.send(outgoing, hw, position).await?;
        if kind == RecordKind::TableDescription { self.settle().await } else { Ok(()) }
    }

    /// Sends a record whose `position` holds once it is acknowledged.
    ///
    /// # Errors
    /// As [`Self::accept`].
    pub(crate) async fn send(
        &mut self,
        outgoing: OutgoingRecord,
        hw: Option<Hw>,
        position: Arc<dyn Position>,
    ) -> Result<(), ConnectorError> {
        let facts = self.topics.ready(&outgoing.topic).await?;
        if facts.compacted && outgoing.key.is_none() {
            return Err(without_key(&outgoing, position.as_ref()));
        }
        let size = size_of(&outgoing);
        let limit = RecordLimit {
            connector: self.sending.max_record_bytes,
            topic: facts.max_message_bytes,
        };
        if !limit.admits(size) {
            return Err(too_large(&outgoing, size, &limit, position.as_ref()));
        }
        if self.ledger.in_flight() == 0 {
            self.pulse.sent();
        }
        if let Contract::ExactlyOnce(boundaries) = &mut self.contract {
            boundaries.sends(Instant::now().into_std());
        }
        let sent = match self.writer.try_send(&outgoing) {
            Ok(None) => self.writer.send(outgoing).await,
            Ok(Some(sequence)) => Ok(sequence),
            Err(error) => Err(error),
        };
        match sent {
            Ok(sequence) => {
                self.meter.bytes.add(size);
                self.ledger.sent(sequence, hw, position);
                Ok(())
            }
            Err(error) => Err(self.fail(&error)),
        }
    }

    /// A record is left out; `position` holds once all before it is acknowledged.
    pub(crate) fn leave_out(&mut self, position: Arc<dyn Position>) {
        self.ledger.left_out(position);
    }

    /// Takes note that the source moved on without a record.
    pub(crate) fn idle(&mut self, position: Arc<dyn Position>) {
        self.ledger.idle(position);
    }

    /// Takes in what the log has acknowledged since; does not wait.
    pub(crate) fn collect(&mut self) -> Result<(), ConnectorError> {
        let acks = self.writer.acknowledged().map_err(|error| self.fail(&error))?;
        for ack in &acks {
            self.ledger.acknowledged(ack).map_err(|error| {
                ConnectorError::again("LOG_OUT_OF_ORDER", ErrorKind::Log, error.to_string())
            })?;
            self.acknowledged += 1;
        }
        if !acks.is_empty() {
            self.pulse.taken(self.ledger.in_flight() > 0);
            self.meter.moved_on(acks.len());
            let behind = self.ledger.commit_time_us().map(millis_since);
            self.meter.lag.set(behind);
        }
        Ok(())
    }

    /// How many records were acknowledged since this was asked before.
    pub(crate) const fn take_acknowledged(&mut self) -> u64 {
        std::mem::replace(&mut self.acknowledged, 0)
    }

    /// Waits until everything that was sent is acknowledged.
    pub(crate) async fn settle(&mut self) -> Result<(), ConnectorError> {
        let limit = self.sending.delivery_timeout + SETTLE_GRACE;
        match tokio::time::timeout(limit, self.settle_unbounded()).await {
            Ok(settled) => settled,
            Err(_) => {
                self.ledger.failed();
                let what = format!("the log acknowledged nothing for {limit:?}");
                Err(ConnectorError::again("LOG_SILENT", ErrorKind::Log, what))
            }
        }
    }

    async fn settle_unbounded(&mut self) -> Result<(), ConnectorError> {
        self.collect()?;
        while self.ledger.in_flight() > 0 {
            if let Err(error) = self.writer.ready().await {
                return Err(self.fail(&error));
            }
            self.collect()?;
        }
        Ok(())
    }

    /// Stores an offset behind what a poll has brought, if one is due, and returns the position that
    /// the source may then be told. `in_transaction` says that the source is inside one of its own.
    pub(crate) async fn store_due(
        &mut self,
        interval: Duration,
        in_transaction: bool,
    ) -> Result<Option<Arc<dyn Position>>, ConnectorError> {
        let now = Instant::now().into_std();
        let is_due = match &self.contract {
            Contract::AtLeastOnce => self.ledger.is_due(now, interval),
            Contract::ExactlyOnce(open) if open.is_open() => open.ends_at_poll(now, in_transaction),
            // Nothing was sent, but records may have been left out.
            Contract::ExactlyOnce(_) => self.ledger.is_due(now, interval),
        };
        if is_due { self.store().await } else { Ok(None) }
    }

    /// Whether an offset is stored behind the record that was sent last, `is_last` of a transaction
    /// of the source.
    pub(crate) fn ends_at_record(&self, is_last: bool) -> bool {
        match &self.contract {
            Contract::AtLeastOnce => false,
            Contract::ExactlyOnce(boundaries) => boundaries.ends_at_record(is_last),
        }
    }

    /// Stores what is left when the task stops; `in_transaction` as for [`Self::store_due`].
    pub(crate) async fn close(
        &mut self,
        in_transaction: bool,
    ) -> Result<Option<Arc<dyn Position>>, ConnectorError> {
        if let Contract::ExactlyOnce(boundaries) = &self.contract
            && !boundaries.ends_at_stop(in_transaction)
        {
            self.give_up().await?;
            return Ok(None);
        }
        self.settle().await?;
        if self.ledger.is_waiting() { self.store().await } else { Ok(None) }
    }

    /// After an error of the source the log is as good as before: what it acknowledges is stored, so
    /// that less is delivered again, or what is open in a transaction is aborted, so that its readers
    /// need not wait. After an error of the log nothing is done: its outcome is unknown.
    pub(crate) async fn keep_what_is_safe(&mut self) -> Result<(), ConnectorError> {
        match self.contract {
            _ if self.ledger.has_failed() => Ok(()),
            Contract::ExactlyOnce(_) => self.give_up().await,
            Contract::AtLeastOnce => self.close(false).await.map(drop),
        }
    }

    /// Aborts the transaction. What the ledger has of it is no more: the outbox is at its end.
    async fn give_up(&mut self) -> Result<(), ConnectorError> {
        self.ledger.failed();
        self.writer.abort().await.map_err(|error| log_error(&error))
    }

    /// Stores the offset of what is acknowledged; in a transaction, of all that was sent.
    pub(crate) async fn store(&mut self) -> Result<Option<Arc<dyn Position>>, ConnectorError> {
        if matches!(self.contract, Contract::ExactlyOnce(_)) {
            self.settle().await?;
        }
        match self.ledger.store() {
            Some(pending) => self.write(pending).await,
            None => Ok(None),
        }
    }

    /// Stores an offset without records; waits for what is in flight first.
    pub(crate) async fn store_explicit(
        &mut self,
        offset: SourceOffset,
    ) -> Result<(), ConnectorError> {
        self.settle().await?;
        match self.ledger.store_explicit(offset) {
            Some(pending) => self.write(pending).await.map(drop),
            None => Err(ConnectorError::again(
                "LOG_WRITE_FAILED",
                ErrorKind::Log,
                "an earlier write has an unknown outcome, so no offset can be stored",
            )),
        }
    }

    async fn write(
        &mut self,
        pending: Pending,
    ) -> Result<Option<Arc<dyn Position>>, ConnectorError> {
        let OffsetSlot { topic, key, mark } = &self.slot;
        let record = offsets::task_record(topic, key, &pending.offset, &pending.tail, mark);
        self.pulse.sent();
        let begun = Instant::now();
        let finished = self.finish(record).await;
        self.meter.committed(begun.elapsed(), &finished);
        if let Err(error) = finished {
            return Err(self.fail(&error));
        }
        self.pulse.taken(self.ledger.in_flight() > 0);
        self.stored = Some(pending.offset);
        Ok(self.ledger.stored(Instant::now().into_std()))
    }

    /// Sends an offset record and waits until it counts.
    async fn finish(&mut self, record: OutgoingRecord) -> Result<(), KafkaError> {
        self.writer.offsets(vec![record]).await?;
        if let Contract::ExactlyOnce(boundaries) = &mut self.contract {
            self.writer.commit().await?;
            boundaries.ended();
        }
        Ok(())
    }

    /// Tells whether the log takes what is sent, whoever waits for it meanwhile.
    pub(crate) fn pulse(&self) -> Pulse {
        self.pulse.clone()
    }

    /// The newest offset that this run stored.
    pub(crate) const fn stored(&self) -> Option<&SourceOffset> {
        self.stored.as_ref()
    }

    fn fail(&mut self, error: &KafkaError) -> ConnectorError {
        self.ledger.failed();
        log_error(error)
    }
}

/// Clocks that differ may put a commit into the future.
fn millis_since(time_us: i64) -> i64 {
    (jiff::Timestamp::now().as_millisecond() - time_us / 1_000).max(0)
}

/// What a source task keeps in the log.
pub(crate) struct OutboxStore {
    pub(crate) outbox: Arc<Mutex<Outbox>>,
    pub(crate) reader: Reader,
}

#[async_trait]
impl TaskStore for OutboxStore {
    async fn store(&self, offset: &SourceOffset) -> Result<(), ConnectorError> {
        self.outbox.lock().await.store_explicit(offset.clone()).await
    }

    async fn read_back(
        &self,
        topic: &str,
        take: &mut (dyn FnMut(OwnRecord) + Send),
    ) -> Result<(), ConnectorError> {
        let mut each =
            |record: ReadRecord| take(OwnRecord { key: record.key, value: record.value });
        self.reader.read_all(topic, 0, &mut each).await.map(drop).map_err(|error| log_error(&error))
    }
}

#[cfg(test)]
#[path = "outbox_tests.rs"]
mod tests;
