//! Compaction: what is kept, what goes, and who reads meanwhile.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use highwater_log::*;
use highwater_protocol::records::{
    Batch, BatchBuilder, BatchHeader, Compression, DECOMPRESSED_MAX, Record, batches,
};
use support::{Bench, NOW, Put, ask};

const COMPACT: (&str, &str) = ("cleanup.policy", "compact");
const EAGER: (&str, &str) = ("min.cleanable.dirty.ratio", "0");

fn keyed(codec: Compression, records: &[(&str, Option<&str>)]) -> Bytes {
    at(codec, 100, records)
}

/// Records of one millisecond each from `time` on.
fn at(codec: Compression, time: i64, records: &[(&str, Option<&str>)]) -> Bytes {
    let mut builder = BatchBuilder::new(codec);
    for ((key, value), time) in records.iter().zip(time..) {
        builder.push(time, Some(key.as_bytes()), value.map(str::as_bytes), &[]);
    }
    builder.build().unwrap()
}

fn put(partition: &Partition, records: &[(&str, Option<&str>)]) -> i64 {
    partition.put(keyed(Compression::None, records)).base_offset
}

/// Every batch from the log start on, as a reader gets them.
fn read(partition: &Partition) -> Vec<Batch> {
    let mut all: Vec<Batch> = Vec::new();
    let now = partition.watermarks_now();
    let mut offset = now.log_start;
    loop {
        let bytes = partition.read(offset, 1 << 20, true, Visible::HighWatermark).unwrap();
        if bytes.is_empty() {
            assert!(offset >= now.high_watermark, "it stops at {offset}, in a hole");
            return all;
        }
        all.extend(batches(bytes).map(Result::unwrap));
        offset = all.last().unwrap().header.next_offset();
    }
}

fn records(partition: &Partition) -> Vec<Record> {
    let open = |batch: Batch| {
        batch.verify_crc().unwrap();
        batch.records(DECOMPRESSED_MAX).unwrap().map(Result::unwrap).collect::<Vec<_>>()
    };
    read(partition).into_iter().flat_map(open).collect()
}

/// Offset, key and value of every record.
fn shown(partition: &Partition) -> Vec<(i64, String, Option<String>)> {
    let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    let of = |record: Record| (record.offset, text(record.key.unwrap()), record.value.map(text));
    records(partition).into_iter().map(of).collect()
}

fn offsets(partition: &Partition) -> Vec<i64> {
    records(partition).iter().map(|record| record.offset).collect()
}

fn files(bench: &Bench, ending: &str) -> Vec<String> {
    let names = fs::read_dir(bench.folder()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name.ends_with(ending));
    names.sort();
    names
}

#[test]
fn the_newest_record_of_each_key_stays_under_its_offset() {
    let bench = Bench::new();
    let partition = bench.topic(&[COMPACT, EAGER]);
    put(&partition, &[("a", Some("1")), ("b", Some("1")), ("a", Some("2"))]);
    put(&partition, &[("c", Some("1"))]);
    partition.roll().unwrap();
    put(&partition, &[("b", Some("2")), ("a", Some("3"))]);
    partition.roll().unwrap();
    put(&partition, &[("c", Some("2"))]);
    assert_eq!(bench.log.run_compaction(NOW), 1);
    let due = [(3, "c", "1"), (4, "b", "2"), (5, "a", "3"), (6, "c", "2")];
    let due = due.map(|(offset, key, value)| (offset, key.to_owned(), Some(value.to_owned())));
    assert_eq!(shown(&partition), due, "the active segment is not touched");
    assert_eq!(files(&bench, ".log").len(), 2, "two segments became one");
    assert_eq!(bench.log.run_compaction(NOW), 0, "there is nothing left to do");
    let text = fs::read_to_string(bench.folder().join("cleaner-offset-checkpoint")).unwrap();
    assert_eq!(text, "0\n1\nt 0 6\n");
    let bench = bench.kill();
    assert_eq!(shown(&bench.partition()), due);
    assert_eq!(bench.log.run_compaction(NOW), 0, "the checkpoint is known");
    let bench = bench.restart();
    assert_eq!(shown(&bench.partition()), due);
    assert_eq!(put(&bench.partition(), &[("d", Some("1"))]), 7);
}

