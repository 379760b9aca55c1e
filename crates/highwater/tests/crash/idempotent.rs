//! An idempotent producer: whatever it was acknowledged is there, once and in order.

use std::time::Duration;

use crate::ledger::Record;
use crate::load::{KEYS, Load, Producer, Tag};
use crate::numbers::Numbers;
use crate::topics::{WRITTEN, any_place};

const MOST_WAITING: i32 = 200;

pub fn run(load: &Load, who: u64) {
    let mut numbers = Numbers::new(load.seed ^ who);
    let codec = *numbers.pick(&["none", "lz4", "zstd", "snappy", "gzip"]);
    // It never gives up.
    let producer = Producer::new(load, &[("message.timeout.ms", "0"), ("compression.type", codec)]);
    for number in 0_u64.. {
        if load.is_stopped() {
            break;
        }
        let place = any_place(&mut numbers, &WRITTEN);
        let record = Record { id: format!("i{who}/{number}").into(), key: numbers.below(KEYS) };
        producer.send(place, &record, Tag::Alone { place, record: record.clone() });
        while producer.waiting() > MOST_WAITING && !load.is_stopped() {
            std::thread::sleep(Duration::from_millis(1));
        }
        if numbers.one_in(8) {
            std::thread::sleep(Duration::from_millis(numbers.below(8)));
        }
    }
    if !producer.flush() {
        load.ledger.lock().fault(format!("producer {who} waits in vain for its last records"));
    }
}
