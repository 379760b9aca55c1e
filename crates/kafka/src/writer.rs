//! Writing with a delivery contract: begin, send, offsets, commit.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::at_least_once::AtLeastOnce;
use crate::transactional::Transactional;
use crate::{Bootstrap, KafkaError, Lease};
use async_trait::async_trait;
use bytes::Bytes;

/// One record to write.
#[derive(Clone, Debug)]
pub struct OutgoingRecord {
    /// Topic.
    pub topic: Arc<str>,
    /// Partition; `None` lets the key choose (murmur2, as Java clients do).
    pub partition: Option<i32>,
    /// Key.
    pub key: Option<Bytes>,
    /// Value.
    pub value: Option<Bytes>,
    /// Headers, in order.
    pub headers: Vec<(Cow<'static, str>, Bytes)>,
}

impl OutgoingRecord {
    /// Bytes it takes in memory and, about, on the wire.
    pub(crate) fn size(&self) -> usize {
        /// Length fields, offset and timestamp of a record, and of a batch's share.
        const OVERHEAD: usize = 64;
        let headers = self.headers.iter().map(|(name, value)| name.len() + value.len());
        let [key, value] = [&self.key, &self.value].map(|part| part.as_ref().map_or(0, Bytes::len));
        OVERHEAD + key + value + headers.sum::<usize>()
    }
}

/// The log holds a record safely (acks=all).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Acknowledgement {
    /// What [`Writer::send`] returned for it.
    pub sequence: u64,
    /// Topic.
    pub topic: Arc<str>,
    /// Partition it went to.
    pub partition: i32,
    /// Offset it has.
    pub offset: i64,
}

/// Who a transactional writer is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TransactionSettings {
    /// The transactional id: whoever takes it fences the one who had it.
    pub id: String,
    /// How long a transaction may be open before the cluster aborts it.
    pub timeout: Duration,
}

/// Bounds of a writer, and its delivery contract.
#[derive(Clone, Debug)]
pub struct WriterSettings {
    /// Brokers, as for [`crate::Reader::new`].
    pub bootstrap: Bootstrap,
    /// Records that may wait for acknowledgement.
    pub max_in_flight_records: usize,
    /// Bytes that may wait for acknowledgement.
    pub max_in_flight_bytes: usize,
    /// How long a record may stay unacknowledged before the writer fails.
    pub delivery_timeout: Duration,
    /// How long a batch may wait to grow.
    pub linger: Duration,
    /// Largest request; a record above the topic's limit fails with its own error.
    pub max_request_bytes: usize,
    /// With it the writer writes in transactions; else at least once.
    pub transactions: Option<TransactionSettings>,
    /// With it nothing is sent once it has ended, and the writer breaks.
    pub lease: Option<Lease>,
}

impl WriterSettings {
    /// The defaults for the cluster at `bootstrap`.
    pub fn new(bootstrap: impl Into<Bootstrap>) -> Self {
        Self {
            bootstrap: bootstrap.into(),
            max_in_flight_records: 20_000,
            max_in_flight_bytes: 32 << 20,
            delivery_timeout: Duration::from_secs(120),
            linger: Duration::from_millis(5),
            max_request_bytes: 10 << 20,
            transactions: None,
            lease: None,
        }
    }
}

/// Writes records, and the offsets behind them, under one delivery contract.
///
/// Order of use: `begin`, any number of `send`, `offsets` with the offset records of what was
/// acknowledged, `commit`. At-least-once: `begin` opens nothing, `offsets` sends and waits, `commit`
/// waits until all that was sent is acknowledged. In transactions: `begin` waits until the
/// transactional id is this writer's, which fences another one that had it; the first record opens
/// the transaction; only `commit` makes anything of it visible. After an error, save one with
/// `fatal: false`, the writer must be dropped: the fate of what was in flight is unknown and nothing
/// of it may be reported as safe.
#[async_trait]
pub trait Writer: Send + Sync {
    /// Makes ready for a transaction, where the contract has one; else does nothing.
    async fn begin(&mut self) -> Result<(), KafkaError>;

    /// Takes a record, in order, waiting while the bounds are reached; returns its sequence,
    /// which counts up by one from 1.
    async fn send(&mut self, record: OutgoingRecord) -> Result<u64, KafkaError>;

    /// As [`Self::send`], at once: `None` where that is not possible, and [`Self::send`] has to be
    /// used. For the many records of a busy source, each of which would pay for a future.
    fn try_send(&mut self, record: &OutgoingRecord) -> Result<Option<u64>, KafkaError> {
        let _ = record;
        Ok(None)
    }

    /// Acknowledgements since the last call, in the order of `send` and without gaps: a record is
    /// reported only when all before it are safe. Does not wait.
    fn acknowledged(&mut self) -> Result<Vec<Acknowledgement>, KafkaError>;

    /// Waits until [`Self::acknowledged`] has something to say, or everything sent was reported.
    async fn ready(&mut self) -> Result<(), KafkaError>;

    /// Writes offset records and waits for their acknowledgement (inside the transaction, where
    /// there is one).
    async fn offsets(&mut self, records: Vec<OutgoingRecord>) -> Result<(), KafkaError>;

    /// Ends the transaction; on return everything is safe. An error leaves the outcome unknown
    /// unless it says otherwise.
    async fn commit(&mut self) -> Result<(), KafkaError>;

    /// Gives up what was sent since the last `commit`: nothing of it becomes visible, although it is
    /// reported as acknowledged. At-least-once has nothing to take back: it does nothing.
    async fn abort(&mut self) -> Result<(), KafkaError> {
        Ok(())
    }
}

/// An at-least-once writer: idempotent producer, acks=all. To be made inside a Tokio runtime, where
/// it sends from a task of its own.
///
/// # Errors
/// None at present: a writer that cannot reach its cluster says so when it is used.
pub fn at_least_once(settings: &WriterSettings) -> Result<Box<dyn Writer>, KafkaError> {
    Ok(Box::new(AtLeastOnce::start(settings)))
}

/// A writer under the delivery contract that its settings name: in transactions where they do, else
/// [`at_least_once`].
///
/// # Errors
/// As [`at_least_once`].
pub fn writer(settings: &WriterSettings) -> Result<Box<dyn Writer>, KafkaError> {
    match &settings.transactions {
        None => at_least_once(settings),
        Some(transactions) => Ok(Box::new(Transactional::start(settings, transactions))),
    }
}
