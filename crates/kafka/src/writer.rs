//! Writing with a delivery contract: begin, send, offsets, commit, abort.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use parking_lot::MutexGuard;
use rdkafka::config::{ClientConfig, RDKafkaLogLevel};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseRecord, Producer as _, PurgeConfig, ThreadedProducer};

use crate::KafkaError;
use crate::delivery::{Deliveries, Lane, State, ticket};
use crate::ledger::Bounds;

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
    pub headers: Vec<(&'static str, Bytes)>,
}

impl OutgoingRecord {
    /// Bytes it takes in memory and, about, on the wire.
    fn size(&self) -> usize {
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

/// Bounds of a writer.
#[derive(Clone, Debug)]
pub struct WriterSettings {
    /// Brokers, as for [`crate::Reader::new`].
    pub bootstrap: String,
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
}

impl WriterSettings {
    /// The defaults for the cluster at `bootstrap`.
    pub fn new(bootstrap: &str) -> Self {
        Self {
            bootstrap: bootstrap.to_owned(),
            max_in_flight_records: 20_000,
            max_in_flight_bytes: 32 << 20,
            delivery_timeout: Duration::from_secs(120),
            linger: Duration::from_millis(5),
            max_request_bytes: 10 << 20,
        }
    }
}

/// Writes records, and the offsets behind them, under one delivery contract.
///
/// Order of use: `begin`, any number of `send`, `offsets` with the offset records of what was
/// acknowledged, `commit`. At-least-once: `begin` and `abort` do nothing, `offsets` sends and waits,
/// `commit` waits until all that was sent is acknowledged. After an error with `fatal` the writer
/// must be dropped: the fate of what was in flight is unknown and nothing of it may be reported
/// as safe.
#[async_trait]
pub trait Writer: Send + Sync {
    /// Opens a transaction, where the contract has one.
    async fn begin(&mut self) -> Result<(), KafkaError>;

    /// Takes a record, in order, waiting while the bounds are reached; returns its sequence,
    /// which counts up by one from 1.
    async fn send(&mut self, record: OutgoingRecord) -> Result<u64, KafkaError>;

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

    /// Drops what is open.
    async fn abort(&mut self) -> Result<(), KafkaError>;
}

/// An at-least-once writer: idempotent producer, acks=all.
///
/// # Errors
/// When the settings are not accepted by the client library.
pub fn at_least_once(settings: &WriterSettings) -> Result<Box<dyn Writer>, KafkaError> {
    Ok(Box::new(AtLeastOnce::new(&client_config(settings), settings)?))
}

type Producer = ThreadedProducer<Deliveries>;

/// How long a full writer waits before it looks again, when nobody wakes it.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// The writer behind [`at_least_once`], over librdkafka.
struct AtLeastOnce {
    /// Gone once the writer is broken, so that nothing can be sent after a failure.
    producer: Option<Producer>,
    deliveries: Arc<Deliveries>,
    delivery_timeout: Duration,
}

impl AtLeastOnce {
    fn new(config: &ClientConfig, settings: &WriterSettings) -> Result<Self, KafkaError> {
        let bounds =
            Bounds { records: settings.max_in_flight_records, bytes: settings.max_in_flight_bytes };
        let producer: Producer = config
            .create_with_context(Deliveries::new(bounds))
            .map_err(|error| write_error("all topics", &error, true))?;
        let deliveries = Arc::clone(producer.context());
        let delivery_timeout = settings.delivery_timeout;
        Ok(Self { producer: Some(producer), deliveries, delivery_timeout })
    }

    /// The state, with what is overdue counted as failed.
    fn state(&self) -> MutexGuard<'_, State> {
        let mut state = self.deliveries.state();
        state.expire(Instant::now(), self.delivery_timeout);
        state
    }

    /// The failure, if there is one; then the producer goes at once.
    fn check(&mut self) -> Result<(), KafkaError> {
        let checked = self.state().check();
        checked.inspect_err(|_| self.retire())
    }

    async fn enqueue(&mut self, lane: Lane, record: &OutgoingRecord) -> Result<u64, KafkaError> {
        loop {
            self.check()?;
            if let Some(sequence) = self.try_enqueue(lane, record)? {
                return Ok(sequence);
            }
            self.deliveries.progress(LOOK_AGAIN).await;
        }
    }

    /// Hands a record to the library; `None` while the bounds are reached.
    fn try_enqueue(&self, lane: Lane, record: &OutgoingRecord) -> Result<Option<u64>, KafkaError> {
        let Some(producer) = &self.producer else { return Err(broken(&record.topic)) };
        let entered = self.deliveries.state().ledger(lane).enter(
            &record.topic,
            record.size(),
            Instant::now(),
        );
        let Some(sequence) = entered else { return Ok(None) };
        let Err((error, _)) = producer.send(base_record(record, ticket(lane, sequence))) else {
            return Ok(Some(sequence));
        };
        self.deliveries.state().ledger(lane).take_back();
        if error.rdkafka_error_code() == Some(RDKafkaErrorCode::QueueFull) {
            return Ok(None);
        }
        Err(write_error(&record.topic, &error, self.deliveries.state().check().is_err()))
    }

    /// Waits until everything in a lane is safe.
    async fn settle(&mut self, lane: Lane) -> Result<(), KafkaError> {
        loop {
            self.check()?;
            if self.deliveries.state().ledger(lane).is_settled() {
                return Ok(());
            }
            self.deliveries.progress(LOOK_AGAIN).await;
        }
    }

    /// Stops the producer: what was not sent is forgotten first, so that nothing follows a record
    /// that failed. The rest takes a moment (it joins threads) and is done aside.
    fn retire(&mut self) {
        let Some(producer) = self.producer.take() else { return };
        self.deliveries.retire();
        producer.purge(PurgeConfig::default().queue().inflight().non_blocking());
        let ended =
            std::thread::Builder::new().name("writer-end".to_owned()).spawn(move || drop(producer));
        if let Err(error) = ended {
            tracing::warn!(%error, "no thread to end a writer on; ended in place");
        }
    }
}

impl Drop for AtLeastOnce {
    fn drop(&mut self) {
        self.retire();
    }
}

#[async_trait]
impl Writer for AtLeastOnce {
    async fn begin(&mut self) -> Result<(), KafkaError> {
        self.check()
    }

