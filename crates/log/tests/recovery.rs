//! What stands on disk, and what a start makes of it.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use highwater_log::*;
use highwater_protocol::records::batches;
use support::{Bench, Put, ask, batch, numbered, open, settings};

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn offsets(partition: &Partition) -> Vec<i64> {
    let mut all = Vec::new();
    let mut offset = partition.watermarks_now().log_start;
    loop {
        let bytes = partition.read(offset, 1 << 20, true, Visible::HighWatermark).unwrap();
        if bytes.is_empty() {
            return all;
        }
        for batch in batches(bytes) {
            let header = batch.unwrap().header;
            offset = header.next_offset();
            all.push(header.base_offset);
        }
    }
}

#[test]
fn the_layout_is_kafkas() {
    let bench = Bench::new();
    let info = bench.log.create_topic("t", 2, settings(&[])).unwrap();
    let partition = bench.partition();
    partition.put(numbered(7, 0, 0, 3));
    partition.roll().unwrap();
    assert_eq!(
        names(&bench.folder()),
        [
            "00000000000000000000.index",
            "00000000000000000000.log",
            "00000000000000000000.timeindex",
            "00000000000000000000.txnindex",
            "00000000000000000003.index",
            "00000000000000000003.log",
            "00000000000000000003.snapshot",
            "00000000000000000003.timeindex",
            "leader-epoch-checkpoint",
            "partition.metadata",
        ]
    );
    let read = |name: &str| fs::read_to_string(bench.folder().join(name)).unwrap();
    assert_eq!(read("leader-epoch-checkpoint"), "0\n1\n0 0\n");
    let metadata = read("partition.metadata");
    let id = metadata.strip_prefix("version: 0\ntopic_id: ").unwrap().trim_end();
    assert_eq!(id.len(), 22);
    assert_eq!(info.id.get_version_num(), 4);
    partition.delete_records(2).unwrap();
    assert_eq!(read("log-start-offset-checkpoint"), "0\n1\nt 0 2\n");
    assert_eq!(bench.log.cluster_id().len(), 22);
}

#[test]
fn indexes_are_kafkas() {
    let bench = Bench::new();
    let partition = bench.topic(&[("index.interval.bytes", "0")]);
    for time in [10, 30, 20] {
        partition.put(batch(&[time, time]));
    }
    let size = batch(&[10, 10]).len() as u32;
    let index = fs::read(bench.folder().join("00000000000000000000.index")).unwrap();
    let entry =
        |offset: u32, position: u32| [offset.to_be_bytes(), position.to_be_bytes()].concat();
    assert_eq!(index, [entry(3, size), entry(5, 2 * size)].concat());
    let times = fs::read(bench.folder().join("00000000000000000000.timeindex")).unwrap();
    assert_eq!(times, [30i64.to_be_bytes().to_vec(), 3u32.to_be_bytes().to_vec()].concat());
}

#[test]
fn everything_is_there_after_a_clean_end_and_after_a_kill() {
    let mut bench = Bench::new();
    bench.topic(&[("segment.bytes", "1024")]);
    let mut due = Vec::new();
    for round in 0..6 {
        for _ in 0..10 {
            due.push(bench.partition().put(batch(&[1, 2])).base_offset);
        }
        let id = bench.log.cluster_id().to_owned();
        bench = if round % 2 == 0 { bench.kill() } else { bench.restart() };
        assert_eq!(offsets(&bench.partition()), due);
        assert_eq!(bench.log.cluster_id(), id);
        assert_eq!(bench.log.topic("t").unwrap().config.roll.bytes, 1024);
    }
}

#[test]
fn a_torn_end_is_cut_behind_the_last_whole_batch() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    partition.put(batch(&[1]));
    partition.put(batch(&[9, 2]));
    let path = bench.folder().join("00000000000000000000.log");
    let whole = fs::read(&path).unwrap();
    let mut bench = bench;
    for torn in [vec![0; 700], batch(&[5; 9])[..80].to_vec(), vec![0xff; 61], vec![1]] {
        fs::write(&path, [whole.clone(), torn].concat()).unwrap();
        bench = bench.kill();
        assert_eq!(offsets(&bench.partition()), [0, 1]);
        assert_eq!(fs::read(&path).unwrap(), whole);
        assert_eq!(ask(&bench.partition(), OffsetSpec::MaxTimestamp), (1, 9, 0));
    }
    assert_eq!(bench.partition().put(batch(&[3])).base_offset, 3);
}

