//! More partitions for a topic, cut short by a power loss wherever it may come.

use highwater_log::*;

use crate::faults::Bench;
use crate::node::Loss;
use crate::partition::read_all;
use crate::world::open;

/// Every partition works, and the records are there.
fn check(log: &Log, context: &str) -> i32 {
    let topic = log.topic("t").unwrap();
    for index in 0..topic.partitions {
        let partition = log.partition("t", index).unwrap();
        let state = partition.watermarks_now().state;
        assert_eq!(state, PartitionState::Online, "partition {index}, {context}");
        assert_eq!(read_all(&partition).len(), usize::from(index == 0), "{context}");
    }
    topic.partitions
}

#[test]
fn a_topic_that_was_half_grown_has_what_it_had_or_all() {
    for seed in 0..20 {
        for stop in 0..120 {
            let context = format!("seed {seed}, stopped after {stop}");
            let bench = Bench::seeded(seed, &[]);
            bench.put();
            bench.fs.stop_after(Some(stop));
            let grown = bench.log.add_partitions("t", 3);
            let bench = bench.lose_power(Loss::Some);
            let partitions = check(&bench.log, &context);
            assert!(partitions == 3 || (grown.is_err() && partitions == 1), "{context}");
            let again = bench.log.add_partitions("t", 4);
            assert!(again.is_ok(), "{again:?}, {context}");
            assert_eq!(check(&bench.log, &context), 4);
        }
    }
}

#[test]
fn what_is_left_of_new_partitions_is_cleared_away_before_it_is_forgotten() {
    for seed in 0..20 {
        for stop in 0..120 {
            let context = format!("seed {seed}, stopped after {stop}");
            let Bench { fs, log } = Bench::seeded(seed, &[]);
            // Far enough that folders stand, and not all of them.
            fs.stop_after(Some(30));
            let grown = log.add_partitions("t", 3);
            assert!(grown.is_err(), "{context}");
            drop(log);
            fs.lose_power(Loss::Some);
            fs.stop_after(Some(stop));
            drop(open(&fs));
            fs.lose_power(Loss::Some);
            let log = open(&fs).unwrap();
            let again = log.add_partitions("t", 3);
            assert!(again.is_ok(), "{again:?}, {context}");
        }
    }
}
