//! A connector's tasks whose errors and sentences bear none of its secrets, wherever they go: into
//! statuses, log lines or the headers of dead letters.

use std::sync::Arc;

use async_trait::async_trait;
use highwater_connector::{
    ConnectorError, Fact, Hold, Position, SinkContext, SinkOffsets, SinkRecord, SinkTask,
    SourceItem, SourceTask, Start, TaskStore, TopicPartition,
};

use crate::scrub::Scrub;

/// A task of a source or sink, or what it is given, with the secrets to take out of what it says.
struct Scrubbed<T> {
    inner: T,
    scrub: Scrub,
}

/// The same task, in such words.
pub(crate) fn source(inner: Box<dyn SourceTask>, scrub: &Scrub) -> Box<dyn SourceTask> {
    if scrub.is_empty() { inner } else { Box::new(Scrubbed { inner, scrub: scrub.clone() }) }
}

/// The same task, in such words.
pub(crate) fn sink(inner: Box<dyn SinkTask>, scrub: &Scrub) -> Box<dyn SinkTask> {
    if scrub.is_empty() { inner } else { Box::new(Scrubbed { inner, scrub: scrub.clone() }) }
}

impl<T> Scrubbed<T> {
    fn facts(&self, facts: Vec<Fact>) -> Vec<Fact> {
        facts.into_iter().map(|(name, value)| (name, self.scrub.text(&value))).collect()
    }
}

#[async_trait]
impl SourceTask for Scrubbed<Box<dyn SourceTask>> {
    async fn start(
        &mut self,
        start: Start,
        store: Arc<dyn TaskStore>,
    ) -> Result<(), ConnectorError> {
        self.inner.start(start, store).await.map_err(|error| self.scrub.error(error))
    }

    async fn poll(&mut self) -> Result<Vec<SourceItem>, ConnectorError> {
        self.inner.poll().await.map_err(|error| self.scrub.error(error))
    }

    async fn committed(&mut self, position: &dyn Position) -> Result<(), ConnectorError> {
        self.inner.committed(position).await.map_err(|error| self.scrub.error(error))
    }

    async fn stop(&mut self) {
        self.inner.stop().await;
    }

    fn activity(&self) -> String {
        self.scrub.text(&self.inner.activity())
    }

    fn facts(&self) -> Vec<Fact> {
        self.facts(self.inner.facts())
    }

    fn hold(&self) -> Option<Hold> {
        self.inner.hold()
    }
}

#[async_trait]
impl SinkTask for Scrubbed<Box<dyn SinkTask>> {
    async fn start(&mut self, inner: Arc<dyn SinkContext>) -> Result<(), ConnectorError> {
        let context = Scrubbed { inner, scrub: self.scrub.clone() };
        self.inner.start(Arc::new(context)).await.map_err(|error| self.scrub.error(error))
    }

    async fn open(&mut self, partitions: &SinkOffsets) -> Result<(), ConnectorError> {
        self.inner.open(partitions).await.map_err(|error| self.scrub.error(error))
    }

    async fn put(&mut self, records: &[SinkRecord]) -> Result<usize, ConnectorError> {
        self.inner.put(records).await.map_err(|error| self.scrub.error(error))
    }

    async fn pre_commit(&mut self, accepted: &SinkOffsets) -> Result<SinkOffsets, ConnectorError> {
        self.inner.pre_commit(accepted).await.map_err(|error| self.scrub.error(error))
    }

    async fn close(&mut self, partitions: &[TopicPartition]) {
        self.inner.close(partitions).await;
    }

    async fn stop(&mut self) {
        self.inner.stop().await;
    }

    fn activity(&self) -> String {
        self.scrub.text(&self.inner.activity())
    }

    fn facts(&self) -> Vec<Fact> {
        self.facts(self.inner.facts())
    }
}

#[async_trait]
impl SinkContext for Scrubbed<Arc<dyn SinkContext>> {
    fn rewind(&self, partition: &TopicPartition, offset: i64) {
        self.inner.rewind(partition, offset);
    }

    fn request_commit(&self) {
        self.inner.request_commit();
    }

    async fn report(
        &self,
        record: &SinkRecord,
        error: ConnectorError,
    ) -> Result<(), ConnectorError> {
        self.inner.report(record, self.scrub.error(error)).await
    }
}
