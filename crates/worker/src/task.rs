//! The loop of a running task: poll, send, take acknowledgements, store, tell the source.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use highwater_connector::{
    ConnectorError, ErrorKind, Position, SourceItem, SourceTask, ValueRecord,
};
use highwater_kafka::OutgoingRecord;
use highwater_transforms::Record;
use tokio::sync::{Mutex, OwnedMutexGuard, watch};
use tokio::time::Instant;

use crate::meter::TaskMeter;
use crate::outbox::Outbox;
use crate::source_values::{Attempts, Outcome, SourceValues};
use crate::status::{Held, Status};

/// How long a failed task may take to store what is acknowledged.
const LAST_STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// A status tells of progress no more often than this: what a person can follow.
const REPORT_PAUSE: Duration = Duration::from_millis(50);

/// The outbox, while records are put into it.
type OpenOutbox = OwnedMutexGuard<Outbox>;

/// `Some` once the task shall stop: at the end of a transaction, or at this time.
pub(crate) type StopSignal = watch::Receiver<Option<Instant>>;

/// See the module's text.
pub(crate) struct Running {
    pub(crate) task: Box<dyn SourceTask>,
    pub(crate) outbox: Arc<Mutex<Outbox>>,
    /// What becomes of records that are values.
    pub(crate) values: Option<SourceValues>,
    /// Why a record waits, while one does.
    pub(crate) trouble: Option<String>,
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
        self.trouble.clone().unwrap_or_else(|| self.task.activity())
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
        let keep = async {
            let kept = self.outbox.lock().await.keep_what_is_safe().await;
            // Whether it got on is for its runner to see.
            self.report().await;
            kept
        };
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
        if items.iter().any(|item| !matches!(item, SourceItem::Idle(_))) {
            self.meter.batches.one();
        }
        let mut outbox = Arc::clone(&self.outbox).lock_owned().await;
        for item in items {
            if self.must_stop() {
                return Ok(());
            }
            match item {
                SourceItem::Idle(position) => {
                    outbox.idle(position);
                    continue;
                }
                SourceItem::Record(record) => {
                    self.in_transaction = !record.boundary;
                    outbox.accept(record).await?;
                }
                SourceItem::Values(record) => match self.send_values(record, outbox).await? {
                    Some(held) => outbox = held,
                    None => return Ok(()),
                },
            }
            if outbox.ends_at_record(!self.in_transaction) {
                let position = outbox.store().await?;
                self.tell(position).await?;
            }
        }
        Ok(())
    }

    /// Sends a record once it is transformed and converted, or leaves it out. The outbox comes back,
    /// unless the task must stop before that.
    async fn send_values(
        &mut self,
        record: ValueRecord,
        outbox: OpenOutbox,
    ) -> Result<Option<OpenOutbox>, ConnectorError> {
        let (record, position, boundary) = divided(record);
        let converted = match self.values()?.transform(record)? {
            Some(record) => self.converted(&record, outbox).await?,
            None => Some((None, outbox)),
        };
        let Some((outgoing, mut outbox)) = converted else { return Ok(None) };
        self.trouble = None;
        match outgoing {
            Some(outgoing) => outbox.send(outgoing, None, position).await?,
            None => outbox.leave_out(position),
        }
        self.in_transaction = !boundary;
        Ok(Some(outbox))
    }

    /// The bytes of a record, none where it is left out, and the outbox; while it has to be tried
    /// again, what is before it goes its way. None when the task must stop before that.
    async fn converted(
        &mut self,
        record: &Record,
        mut outbox: OpenOutbox,
    ) -> Result<Option<(Option<OutgoingRecord>, OpenOutbox)>, ConnectorError> {
        let mut attempts = Attempts::default();
        loop {
            let converted = {
                let mut converting = pin!(self.values()?.convert(record, &mut attempts));
                // Nearly all are done at once, and none of those pays for the wait.
                match converting.as_mut().now_or_never() {
                    Some(outcome) => Some(outcome?),
                    None => tokio::select! {
                        biased;
                        outcome = converting.as_mut() => Some(outcome?),
                        () = cut(self.stop.clone(), self.in_transaction) => None,
                    },
                }
            };
            let Some(outcome) = converted else { return Ok(None) };
            let (pause, why) = match outcome {
                Outcome::Send(outgoing) => return Ok(Some((Some(outgoing), outbox))),
                Outcome::LeaveOut => return Ok(Some((None, outbox))),
                Outcome::Again(pause, why) => (pause, why),
            };
            tracing::warn!(why, "a record cannot be converted yet");
            self.trouble = Some(format!("A record is tried again: {why}"));
            drop(outbox);
            self.turn().await?;
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = cut(self.stop.clone(), self.in_transaction) => return Ok(None),
            }
            outbox = Arc::clone(&self.outbox).lock_owned().await;
        }
    }

    /// Only a source that says so yields values.
    fn values(&self) -> Result<&SourceValues, ConnectorError> {
        self.values.as_ref().ok_or_else(|| {
            let what = "the source yields values, and has not said that it does";
            ConnectorError::stop("RECORD_UNCONVERTIBLE", ErrorKind::Source, what, "report it")
        })
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
        let (activity, facts) = (self.activity(), self.task.facts());
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

/// A record apart from what the ledger keeps of it.
fn divided(record: ValueRecord) -> (Record, Arc<dyn Position>, bool) {
    let ValueRecord { topic, partition, key, value, headers, timestamp, position, boundary } =
        record;
    let record = Record { topic, partition, key, value, timestamp, headers, offset: None };
    (record, position, boundary)
}

/// Waits until a task must stop that cannot go on: what it holds is then let go.
async fn cut(mut stop: StopSignal, in_transaction: bool) {
    let deadline = stop.wait_for(Option::is_some).await.map(|deadline| *deadline);
    match deadline {
        Ok(Some(deadline)) if in_transaction => tokio::time::sleep_until(deadline).await,
        Ok(_) => {}
        // Nobody is left to stop it.
        Err(_) => std::future::pending().await,
    }
}

#[cfg(test)]
#[path = "task_tests.rs"]
mod tests;
