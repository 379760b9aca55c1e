//! What a sink's task has read, on its way into the sink: received, prepared, put, and put again.

use std::sync::Arc;
use std::time::Duration;

use highwater_connector::{ConnectorError, LogRecord, Retry, SinkRecord, TopicPartition};
use highwater_kafka::ReadRecord;
use highwater_transforms::Record;

use crate::record_path::Failure;
use crate::sink_batch::SinkBatch;
use crate::sink_task::RunningSink;
use crate::tolerance::{Stage, Verdict, or_tolerated};

/// Greatest pause before a sink that is full is given the rest again.
const FULL_PAUSE: Duration = Duration::from_millis(500);

impl RunningSink {
    pub(crate) fn receive(&mut self, records: Vec<(TopicPartition, ReadRecord)>) {
        if !records.is_empty() {
            self.batch = SinkBatch::of(records.into_iter().map(log_record).collect());
        }
        self.pass();
    }

    pub(crate) async fn note_topics(&mut self) {
        let Some(used) = &mut self.used else { return };
        let mut before: Option<&Arc<str>> = None;
        for record in self.batch.raw() {
            if before != Some(&record.from.topic) {
                used.note(&record.from.topic).await;
            }
            before = Some(&record.from.topic);
        }
    }

    /// Where nothing waits for the sink, what has been read is behind it: markers and aborted records
    /// are no records for it.
    pub(crate) fn pass(&self) {
        if !self.batch.is_empty() {
            return;
        }
        let mut ledger = self.desk.ledger();
        for partition in ledger.accepted().into_keys() {
            if let Some(position) = self.consumer.position(&partition) {
                ledger.pass(&partition, position);
            }
        }
    }

    /// [`Self::prepare`], which the end of the task cuts short: a schema registry can be slow.
    pub(crate) async fn prepare_or_stop(&mut self) -> Result<(), ConnectorError> {
        let mut stop = self.stop.clone();
        tokio::select! {
            biased;
            prepared = self.prepare() => prepared,
            Ok(_) = stop.wait_for(Option::is_some) => Ok(()),
        }
    }

    /// Reads and transforms what waits, where the sink has taken all before it. What is left out
    /// is passed with the rest of the batch, and so never before what lies in front of it.
    async fn prepare(&mut self) -> Result<(), ConnectorError> {
        if !self.batch.records().is_empty() {
            return Ok(());
        }
        while let Some(record) = self.batch.raw().front() {
            let goes_on = match self.path.read(record).await {
                Ok(read) => self.transform(read).await?,
                Err(failure) => self.unread(failure).await?,
            };
            if !goes_on {
                return Ok(());
            }
        }
        if self.batch.is_empty() {
            self.trouble = None;
            self.pass();
        }
        Ok(())
    }

    /// Whether the batch goes on, as after [`Self::unread`].
    async fn transform(&mut self, read: Record) -> Result<bool, ConnectorError> {
        match self.path.transform(read) {
            Ok(transformed) => {
                self.batch.goes_on();
                let original = self.batch.take();
                if let (Some(original), Some(record)) = (original, transformed) {
                    self.batch.ready(sink_record(original, record));
                }
                Ok(true)
            }
            Err(failure) => self.unread(failure).await,
        }
    }

