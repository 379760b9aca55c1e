//! Consume, transform, produce: each record of the source becomes one copy, whatever happens.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer as _};
use rdkafka::producer::Producer as _;
use rdkafka::{Message as _, Offset, TopicPartitionList};

use crate::ledger::{Outcome, Record};
use crate::load::{Load, PATIENCE, Producer, client_config, parse};
use crate::topics::{COPIES, SOURCE};
use crate::transactional::{Verdict, settle};

const MOST: usize = 40;
const MOMENT: Duration = Duration::from_millis(50);

struct Read {
    partition: i32,
    offset: i64,
    record: Record,
}

fn consumer(load: &Load) -> BaseConsumer {
    let mut config = client_config(&load.kafka);
    config.set("group.id", "pipeline").set("enable.auto.commit", "false");
    config.set("auto.offset.reset", "earliest").set("isolation.level", "read_committed");
    config.set("session.timeout.ms", "6000").set("heartbeat.interval.ms", "300");
    config.set("fetch.wait.max.ms", "50");
    let consumer: BaseConsumer = config.create().unwrap();
    consumer.subscribe(&[SOURCE.name]).unwrap();
    consumer
}

fn gather(consumer: &BaseConsumer) -> Vec<Read> {
    let (mut read, since) = (Vec::new(), Instant::now());
    while read.len() < MOST && since.elapsed() < MOMENT {
        // Errors tell of a server that is down; the client goes on by itself.
        let Some(Ok(message)) = consumer.poll(MOMENT) else { continue };
        let (partition, offset) = (message.partition(), message.offset());
        read.push(Read { partition, offset, record: parse(&message) });
    }
    read
}

fn positions(read: &[Read]) -> TopicPartitionList {
    let mut next = BTreeMap::new();
    read.iter().for_each(|one| _ = next.insert(one.partition, one.offset + 1));
    let mut positions = TopicPartitionList::new();
    for (partition, offset) in next {
        positions.add_partition_offset(SOURCE.name, partition, Offset::Offset(offset)).unwrap();
    }
    positions
}

/// Copies some records and commits their positions with the copies.
fn copy(load: &Load, consumer: &BaseConsumer, producer: &Producer, name: (u64, u64)) -> Verdict {
    let read = gather(consumer);
    if read.is_empty() {
        return Verdict::Done;
    }
    producer.begin(load, name);
    for Read { partition, offset, record } in &read {
        let id = format!("c{partition}@{offset}/{}/{}", name.0, name.1).into();
        let place = (COPIES.name, i32::try_from(offset % i64::from(COPIES.partitions)).unwrap());
        producer.send_in(load, name, place, Record { id, key: record.key });
    }
    let positions = positions(&read);
    let sent = settle(load, "positions", || {
        let group = consumer.group_metadata().expect("a member of a group");
        producer.inner.send_offsets_to_transaction(&positions, &group, PATIENCE)
    });
    match sent {
        Verdict::Done => producer.commit(load, name),
        Verdict::Abort if producer.abort(load, name) == Verdict::Done => Verdict::Abort,
        Verdict::Abort => Verdict::Failed,
        Verdict::Failed => {
            load.ledger.lock().end(name, Outcome::Aborted);
            Verdict::Failed
        }
    }
}

pub fn run(load: &Load, who: u64) {
    let id = format!("pipeline-{who}");
    let instance = || Producer::transactional(load, &id, "20000");
    let (mut member, mut producer, mut number) = (consumer(load), instance(), 0);
    while !load.is_stopped() {
        let verdict = copy(load, &member, &producer, (who, number));
        if verdict == Verdict::Failed {
            drop(producer);
            producer = instance();
        }
        if verdict != Verdict::Done {
            // What was read and not committed is to be read again: a new member begins at the positions.
            member = consumer(load);
        }
        number += 1;
    }
}
