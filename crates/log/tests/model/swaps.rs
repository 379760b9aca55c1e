//! Compaction interrupted at each of its steps, by a kill or a power loss: what is found is what was there
//! before or what the pass would have left, segment by segment, and the indexes fit.

use std::collections::BTreeMap;
use std::path::Path;

use bytes::Bytes;
use highwater_log::*;
use highwater_protocol::records::{Batch, BatchBuilder, Compression, DECOMPRESSED_MAX, batches};

use crate::faults::{Bench, NOW};
use crate::fs::ModelFs;
use crate::node::Loss;
use crate::world::{open, topic_config};

const DIR: &str = "/data/t-0";
const SETTINGS: [(&str, &str); 5] = [
    ("cleanup.policy", "compact"),
    ("min.cleanable.dirty.ratio", "0"),
    ("index.interval.bytes", "0"),
    ("segment.bytes", "1400"),
    ("message.timestamp.after.max.ms", "9223372036854775807"),
];

fn batch(producer: Option<i32>, keys: &[u8], time: i64) -> Bytes {
    let mut builder = BatchBuilder::new(Compression::None);
    if let Some(sequence) = producer {
        builder = builder.producer(5, 0, sequence).transactional();
    }
    for (key, time) in keys.iter().zip(time..) {
        builder.push(time, Some(&[*key]), Some(&[b'v'; 60]), &[]);
    }
    builder.build().unwrap()
}

/// Three segments' worth of records, among them an aborted transaction and one that was committed.
fn filled(seed: u64) -> Bench {
    let fs = ModelFs::new(seed);
    let log = open(&fs).unwrap();
    log.create_topic("t", 1, topic_config(&SETTINGS)).unwrap();
    let bench = Bench { fs, log };
    let partition = bench.partition();
    let put = |bytes| partition.append(bytes, AppendOptions::client(NOW)).map(|_| ()).unwrap();
    let end = |kind| {
        let marker = EndMarker { producer_id: 5, producer_epoch: 0, kind, coordinator_epoch: 0 };
        partition.append_marker(marker, 7).unwrap();
    };
    for round in 0..6u8 {
        put(batch(None, b"abc", 1000 - i64::from(round)));
        put(batch(None, &[b'd' + round], 5));
    }
    put(batch(Some(0), b"xa", 20));
    end(MarkerKind::Abort);
    put(batch(Some(2), b"yb", 30));
    end(MarkerKind::Commit);
    put(batch(None, b"abcxy", 40));
    partition.roll().unwrap();
    put(batch(None, b"a", 50));
    partition.flush().unwrap();
    bench
}

/// The batches of each segment by its first offset, from the files.
fn segments(fs: &ModelFs) -> BTreeMap<i64, Vec<Batch>> {
    let mut found = BTreeMap::new();
    for Entry { name, .. } in fs.list(Path::new(DIR)).unwrap() {
        if let Some(base) = name.strip_suffix(".log") {
            let content = fs.content(&Path::new(DIR).join(&name)).unwrap();
            found.insert(
                base.parse().unwrap(),
                batches(content.into()).map(Result::unwrap).collect(),
            );
        }
    }
    found
}

fn records(batches: &[Batch]) -> Vec<(i64, Vec<u8>)> {
    let open = |batch: &Batch| {
        batch.verify_crc().unwrap();
        let records = batch.records(DECOMPRESSED_MAX).unwrap().map(Result::unwrap);
        records.map(|record| (record.offset, record.key.unwrap().to_vec())).collect::<Vec<_>>()
    };
    batches.iter().flat_map(open).collect()
}

/// Every index has an entry for each batch but the first of its segment, and none more.
fn check_indexes(fs: &ModelFs, place: &str) {
    for (base, batches) in segments(fs) {
        let content = |kind: &str| fs.content(&Path::new(DIR).join(format!("{base:020}.{kind}")));
        let (mut position, mut due) = (0u32, Vec::new());
        for batch in &batches {
            if position > 0 {
                due.extend(((batch.header.last_offset() - base) as u32).to_be_bytes());
                due.extend(position.to_be_bytes());
            }
            position += batch.bytes.len() as u32;
        }
        assert_eq!(content("index"), Some(due), "{place}: offset index of {base}");
        let greatest = batches.iter().map(|batch| batch.header.max_timestamp).max();
        let times = content("timeindex").unwrap();
        if let (Some(last), Some(greatest)) = (times.chunks(12).last(), greatest) {
            let timestamp = i64::from_be_bytes(last[..8].try_into().unwrap());
            assert!(timestamp <= greatest, "{place}: time index of {base} says {timestamp}");
        }
    }
}

/// What a whole pass leaves.
fn compacted() -> Vec<(i64, Vec<u8>)> {
    let bench = filled(1);
    assert_eq!(bench.log.run_compaction(NOW), 1);
    let all: Vec<Batch> = segments(&bench.fs).into_values().flatten().collect();
    records(&all)
}

