//! What the producers are made of: librdkafka, and a callback that writes into the ledger.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseRecord, Producer as _, ProducerContext, ThreadedProducer};
use rdkafka::{ClientConfig, ClientContext, Message as _};

use crate::ledger::{Name, Record, Shared};
use crate::topics::Place;

/// How long anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Keys of all records.
pub const KEYS: u64 = 30;

/// What every load has.
#[derive(Clone)]
pub struct Load {
    pub kafka: String,
    pub ledger: Shared,
    pub stop: Arc<AtomicBool>,
    pub seed: u64,
}

impl Load {
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Of a client that finds the server soon after it came back.
pub fn client_config(kafka: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", kafka);
    config.set("reconnect.backoff.ms", "10").set("reconnect.backoff.max.ms", "100");
    config.set("retry.backoff.ms", "20").set("retry.backoff.max.ms", "100");
    config
}

/// What a record is to its producer.
pub enum Tag {
    Alone { place: Place, record: Record },
    In { name: Name, number: usize },
}

pub struct Watch(Shared);

impl ClientContext for Watch {}

impl ProducerContext for Watch {
    type DeliveryOpaque = Box<Tag>;

    fn delivery(&self, result: &DeliveryResult<'_>, tag: Box<Tag>) {
        let mut ledger = self.0.lock();
        match (result, *tag) {
            (Ok(message), Tag::Alone { place, record }) => {
                ledger.acknowledge(place, message.offset(), &record);
            }
            (Ok(message), Tag::In { name, number }) => {
                ledger.acknowledge_in(name, number, message.offset());
            }
            // Nothing that a restart answers may end an idempotent producer's record.
            (Err((error, _)), Tag::Alone { place, record }) => {
                ledger.fault(format!("{place:?} {record:?} was given up: {error}"));
            }
            (Err(_), Tag::In { .. }) => {}
        }
    }
}

/// A producer that writes into the ledger.
pub struct Producer {
    pub inner: ThreadedProducer<Watch>,
}

impl Producer {
    pub fn new(load: &Load, settings: &[(&str, &str)]) -> Self {
        let mut config = client_config(&load.kafka);
        config.set("acks", "all").set("enable.idempotence", "true").set("linger.ms", "1");
        settings.iter().for_each(|(name, value)| _ = config.set(*name, *value));
        Self { inner: config.create_with_context(Watch(Arc::clone(&load.ledger))).unwrap() }
    }

    pub fn send(&self, place: Place, record: &Record, tag: Tag) {
        let padding = "x".repeat(usize::try_from(record.key * 37 % 300).unwrap());
        let (payload, key) = (format!("{}|{padding}", record.id), record.key.to_string());
        let mut record = BaseRecord::with_opaque_to(place.0, Box::new(tag))
            .partition(place.1)
            .key(key.as_str())
            .payload(payload.as_str());
        while let Err((error, back)) = self.inner.send(record) {
            let full = KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull);
            // A producer that has failed says so again at the end of the transaction.
            if error != full {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
            record = back;
        }
    }

    pub fn flush(&self) -> bool {
        self.inner.flush(PATIENCE).is_ok()
    }

    pub fn waiting(&self) -> i32 {
        self.inner.in_flight_count()
    }
}

/// The record of a message that a producer of ours has sent.
pub fn parse<M: rdkafka::Message>(message: &M) -> Record {
    let text = |bytes: Option<&[u8]>| String::from_utf8(bytes.unwrap_or_default().to_vec());
    let (key, payload) = (text(message.key()).unwrap(), text(message.payload()).unwrap());
    let (id, padding) = payload.split_once('|').unwrap();
    let key = key.parse().unwrap();
    assert_eq!(padding.len() as u64, key * 37 % 300, "{id}");
    Record { id: id.into(), key }
}
