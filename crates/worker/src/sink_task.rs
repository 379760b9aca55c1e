//! The loop of a running sink task: read, give, ask what is durable, move the group's offsets.

use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use highwater_connector::{
    ConnectorError, ErrorKind, Retry, SinkContext, SinkOffsets, SinkTask, TopicPartition,
};
use highwater_kafka::{Awaited, Commit, Consumer, ErrorCode, KafkaError, Polled};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use crate::active_topics::UsedTopics;
use crate::cluster::log_error;
use crate::record_path::RecordPath;
use crate::sink_batch::SinkBatch;
use crate::sink_desk::Desk;
use crate::status::Status;
use crate::task::StopSignal;

/// How long a poll may wait: so soon a stop, a pause or what the sink asks for is seen.
const POLL: Duration = Duration::from_millis(100);

/// How long a failed task may take to store what is durable.
const LAST_STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// A status tells of progress no more often than this: what a person can follow.
const REPORT_PAUSE: Duration = Duration::from_millis(50);

/// See the module's text.
pub(crate) struct RunningSink {
    pub(crate) task: Box<dyn SinkTask>,
    pub(crate) consumer: Consumer,
    pub(crate) desk: Arc<Desk>,
    /// What lies between the log and the sink.
    pub(crate) path: Arc<RecordPath>,
    pub(crate) group: String,
    pub(crate) flush_interval: Duration,
    /// How long the sink may take to say what is durable.
    pub(crate) flush_timeout: Duration,
    pub(crate) stop: StopSignal,
    /// Whether its operator wants it paused: it then keeps its partitions and reads nothing.
    pub(crate) paused: watch::Receiver<bool>,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) batch: SinkBatch,
    pub(crate) flushed: Instant,
    pub(crate) reported: Instant,
    /// Why nothing goes on, while it does not.
    pub(crate) trouble: Option<String>,
    /// Where the topics are noted that it reads.
    pub(crate) used: Option<UsedTopics>,
}

impl RunningSink {
    /// Notes the topics of what it reads there.
    pub(crate) fn telling(mut self, used: UsedTopics) -> Self {
        self.used = Some(used);
        self
    }

    /// What it is doing, in one sentence.
    pub(crate) fn activity(&self) -> String {
        if *self.paused.borrow() {
            return format!("Paused by its operator; it stays in group {}", self.group);
        }
        if !self.consumer.is_assigned() {
            return format!("Waits for group {} to share out its partitions", self.group);
        }
        match (&self.trouble, self.consumer.awaited()) {
            (Some(trouble), _) => trouble.clone(),
            (None, None) => self.task.activity(),
            (None, Some(awaited)) if self.desk.ledger().is_empty() => {
                format!("Waits for {}", waits_for(awaited))
            }
            (None, Some(awaited)) => {
                format!("{}; waits for {}", self.task.activity(), waits_for(awaited))
            }
        }
    }

    /// Runs until it shall stop; the sink is closed and the group left on return, whatever happened.
    ///
    /// # Errors
    /// What the sink or the log says. What was accepted and not durable is then delivered again.
    pub(crate) async fn run(mut self) -> Result<(), ConnectorError> {
        let ended = match self.until_stopped().await {
            Ok(()) => self.finish().await,
            Err(error) => {
                self.keep_what_is_durable(&error).await;
                Err(error)
            }
        };
        self.task.stop().await;
        self.consumer.leave().await;
        ended
    }

    async fn until_stopped(&mut self) -> Result<(), ConnectorError> {
        let context: Arc<dyn SinkContext> = Arc::clone(&self.desk) as _;
        self.task.start(context).await?;
        while self.stop.borrow().is_none() {
            self.desk.meter.turns();
            self.turn().await?;
        }
        Ok(())
    }

    async fn turn(&mut self) -> Result<(), ConnectorError> {
        self.rewind();
        self.desk.collect().await?;
        let paused = *self.paused.borrow();
        if self.batch.is_due() && !paused {
            self.prepare_or_stop().await?;
            if !self.batch.records().is_empty() {
                self.put().await?;
            }
        }
        if self.batch.is_empty() && !paused {
            self.consumer.resume();
        } else {
            self.consumer.pause();
        }
        // A paused batch is due when the task goes on.
        let due = self.batch.due().filter(|_| !paused);
        let left = due.map_or(POLL, |due| due.saturating_duration_since(Instant::now()));
        let polled = self
            .consumer
            .poll(POLL.min(left))
            .boxed()
            .await
            .map_err(|error| group_error(&error))?;
        self.take(polled).boxed().await?;
        if self.desk.take_commit() || self.flushed.elapsed() >= self.flush_interval {
            self.flush().await?;
        }
        self.report();
        Ok(())
    }