    async fn send(&mut self, record: OutgoingRecord) -> Result<u64, KafkaError> {
        self.enqueue(Lane::Records, &record).await
    }

    fn acknowledged(&mut self) -> Result<Vec<Acknowledgement>, KafkaError> {
        let reported = self.state().ledger(Lane::Records).report();
        if reported.is_empty() {
            self.check()?;
        }
        Ok(reported)
    }

    async fn ready(&mut self) -> Result<(), KafkaError> {
        loop {
            let news = {
                let mut state = self.state();
                let records = state.ledger(Lane::Records);
                records.has_news() || records.is_settled()
            };
            if news {
                return Ok(());
            }
            self.check()?;
            self.deliveries.progress(LOOK_AGAIN).await;
        }
    }

    async fn offsets(&mut self, records: Vec<OutgoingRecord>) -> Result<(), KafkaError> {
        for record in &records {
            self.enqueue(Lane::Offsets, record).await?;
        }
        self.settle(Lane::Offsets).await?;
        self.deliveries.state().ledger(Lane::Offsets).report();
        Ok(())
    }

    async fn commit(&mut self) -> Result<(), KafkaError> {
        self.settle(Lane::Records).await
    }

    async fn abort(&mut self) -> Result<(), KafkaError> {
        Ok(())
    }
}

/// The library's settings.
///
/// Order in the log must have no hole, even when a record fails: a reader that drops repeats by
/// order (rule P5) would drop the repeat of a record that lies behind a later one. So a permanent
/// failure is fatal to the producer (`enable.gapless.guarantee`), and since that guarantee leaves
/// out local time-outs (librdkafka, CONFIGURATION.md) there are none: the time-out is ours, and
/// it ends the producer as a whole.
fn client_config(settings: &WriterSettings) -> ClientConfig {
    let kilobytes = settings.max_in_flight_bytes.saturating_add(settings.max_request_bytes) / 512;
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", &settings.bootstrap)
        .set("client.id", "highwater")
        .set("acks", "all")
        .set("enable.idempotence", "true")
        .set("enable.gapless.guarantee", "true")
        .set("message.timeout.ms", "0")
        .set("partitioner", "murmur2_random")
        .set("linger.ms", settings.linger.as_millis().to_string())
        .set("message.max.bytes", settings.max_request_bytes.to_string())
        // Room for what both ledgers admit, so that the library's queue is seldom the bound.
        .set("queue.buffering.max.messages", (settings.max_in_flight_records * 2).to_string())
        .set("queue.buffering.max.kbytes", (kilobytes + 1024).to_string())
        // A topic that the cluster does not know is waited for, since one just made is told to one
        // broker after the other; the library's 30 s are what a deleted topic would go unnoticed
        // for (CONFIGURATION.md). Ours are waited for when they are made.
        .set("topic.metadata.propagation.max.ms", "5000")
        .set("socket.timeout.ms", "30000")
        .set("reconnect.backoff.ms", "50")
        .set("reconnect.backoff.max.ms", "1000")
        .set("socket.nagle.disable", "true")
        .set_log_level(RDKafkaLogLevel::Warning);
    config
}

fn base_record(record: &OutgoingRecord, ticket: usize) -> BaseRecord<'_, [u8], [u8], usize> {
    BaseRecord {
        topic: &record.topic,
        partition: record.partition,
        payload: record.value.as_deref(),
        key: record.key.as_deref(),
        timestamp: None,
        headers: (!record.headers.is_empty()).then(|| headers(record)),
        delivery_opaque: ticket,
    }
}