#[test]
fn a_broken_batch_below_later_segments_takes_the_partition_offline_alone() {
    let bench = Bench::new();
    bench.log.create_topic("t", 2, settings(&[])).unwrap();
    let partition = bench.partition();
    let size = partition.put(batch(&[1])).last_offset;
    assert_eq!(size, 0);
    partition.put(batch(&[2]));
    partition.roll().unwrap();
    partition.put(batch(&[3]));
    bench.log.partition("t", 1).unwrap().put(batch(&[4]));

    let path = bench.folder().join("00000000000000000000.log");
    let mut bytes = fs::read(&path).unwrap();
    let second = batch(&[1]).len();
    bytes[second + 65] ^= 1;
    fs::write(&path, &bytes).unwrap();
    fs::remove_file(bench.folder().join("00000000000000000000.index")).unwrap();

    let bench = bench.kill();
    let partition = bench.partition();
    assert_eq!(partition.watermarks_now().state, PartitionState::Offline);
    let error = partition.try_put(batch(&[5])).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("00000000000000000000.log"), "{text}");
    assert!(text.contains(&format!("position {second}")), "{text}");
    assert!(text.contains("LOG_DAMAGED"), "{text}");
    assert!(partition.read(0, 1, true, Visible::HighWatermark).is_err());
    assert_eq!(fs::read(&path).unwrap(), bytes, "nothing was changed");
    assert_eq!(bench.log.partition("t", 1).unwrap().put(batch(&[6])).base_offset, 1);
}

#[test]
fn a_segment_that_is_missing_is_not_stepped_over() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    for _ in 0..3 {
        partition.put(batch(&[1]));
        partition.roll().unwrap();
    }
    for kind in ["log", "index", "timeindex"] {
        fs::remove_file(bench.folder().join(format!("00000000000000000001.{kind}"))).unwrap();
    }
    let bench = bench.kill();
    let text = bench.partition().try_put(batch(&[5])).unwrap_err().to_string();
    assert!(text.contains("ends at offset 1, the next segment begins at 2"), "{text}");
}

#[test]
fn one_process_at_a_time() {
    let bench = Bench::new();
    let error = open(bench.dir.path()).unwrap_err();
    let me = std::process::id();
    assert!(matches!(error, LogError::Locked { process: Some(id), .. } if id == me), "{error:?}");
    assert!(error.to_string().contains(&format!("in use by another process, number {me}")));
    let bench = bench.kill();
    assert!(bench.log.topics().is_empty());
}

#[test]
fn a_look_says_who_has_the_folder_and_leaves_no_trace() {
    let bench = Bench::new();
    let lock = bench.dir.path().join(".lock");
    assert_eq!(look(&RealFileSystem, bench.dir.path()).unwrap(), Occupancy::InUse);
    let Bench { log, dir } = bench;
    drop(log);
    fs::write(&lock, "1\n").unwrap();
    fs::set_permissions(&lock, fs::Permissions::from_mode(0o400)).unwrap();
    assert_eq!(look(&RealFileSystem, dir.path()).unwrap(), Occupancy::Free);
    assert_eq!(fs::read_to_string(&lock).unwrap(), "1\n");
}

#[test]
fn a_folder_that_is_only_looked_at_can_be_opened() {
    let dir = tempfile::tempdir().unwrap();
    open(dir.path()).unwrap().close().unwrap();
    let looking = fs::File::open(dir.path().join(".lock")).unwrap();
    looking.lock_shared().unwrap();
    let ends = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(30));
        drop(looking);
    });
    assert!(open(dir.path()).is_ok());
    ends.join().unwrap();
}

#[test]
fn a_folder_of_another_format_is_refused() {
    for content in ["highwater.format=2\ncluster.id=x\n", "version=1\ncluster.id=x\nnode.id=1\n"] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("meta.properties"), content).unwrap();
        assert!(matches!(open(dir.path()), Err(LogError::OtherVersion { .. })), "{content}");
    }
}

#[test]
fn topics_come_and_go() {
    let bench = Bench::new();
    bench.topic(&[]).put(batch(&[1]));
    let first = bench.log.topic("t").unwrap().id;
    assert!(matches!(
        bench.log.create_topic("t", 1, settings(&[])),
        Err(LogError::TopicExists { .. })
    ));
    for wrong in ["", ".", "..", "a/b", "ü", &"x".repeat(250)] {
        let made = bench.log.create_topic(wrong, 1, settings(&[]));
        assert!(matches!(made, Err(LogError::InvalidTopic { .. })), "{wrong}");
    }
    assert!(matches!(
        bench.log.create_topic("u", 0, settings(&[])),
        Err(LogError::InvalidPartitions { .. })
    ));
    let old = bench.partition();
    bench.log.delete_topic("t").unwrap();
    assert!(!bench.folder().exists());
    assert_eq!(old.watermarks_now().state, PartitionState::Gone);
    assert!(matches!(old.try_put(batch(&[1])), Err(LogError::UnknownPartition { .. })));
    assert!(matches!(bench.log.delete_topic("t"), Err(LogError::UnknownPartition { .. })));
    let bench = bench.kill();
    assert!(bench.log.topic("t").is_none());
    let again = bench.topic(&[]);
    assert_ne!(bench.log.topic("t").unwrap().id, first);
    assert_eq!(again.put(batch(&[1])).base_offset, 0);
}

