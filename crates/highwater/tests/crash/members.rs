//! A group that commits what it has read, and an admin that deletes records.

use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer as _};
use rdkafka::{Message as _, Offset, TopicPartitionList};

use crate::ledger::View;
use crate::load::{Load, PATIENCE, client_config};
use crate::numbers::Numbers;
use crate::reading;
use crate::topics::{AGED, PLAIN, Place};

/// How many records of the aged topic are left at a deletion.
const LEFT: i64 = 200;

fn consumer(kafka: &str, group: &str) -> BaseConsumer {
    let mut config = client_config(kafka);
    config.set("group.id", group).set("enable.auto.commit", "false");
    config.set("auto.offset.reset", "earliest").set("session.timeout.ms", "6000");
    config.create().unwrap()
}

/// Reads, and commits now and then.
pub fn run(load: &Load) {
    let consumer = consumer(&load.kafka, "members");
    consumer.subscribe(&[PLAIN.name]).unwrap();
    let mut read = 0_u64;
    while !load.is_stopped() {
        let Some(Ok(message)) = consumer.poll(Duration::from_millis(50)) else { continue };
        read += 1;
        if read.is_multiple_of(20) && consumer.commit_message(&message, CommitMode::Sync).is_ok() {
            let place = (PLAIN.name, message.partition());
            load.ledger.lock().group.insert(place, message.offset() + 1);
        }
    }
}

/// What a group has committed, as the coordinator knows it.
pub fn committed(kafka: &str, group: &str, place: Place) -> i64 {
    let mut asked = TopicPartitionList::new();
    asked.add_partition(place.0, place.1);
    let found = consumer(kafka, group).committed_offsets(asked, PATIENCE).unwrap();
    match found.elements()[0].offset() {
        Offset::Offset(offset) => offset,
        _ => -1,
    }
}

/// Deletes the oldest records from time to time, of one partition: the other one has its retention alone.
pub fn delete_records(load: &Load) {
    let mut numbers = Numbers::new(load.seed);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let admin: AdminClient<DefaultClientContext> = client_config(&load.kafka).create().unwrap();
    let reader = reading::consumer(&load.kafka, View::Uncommitted, &AGED, Offset::Beginning);
    while !load.is_stopped() {
        std::thread::sleep(Duration::from_millis(300 + numbers.below(500)));
        for place in AGED.places().take(1) {
            let moment = Duration::from_secs(1);
            let Ok((low, high)) = reader.fetch_watermarks(place.0, place.1, moment) else {
                continue;
            };
            let until = high - LEFT;
            if until <= low {
                continue;
            }
            let mut asked = TopicPartitionList::new();
            asked.add_partition_offset(place.0, place.1, Offset::Offset(until)).unwrap();
            let answer = runtime.block_on(admin.delete_records(&asked, &AdminOptions::new()));
            if answer.is_ok_and(|done| done.elements()[0].error().is_ok()) {
                load.ledger.lock().deleted.insert(place, until);
            }
        }
    }
}
