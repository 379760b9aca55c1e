//! Compaction and transactions: what was aborted goes, markers wait for it, and readers at read_committed
//! see the same before and after.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod support;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use bytes::Bytes;
use highwater_log::*;
use highwater_protocol::records::{
    Batch, BatchBuilder, BatchHeader, Compression, DECOMPRESSED_MAX, batches,
};
use proptest::prelude::*;
use support::{Bench, NOW, Put};

const SETTINGS: [(&str, &str); 3] = [
    ("cleanup.policy", "compact"),
    ("min.cleanable.dirty.ratio", "0"),
    ("delete.retention.ms", "1000"),
];

fn value(producer: Option<(i64, i32)>, key: &str, value: Option<&str>) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None);
    if let Some((producer_id, sequence)) = producer {
        builder = builder.producer(producer_id, 0, sequence).transactional();
    }
    builder.push(100, Some(key.as_bytes()), value.map(str::as_bytes), &[]);
    builder.build().unwrap()
}

fn end(partition: &Partition, producer_id: i64, kind: MarkerKind) -> i64 {
    let marker = EndMarker { producer_id, producer_epoch: 0, kind, coordinator_epoch: 0 };
    let appended = partition.append_marker(marker, NOW).unwrap();
    partition.flush().unwrap();
    appended.base_offset
}

fn headers(partition: &Partition) -> Vec<BatchHeader> {
    let (mut all, mut offset): (Vec<BatchHeader>, i64) = (Vec::new(), 0);
    loop {
        let bytes = partition.read(offset, 1 << 20, true, Visible::LogEnd).unwrap();
        if bytes.is_empty() {
            return all;
        }
        all.extend(batches(bytes).map(|batch| batch.unwrap().header));
        offset = all.last().unwrap().next_offset();
    }
}

/// Offsets of control batches that hold a marker.
fn markers(partition: &Partition) -> Vec<i64> {
    let control = |header: &BatchHeader| header.is_control() && header.record_count > 0;
    headers(partition).iter().filter(|header| control(header)).map(|one| one.base_offset).collect()
}

/// Key and value by offset, as a consumer at read_committed takes them: by the aborted list of each answer.
fn committed(partition: &Partition) -> BTreeMap<i64, (Bytes, Option<Bytes>)> {
    let (mut found, mut offset) = (BTreeMap::new(), 0);
    loop {
        let (bytes, aborted) = partition.read_committed(offset, 300, true).unwrap();
        if bytes.is_empty() {
            assert_eq!(offset, partition.watermarks_now().last_stable_offset);
            return found;
        }
        let mut ahead: Vec<Aborted> = aborted;
        ahead.sort_by_key(|one| std::cmp::Reverse(one.first_offset));
        let mut gone: BTreeSet<i64> = BTreeSet::new();
        for batch in batches(bytes).map(Result::unwrap) {
            let header = batch.header;
            while let Some(next) = ahead.pop_if(|one| one.first_offset <= header.last_offset()) {
                gone.insert(next.producer_id);
            }
            if header.is_control() {
                gone.remove(&header.producer_id);
            } else if !(header.is_transactional() && gone.contains(&header.producer_id)) {
                for record in batch.records(DECOMPRESSED_MAX).unwrap().map(Result::unwrap) {
                    found.insert(record.offset, (record.key.unwrap(), record.value));
                }
            }
            offset = header.next_offset();
        }
    }
}

fn keys(partition: &Partition) -> Vec<(i64, String)> {
    let text = |key: &Bytes| String::from_utf8(key.to_vec()).unwrap();
    committed(partition).iter().map(|(offset, (key, _))| (*offset, text(key))).collect()
}

#[test]
fn an_aborted_record_replaces_nothing_and_goes() {
    let bench = Bench::new();
    let partition = bench.topic(&SETTINGS);
    partition.put(value(None, "a", Some("1")));
    partition.put(value(Some((7, 0)), "a", Some("2")));
    partition.put(value(Some((7, 1)), "b", Some("2")));
    let abort = end(&partition, 7, MarkerKind::Abort);
    partition.put(value(Some((8, 0)), "c", Some("1")));
    let commit = end(&partition, 8, MarkerKind::Commit);
    partition.put(value(None, "d", Some("1")));
    partition.roll().unwrap();
    assert_eq!(bench.log.run_compaction(NOW), 1);
    let due = [(0, "a"), (4, "c"), (6, "d")].map(|(offset, key)| (offset, key.to_owned()));
    assert_eq!(keys(&partition), due);
    assert_eq!(headers(&partition).iter().map(|header| header.record_count).sum::<i32>(), 5);
    assert_eq!(
        markers(&partition),
        [abort, commit],
        "a pass that met the records keeps the marker"
    );

    // The next pass finds nothing of the aborted transaction: from then on the marker waits for its time,
    // the one of the other stays as long as its record.
    let pass = |now_ms| {
        partition.put(value(None, "d", Some("2")));
        partition.roll().unwrap();
        assert_eq!(bench.log.run_compaction(now_ms), 1);
    };
    // The batch before the marker is the last one of its producer, and stays as an empty one.
    partition.put(value(Some((7, 2)), "e", Some("1")));
    end(&partition, 7, MarkerKind::Commit);
    pass(NOW + 1);
    assert_eq!(markers(&partition)[..2], [abort, commit]);
    pass(NOW + 2);
    let waiting = headers(&partition).into_iter().find(|header| header.base_offset == abort);
    assert_eq!(waiting.unwrap().delete_horizon(), Some(NOW + 1002));
    pass(NOW + 1001);
    assert_eq!(markers(&partition)[..2], [abort, commit]);
    pass(NOW + 1002);
    assert_eq!(markers(&partition)[0], commit);
    let bench = bench.kill();
    assert_eq!(keys(&bench.partition())[..2], due[..2]);
}

