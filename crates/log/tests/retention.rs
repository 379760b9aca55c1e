//! What goes, and what stays.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod support;

use highwater_log::LogError;
use support::{Bench, NOW, Put, batch};

const DAY: i64 = 24 * 60 * 60 * 1000;
const TEN_YEARS: i64 = 3653 * DAY;

#[test]
fn ten_year_old_rows_survive_under_the_time_of_append() {
    // Rule L5: the record's time is that of the append; the source's time is a field of the header.
    let bench = Bench::new();
    let partition = bench.topic(&[
        ("message.timestamp.type", "LogAppendTime"),
        ("retention.ms", &(7 * DAY).to_string()),
    ]);
    partition.put(batch(&[NOW - TEN_YEARS, NOW - TEN_YEARS + 1]));
    partition.roll().unwrap();
    partition.put(batch(&[NOW - TEN_YEARS]));
    assert_eq!(bench.log.run_retention(NOW + 6 * DAY), 0);
    assert_eq!(partition.watermarks_now().log_start, 0);
    assert_eq!(bench.log.run_retention(NOW + 8 * DAY), 1);
    assert_eq!(partition.watermarks_now().log_start, 2, "the active segment stays");
}

#[test]
fn ten_year_old_rows_go_under_the_producers_time() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    partition.put(batch(&[NOW - TEN_YEARS]));
    partition.roll().unwrap();
    assert_eq!(bench.log.run_retention(NOW), 1);
}

#[test]
fn a_topic_that_is_only_compacted_loses_nothing() {
    let bench = Bench::new();
    let partition = bench.topic(&[("cleanup.policy", "compact"), ("retention.bytes", "0")]);
    partition.put(batch(&[1]));
    partition.roll().unwrap();
    assert_eq!(bench.log.run_retention(NOW), 0);
}

#[test]
fn an_idle_segment_ends_in_time() {
    let bench = Bench::new();
    let partition = bench.topic(&[("segment.ms", "1000")]);
    partition.put(batch(&[5]));
    bench.log.housekeep(NOW + 999);
    assert_eq!(bench.log.run_retention(NOW + 8 * DAY), 0);
    bench.log.housekeep(NOW + 1000);
    assert_eq!(bench.log.run_retention(NOW + 8 * DAY), 1);
    assert_eq!(partition.put(batch(&[6])).base_offset, 1);
}

#[test]
fn the_log_start_stays_up_after_a_kill() {
    let bench = Bench::new();
    let partition = bench.topic(&[("retention.bytes", "1")]);
    for _ in 0..3 {
        partition.put(batch(&[1, 2]));
        partition.roll().unwrap();
    }
    assert_eq!(bench.log.run_retention(NOW), 3);
    assert_eq!(partition.delete_records(4).unwrap(), 6, "it is above that already");
    let bench = bench.kill();
    let partition = bench.partition();
    assert_eq!(partition.watermarks_now().log_start, 6);
    assert_eq!(partition.put(batch(&[1, 2])).base_offset, 6);
    assert_eq!(partition.delete_records(-1).unwrap(), 8);
    assert!(matches!(partition.delete_records(9), Err(LogError::OffsetOutOfRange { .. })));
    let bench = bench.kill();
    assert_eq!(bench.partition().watermarks_now().log_start, 8);
    assert_eq!(bench.partition().put(batch(&[1])).base_offset, 8);
}