#[test]
fn settings_change_and_stay() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    let text = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    bench.log.set_config("t", [text("max.message.bytes", "10")].into()).unwrap();
    assert!(matches!(partition.try_put(batch(&[1])), Err(LogError::RecordTooLarge { .. })));
    for (name, value) in [("no.such", "1"), ("segment.bytes", "1"), ("cleanup.policy", "x")] {
        let refused = bench.log.set_config("t", [text(name, value)].into());
        assert!(matches!(refused, Err(LogError::InvalidConfig { .. })), "{name}");
    }
    let bench = bench.kill();
    let config = bench.log.topic("t").unwrap().config;
    assert_eq!(config.max_message_bytes, 10);
    let entries = config.entries();
    let entry = entries.iter().find(|entry| entry.name == "max.message.bytes").unwrap();
    assert!(entry.overridden && entry.value == "10" && entry.default == Some("1048588"));
}

#[test]
fn an_unclean_start_raises_the_epoch_where_records_are_shown_early() {
    for (flush, raised) in [("durable", 0), ("interval", 1), ("os", 1)] {
        let bench = Bench::new();
        let partition = bench.topic(&[("highwater.flush", flush)]);
        partition.try_put(batch(&[1])).unwrap();
        let shown = partition.watermarks_now().high_watermark;
        assert_eq!(shown, i64::from(raised), "{flush}");
        let bench = bench.kill();
        assert_eq!(bench.partition().watermarks_now().leader_epoch, raised, "{flush} after a kill");
        let bench = bench.restart();
        assert_eq!(
            bench.partition().watermarks_now().leader_epoch,
            raised,
            "{flush} after a clean end"
        );
    }
}

#[test]
fn reads_are_whole_batches_within_bounds() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    for _ in 0..3 {
        partition.put(batch(&[1, 2]));
    }
    partition.try_put(batch(&[3])).unwrap();
    let size = batch(&[1, 2]).len();
    let read = |offset, max, min_one| {
        partition.read(offset, max, min_one, Visible::HighWatermark).unwrap().len()
    };
    assert_eq!(read(0, 2 * size + 50, false), 2 * size);
    assert_eq!(read(1, size, false), size, "the batch that holds the offset, whole");
    assert_eq!(read(0, size - 1, false), 0);
    assert_eq!(read(0, 0, true), size);
    assert_eq!(read(4, 1 << 20, false), size, "not what is not synced");
    assert_eq!(read(6, 1 << 20, true), 0);
    assert_eq!(read(7, 1 << 20, true), 0, "the log end");
    for offset in [-1, 8] {
        assert!(matches!(
            partition.read(offset, 1, true, Visible::HighWatermark),
            Err(LogError::OffsetOutOfRange { .. })
        ));
    }
}

#[test]
fn a_missing_list_of_topics_is_refused_where_partitions_stand() {
    let bench = Bench::new();
    bench.topic(&[]).put(numbered(7, 0, 0, 3));
    let Bench { log, dir } = bench;
    drop(log);
    let list = dir.path().join("topics.json");
    let saved = fs::read(&list).unwrap();
    fs::remove_file(&list).unwrap();
    let refused = open(dir.path()).unwrap_err();
    assert!(matches!(&refused, LogError::Damaged { path, .. } if *path == list), "{refused}");
    assert!(refused.to_string().contains("t-0"), "{refused}");
    fs::write(&list, saved).unwrap();
    let log = open(dir.path()).unwrap();
    assert_eq!(log.partition("t", 0).unwrap().watermarks_now().log_end, 3);
}

#[test]
fn a_topic_is_not_made_over_a_folder_that_the_list_forgot() {
    let bench = Bench::new();
    bench.topic(&[]).put(numbered(7, 0, 0, 3));
    let Bench { log, dir } = bench;
    drop(log);
    let older = r#"{"format":1,"topics":{}}"#;
    fs::write(dir.path().join("topics.json"), older).unwrap();
    let log = open(dir.path()).unwrap();
    let before = fs::read(dir.path().join("t-0/00000000000000000000.log")).unwrap();
    for _ in 0..2 {
        let refused = log.create_topic("t", 1, settings(&[])).unwrap_err();
        assert!(matches!(refused, LogError::Damaged { .. }), "{refused}");
    }
    let after = fs::read(dir.path().join("t-0/00000000000000000000.log")).unwrap();
    assert_eq!(before, after);
}
