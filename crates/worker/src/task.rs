//! The loop of a running task: poll, send, take acknowledgements, store, tell the source.

use std::sync::Arc;
use std::time::Duration;

use highwater_connector::{ConnectorError, Position, SourceItem, SourceTask};
use tokio::sync::{Mutex, watch};
use tokio::time::Instant;

use crate::meter::TaskMeter;
use crate::outbox::Outbox;
use crate::status::{Held, Status};

/// How long a failed task may take to store what is acknowledged.
const LAST_STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// A status tells of progress no more often than this: what a person can follow.
const REPORT_PAUSE: Duration = Duration::from_millis(50);

/// `Some` once the task shall stop: at the end of a transaction, or at this time.
pub(crate) type StopSignal = watch::Receiver<Option<Instant>>;

/// See the module's text.
pub(crate) struct Running {
    pub(crate) task: Box<dyn SourceTask>,
    pub(crate) outbox: Arc<Mutex<Outbox>>,
    pub(crate) flush_interval: Duration,
    /// Whether the last record sent leaves a transaction open.
    pub(crate) in_transaction: bool,
    pub(crate) stop: StopSignal,
    pub(crate) status: watch::Sender<Status>,
    /// The connector, as what its source keeps names it.
    pub(crate) name: String,
    pub(crate) meter: Arc<TaskMeter>,
    pub(crate) unreported: Unreported,
}

/// What the status does not say yet.
#[derive(Default)]
pub(crate) struct Unreported {
    acknowledged: u64,
    last: Option<Instant>,
}

impl Unreported {
    fn is_due(&self) -> bool {
        self.last.is_none_or(|last| last.elapsed() >= REPORT_PAUSE)
    }
}

impl Running {
    /// What the source says it is doing.
    pub(crate) fn activity(&self) -> String {
        self.task.activity()
    }

    /// Runs until it shall stop; the source is closed on return, whatever happened.
    ///
    /// # Errors
    /// What the source or the log says. What was acknowledged but not stored is then delivered
    /// again at the next start.
    pub(crate) async fn run(mut self) -> Result<(), ConnectorError> {
        let pulse = self.outbox.lock().await.pulse();
        self.status.send_modify(|status| status.pulse = pulse);
        let ended = match self.until_stopped().await {
            Ok(()) => self.finish().await,
            Err(error) => {
                self.keep_what_is_safe(&error).await;
                Err(error)
            }
        };
        self.task.stop().await;
        ended
    }

    async fn keep_what_is_safe(&mut self, error: &ConnectorError) {
        let keep = async { self.outbox.lock().await.keep_what_is_safe().await };
        if !matches!(tokio::time::timeout(LAST_STORE_TIMEOUT, keep).await, Ok(Ok(()))) {
            tracing::warn!(code = error.code, "a failed task could not store its last offset");
        }
    }

    async fn until_stopped(&mut self) -> Result<(), ConnectorError> {
        while !self.must_stop() {
            self.meter.turns();
            let items = self.task.poll().await?;
            self.send(items).await?;
            self.turn().await?;
        }
        Ok(())
    }

    /// A stop waits for the end of a transaction, within its bound.
    fn must_stop(&self) -> bool {
        self.stop
            .borrow()
            .is_some_and(|deadline| !self.in_transaction || Instant::now() >= deadline)
    }

    /// Sends what a poll yielded. What is left over when the task must stop is read again at the
    /// next start, since no offset covers it.
    async fn send(&mut self, items: Vec<SourceItem>) -> Result<(), ConnectorError> {
        if items.iter().any(|item| matches!(item, SourceItem::Record(_))) {
            self.meter.batches.one();
        }
        let outbox = Arc::clone(&self.outbox);
        let mut outbox = outbox.lock().await;
        for item in items {
            if self.must_stop() {
                return Ok(());
            }
            match item {
                SourceItem::Idle(position) => outbox.idle(position),
                SourceItem::Record(record) => {
                    self.in_transaction = !record.boundary;
                    outbox.accept(record).await?;
                    if outbox.ends_at_record(!self.in_transaction) {
                        let position = outbox.store().await?;
                        self.tell(position).await?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn turn(&mut self) -> Result<(), ConnectorError> {
        let (acknowledged, position) = {
            let mut outbox = self.outbox.lock().await;
            outbox.collect()?;
            let position = outbox.store_due(self.flush_interval, self.in_transaction).await?;
            (outbox.take_acknowledged(), position)
        };
        self.unreported.acknowledged += acknowledged;
        self.tell(position).await?;
        if self.unreported.is_due() {
            self.report().await;
        }
        Ok(())
    }

    /// Waits for what is in flight and stores it, so that a drained stop delivers nothing twice.
    async fn finish(&mut self) -> Result<(), ConnectorError> {
        let position = {
            let mut outbox = self.outbox.lock().await;
            outbox.close(self.in_transaction).await?
        };
        self.tell(position).await?;
        self.report().await;
        Ok(())
    }

    async fn tell(&mut self, position: Option<Arc<dyn Position>>) -> Result<(), ConnectorError> {
        match position {
            Some(position) => self.task.committed(position.as_ref()).await,
            None => Ok(()),
        }
    }

    async fn report(&mut self) {
        let Unreported { acknowledged, .. } = std::mem::take(&mut self.unreported);
        self.unreported.last = Some(Instant::now());
        let (activity, facts) = (self.task.activity(), self.task.facts());
        let hold = self.task.hold().map(|hold| hold.of(&self.name));
        let stored = self.outbox.lock().await.stored().cloned();
        self.status.send_if_modified(|status| {
            if acknowledged > 0 {
                status.last_record = Some(jiff::Timestamp::now());
            }
            let known = status.held.as_ref().and_then(|held| held.hold.as_ref().ok()?.as_ref());
            let news = hold.is_some() && known != hold.as_ref();
            if news {
                status.held = Some(Held::now(Ok(hold)));
            }
            let changed = news
                || status.activity != activity
                || status.facts != facts
                || status.position != stored;
            (status.activity, status.facts) = (activity, facts);
            if stored.is_some() {
                status.position = stored;
            }
            changed || acknowledged > 0
        });
    }
}

#[cfg(test)]
#[path = "task_tests.rs"]
mod tests;
