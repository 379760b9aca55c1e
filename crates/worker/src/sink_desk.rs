//! What a sink asks of its task, from wherever it asks: rewinds, an early commit, and the fate of
//! records that it cannot deliver.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use highwater_connector::{
    ConnectorError, LogRecord, SinkContext, SinkOffsets, SinkRecord, TopicPartition,
};
use parking_lot::{Mutex, MutexGuard};

use crate::dead_letters::{Cause, DeadLetters};
use crate::meter::TaskMeter;
use crate::sink_ledger::SinkLedger;
use crate::tolerance::{Stage, Tolerance, Verdict, or_tolerated};

/// See the module's text.
pub(crate) struct Desk {
    pub(crate) connector: String,
    pub(crate) task: u32,
    /// Class of the sink.
    pub(crate) class: &'static str,
    pub(crate) tolerance: Tolerance,
    pub(crate) dead_letters: Option<tokio::sync::Mutex<DeadLetters>>,
    pub(crate) ledger: Mutex<SinkLedger>,
    pub(crate) rewinds: Mutex<SinkOffsets>,
    pub(crate) commit_asked: AtomicBool,
    pub(crate) meter: Arc<TaskMeter>,
}

impl Desk {
    pub(crate) fn ledger(&self) -> MutexGuard<'_, SinkLedger> {
        self.ledger.lock()
    }

    /// The rewinds asked for since.
    pub(crate) fn take_rewinds(&self) -> SinkOffsets {
        std::mem::take(&mut *self.rewinds.lock())
    }

    /// Whether an early commit was asked for since.
    pub(crate) fn take_commit(&self) -> bool {
        self.commit_asked.swap(false, Ordering::AcqRel)
    }

    /// Goes on without a record: it is logged and put elsewhere as the configuration says.
    ///
    /// # Errors
    /// When it cannot be put elsewhere; its offset is then never passed.
    pub(crate) async fn skip(
        &self,
        record: &LogRecord,
        stage: Stage,
        class: &str,
        error: &ConnectorError,
    ) -> Result<(), ConnectorError> {
        self.log(record, stage, error);
        self.meter.record_failures.one();
        self.meter.skipped.one();
        let Some(dead_letters) = &self.dead_letters else { return Ok(()) };
        self.ledger().bury(&record.from, record.offset);
        let (connector, task) = (self.connector.as_str(), self.task);
        let cause = Cause { connector, task, stage, class, error };
        let sent = dead_letters.lock().await.send(record, &cause).await;
        self.letter(&sent);
        sent
    }

    fn letter(&self, sent: &Result<(), ConnectorError>) {
        match sent {
            Ok(()) => self.meter.dead_letters.one(),
            Err(_) => self.meter.dead_letter_failures.one(),
        }
    }

    fn log(&self, record: &LogRecord, stage: Stage, error: &ConnectorError) {
        if !self.tolerance.logs {
            return;
        }
        let (stage, task) = (stage.name(), self.task);
        if self.tolerance.logs_records {
            let LogRecord { from, offset, timestamp, .. } = record;
            tracing::error!(%error, stage, task, %from, offset, timestamp, "a record is skipped");
        } else {
            tracing::error!(%error, stage, task, "a record is skipped");
        }
    }

    /// Takes in which dead letters are acknowledged.
    pub(crate) async fn collect(&self) -> Result<(), ConnectorError> {
        let Some(dead_letters) = &self.dead_letters else { return Ok(()) };
        let safe = dead_letters.lock().await.collect();
        let safe = safe.inspect_err(|_| self.meter.dead_letter_failures.one())?;
        self.bury_all(&safe);
        Ok(())
    }

    /// Waits until all dead letters are acknowledged.
    pub(crate) async fn settle(&self) -> Result<(), ConnectorError> {
        let Some(dead_letters) = &self.dead_letters else { return Ok(()) };
        let safe = dead_letters.lock().await.settle().await;
        let safe = safe.inspect_err(|_| self.meter.dead_letter_failures.one())?;
        self.bury_all(&safe);
        Ok(())
    }

    fn bury_all(&self, safe: &[(TopicPartition, i64)]) {
        let mut ledger = self.ledger();
        safe.iter().for_each(|(partition, offset)| ledger.buried(partition, *offset));
    }
}

#[async_trait]
impl SinkContext for Desk {
    fn rewind(&self, partition: &TopicPartition, offset: i64) {
        self.rewinds.lock().insert(partition.clone(), offset);
    }

    fn request_commit(&self) {
        self.commit_asked.store(true, Ordering::Release);
    }

    async fn report(
        &self,
        record: &SinkRecord,
        error: ConnectorError,
    ) -> Result<(), ConnectorError> {
        match self.tolerance.judge_report() {
            Verdict::Skip => self.skip(&record.original, Stage::TaskPut, self.class, &error).await,
            Verdict::Again(_) | Verdict::Stop => {
                self.meter.record_failures.one();
                Err(or_tolerated(error))
            }
        }
    }
}
