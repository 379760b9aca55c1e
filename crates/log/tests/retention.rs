//! What goes, and what stays.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use highwater_log::{AppendOptions, Log, LogConfig, LogError, RealFileSystem, Visible};
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
    assert_eq!(bench.log.run_retention(NOW + 8 * DAY), 2);
    assert_eq!(partition.watermarks_now().log_start, 3, "the active segment goes, too");
}

/// As in Kafka: where everything is over its time, the active segment ends and goes.
#[test]
fn the_active_segment_goes_once_all_are_over_their_time() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    partition.put(batch(&[NOW - 8 * DAY]));
    partition.put(batch(&[NOW]));
    assert_eq!(bench.log.run_retention(NOW), 0, "one of its records is young enough");
    assert_eq!(bench.log.run_retention(NOW + 8 * DAY), 1);
    assert_eq!(bench.log.run_retention(NOW + 8 * DAY), 0, "nothing is left");
    let marks = partition.watermarks_now();
    assert_eq!((marks.log_start, marks.log_end), (2, 2));
    let bench = bench.kill();
    assert_eq!(bench.partition().watermarks_now().log_start, 2);
    assert_eq!(bench.partition().put(batch(&[NOW])).base_offset, 2);
}

/// Neither what is held in it goes, nor what nobody was shown, nor what an open transaction holds back.
#[test]
fn the_active_segment_stays_for_those_who_need_it() {
    let bench = Bench::new();
    let partition = bench.topic(&[("highwater.hold.audit", "1")]);
    partition.put(batch(&[5, 6]));
    assert_eq!(bench.log.run_retention(NOW), 0);
    assert_eq!(segments(&bench), 1, "it does not end either");
    bench.log.set_config("t", [].into()).unwrap();
    partition.append(batch(&[7]), AppendOptions::client(NOW)).unwrap();
    assert_eq!(bench.log.run_retention(NOW), 0, "not visible yet");
    partition.flush().unwrap();
    assert_eq!(bench.log.run_retention(NOW), 1);
}

fn segments(bench: &Bench) -> usize {
    let entries = std::fs::read_dir(bench.folder()).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".log")).count()
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
    assert_eq!(segments(&bench), 1);
    bench.log.housekeep(NOW + 1000);
    assert_eq!(segments(&bench), 2);
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

#[test]
fn at_the_total_limit_appends_wait_until_something_goes() {
    let dir = tempfile::tempdir().unwrap();
    let most = 4 * batch(&[1]).len() as u64 + 10;
    let config = LogConfig { total_max_bytes: Some(most), ..support::manual() };
    let open = || Log::open(Arc::new(RealFileSystem), dir.path(), config.clone()).unwrap();
    let log = open();
    for name in ["kept", "gone"] {
        log.create_topic(name, 1, support::settings(&[])).unwrap();
    }
    let (kept, gone) = (log.partition("kept", 0).unwrap(), log.partition("gone", 0).unwrap());
    for partition in [&kept, &gone, &gone, &gone] {
        partition.put(batch(&[NOW]));
    }
    assert_eq!(log.held_bytes(), most - 10);
    let refused = kept.try_put(batch(&[NOW])).unwrap_err();
    assert!(matches!(refused, LogError::TotalLimit { .. }) && refused.is_retriable(), "{refused}");
    assert_eq!((refused.code(), refused.kafka_code().0), ("LOG_NO_SPACE", 56));
    assert!(!kept.read(0, 1 << 20, true, Visible::HighWatermark).unwrap().is_empty());
    drop((log, kept, gone));

    // What is there counts after a start as well; retention makes room, and takes no more than it may.
    let log = open();
    let (kept, gone) = (log.partition("kept", 0).unwrap(), log.partition("gone", 0).unwrap());
    assert!(matches!(kept.try_put(batch(&[NOW])), Err(LogError::TotalLimit { .. })));
    assert_eq!(log.run_retention(NOW), 0);
    gone.roll().unwrap();
    gone.delete_records(-1).unwrap();
    kept.put(batch(&[NOW]));
    assert_eq!(log.held_bytes(), 2 * batch(&[1]).len() as u64);
    log.delete_topic("kept").unwrap();
    assert_eq!(log.held_bytes(), 0);
}

#[test]
fn at_the_total_limit_retention_comes_early() {
    let dir = tempfile::tempdir().unwrap();
    let size = batch(&[1]).len() as u64;
    let config = LogConfig {
        total_max_bytes: Some(3 * size),
        housekeeping: Some(Duration::from_millis(5)),
        retention_interval: Duration::from_secs(3600),
        ..LogConfig::default()
    };
    let log = Log::open(Arc::new(RealFileSystem), dir.path(), config).unwrap();
    log.create_topic("t", 1, support::settings(&[("retention.bytes", "0")])).unwrap();
    let partition = log.partition("t", 0).unwrap();
    for _ in 0..3 {
        partition.put(batch(&[NOW]));
    }
    partition.roll().unwrap();
    let since = Instant::now();
    while partition.try_put(batch(&[NOW])).is_err() {
        assert!(since.elapsed() < Duration::from_secs(60), "nothing went");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(partition.watermarks_now().log_start, 3);
}
