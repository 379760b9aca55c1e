//! Records on their way to a sink, and when to try again those that it has not accepted.

use std::collections::VecDeque;
use std::time::Duration;

use highwater_connector::{LogRecord, SinkRecord, TopicPartition};
use tokio::time::Instant;

/// See the module's text. Empty when the sink has accepted all that was read.
#[derive(Default)]
pub(crate) struct SinkBatch {
    /// Ready for the sink.
    records: Vec<SinkRecord>,
    /// Behind them, as they lie in the log.
    raw: VecDeque<LogRecord>,
    /// Since when nothing goes on, and how often it was tried.
    refused: Option<(Instant, u32)>,
    not_before: Option<Instant>,
}

impl SinkBatch {
    pub(crate) fn of(raw: VecDeque<LogRecord>) -> Self {
        Self { raw, ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.raw.is_empty()
    }

    /// All of them, as they lie in the log.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &LogRecord> {
        self.records.iter().map(|record| &record.original).chain(&self.raw)
    }

    /// Those that are not made ready yet.
    pub(crate) const fn raw(&self) -> &VecDeque<LogRecord> {
        &self.raw
    }

    /// Takes the first of [`Self::raw`], of which something becomes.
    pub(crate) fn take(&mut self) -> Option<LogRecord> {
        self.raw.pop_front()
    }

    /// The record that was taken is ready.
    pub(crate) fn ready(&mut self, record: SinkRecord) {
        self.records.push(record);
    }

    /// What was refused goes on after all.
    pub(crate) const fn goes_on(&mut self) {
        self.refused = None;
    }

    pub(crate) fn records(&self) -> &[SinkRecord] {
        &self.records
    }

    /// Whether it is to be given to the sink now.
    pub(crate) fn is_due(&self) -> bool {
        !self.is_empty() && self.not_before.is_none_or(|at| at <= Instant::now())
    }

    /// When it is to be given again; nothing is where nothing waits.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.not_before.filter(|_| !self.is_empty())
    }

    /// The sink accepted the first so many.
    pub(crate) fn accepted(&mut self, count: usize) {
        if count > 0 {
            self.records.drain(..count.min(self.records.len()));
            self.refused = None;
        }
        self.not_before = None;
    }

    /// Nothing went on: which attempt that was, and how long it has gone on.
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
        self.records.retain(|record| record.original.from != *partition);
        self.raw.retain(|record| record.from != *partition);
    }

    /// Drops everything.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(partition: i32) -> LogRecord {
        let from = TopicPartition::new("orders", partition);
        LogRecord { from, offset: 0, timestamp: 0, key: None, value: None, headers: Vec::new() }
    }

    #[test]
    fn where_nothing_waits_nothing_is_due() {
        let waiting = || {
            let mut batch = SinkBatch::of([record(0)].into());
            batch.wait(Duration::ZERO);
            assert!(batch.due().is_some());
            batch
        };
        let mut left_out = waiting();
        left_out.take();
        let mut read_elsewhere = waiting();
        read_elsewhere.forget(&TopicPartition::new("orders", 0));
        assert_eq!((left_out.due(), read_elsewhere.due()), (None, None));
    }
}