    async fn take(&mut self, polled: Polled) -> Result<(), ConnectorError> {
        match polled {
            Polled::Records(records) => {
                self.receive(records);
                self.note_topics().await;
            }
            Polled::Assigned(offsets) => {
                self.desk.ledger().open(&offsets);
                self.task.open(&offsets).await?;
            }
            Polled::Revoking(partitions) => {
                // What the sink has not accepted is read by whoever gets the partition.
                self.batch.clear();
                if timeout(self.flush_timeout, self.desk.settle()).await.is_err() {
                    tracing::warn!(
                        "dead letters are not acknowledged in time; their records come again"
                    );
                }
                self.flush().await?;
                self.let_go(partitions).await;
            }
            Polled::Lost(partitions, reason) => {
                tracing::warn!(group = self.group, reason, "partitions are lost");
                self.batch.clear();
                self.let_go(partitions).await;
            }
            Polled::Moved { partition, from, to } => self.moved(&partition, from, to),
        }
        Ok(())
    }

    async fn let_go(&mut self, partitions: Vec<TopicPartition>) {
        self.task.close(&partitions).await;
        self.desk.ledger().close(&partitions);
    }

    /// The log has lost where a partition was read. Going forward skips what retention took, which
    /// nobody can deliver any more; going back delivers again.
    fn moved(&mut self, partition: &TopicPartition, from: i64, to: i64) {
        tracing::error!(%partition, from, to, "the log lacks the offset; reading goes on elsewhere");
        self.desk.meter.moved(partition, from, to);
        self.desk.ledger().rewind(partition, to);
    }

    /// Reads on where the sink wants to.
    fn rewind(&mut self) {
        for (partition, offset) in self.desk.take_rewinds() {
            if !self.consumer.seek(&partition, offset) {
                tracing::warn!(%partition, offset, "a partition that is not held is not rewound");
                continue;
            }
            self.batch.forget(&partition);
            self.desk.ledger().rewind(&partition, offset);
            // Stored before the sink is given more: a crash would else begin behind what it has lost.
            self.desk.request_commit();
        }
    }

    /// Asks the sink what is durable, and stores that.
    async fn flush(&mut self) -> Result<(), ConnectorError> {
        self.flushed = Instant::now();
        self.desk.collect().await?;
        if !self.consumer.is_assigned() || self.desk.ledger().is_settled() {
            return Ok(());
        }
        let begun = Instant::now();
        let settled = self.settle_and_commit().await;
        self.desk.meter.committed(begun.elapsed(), &settled);
        settled
    }

    async fn settle_and_commit(&mut self) -> Result<(), ConnectorError> {
        let accepted = self.desk.ledger().accepted();
        let asked = timeout(self.flush_timeout, self.task.pre_commit(&accepted)).await;
        match asked.unwrap_or_else(|_| Err(slow(self.flush_timeout))) {
            Ok(durable) => {
                let refused = self.desk.ledger().settle(durable);
                for (partition, offset) in refused {
                    tracing::warn!(%partition, offset, "the sink calls durable what it was not given");
                }
            }
            // The same is asked again later; what was durable before is stored all the same.
            Err(error) if error.retry == Retry::Backoff && error.code != SLOW => {
                tracing::warn!(%error, "the sink does not say what is durable");
            }
            Err(error) => return Err(error),
        }
        self.commit().await
    }

    async fn commit(&mut self) -> Result<(), ConnectorError> {
        let due: SinkOffsets = self.desk.ledger().due();
        let committed = self.consumer.commit(&due).await.map_err(|error| log_error(&error))?;
        if committed == Commit::Stored {
            self.desk.ledger().committed(&due);
        }
        Ok(())
    }

    /// Stores what is durable before it ends.
    async fn finish(&mut self) -> Result<(), ConnectorError> {
        self.batch.clear();
        self.desk.settle().await?;
        self.flush().await?;
        let open: Vec<_> = self.desk.ledger().accepted().into_keys().collect();
        self.let_go(open).await;
        Ok(())
    }

