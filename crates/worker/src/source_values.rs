//! The values of a source on their way to the log: transformed, converted, or left out.

use std::sync::Arc;
use std::time::Duration;

use highwater_connector::ConnectorError;
use highwater_kafka::OutgoingRecord;
use highwater_transforms::Record;
use tokio::time::Instant;

use crate::meter::TaskMeter;
use crate::record_path::{Failure, RecordPath};
use crate::tolerance::{Tolerance, Verdict, or_tolerated};

/// What becomes of a record.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// It goes to the log.
    Send(OutgoingRecord),
    /// It does not: its position counts as if it had.
    LeaveOut,
    /// It is tried again after this long, for this reason.
    Again(Duration, String),
}

/// Since when a record is tried, and how often it was.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Attempts {
    since: Option<Instant>,
    count: u32,
}

/// See the module's text.
pub(crate) struct SourceValues {
    pub(crate) path: Arc<RecordPath>,
    pub(crate) tolerance: Tolerance,
    pub(crate) meter: Arc<TaskMeter>,
    pub(crate) task: u32,
}

impl SourceValues {
    /// What transforms make of a record; none when it is left out.
    ///
    /// # Errors
    /// They cannot work on it, and that is not tolerated.
    pub(crate) fn transform(&self, record: Record) -> Result<Option<Record>, ConnectorError> {
        let topic = Arc::clone(&record.topic);
        match self.path.transform(record) {
            Ok(transformed) => Ok(transformed),
            Err(failure) => {
                let again = failure.error.clone();
                match self.judge(failure, &topic, &mut Attempts::default())? {
                    Outcome::LeaveOut => Ok(None),
                    // Of a transform the same comes out whenever it is tried.
                    Outcome::Send(_) | Outcome::Again(..) => Err(again),
                }
            }
        }
    }

    /// The bytes of a record.
    ///
    /// # Errors
    /// It cannot be converted, and that is not tolerated.
    pub(crate) async fn convert(
        &self,
        record: &Record,
        attempts: &mut Attempts,
    ) -> Result<Outcome, ConnectorError> {
        match self.path.write(record).await {
            Ok(outgoing) => Ok(Outcome::Send(outgoing)),
            Err(failure) => self.judge(failure, &record.topic, attempts),
        }
    }

    fn judge(
        &self,
        failure: Box<Failure>,
        topic: &str,
        attempts: &mut Attempts,
    ) -> Result<Outcome, ConnectorError> {
        let since = *attempts.since.get_or_insert_with(Instant::now);
        attempts.count = attempts.count.saturating_add(1);
        let Failure { stage, error, .. } = failure.as_ref();
        let chance = rand::random();
        match self.tolerance.judge(*stage, error, attempts.count, since.elapsed(), chance) {
            Verdict::Again(pause) => {
                self.meter.retries.one();
                Ok(Outcome::Again(pause, failure.error.what))
            }
            Verdict::Skip => {
                self.log(&failure, topic);
                self.meter.record_failures.one();
                self.meter.skipped.one();
                Ok(Outcome::LeaveOut)
            }
            Verdict::Stop => {
                self.meter.record_failures.one();
                Err(or_tolerated(failure.error))
            }
        }
    }

    fn log(&self, Failure { stage, class, error }: &Failure, topic: &str) {
        if !self.tolerance.logs {
            return;
        }
        let (stage, task) = (stage.name(), self.task);
        if self.tolerance.logs_records {
            tracing::error!(%error, stage, class, task, topic, "a record is skipped");
        } else {
            tracing::error!(%error, stage, class, task, "a record is skipped");
        }
    }
}
