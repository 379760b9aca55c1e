//! A load for `make bench-log`, by librdkafka: writes or reads so many records of one size, over all
//! partitions of a topic, and says how long that took.
//!
//! `load produce|consume BROKER TOPIC PARTITIONS RECORDS BYTES [RECORDS OF A BATCH]`
#![allow(clippy::print_stdout, reason = "what it says is its result")]

use std::error::Error;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseRecord, Producer, ProducerContext, ThreadedProducer};
use rdkafka::{ClientConfig, ClientContext, Offset, TopicPartitionList};

const PATIENCE: Duration = Duration::from_secs(300);

struct Load {
    broker: String,
    topic: String,
    partitions: i32,
    records: u64,
    bytes: usize,
    /// Records of a batch at most.
    batch: String,
}

/// Ends the program when a record is not stored: a load with losses measures nothing.
struct Strict;

impl ClientContext for Strict {}

impl ProducerContext for Strict {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            println!("a record was not stored: {error}");
            std::process::exit(1);
        }
    }
}

impl Load {
    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.broker);
        config
    }

    /// A millisecond a record, up to now: the last one of all is the latest.
    fn first_timestamp(&self) -> Result<i64, Box<dyn Error>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
        Ok(i64::try_from(now.as_millis())? - i64::try_from(self.records)?)
    }

    fn produce(&self) -> Result<Duration, Box<dyn Error>> {
        let mut config = self.config();
        config.set("acks", "all").set("linger.ms", "5").set("batch.size", "1000000");
        config.set("queue.buffering.max.messages", "1000000");
        config.set("batch.num.messages", &self.batch);
        let producer: ThreadedProducer<Strict> = config.create_with_context(Strict)?;
        // Known before the clock runs: who leads the partitions.
        producer.client().fetch_metadata(Some(&self.topic), PATIENCE)?;
        let payload = vec![b'x'; self.bytes];
        let mut timestamp = self.first_timestamp()?;
        let began = Instant::now();
        for number in 0..self.records {
            timestamp += 1;
            let partition = i32::try_from(number % u64::from(self.partitions.unsigned_abs()))?;
            let mut record =
                BaseRecord::<(), [u8]>::to(&self.topic).partition(partition).payload(&payload);
            record = record.timestamp(timestamp);
            while let Err((error, back)) = producer.send(record) {
                if error != KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) {
                    return Err(error.into());
                }
                std::thread::sleep(Duration::from_millis(1));
                record = back;
            }
        }
        producer.flush(PATIENCE)?;
        Ok(began.elapsed())
    }

    fn consume(&self) -> Result<Duration, Box<dyn Error>> {
        let mut config = self.config();
        config.set("group.id", "load").set("enable.auto.commit", "false");
        config.set("fetch.message.max.bytes", "1048576").set("check.crcs", "false");
        // A full queue would pause for a second, which would be the figure.
        config.set("fetch.queue.backoff.ms", "1");
        let reader: BaseConsumer = config.create()?;
        let mut all = TopicPartitionList::new();
        for partition in 0..self.partitions {
            all.add_partition_offset(&self.topic, partition, Offset::Beginning)?;
        }
        reader.assign(&all)?;
        let mut began = None;
        for _ in 0..self.records {
            let message = reader.poll(PATIENCE).ok_or("no record came")??;
            if message.payload_len() != self.bytes {
                return Err("a record of another size".into());
            }
            began.get_or_insert_with(Instant::now);
        }
        Ok(began.map_or(Duration::ZERO, |began| began.elapsed()))
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, what, broker, topic, partitions, records, bytes, batch @ ..] = &arguments[..] else {
        return Err("load produce|consume BROKER TOPIC PARTITIONS RECORDS BYTES [BATCH]".into());
    };
    let load = Load {
        broker: broker.clone(),
        topic: topic.clone(),
        partitions: partitions.parse()?,
        records: records.parse()?,
        bytes: bytes.parse()?,
        batch: batch.first().cloned().unwrap_or_else(|| "10000".to_owned()),
    };
    let took = match what.as_str() {
        "produce" => load.produce()?,
        "consume" => load.consume()?,
        _ => return Err("produce or consume?".into()),
    };
    println!("{}", took.as_secs_f64());
    Ok(())
}