/// Interrupts a pass after each number of changes and looks at what a start finds; `again` interrupts that
/// start as well, by a power loss. The answer is how many passes came to their end.
fn interrupted(seeds: u64, again: Option<u32>, lose: impl Fn(&ModelFs)) -> usize {
    let mut whole = 0;
    let (before, after) = {
        let bench = filled(1);
        let all: Vec<Batch> = segments(&bench.fs).into_values().flatten().collect();
        (records(&all), compacted())
    };
    for (seed, stop) in (0..seeds).flat_map(|seed| (0..130).map(move |stop| (seed, stop))) {
        let place = format!("seed {seed}, stopped after {stop}, start after {again:?}");
        let bench = filled(seed);
        bench.fs.stop_after(Some(stop));
        whole += bench.log.run_compaction(NOW);
        let Bench { fs, log } = bench;
        drop(log);
        lose(&fs);
        if let Some(again) = again {
            let names = fs.list(Path::new(DIR)).unwrap();
            if !names.iter().any(|entry| entry.name.ends_with(".swap")) {
                continue;
            }
            fs.stop_after(Some(again));
            drop(open(&fs));
            fs.lose_power(Loss::Some);
        }
        let log = open(&fs).unwrap();
        let partition = log.partition("t", 0).unwrap();
        assert_eq!(partition.fault().map(|fault| fault.to_string()), None, "{place}");
        let found: Vec<Batch> = segments(&fs).into_values().flatten().collect();
        let gap =
            found.windows(2).find(|pair| pair[0].header.next_offset() > pair[1].header.base_offset);
        assert!(gap.is_none(), "{place}: a batch stands twice");
        let found = records(&found);
        for record in &after {
            assert!(found.contains(record), "{place}: {record:?} is lost");
        }
        for record in &found {
            assert!(before.contains(record), "{place}: {record:?} was never there");
        }
        check_indexes(&fs, &place);
        let left = fs.list(Path::new(DIR)).unwrap().into_iter().map(|entry| entry.name);
        let left: Vec<String> = left
            .filter(|name| [".cleaned", ".swap", ".tmp"].iter().any(|end| name.ends_with(end)))
            .collect();
        assert!(left.is_empty(), "{place}: {left:?} is left over");
        // The next pass does what this one did not.
        log.run_compaction(NOW);
        let done: Vec<Batch> = segments(&fs).into_values().flatten().collect();
        assert_eq!(records(&done), after, "{place}: the next pass");
        assert_eq!(log.run_compaction(NOW), 0);
        let appended = partition.append(batch(None, b"z", 60), AppendOptions::client(NOW)).unwrap();
        assert_eq!(appended.base_offset, before.last().unwrap().0 + 1, "{place}");
    }
    whole
}

#[test]
fn a_pass_that_is_killed_leaves_the_old_or_the_new() {
    assert!(interrupted(1, None, ModelFs::kill) > 0, "all steps were reached");
}

#[test]
fn a_pass_that_the_power_ends_leaves_the_old_or_the_new() {
    assert!(interrupted(8, None, |fs| fs.lose_power(Loss::Some)) > 0);
}

#[test]
fn a_start_that_ends_a_swap_may_be_interrupted_as_well() {
    for again in 0..24 {
        interrupted(4, Some(again), |fs| fs.lose_power(Loss::Some));
    }
}

#[test]
fn a_start_after_a_kill_removes_nothing_before_what_replaces_it_is_safe() {
    for again in 0..24 {
        interrupted(4, Some(again), ModelFs::kill);
    }
}

#[test]
fn no_hole_is_safe_before_the_point_that_tells_it_from_damage() {
    for seed in 0..64 {
        let bench = filled(seed);
        bench.fs.fail_dir_syncs(2);
        for later in [0, 100_000] {
            bench.log.run_compaction(NOW + later);
        }
        let bench = bench.lose_power(Loss::Some);
        let fault = bench.partition().fault().map(|fault| fault.to_string());
        assert_eq!(fault, None, "seed {seed}");
    }
}

#[test]
fn what_a_pass_left_is_there() {
    let bench = filled(3);
    assert_eq!(bench.log.run_compaction(NOW), 1);
    let Bench { fs, log } = bench;
    drop(log);
    fs.lose_power(Loss::All);
    let log = open(&fs).unwrap();
    assert_eq!(log.partition("t", 0).unwrap().fault().map(|fault| fault.to_string()), None);
    let found: Vec<Batch> = segments(&fs).into_values().flatten().collect();
    assert_eq!(records(&found), compacted());
    check_indexes(&fs, "after the loss");
}

#[test]
fn a_disk_that_is_full_or_refuses_a_sync_leaves_the_old_and_appends_go_on() {
    for fault in 0..40u32 {
        let bench = filled(u64::from(fault));
        match fault % 4 {
            0 => bench.fs.leave_space(Some(4096 * (fault as usize / 4))),
            1 => bench.fs.fail_syncs(1 + fault / 8),
            2 => bench.fs.fail_dir_syncs(1 + fault / 16),
            _ => bench.fs.fail_write_after(Some(fault / 4)),
        }
        bench.log.run_compaction(NOW);
        bench.fs.leave_space(None);
        bench.fs.fail_syncs(0);
        bench.fs.fail_dir_syncs(0);
        bench.fs.fail_write_after(None);
        bench.log.housekeep(NOW + 100_000);
        let partition = bench.partition();
        assert_eq!(partition.watermarks_now().state, PartitionState::Online, "fault {fault}");
        partition.append(batch(None, b"z", 60), AppendOptions::client(NOW)).unwrap();
        partition.flush().unwrap();
        bench.log.run_compaction(NOW + 4_000_000);
        let bench = bench.lose_power(Loss::All);
        let found: Vec<Batch> = segments(&bench.fs).into_values().flatten().collect();
        let found = records(&found);
        assert_eq!(found[..found.len() - 1], compacted(), "fault {fault}");
        check_indexes(&bench.fs, &format!("fault {fault}"));
    }
}