#[test]
fn a_codec_stays_and_headers_say_what_is_left() {
    for codec in Compression::ALL {
        let bench = Bench::new();
        let partition = bench.topic(&[COMPACT, EAGER]);
        partition.put(keyed(codec, &[("a", Some("1")), ("b", Some("1")), ("a", Some("2"))]));
        partition.put(keyed(codec, &[("b", Some("2"))]));
        partition.roll().unwrap();
        bench.log.run_compaction(NOW);
        assert_eq!(offsets(&partition), [2, 3]);
        let header = read(&partition)[0].header;
        assert_eq!(header.compression().unwrap(), codec);
        assert_eq!((header.base_offset, header.last_offset(), header.record_count), (0, 2, 1));
        assert_eq!((header.max_timestamp, header.partition_leader_epoch), (102, 0));
    }
}

#[test]
fn a_tombstone_stays_for_its_time_and_then_goes() {
    let bench = Bench::new();
    let partition = bench.topic(&[COMPACT, EAGER, ("delete.retention.ms", "1000")]);
    put(&partition, &[("a", Some("1"))]);
    put(&partition, &[("a", None), ("b", Some("1"))]);
    partition.roll().unwrap();
    put(&partition, &[("x", Some("1"))]);
    assert_eq!(bench.log.run_compaction(NOW), 1);
    assert_eq!(offsets(&partition), [1, 2, 3]);
    let header = read(&partition)[0].header;
    assert_eq!(header.delete_horizon(), Some(NOW + 1000));
    assert_eq!(records(&partition)[0].timestamp, 100, "it bears the time that it had");

    // Its time is over only for a pass that comes later, and there is one only if something is dirty.
    for (later, due) in [(999, vec![1, 2, 3]), (1000, vec![2, 3])] {
        partition.roll().unwrap();
        put(&partition, &[("y", Some("1"))]);
        assert_eq!(bench.log.run_compaction(NOW + later), 1);
        assert_eq!(offsets(&partition)[..due.len()], due, "{later} ms later");
    }
    let bench = bench.kill();
    assert_eq!(offsets(&bench.partition())[0], 2);
}

#[test]
fn without_the_policy_nothing_is_compacted_and_with_both_segments_go_as_well() {
    for (policy, due) in [("delete", vec![0, 1, 2]), ("compact", vec![1, 2])] {
        let bench = Bench::new();
        let partition =
            bench.topic(&[("cleanup.policy", policy), EAGER, ("retention.bytes", "-1")]);
        for _ in 0..3 {
            put(&partition, &[("a", Some("1"))]);
            if partition.watermarks_now().log_end == 2 {
                partition.roll().unwrap();
            }
        }
        bench.log.run_compaction(NOW);
        assert_eq!(offsets(&partition), due, "{policy}");
    }
    let bench = Bench::new();
    let both = ("cleanup.policy", "compact,delete");
    let partition = bench.topic(&[both, EAGER, ("retention.ms", "1000")]);
    put(&partition, &[("a", Some("1")), ("a", Some("2"))]);
    partition.roll().unwrap();
    partition.put(at(Compression::None, NOW, &[("b", Some("1"))]));
    bench.log.run_compaction(NOW);
    assert_eq!(offsets(&partition), [1, 2]);
    assert_eq!(bench.log.run_retention(NOW), 1);
    assert_eq!(offsets(&partition), [2]);
}

#[test]
fn the_lags_and_the_ratio_say_when() {
    let bench = Bench::new();
    let partition = bench.topic(&[COMPACT, ("min.compaction.lag.ms", "1000")]);
    partition.put(at(Compression::None, NOW, &[("a", Some("1"))]));
    partition.put(at(Compression::None, NOW, &[("a", Some("2"))]));
    partition.roll().unwrap();
    assert_eq!(bench.log.run_compaction(NOW + 999), 0);
    assert_eq!(bench.log.run_compaction(NOW + 1000), 1);

    let bench = Bench::new();
    let partition = bench.topic(&[COMPACT, ("max.compaction.lag.ms", "1000")]);
    for key in ["a", "b"] {
        partition.put(at(Compression::None, NOW, &[(key, Some("1"))]));
    }
    partition.roll().unwrap();
    assert_eq!(bench.log.run_compaction(NOW), 1, "all of it is dirty");
    partition.put(at(Compression::None, NOW, &[("a", Some("2"))]));
    partition.roll().unwrap();
    assert_eq!(bench.log.run_compaction(NOW + 1000), 0, "a third is dirty");
    assert_eq!(bench.log.run_compaction(NOW + 1001), 1, "it has waited too long");
}