    /// Whether the batch goes on without the first record of it that is not ready.
    async fn unread(&mut self, failure: Box<Failure>) -> Result<bool, ConnectorError> {
        // Those in front go first: it is looked at again behind them.
        let is_first = self.batch.records().is_empty();
        if failure.error.retry == Retry::Backoff && !is_first {
            return Ok(false);
        }
        let (attempt, failing_for) = self.batch.refused();
        let Failure { stage, class, error } = *failure;
        match self.desk.tolerance.judge(stage, &error, attempt, failing_for, rand::random()) {
            // The offset that is kept is then that of the record which stops the task.
            Verdict::Stop if !is_first => Ok(false),
            Verdict::Again(pause) => {
                self.desk.meter.retries.one();
                self.desk.meter.refuses();
                tracing::warn!(%error, attempt, "a record cannot be read yet");
                self.batch.wait(pause);
                self.trouble = Some(format!("A record is tried again: {}", error.what));
                Ok(false)
            }
            Verdict::Skip => {
                if let Some(record) = self.batch.raw().front() {
                    self.desk.skip(record, stage, &class, &error).await?;
                }
                self.batch.take();
                self.batch.goes_on();
                Ok(true)
            }
            Verdict::Stop => {
                self.desk.meter.record_failures.one();
                Err(or_tolerated(error))
            }
        }
    }

    /// Gives the sink what is ready.
    pub(crate) async fn put(&mut self) -> Result<(), ConnectorError> {
        let waiting = self.batch.records().len();
        match self.task.put(self.batch.records()).await {
            Ok(count) => {
                self.accept(count.min(waiting));
                if !self.batch.records().is_empty() {
                    self.full(count);
                    return Ok(());
                }
                self.trouble = None;
                self.pass();
                Ok(())
            }
            Err(error) => self.refused(error),
        }
    }

    fn accept(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let mut ledger = self.desk.ledger();
        let mut bytes = 0;
        for record in self.batch.records().iter().take(count) {
            ledger.accept(&record.original.from, record.original.offset);
            bytes += size_of(&record.original);
        }
        drop(ledger);
        let meter = &self.desk.meter;
        meter.moved_on(count);
        meter.bytes.add(bytes);
        meter.batches.one();
        meter.refused_since.set(None);
        self.batch.accepted(count);
        self.status.send_if_modified(|status| {
            status.last_record = Some(jiff::Timestamp::now());
            false
        });
    }

    /// The sink has taken less than it was given.
    fn full(&mut self, count: usize) {
        let attempt = if count == 0 { self.batch.refused().0 } else { 1 };
        if count == 0 {
            self.desk.meter.refuses();
        }
        let pause = Duration::from_millis(10).saturating_mul(1 << attempt.min(6));
        self.batch.wait(pause.min(FULL_PAUSE));
        self.trouble = (count == 0).then(|| takes_nothing("it is full"));
    }

    fn refused(&mut self, error: ConnectorError) -> Result<(), ConnectorError> {
        let (attempt, failing_for) = self.batch.refused();
        let tolerance = &self.desk.tolerance;
        match tolerance.judge(Stage::TaskPut, &error, attempt, failing_for, rand::random()) {
            Verdict::Again(pause) => {
                self.desk.meter.retries.one();
                self.desk.meter.refuses();
                tracing::warn!(%error, attempt, "the sink is given the same records again");
                self.batch.wait(pause);
                self.trouble = Some(takes_nothing(&error.what));
                Ok(())
            }
            Verdict::Skip | Verdict::Stop => {
                self.desk.meter.record_failures.one();
                Err(error)
            }
        }
    }
}

fn size_of(record: &LogRecord) -> usize {
    let bytes = |bytes: &Option<bytes::Bytes>| bytes.as_ref().map_or(0, bytes::Bytes::len);
    let headers = record.headers.iter().map(|(name, value)| name.len() + value.len());
    bytes(&record.key) + bytes(&record.value) + headers.sum::<usize>()
}

fn takes_nothing(why: &str) -> String {
    format!("The sink takes nothing and is asked again: {why}")
}

fn log_record((from, record): (TopicPartition, ReadRecord)) -> LogRecord {
    let ReadRecord { offset, timestamp, key, value, headers, .. } = record;
    LogRecord { from, offset, timestamp, key, value, headers }
}

fn sink_record(original: LogRecord, record: Record) -> SinkRecord {
    let Record { topic, key, value, headers, .. } = record;
    SinkRecord { original, topic, key, value, headers }
}
