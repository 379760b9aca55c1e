//! ListOffsets as Kafka answers it. Each test has the numbers of its rows in the table of worked examples
//! that the project keeps (KIP-734 and what followed).
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;

use highwater_log::LogError;
use highwater_log::OffsetSpec::{Earliest, Latest, MaxTimestamp, Timestamp};
use highwater_log::{OffsetSpec, Partition};
use highwater_protocol::records::Compression;
use support::{Bench, Put, ask, batch, batch_of};

const NO_ANSWER: (i64, i64, i32) = (-1, -1, -1);

fn put_all(partition: &Partition, batches: &[&[i64]]) {
    for times in batches {
        partition.put(batch(times));
    }
}

fn max_of(batches: &[&[i64]]) -> (i64, i64, i32) {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    put_all(&partition, batches);
    ask(&partition, MaxTimestamp)
}

#[test]
fn row_1_an_empty_partition_has_no_answer() {
    assert_eq!(max_of(&[]), NO_ANSWER);
}

#[test]
fn row_2_the_exact_record_of_a_batch() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    partition.put(batch(&[100, 999, 200]));
    assert_eq!(ask(&partition, MaxTimestamp), (1, 999, 0));
    assert_eq!(ask(&partition, Latest), (3, -1, 0));
    assert_eq!(ask(&partition, Earliest), (0, -1, 0));
    assert_eq!(ask(&partition, OffsetSpec::EarliestLocal), (0, -1, 0));
    assert_eq!(ask(&partition, OffsetSpec::LatestTiered), NO_ANSWER);
    assert_eq!(ask(&partition, OffsetSpec::EarliestPendingUpload), NO_ANSWER);
}

#[test]
fn row_3_the_same_in_every_codec() {
    let codecs = [
        Compression::None,
        Compression::Gzip,
        Compression::Snappy,
        Compression::Lz4,
        Compression::Zstd,
    ];
    for codec in codecs {
        let bench = Bench::new();
        let partition = bench.topic(&[]);
        partition.put(batch_of(codec, &[100, 999, 200]));
        assert_eq!(ask(&partition, MaxTimestamp), (1, 999, 0), "{codec:?}");
        assert_eq!(ask(&partition, Timestamp(150)), (1, 999, 0), "{codec:?}");
    }
}

#[test]
fn row_4_in_batches_of_one() {
    assert_eq!(max_of(&[&[100], &[999], &[200]]), (1, 999, 0));
}

#[test]
fn row_5_rising_times_then_everything_cut() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    for time in 0..20 {
        partition.put(batch(&[time]));
    }
    assert_eq!(ask(&partition, MaxTimestamp), (19, 19, 0));
    partition.truncate(0).unwrap();
    assert_eq!(ask(&partition, MaxTimestamp), NO_ANSWER);
}

#[test]
fn row_6_the_greatest_is_not_the_last() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    for time in [0, 1, 2, 3, 4, 6, 5] {
        partition.put(batch(&[time]));
    }
    assert_eq!(ask(&partition, MaxTimestamp), (5, 6, 0));
    assert_eq!(ask(&partition, Latest), (7, -1, 0));
}

#[test]
fn rows_7_and_8_the_first_of_equals() {
    assert_eq!(max_of(&[&[5, 9, 9, 3]]), (1, 9, 0));
    assert_eq!(max_of(&[&[9], &[9]]), (0, 9, 0));
}

#[test]
fn row_9_the_first_segment_of_equals() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    put_all(&partition, &[&[1, 1, 1, 1, 9, 1]]);
    partition.roll().unwrap();
    put_all(&partition, &[&[1, 1, 1, 1, 9]]);
    assert_eq!(ask(&partition, MaxTimestamp), (4, 9, 0));
}

#[test]
fn rows_10_to_12_log_append_time() {
    let (t1, t2, t3) = (1_700_000_000_000, 1_700_000_000_005, 1_700_000_000_009);
    let of = |times: &[i64], batches: &[&[i64]]| {
        let bench = Bench::new();
        let partition = bench.topic(&[("message.timestamp.type", "LogAppendTime")]);
        for (now, records) in times.iter().zip(batches) {
            partition.put_at(batch(records), *now);
        }
        ask(&partition, MaxTimestamp)
    };
    assert_eq!(of(&[t1], &[&[7, 99, 8]]), (0, t1, 0));
    assert_eq!(of(&[t1, t2, t3], &[&[1], &[1], &[1]]), (2, t3, 0));
    assert_eq!(of(&[t1, t1, t1], &[&[1], &[2], &[3]]), (0, t1, 0));
}

#[test]
fn row_13_without_the_index_files() {
    for clean in [true, false] {
        let bench = Bench::new();
        let partition = bench.topic(&[]);
        partition.put(batch(&[100, 999, 200]));
        partition.roll().unwrap();
        partition.put(batch(&[3, 4]));
        if clean {
            bench.log.close().unwrap();
        }
        for entry in fs::read_dir(bench.folder()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|kind| kind == "index" || kind == "timeindex") {
                fs::remove_file(path).unwrap();
            }
        }
        let bench = bench.kill();
        assert_eq!(ask(&bench.partition(), MaxTimestamp), (1, 999, 0));
        assert_eq!(ask(&bench.partition(), Latest), (5, -1, 0));
    }
}