fn headers(record: &OutgoingRecord) -> OwnedHeaders {
    let empty = OwnedHeaders::new_with_capacity(record.headers.len());
    record.headers.iter().fold(empty, |headers, (key, value)| {
        headers.insert(Header { key, value: Some(value.as_ref()) })
    })
}

fn write_error(topic: &str, error: &rdkafka::error::KafkaError, fatal: bool) -> KafkaError {
    KafkaError::Write { topic: topic.to_owned(), detail: error.to_string(), fatal }
}

fn broken(topic: &str) -> KafkaError {
    let detail = "the writer broke earlier".to_owned();
    KafkaError::Write { topic: topic.to_owned(), detail, fatal: true }
}

#[cfg(test)]
mod tests {
    use rdkafka::mocking::MockCluster;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn a_full_queue_of_the_library_is_waited_for() {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("trail", 1, 1).unwrap();
        let settings = WriterSettings::new(&cluster.bootstrap_servers());
        let mut config = client_config(&settings);
        config.set("queue.buffering.max.messages", "10");
        let mut writer = AtLeastOnce::new(&config, &settings).unwrap();
        let value = Some(Bytes::from_static(b"value"));
        let topic = Arc::from("trail");
        let record =
            OutgoingRecord { topic, partition: Some(0), key: None, value, headers: Vec::new() };
        for sequence in 1..=200 {
            assert_eq!(writer.send(record.clone()).await.unwrap(), sequence);
        }
        writer.commit().await.unwrap();
        assert_eq!(writer.acknowledged().unwrap().len(), 200);
    }

    #[test]
    fn settings_that_the_library_refuses_are_an_error() {
        let settings = WriterSettings { max_request_bytes: 1, ..WriterSettings::new("one:9092") };
        assert!(matches!(at_least_once(&settings), Err(KafkaError::Write { fatal: true, .. })));
    }
}
