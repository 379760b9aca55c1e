//! What the log shows, read from its beginning.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Message as _, Offset, TopicPartitionList};

use crate::ledger::{Records, View};
use crate::load::{Load, PATIENCE, client_config, parse};
use crate::topics::{AGED, Place, TOPICS, Topic};

/// The first offset, and the one behind the last that a view shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Range {
    pub low: i64,
    pub high: i64,
}

/// Everything, in one view.
#[derive(Clone, Default)]
pub struct Found {
    pub records: BTreeMap<Place, Records>,
    pub ranges: BTreeMap<Place, Range>,
}

pub fn consumer(kafka: &str, view: View, topic: &Topic, from: Offset) -> BaseConsumer {
    let mut config = client_config(kafka);
    let level = if view == View::Committed { "read_committed" } else { "read_uncommitted" };
    config.set("group.id", "none").set("enable.auto.commit", "false");
    config.set("isolation.level", level).set("enable.partition.eof", "true");
    config.set("check.crcs", "true").set("fetch.wait.max.ms", "50");
    config.set("fetch.error.backoff.ms", "20");
    // Only where something may go is a position that is gone none of our concern.
    let reset = if topic.name == AGED.name { "earliest" } else { "error" };
    config.set("auto.offset.reset", reset);
    let consumer: BaseConsumer = config.create().unwrap();
    let mut places = TopicPartitionList::new();
    for (name, partition) in topic.places() {
        places.add_partition_offset(name, partition, from).unwrap();
    }
    consumer.assign(&places).unwrap();
    consumer
}

pub fn ranges(kafka: &str, view: View, topics: &[Topic]) -> BTreeMap<Place, Range> {
    let mut found = BTreeMap::new();
    for topic in topics {
        let consumer = consumer(kafka, view, topic, Offset::Beginning);
        for place in topic.places() {
            let (low, high) = consumer.fetch_watermarks(place.0, place.1, PATIENCE).unwrap();
            found.insert(place, Range { low, high });
        }
    }
    found
}

/// Reads a topic to its end, while nobody writes.
pub fn read_topic(kafka: &str, view: View, topic: &Topic) -> BTreeMap<Place, Records> {
    let reader = consumer(kafka, view, topic, Offset::Beginning);
    let mut found: BTreeMap<Place, Records> =
        topic.places().map(|place| (place, Records::new())).collect();
    let (mut ended, since) = (BTreeSet::new(), Instant::now());
    while ended.len() < found.len() {
        assert!(since.elapsed() < PATIENCE, "{} has no end", topic.name);
        match reader.poll(PATIENCE) {
            Some(Ok(message)) => {
                let place = (topic.name, message.partition());
                found.get_mut(&place).unwrap().insert(message.offset(), parse(&message));
            }
            Some(Err(KafkaError::PartitionEOF(partition))) => _ = ended.insert(partition),
            Some(Err(_)) | None => {}
        }
    }
    found
}

pub fn read_all(kafka: &str, view: View) -> Found {
    let mut found = Found { ranges: ranges(kafka, view, &TOPICS), ..Found::default() };
    TOPICS.iter().for_each(|topic| found.records.extend(read_topic(kafka, view, topic)));
    found
}

/// Reads along from the beginning to the end of the load, through all restarts. Ends once everything was
/// seen that is there in the end.
pub fn follow(load: &Load, view: View, topic: &Topic) {
    let reader = consumer(&load.kafka, view, topic, Offset::Beginning);
    while !load.is_stopped() {
        match reader.poll(std::time::Duration::from_millis(100)) {
            Some(Ok(message)) => {
                let place = (topic.name, message.partition());
                load.ledger.lock().see(view, place, message.offset(), &parse(&message));
            }
            Some(Err(KafkaError::MessageConsumption(RDKafkaErrorCode::AutoOffsetReset))) => {
                let fault = format!("a reader of {} stands where nothing is any more", topic.name);
                load.ledger.lock().fault(fault);
                return;
            }
            Some(Err(_)) | None => {}
        }
    }
}
