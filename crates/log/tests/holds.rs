//! Retention holds (rule L7): what is held stays, and gives way to a full log alone.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;

use highwater_log::*;
use proptest::prelude::*;
use support::{Bench, NOW, Put, batch, settings};

const DAY: i64 = 24 * 60 * 60 * 1000;

/// Ten closed segments of two records each.
fn ten_segments(partition: &Partition) {
    for _ in 0..10 {
        partition.put(batch(&[NOW, NOW]));
        partition.roll().unwrap();
    }
}

fn set(log: &Log, changes: &[(&str, &str)]) -> Result<TopicInfo, LogError> {
    let mut overrides = log.topic("t").unwrap().config.overrides().clone();
    for (name, value) in changes {
        overrides.insert((*name).to_owned(), (*value).to_owned());
    }
    log.set_config("t", overrides)
}

fn log_start(partition: &Partition) -> i64 {
    partition.watermarks_now().log_start
}

#[test]
fn what_is_held_outlives_time_and_size_until_the_hold_ends() {
    let bench = Bench::new();
    let partition = bench.topic(&[("retention.bytes", "0")]);
    ten_segments(&partition);
    set(&bench.log, &[("highwater.hold.audit", "7 until 2027-01-16T00:00:00Z")]).unwrap();
    assert_eq!(bench.log.run_retention(NOW), 3, "six records below 7, in three segments");
    assert_eq!(log_start(&partition), 6);
    set(&bench.log, &[("retention.ms", "1"), ("retention.bytes", "-1")]).unwrap();
    assert_eq!(bench.log.run_retention(NOW + DAY / 2), 0);
    let bench = bench.kill();
    assert_eq!(bench.log.run_retention(NOW + DAY / 2), 0, "it is remembered");
    assert_eq!(bench.log.run_retention(NOW + 2 * DAY), 7, "the hold has ended");
    assert_eq!(log_start(&bench.partition()), 20);
}

#[test]
fn delete_records_is_refused_by_the_name_of_the_hold() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    ten_segments(&partition);
    set(&bench.log, &[("highwater.hold.audit", "0:7"), ("highwater.hold.other", "9")]).unwrap();
    for before in [8, 20, -1] {
        let refused = partition.delete_records(before).unwrap_err();
        assert_eq!((refused.code(), refused.kafka_code().0), ("LOG_HELD", 44));
        assert!(refused.to_string().contains("from offset 7 by audit"), "{refused}");
    }
    assert_eq!(log_start(&partition), 0);
    assert_eq!(partition.delete_records(7).unwrap(), 7);
    assert!(set(&bench.log, &[("highwater.hold.late", "6")]).is_err(), "that is gone");
    assert!(set(&bench.log, &[("highwater.hold.late", "1:9")]).is_err(), "there is no partition 1");
    set(&bench.log, &[("highwater.hold.audit", "7 until 2020-01-01T00:00:00Z")]).unwrap();
    assert_eq!(partition.delete_records(9).unwrap(), 9, "the first one has ended");
    assert!(matches!(partition.delete_records(10), Err(LogError::Held { .. })));
}

/// A log at its limit, whose topics `t` and `small` hold all that they have.
fn full() -> (tempfile::TempDir, Log) {
    let dir = tempfile::tempdir().unwrap();
    let size = batch(&[NOW, NOW]).len() as u64;
    let config = LogConfig { total_max_bytes: Some(14 * size), ..support::manual() };
    let log = Log::open(Arc::new(RealFileSystem), dir.path(), config).unwrap();
    let held = [("retention.bytes", "0"), ("highwater.hold.audit", "4")];
    log.create_topic("t", 1, settings(&held)).unwrap();
    log.create_topic("small", 1, settings(&held)).unwrap();
    ten_segments(&log.partition("t", 0).unwrap());
    for _ in 0..4 {
        log.partition("small", 0).unwrap().put(batch(&[NOW, NOW]));
    }
    log.partition("small", 0).unwrap().roll().unwrap();
    (dir, log)
}

#[test]
fn at_the_limit_what_may_go_goes_first_and_then_the_hold_that_keeps_most_breaks() {
    let (dir, log) = full();
    let t = log.partition("t", 0).unwrap();
    assert!(matches!(t.try_put(batch(&[1, 1])), Err(LogError::TotalLimit { .. })));
    assert_eq!(log.make_room(NOW), 2, "what lies below the holds");
    t.put(batch(&[NOW, NOW]));
    t.put(batch(&[NOW, NOW]));
    assert!(t.try_put(batch(&[1, 1])).is_err());
    assert_eq!(log.make_room(NOW), 8, "t keeps more than small");
    assert_eq!(log_start(&t), 20);
    t.put(batch(&[NOW, NOW]));
    let holds = |log: &Log, topic: &str| log.topic(topic).unwrap().config.holds.clone();
    assert_eq!(holds(&log, "t")[0].broken_ms, Some(NOW));
    assert_eq!(holds(&log, "small")[0].broken_ms, None);
    assert_eq!(log_start(&log.partition("small", 0).unwrap()), 0);
    drop((t, log));

    // It is remembered, and holds nothing any more.
    let log = support::open(dir.path()).unwrap();
    assert_eq!(holds(&log, "t")[0].broken_ms, Some(NOW));
    let text = log.topic("t").unwrap().config.overrides()["highwater.hold.audit"].clone();
    assert_eq!(text, "4 broken 2027-01-15T08:00:00Z");
    assert!(log.partition("t", 0).unwrap().delete_records(-1).is_ok());
}

#[test]
fn a_broken_hold_that_was_not_noted_is_noted_later() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    ten_segments(&partition);
    partition.delete_records(10).unwrap();
    set(&bench.log, &[("highwater.hold.audit", "10")]).unwrap();
    // As it stands when a crash came behind the removal and before the note.
    let path = bench.dir.path().join("topics.json");
    let Bench { log, dir } = bench;
    drop((partition, log));
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(
        &path,
        text.replace("\"highwater.hold.audit\": \"10\"", "\"highwater.hold.audit\": \"3\""),
    )
    .unwrap();
    let bench = Bench { log: support::open(dir.path()).unwrap(), dir };
    bench.log.run_retention(NOW);
    assert_eq!(bench.log.topic("t").unwrap().config.holds[0].broken_ms, Some(NOW));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    /// Whatever retention and delete-records are asked for, a record that is held is there.
    #[test]
    fn no_held_record_goes(
        held in 0_i64..20,
        asked in prop::collection::vec((0_u8..3, 0_i64..24), 1..12),
    ) {
        let bench = Bench::new();
        let partition = bench.topic(&[]);
        ten_segments(&partition);
        set(&bench.log, &[("highwater.hold.audit", &held.to_string())]).unwrap();
        for (what, number) in asked {
            match what {
                0 => _ = partition.delete_records(number),
                1 => {
                    set(&bench.log, &[("retention.bytes", &(number * 20).to_string())]).unwrap();
                    bench.log.run_retention(NOW);
                }
                _ => {
                    set(&bench.log, &[("retention.ms", &number.to_string())]).unwrap();
                    bench.log.run_retention(NOW + 10);
                }
            }
            prop_assert!(log_start(&partition) <= held);
            let first = partition.read(held, 1 << 20, true, Visible::LogEnd).unwrap();
            prop_assert!(!first.is_empty());
        }
    }
}