#[test]
fn a_map_that_is_full_has_the_pass_cover_less() {
    let dir = tempfile::tempdir().unwrap();
    let mut config = support::manual();
    config.compaction.buffer_bytes = 0;
    let log = Log::open(Arc::new(RealFileSystem), dir.path(), config).unwrap();
    log.create_topic("t", 1, support::settings(&[COMPACT, EAGER])).unwrap();
    let partition = log.partition("t", 0).unwrap();
    for round in 0..3 {
        for key in 0..40 {
            let (key, value) = (format!("k{key}"), format!("{round}"));
            put(&partition, &[(&key, Some(&value))]);
        }
        partition.roll().unwrap();
    }
    let passes = log.run_compaction(NOW);
    assert!(passes > 3, "{passes} passes of at most fifteen keys each");
    assert_eq!(offsets(&partition), (80..120).collect::<Vec<_>>());
}

#[test]
fn segments_are_put_together_up_to_their_size() {
    let bench = Bench::new();
    let partition = bench.topic(&[COMPACT, EAGER, ("segment.bytes", "2000")]);
    for number in 0..200 {
        let key = format!("k{}", number % 50);
        put(&partition, &[(&key, Some("value"))]);
    }
    partition.roll().unwrap();
    let before = files(&bench, ".log").len();
    bench.log.run_compaction(NOW);
    assert_eq!(files(&bench, ".log").len(), before, "they were full when they were read");
    put(&partition, &[("k49", Some("value"))]);
    partition.roll().unwrap();
    bench.log.run_compaction(NOW);
    let after = files(&bench, ".log");
    assert!(after.len() < before && after.len() > 2, "{before} became {}", after.len());
    for name in &after {
        assert!(fs::metadata(bench.folder().join(name)).unwrap().len() <= 2000, "{name}");
    }
    let kept = offsets(&partition);
    assert_eq!(kept, (150..199).chain([200]).collect::<Vec<_>>());
    assert!(files(&bench, ".cleaned").is_empty() && files(&bench, ".swap").is_empty());
    let bench = bench.kill();
    assert_eq!(offsets(&bench.partition()), kept);
}

#[test]
fn an_offset_that_was_compacted_away_leads_to_the_next_batch() {
    let bench = Bench::new();
    let partition = bench.topic(&[COMPACT, EAGER, ("index.interval.bytes", "0")]);
    for key in ["a", "a", "a", "b", "a", "b"] {
        put(&partition, &[(key, Some("1"))]);
    }
    partition.roll().unwrap();
    put(&partition, &[("a", Some("1"))]);
    bench.log.run_compaction(NOW);
    for (from, due) in [(0, 4), (3, 4), (4, 4), (5, 5), (6, 6)] {
        let bytes = partition.read(from, 1 << 20, true, Visible::HighWatermark).unwrap();
        assert_eq!(BatchHeader::parse(&bytes).unwrap().base_offset, due, "from {from}");
    }
    assert_eq!(ask(&partition, OffsetSpec::Earliest), (0, -1, 0), "the log start stays");
}

/// A segment that ends in empty batches and one of which an empty batch alone is left: whoever reads on
/// from any offset comes to the records behind them.
#[test]
fn a_reader_passes_over_the_empty_rest_of_a_segment() {
    let bench = Bench::new();
    let partition = bench.topic(&[COMPACT, EAGER, ("segment.bytes", "1024")]);
    // So large that no two segments become one.
    let large = Some("x".repeat(600));
    let large = large.as_deref();
    put(&partition, &[("first", large)]);
    partition.put(numbered(7, 0, "a"));
    partition.put(numbered(8, 0, "a"));
    partition.roll().unwrap();
    put(&partition, &[("a", Some("2")), ("b", large)]);
    partition.roll().unwrap();
    let end = put(&partition, &[("a", Some("3")), ("b", large)]) + 2;
    partition.roll().unwrap();
    put(&partition, &[("z", Some("1"))]);
    assert_eq!(bench.log.run_compaction(NOW), 1);
    assert_eq!(files(&bench, ".log").len(), 4);
    check_empty_rest(&partition, end);
    check_empty_rest(&bench.kill().partition(), end);
}

