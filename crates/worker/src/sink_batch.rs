//! Records on their way to a sink, and when to try again those that it has not accepted.

use std::time::Duration;

use highwater_connector::{SinkRecord, TopicPartition};
use tokio::time::Instant;

/// See the module's text. Empty when the sink has accepted all that was read.
#[derive(Default)]
pub(crate) struct SinkBatch {
    records: Vec<SinkRecord>,
    /// Since when the sink takes none of them, and how often it was asked.
    refused: Option<(Instant, u32)>,
    not_before: Option<Instant>,
}

impl SinkBatch {
    pub(crate) fn of(records: Vec<SinkRecord>) -> Self {
        Self { records, refused: None, not_before: None }
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(crate) fn records(&self) -> &[SinkRecord] {
        &self.records
    }

    /// Whether it is to be given to the sink now.
    pub(crate) fn is_due(&self) -> bool {
        !self.is_empty() && self.not_before.is_none_or(|at| at <= Instant::now())
    }

    /// When it is to be given again.
    pub(crate) const fn due(&self) -> Option<Instant> {
        self.not_before
    }

    /// The sink accepted the first so many.
    pub(crate) fn accepted(&mut self, count: usize) {
        if count > 0 {
            self.records.drain(..count.min(self.records.len()));
            self.refused = None;
        }
        self.not_before = None;
    }

    /// The sink accepted nothing: which attempt that was, and how long it has gone on.
    pub(crate) fn refused(&mut self) -> (u32, Duration) {
        let (since, attempts) = self.refused.get_or_insert((Instant::now(), 0));
        *attempts = attempts.saturating_add(1);
        (*attempts, since.elapsed())
    }

    /// Gives the rest again after a pause.
    pub(crate) fn wait(&mut self, pause: Duration) {
        self.not_before = Some(Instant::now() + pause);
    }

    /// Drops what comes from this partition: it is read elsewhere.
    pub(crate) fn forget(&mut self, partition: &TopicPartition) {
        self.records.retain(|record| record.from != *partition);
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