    /// A sink that failed is asked nothing more: what it called durable before is stored.
    async fn keep_what_is_durable(&mut self, error: &ConnectorError) {
        if !matches!(timeout(LAST_STORE_TIMEOUT, self.commit()).await, Ok(Ok(()))) {
            tracing::warn!(code = error.code, "a failed task could not store its last offsets");
        }
    }

    /// How far it is behind.
    fn measure(&self) {
        let meter = &self.desk.meter;
        let unread = self.consumer.lag();
        let waiting = self.batch.waiting().count() as i64;
        meter.lag_records.set(unread.map(|unread| unread + waiting));
        let oldest = self.batch.waiting().map(|record| record.timestamp).min();
        let now = jiff::Timestamp::now().as_millisecond();
        meter.lag.set(match oldest {
            Some(oldest) => Some((now - oldest).max(0)),
            None if unread == Some(0) => Some(0),
            // What it has not read yet is of an age that it does not know.
            None => None,
        });
    }

    fn report(&mut self) {
        if self.reported.elapsed() < REPORT_PAUSE {
            return;
        }
        self.reported = Instant::now();
        self.measure();
        let (activity, facts) = (self.activity(), self.task.facts());
        self.status.send_if_modified(|status| {
            let changed = status.activity != activity || status.facts != facts;
            (status.activity, status.facts) = (activity, facts);
            changed
        });
    }
}

/// What a group refuses until a person has acted.
const LASTING: [ErrorCode; 6] = [
    ErrorCode::GROUP_AUTHORIZATION_FAILED,
    ErrorCode::INVALID_GROUP_ID,
    ErrorCode::INCONSISTENT_GROUP_PROTOCOL,
    ErrorCode::INVALID_SESSION_TIMEOUT,
    ErrorCode::FENCED_INSTANCE_ID,
    ErrorCode::GROUP_MAX_SIZE_REACHED,
];

/// A failure to read as a member of a group.
fn group_error(error: &KafkaError) -> ConnectorError {
    if error.is(ErrorCode::OFFSET_OUT_OF_RANGE) {
        let remedy = "set the offset through the connector's offsets, or \
                      consumer.override.auto.offset.reset to where reading shall begin, then restart \
                      the connector";
        return ConnectorError::stop(
            "SINK_NO_OFFSET",
            ErrorKind::Position,
            error.to_string(),
            remedy,
        );
    }
    if error.is(ErrorCode::INVALID_SESSION_TIMEOUT) {
        let remedy = "set consumer.override.session.timeout.ms to what the brokers take, from their \
                      group.min.session.timeout.ms (6000) to group.max.session.timeout.ms (1800000), \
                      then restart the connector";
        return ConnectorError::stop(
            "SINK_GROUP_REFUSED",
            ErrorKind::Log,
            error.to_string(),
            remedy,
        );
    }
    if LASTING.into_iter().any(|lasting| error.is(lasting)) {
        let remedy = "change the group or the connector's consumer.override settings, then restart \
                      the connector";
        return ConnectorError::stop(
            "SINK_GROUP_REFUSED",
            ErrorKind::Log,
            error.to_string(),
            remedy,
        );
    }
    log_error(error)
}

/// Code of [`slow`].
const SLOW: &str = "SINK_SLOW";

fn slow(limit: Duration) -> ConnectorError {
    let limit = limit.as_millis();
    let what = format!("the sink has not said within {limit} ms what is durable");
    ConnectorError::again(SLOW, ErrorKind::Sink, what)
        .keeping("the stored offsets; what is not durable is delivered again")
}

/// Topics that are named at most.
const NAMED: usize = 3;

fn waits_for(awaited: &Awaited) -> String {
    let topics = match awaited {
        Awaited::Match => return "a topic that topics.regex matches: there is none".to_owned(),
        Awaited::Topics(topics) => topics,
    };
    let named: Vec<_> = topics.iter().take(NAMED).map(String::as_str).collect();
    let more = topics.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    match (topics.len(), named.join(", ")) {
        (1, named) => format!("topic {named}, which does not exist"),
        (_, named) => format!("topics that do not exist: {named}{more}"),
    }
}

#[cfg(test)]
#[path = "sink_task_tests.rs"]
mod tests;