#[test]
fn row_14_after_a_truncation() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    put_all(&partition, &[&[10], &[50], &[20]]);
    partition.truncate(2).unwrap();
    assert_eq!(ask(&partition, MaxTimestamp), (1, 50, 0));
    partition.truncate(1).unwrap();
    assert_eq!(ask(&partition, MaxTimestamp), (0, 10, 0));
}

#[test]
fn rows_20_and_21_deleted_records_still_count_in_their_segment() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    put_all(&partition, &[&[999], &[5], &[7]]);
    assert_eq!(partition.delete_records(2).unwrap(), 2);
    assert_eq!(ask(&partition, MaxTimestamp), (0, 999, 0));
    assert_eq!(ask(&partition, Earliest), (2, -1, 0));
    assert_eq!(ask(&partition, Timestamp(6)), (2, 7, 0));
    assert_eq!(ask(&partition, Timestamp(500)), NO_ANSWER);
}

#[test]
fn row_22_the_greatest_of_what_retention_left() {
    let bench = Bench::new();
    let kept = batch(&[5, 7, 6]).len().to_string();
    let partition = bench.topic(&[("retention.bytes", &kept), ("retention.ms", "-1")]);
    put_all(&partition, &[&[999]]);
    partition.roll().unwrap();
    put_all(&partition, &[&[5, 7, 6]]);
    assert_eq!(bench.log.run_retention(support::NOW), 1);
    assert_eq!(ask(&partition, MaxTimestamp), (2, 7, 0));
}

#[test]
fn row_25_records_without_a_time() {
    assert_eq!(max_of(&[&[-1, -1], &[-1]]), (0, -1, 0));
}

#[test]
fn row_26_a_time() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    partition.put(batch(&[100, 999, 200]));
    for (target, answer) in [
        (150, (1, 999, 0)),
        (200, (1, 999, 0)),
        (999, (1, 999, 0)),
        (1000, NO_ANSWER),
        (0, (0, 100, 0)),
    ] {
        assert_eq!(ask(&partition, Timestamp(target)), answer, "time {target}");
    }
}

#[test]
fn row_28_a_new_leader_epoch_without_data() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    partition.put(batch(&[100, 999, 200]));
    partition.truncate(3).unwrap();
    assert_eq!(ask(&partition, MaxTimestamp), (1, 999, 0));
    assert_eq!(ask(&partition, Latest), (3, -1, 1));
    assert_eq!(partition.epoch_end(0), (0, 3));
    assert_eq!(partition.epoch_end(1), (1, 3));
    assert_eq!(partition.epoch_end(2), (-1, -1));
}

#[test]
fn row_30_the_example_of_the_kip() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    partition.put(batch(&[0]));
    partition.delete_records(1).unwrap();
    for time in 1..=30 {
        partition.put(batch(&[time]));
    }
    assert_eq!(ask(&partition, MaxTimestamp), (30, 30, 0));
    assert_eq!(ask(&partition, Latest), (31, -1, 0));
}

#[test]
fn row_31_another_leader_epoch_is_told_apart() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    partition.truncate(0).unwrap();
    assert!(partition.check_leader_epoch(-1).is_ok());
    assert!(partition.check_leader_epoch(1).is_ok());
    let older = partition.check_leader_epoch(0).unwrap_err();
    assert!(matches!(older, LogError::FencedLeaderEpoch { asked: 0, current: 1 }));
    assert_eq!(older.kafka_code().0, 74);
    let newer = partition.check_leader_epoch(2).unwrap_err();
    assert!(matches!(newer, LogError::UnknownLeaderEpoch { asked: 2, current: 1 }));
    assert_eq!(newer.kafka_code().0, 75);
}

#[test]
fn what_is_not_synced_is_no_answer_and_hides_the_next_best() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    partition.put(batch(&[100]));
    partition.try_put(batch(&[900])).unwrap();
    assert_eq!(ask(&partition, MaxTimestamp), NO_ANSWER);
    assert_eq!(ask(&partition, Timestamp(500)), NO_ANSWER);
    assert_eq!(ask(&partition, Latest), (1, -1, 0));
    partition.flush().unwrap();
    assert_eq!(ask(&partition, MaxTimestamp), (1, 900, 0));
}

#[test]
fn the_wire_knows_six_special_times() {
    assert_eq!(OffsetSpec::from_wire(-7), None);
    let since: Vec<i16> =
        (-6..=0).rev().map(|time| OffsetSpec::from_wire(time).unwrap().since_version()).collect();
    assert_eq!(since, [1, 1, 1, 7, 8, 9, 11]);
}