/// A marker that brought an epoch is all that the log holds of it, once the records before are gone.
#[test]
fn an_epoch_that_a_marker_brought_outlives_its_transaction_and_the_snapshots() {
    let bench = Bench::new();
    let partition = bench.topic(&SETTINGS);
    partition.put(value(Some((7, 0)), "a", Some("1")));
    let kind = MarkerKind::Abort;
    let marker = EndMarker { producer_id: 7, producer_epoch: 1, kind, coordinator_epoch: 3 };
    partition.append_marker(marker, NOW).unwrap();
    for late in [0, 1, 2, 2000] {
        partition.put(value(None, "d", Some("1")));
        partition.roll().unwrap();
        assert_eq!(bench.log.run_compaction(NOW + late), 1);
    }
    let of_seven = |partition: &Partition| {
        let states = partition.producer_states();
        let seven = states.iter().find(|state| state.producer_id == 7);
        seven.map(|state| (state.producer_epoch, state.coordinator_epoch))
    };
    assert_eq!(of_seven(&partition), Some((1, 3)));
    drop(partition);
    let bench = without(bench, Some("snapshot"));
    assert_eq!(of_seven(&bench.partition()), Some((1, 3)));
    let late = bench.partition().try_put(value(Some((7, 1)), "a", Some("2")));
    assert!(matches!(late, Err(LogError::InvalidProducerEpoch { current: 1, .. })), "{late:?}");
}

#[test]
fn an_open_transaction_is_never_passed() {
    let bench = Bench::new();
    let partition = bench.topic(&SETTINGS);
    for number in 0..3 {
        partition.put(value(None, "a", Some("1")));
        if number == 1 {
            partition.put(value(Some((7, 0)), "a", Some("open")));
        }
        partition.roll().unwrap();
    }
    bench.log.run_compaction(NOW);
    assert_eq!(
        headers(&partition).iter().map(|one| one.base_offset).collect::<Vec<_>>(),
        [0, 1, 2, 3]
    );
    assert_eq!(partition.oldest_open_transaction().unwrap().first_offset, 2);
    end(&partition, 7, MarkerKind::Abort);
    partition.roll().unwrap();
    bench.log.run_compaction(NOW);
    assert_eq!(keys(&partition), [(3, "a".to_owned())]);
    let bench = bench.restart();
    assert_eq!(keys(&bench.partition()), [(3, "a".to_owned())]);
}

