//! The writer behind [`at_least_once`](crate::at_least_once).

use async_trait::async_trait;

use crate::accumulator::{self, Accumulator};
use crate::delivery::Book;
use crate::{Acknowledgement, KafkaError, OutgoingRecord, Writer, WriterSettings};

/// See the module's text.
pub(crate) struct AtLeastOnce(Accumulator);

impl AtLeastOnce {
    pub(crate) fn start(settings: &WriterSettings) -> Self {
        Self(Accumulator::start(settings, accumulator::cluster(settings), None))
    }
}

#[async_trait]
impl Writer for AtLeastOnce {
    async fn begin(&mut self) -> Result<(), KafkaError> {
        self.0.check()
    }

    async fn send(&mut self, record: OutgoingRecord) -> Result<u64, KafkaError> {
        self.0.send(&record).await
    }

    fn try_send(&mut self, record: &OutgoingRecord) -> Result<Option<u64>, KafkaError> {
        self.0.try_send(record)
    }

    fn acknowledged(&mut self) -> Result<Vec<Acknowledgement>, KafkaError> {
        self.0.acknowledged()
    }

    async fn ready(&mut self) -> Result<(), KafkaError> {
        self.0.ready().await
    }

    async fn offsets(&mut self, records: Vec<OutgoingRecord>) -> Result<(), KafkaError> {
        self.0.offsets(&records).await
    }

    async fn commit(&mut self) -> Result<(), KafkaError> {
        self.0.settle(Book::Records).await
    }
}