fn check_empty_rest(partition: &Partition, end: i64) {
    assert_eq!(offsets(partition), [0, end - 2, end - 1, end]);
    let empty = read(partition).iter().filter(|batch| batch.header.record_count == 0).count();
    assert_eq!(empty, 3, "two last batches of producers, and the last one of a segment");
    for from in 1..end - 2 {
        let mut offset = from;
        let first = loop {
            let bytes = partition.read(offset, 1, true, Visible::HighWatermark).unwrap();
            let batch = batches(bytes).next().unwrap().unwrap();
            assert!(batch.header.last_offset() >= offset);
            offset = batch.header.next_offset();
            if batch.header.record_count > 0 {
                break batch.header.base_offset;
            }
        };
        assert_eq!(first, end - 2, "from {from}");
    }
}

#[test]
fn rows_23_and_24_the_greatest_timestamp_is_that_of_what_is_left() {
    let bench = Bench::new();
    let partition = bench.topic(&[COMPACT, EAGER]);
    let mut builder = BatchBuilder::new(Compression::Lz4);
    for (key, time) in [("a", 10), ("b", 900), ("c", 30)] {
        builder.push(time, Some(key.as_bytes()), Some(b"1"), &[]);
    }
    partition.put(builder.build().unwrap());
    partition.put(at(Compression::None, 20, &[("b", Some("2"))]));
    partition.roll().unwrap();
    assert_eq!(ask(&partition, OffsetSpec::MaxTimestamp), (1, 900, 0));
    bench.log.run_compaction(NOW);
    assert_eq!(ask(&partition, OffsetSpec::MaxTimestamp), (2, 30, 0));
    assert_eq!(ask(&partition, OffsetSpec::Timestamp(25)), (2, 30, 0));
    assert_eq!(ask(&partition, OffsetSpec::Timestamp(31)), (-1, -1, -1));
    let bench = bench.restart();
    assert_eq!(ask(&bench.partition(), OffsetSpec::MaxTimestamp), (2, 30, 0));

    // A batch that stays empty for its producer keeps its greatest timestamp, and then nothing answers.
    let bench = Bench::new();
    let partition = bench.topic(&[COMPACT, EAGER]);
    let mut builder = BatchBuilder::new(Compression::None).producer(7, 0, 0);
    builder.push(900, Some(b"a"), Some(b"1"), &[]);
    partition.put(builder.build().unwrap());
    partition.put(at(Compression::None, 20, &[("a", Some("2"))]));
    partition.roll().unwrap();
    bench.log.run_compaction(NOW);
    assert_eq!(offsets(&partition), [1]);
    assert_eq!(ask(&partition, OffsetSpec::MaxTimestamp), (-1, -1, -1));
}

fn numbered(producer_id: i64, sequence: i32, key: &str) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None).producer(producer_id, 0, sequence);
    builder.push(5, Some(key.as_bytes()), Some(b"value"), &[]);
    builder.build().unwrap()
}

#[test]
fn a_producers_last_sequence_is_known_without_any_snapshot() {
    let bench = Bench::new();
    let partition = bench.topic(&[COMPACT, EAGER]);
    for sequence in 0..3 {
        partition.put(numbered(7, sequence, "a"));
    }
    put(&partition, &[("a", Some("other"))]);
    partition.roll().unwrap();
    bench.log.run_compaction(NOW);
    assert_eq!(offsets(&partition), [3]);
    assert_eq!(partition.put(numbered(7, 2, "a")).base_offset, 2, "sent again");
    let folder = bench.folder();
    let Bench { log, dir } = bench;
    drop((log, partition));
    for name in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        if name.extension().is_some_and(|ending| ending == "snapshot") {
            fs::remove_file(name).unwrap();
        }
    }
    let bench = Bench { log: support::open(dir.path()).unwrap(), dir };
    let partition = bench.partition();
    assert_eq!(partition.put(numbered(7, 2, "a")).base_offset, 2, "sent again");
    assert!(partition.try_put(numbered(7, 5, "a")).is_err(), "a gap");
    assert_eq!(partition.put(numbered(7, 3, "a")).base_offset, 4);
}

