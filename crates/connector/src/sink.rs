//! The two traits that a sink system implements, and the contract between a sink and the worker.
//!
//! A record that a sink *accepted* is the sink's to deliver, and may be lost with it. A record is
//! *durable* once it outlives a crash of the sink and of what it writes to. The worker moves the
//! group's offsets up to what is durable and no further, so that a crash repeats what was accepted
//! and not durable, and never leaves anything out.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use highwater_data::{Header, SchemaAndValue};
use highwater_protocol::TopicPartition;

use crate::{Claim, Config, ConfigDef, ConnectorError, Fact, Problem};

/// The next offset to read, by partition: every record below it is meant, none from it on.
pub type SinkOffsets = BTreeMap<TopicPartition, i64>;

/// One record for a sink: what the connector's converters read and its transforms made of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SinkRecord {
    /// As it lies in the log. A sink's offsets go by this, whatever transforms made of the topic.
    pub original: LogRecord,
    /// The topic as transforms name it.
    pub topic: Arc<str>,
    /// Key.
    pub key: SchemaAndValue,
    /// Value; null in a tombstone.
    pub value: SchemaAndValue,
    /// Headers, in order.
    pub headers: Vec<Header>,
}

/// A record as it lies in the log.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LogRecord {
    /// Where it lies.
    pub from: TopicPartition,
    /// Its offset there.
    pub offset: i64,
    /// Its time in milliseconds since 1970.
    pub timestamp: i64,
    /// Key.
    pub key: Option<Bytes>,
    /// Value; none in a tombstone.
    pub value: Option<Bytes>,
    /// Headers, in order.
    pub headers: Vec<(String, Bytes)>,
}

/// A kind of sink: one value a system, shared by all its connectors.
#[async_trait]
pub trait SinkConnector: Send + Sync {
    /// Names that `connector.class` may give, the canonical one first.
    fn classes(&self) -> &'static [&'static str];

    /// Version shown in plugin lists and statuses.
    fn version(&self) -> &'static str;

    /// The configuration it takes, without the worker's own keys (`topics` among them).
    fn config(&self) -> &ConfigDef;

    /// What is wrong with values that each fit their key, by the key that is at fault. What is wrong
    /// with the whole alone, [`Self::task`] says.
    fn problems(&self, _config: &Config) -> Vec<Problem> {
        Vec::new()
    }

    /// What only one connector may use, such as a file that is written. The worker refuses a second
    /// one that claims the same.
    fn claims(&self, _config: &Config) -> Vec<Claim> {
        Vec::new()
    }

    /// Says whether the offsets of a stopped connector may be changed, `None` being a reset. A sink
    /// that keeps offsets of its own changes them here.
    ///
    /// # Errors
    /// When they must not be changed, or the sink's own could not be.
    async fn alter_offsets(
        &self,
        _config: &Config,
        _wanted: &BTreeMap<TopicPartition, Option<i64>>,
    ) -> Result<(), ConnectorError> {
        Ok(())
    }

    /// A task for this configuration.
    ///
    /// # Errors
    /// When the configuration does not hold together.
    fn task(&self, config: &Config) -> Result<Box<dyn SinkTask>, ConnectorError>;
}

/// What a sink may ask of the worker that drives it, at any time and from any task of its own.
#[async_trait]
pub trait SinkContext: Send + Sync {
    /// Reads a partition on from `offset`: back, to be given again what was lost, or to where the
    /// sink's own records say that it stands. Takes effect before the next [`SinkTask::put`]. It makes
    /// nothing durable: what was accepted below `offset` and is not durable stays so.
    fn rewind(&self, partition: &TopicPartition, offset: i64);

    /// Asks for [`SinkTask::pre_commit`] soon, before its interval has passed.
    fn request_commit(&self);

    /// Hands over a record that the sink cannot deliver, for what `errors.tolerance` says of it. On
    /// return the sink goes on without the record; its offset is not passed before its dead letter
    /// is acknowledged.
    ///
    /// # Errors
    /// When bad records are not tolerated: [`SinkTask::put`] must return this error.
    async fn report(
        &self,
        record: &SinkRecord,
        error: ConnectorError,
    ) -> Result<(), ConnectorError>;
}

/// One running writer to a sink. The worker calls it from one place, one call at a time, and never
/// cancels a call unless the task must be cut: [`SinkTask::put`] should return within seconds.
///
/// The order of calls: `start`; then, as partitions come and go, `open` and `close`, with `put` and
/// `pre_commit` between them for open partitions only; at last `pre_commit`, `close` and `stop`.
#[async_trait]
pub trait SinkTask: Send {
    /// Opens the sink. No partition is assigned yet.
    ///
    /// # Errors
    /// When it cannot be opened.
    async fn start(&mut self, context: Arc<dyn SinkContext>) -> Result<(), ConnectorError>;

    /// These partitions are read from now on, each from the offset given. A sink that keeps offsets
    /// of its own may [`SinkContext::rewind`] here.
    ///
    /// # Errors
    /// When the sink cannot take them.
    async fn open(&mut self, _partitions: &SinkOffsets) -> Result<(), ConnectorError> {
        Ok(())
    }

    /// Takes records, those of a partition in order, and says how many of them, from the first on,
    /// it *accepted*. A sink that is full accepts fewer: the rest is given again after a pause.
    ///
    /// # Errors
    /// With [`crate::Retry::Backoff`] nothing of these records was accepted, and the same are given
    /// again after a pause; with [`crate::Retry::Never`] the task fails.
    async fn put(&mut self, records: &[SinkRecord]) -> Result<usize, ConnectorError>;

    /// Says up to which offset partitions are *durable*, having made so what it can in short time.
    /// `accepted` holds where each open partition would be read on if all that it accepted were
    /// durable. What is left out of the answer stays where it was.
    ///
    /// # Errors
    /// When that cannot be said. With [`crate::Retry::Backoff`] it is asked again later.
    async fn pre_commit(&mut self, accepted: &SinkOffsets) -> Result<SinkOffsets, ConnectorError>;

    /// These partitions are read no longer: what was accepted of them and is not durable will be
    /// given to whoever reads them next, and must be let go here.
    async fn close(&mut self, _partitions: &[TopicPartition]) {}

    /// Closes the sink.
    async fn stop(&mut self);

    /// One sentence that says what it is doing and whether it moves (rule U4).
    fn activity(&self) -> String;

    /// The numbers of that sentence, for programs.
    fn facts(&self) -> Vec<Fact> {
        Vec::new()
    }
}