#[derive(Clone, Debug)]
enum Step {
    Put { producer: Option<i64>, key: u8, tombstone: bool },
    End { producer: i64, commit: bool },
    Roll,
    Compact { later_ms: i64 },
    Restart { without: Option<&'static str> },
}

fn step() -> impl Strategy<Value = Step> {
    let producer = prop::option::of(7..10i64);
    prop_oneof![
        8 => (producer, 0..5u8, prop::bool::weighted(0.2))
            .prop_map(|(producer, key, tombstone)| Step::Put { producer, key, tombstone }),
        3 => (7..10i64, any::<bool>()).prop_map(|(producer, commit)| Step::End { producer, commit }),
        2 => Just(Step::Roll),
        2 => (0..1500i64).prop_map(|later_ms| Step::Compact { later_ms }),
        1 => prop::option::of(prop::sample::select(&["snapshot", "txnindex", "index"][..]))
            .prop_map(|without| Step::Restart { without }),
    ]
}

/// The newest committed record of each key, without those whose newest is a tombstone.
fn state(records: &BTreeMap<i64, (Bytes, Option<Bytes>)>) -> BTreeMap<Bytes, (i64, Bytes)> {
    let mut state = BTreeMap::new();
    for (offset, (key, value)) in records {
        match value {
            Some(value) => state.insert(key.clone(), (*offset, value.clone())),
            None => state.remove(key),
        };
    }
    state
}

fn without(bench: Bench, ending: Option<&str>) -> Bench {
    let folder = bench.folder();
    let Bench { log, dir } = bench;
    drop(log);
    for path in fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
        if path.extension().and_then(|found| found.to_str()) == ending && ending.is_some() {
            fs::remove_file(path).unwrap();
        }
    }
    Bench { log: support::open(dir.path()).unwrap(), dir }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: support::cases(12), ..ProptestConfig::default() })]

    /// Whoever reads from the beginning at read_committed comes to the same state as if nothing had ever
    /// been compacted; no record is there that was not committed, and none that was never written.
    #[test]
    fn the_committed_state_is_that_of_the_whole_history(steps in prop::collection::vec(step(), 1..60)) {
        let mut bench = Bench::new();
        bench.topic(&SETTINGS);
        // All that was committed, by offset; what is open, by producer.
        let mut whole: BTreeMap<i64, (Bytes, Option<Bytes>)> = BTreeMap::new();
        let mut open: BTreeMap<i64, Vec<(i64, Bytes, Option<Bytes>)>> = BTreeMap::new();
        let mut sequences: BTreeMap<i64, i32> = BTreeMap::new();
        let mut now_ms = NOW;
        for (number, step) in steps.into_iter().enumerate() {
            let partition = bench.partition();
            match step {
                Step::Put { producer, key, tombstone } => {
                    let (key, text) = (format!("k{key}"), format!("{number}"));
                    let sequence = producer.map(|id| (id, sequences.get(&id).copied().unwrap_or(0)));
                    let sent = value(sequence, &key, (!tombstone).then_some(text.as_str()));
                    let offset = partition.put(sent).base_offset;
                    let (key, text) = (Bytes::from(key), (!tombstone).then(|| Bytes::from(text)));
                    match producer {
                        None => drop(whole.insert(offset, (key, text))),
                        Some(id) => {
                            *sequences.entry(id).or_default() += 1;
                            open.entry(id).or_default().push((offset, key, text));
                        }
                    }
                }
                Step::End { producer, commit } => {
                    let kind = if commit { MarkerKind::Commit } else { MarkerKind::Abort };
                    end(&partition, producer, kind);
                    for (offset, key, text) in open.remove(&producer).unwrap_or_default() {
                        if commit {
                            whole.insert(offset, (key, text));
                        }
                    }
                }
                Step::Roll => partition.roll().unwrap(),
                Step::Compact { later_ms } => {
                    now_ms += later_ms;
                    bench.log.run_compaction(now_ms);
                }
                Step::Restart { without: ending } => {
                    drop(partition);
                    bench = without(bench, ending);
                }
            }
            let partition = bench.partition();
            prop_assert_eq!(partition.fault().map(|fault| fault.to_string()), None);
            let stable = partition.watermarks_now().last_stable_offset;
            let due = open.values().flatten().map(|one| one.0).min();
            prop_assert_eq!(stable, due.unwrap_or(partition.watermarks_now().log_end));
            let found = committed(&partition);
            let history: BTreeMap<_, _> =
                whole.iter().filter(|one| *one.0 < stable).map(|(at, one)| (*at, one.clone())).collect();
            for (offset, record) in &found {
                prop_assert_eq!(history.get(offset), Some(record), "offset {}", offset);
            }
            prop_assert_eq!(state(&found), state(&history));
        }
        // What each producer sent last is known.
        for (id, sequence) in sequences {
            let again = bench.partition().try_put(value(Some((id, sequence - 1)), "k0", Some("x")));
            prop_assert!(again.is_ok_and(|again| again.base_offset < bench.partition().watermarks_now().log_end));
        }
    }
}

/// Batches of a compacted log that the product and Kafka's tools must be able to read.
#[test]
fn every_batch_that_is_left_is_whole() {
    let bench = Bench::new();
    let partition = bench.topic(&SETTINGS);
    for number in 0..30 {
        partition.put(value(Some((7, number)), &format!("k{}", number % 4), Some("v")));
        if number % 5 == 4 {
            let kind = if number % 2 == 0 { MarkerKind::Abort } else { MarkerKind::Commit };
            end(&partition, 7, kind);
        }
    }
    partition.roll().unwrap();
    bench.log.run_compaction(NOW);
    let bytes = partition.read(0, 1 << 20, true, Visible::LogEnd).unwrap();
    for batch in batches(bytes) {
        let batch: Batch = batch.unwrap();
        batch.verify_crc().unwrap();
        let count = batch.records(DECOMPRESSED_MAX).unwrap().map(Result::unwrap).count();
        assert_eq!(i32::try_from(count).unwrap(), batch.header.record_count);
    }
}