#[test]
fn readers_and_writers_go_on_while_segments_are_swapped() {
    let bench = Bench::new();
    let partition = bench.topic(&[COMPACT, EAGER, ("segment.bytes", "4000")]);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    let mut rounds = 0;
                    while !stop.load(Ordering::Relaxed) || rounds == 0 {
                        let shown = shown(&partition);
                        assert!(shown.is_sorted_by(|one, other| one.0 < other.0));
                        let newest: BTreeMap<_, _> =
                            shown.iter().map(|(offset, key, _)| (key.clone(), *offset)).collect();
                        let end = shown.last().map_or(-1, |last| last.0);
                        // Each of the ten keys comes once in ten offsets.
                        assert!(newest.values().all(|offset| *offset > end - 10), "{newest:?}");
                        rounds += 1;
                    }
                    rounds
                })
            })
            .collect();
        let writer = scope.spawn(|| {
            for number in 0..600 {
                put(&partition, &[(&format!("k{}", number % 10), Some("value"))]);
            }
        });
        let mut passes = 0;
        while !writer.is_finished() {
            passes += bench.log.run_compaction(NOW);
        }
        writer.join().unwrap();
        stop.store(true, Ordering::Relaxed);
        let rounds: Vec<i32> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        assert!(passes > 0 && rounds.iter().all(|rounds| *rounds > 0), "{passes} {rounds:?}");
    });
    partition.roll().unwrap();
    bench.log.run_compaction(NOW);
    assert_eq!(offsets(&partition), (590..600).collect::<Vec<_>>());
}

#[test]
fn a_partition_that_cannot_be_compacted_is_passed_over_and_others_are_not() {
    let bench = Bench::new();
    let broken = bench.topic(&[COMPACT, EAGER]);
    bench.log.create_topic("other", 1, support::settings(&[COMPACT, EAGER])).unwrap();
    let other = bench.log.partition("other", 0).unwrap();
    for partition in [&broken, &other] {
        put(partition, &[("a", Some("1"))]);
        put(partition, &[("a", Some("2"))]);
        partition.roll().unwrap();
    }
    let path = bench.folder().join("00000000000000000000.log");
    let mut content = fs::read(&path).unwrap();
    let last = content.len() - 1;
    content[last] ^= 1;
    fs::write(&path, content).unwrap();
    bench.log.run_compaction(NOW);
    assert_eq!(offsets(&other), [1]);
    assert_eq!(read(&broken).len(), 2, "nothing was changed");
    assert!(files(&bench, ".cleaned").is_empty());
    assert_eq!(bench.log.run_compaction(NOW + 59_999), 0, "it is not tried hot");
    put(&broken, &[("a", Some("3"))]);
    assert_eq!(broken.watermarks_now().state, PartitionState::Online);
}

#[test]
fn a_topic_can_be_deleted_and_a_log_closed_while_it_is_compacted() {
    let dir = tempfile::tempdir().unwrap();
    let mut config =
        LogConfig { housekeeping: Some(Duration::from_millis(5)), ..support::manual() };
    config.compaction.interval = Duration::from_millis(1);
    config.compaction.bytes_per_second = Some(20_000);
    let log = Log::open(Arc::new(RealFileSystem), dir.path(), config).unwrap();
    for name in ["t", "u"] {
        log.create_topic(name, 1, support::settings(&[COMPACT, EAGER])).unwrap();
        let partition = log.partition(name, 0).unwrap();
        for _ in 0..2000 {
            partition.try_put(keyed(Compression::None, &[("a", Some("1"))])).unwrap();
        }
        partition.roll().unwrap();
        let began = Instant::now();
        let cleaned = dir.path().join(format!("{name}-0/00000000000000000000.log.cleaned"));
        while name == "t" && !cleaned.exists() {
            assert!(began.elapsed() < Duration::from_secs(60), "no pass begins");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let began = Instant::now();
    log.delete_topic("t").unwrap();
    assert!(!dir.path().join("t-0").exists());
    log.close().unwrap();
    assert!(began.elapsed() < Duration::from_secs(5), "a pass at this rate takes longer");
}

#[test]
fn a_topic_of_state_shrinks_to_its_keys() {
    let bench = Bench::new();
    let partition = bench.topic(&[COMPACT, ("segment.bytes", "1048576")]);
    for number in 0..100_000 {
        let value = format!(r#"{{"lsn":{number}}}"#);
        let key = format!(r#"["c{}",{{"server":"shop"}}]"#, number % 3);
        partition.try_put(keyed(Compression::None, &[(&key, Some(&value))])).unwrap();
    }
    partition.flush().unwrap();
    let before = partition.size();
    partition.roll().unwrap();
    assert_eq!(bench.log.run_compaction(NOW), 1);
    assert_eq!(offsets(&partition), [99_997, 99_998, 99_999]);
    assert!(before > 9_000_000 && partition.size() < 1000, "{before} became {}", partition.size());
    assert_eq!(bench.log.held_bytes(), partition.size());
}
