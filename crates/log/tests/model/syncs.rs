//! Each sync and each cut, where leaving it out would lose something: `make mutants-log` leaves them out one
//! by one, and the test that it names must fail.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use highwater_log::*;
use highwater_protocol::records::{BatchBuilder, Compression};

use crate::dice::Dice;
use crate::entry;
use crate::faults::{Bench, NOW};
use crate::fs::ModelFs;
use crate::node::Loss;
use crate::partition::read_all;
use crate::world::{config, open, topic_config};

const DIR: &str = "/data";

/// Every file with its content.
fn files(fs: &ModelFs) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![PathBuf::from(DIR)];
    while let Some(folder) = folders.pop() {
        for Entry { name, is_dir } in fs.list(&folder).unwrap() {
            let path = folder.join(name);
            if is_dir {
                folders.push(path);
            } else {
                found.insert(path.clone(), fs.content(&path).unwrap());
            }
        }
    }
    found
}

/// The number of batches, if the log opens and the partition works.
fn batches_left(fs: &ModelFs) -> Result<usize, String> {
    let log = open(fs).map_err(|error| error.to_string())?;
    let partition = log.partition("t", 0).ok_or("there is no topic")?;
    match partition.watermarks_now().state {
        PartitionState::Online => Ok(read_all(&partition).len()),
        state => Err(format!("{state:?}: {:?}", partition.flush())),
    }
}

/// The power goes, with all that was not synced.
fn left_without_power(bench: Bench) -> Result<usize, String> {
    let Bench { fs, log } = bench;
    drop(log);
    fs.lose_power(Loss::All);
    batches_left(&fs)
}

#[test]
fn a_topic_is_there_once_it_was_made() {
    assert_eq!(left_without_power(Bench::new(&[])), Ok(0));
}

#[test]
fn the_folders_above_a_new_one_are_there() {
    let (fs, dir) = (ModelFs::new(7), Path::new("/srv/log/data"));
    let open = || Log::open(Arc::new(fs.clone()), dir, config()).unwrap();
    open().create_topic("t", 1, topic_config(&[])).unwrap();
    fs.lose_power(Loss::All);
    assert!(open().topic("t").is_some());
}

#[test]
fn a_folder_that_was_made_for_the_log_is_there() {
    let fs = ModelFs::new(7);
    fs.create_dir(Path::new(DIR)).unwrap();
    open(&fs).unwrap().create_topic("t", 1, topic_config(&[])).unwrap();
    fs.lose_power(Loss::All);
    assert!(open(&fs).unwrap().topic("t").is_some());
}

#[test]
fn what_was_flushed_is_there() {
    let bench = Bench::new(&[]);
    bench.put();
    assert_eq!(left_without_power(bench), Ok(1));
}

#[test]
fn what_a_roll_shows_is_there() {
    let bench = Bench::new(&[]);
    bench.append().unwrap();
    bench.partition().roll().unwrap();
    assert_eq!(bench.partition().watermarks_now().high_watermark, 2);
    assert_eq!(left_without_power(bench), Ok(1));
}

#[test]
fn a_new_segment_is_there_with_what_was_flushed_into_it() {
    let bench = Bench::new(&[]);
    bench.put();
    bench.partition().roll().unwrap();
    bench.put();
    assert_eq!(left_without_power(bench), Ok(2));
}

#[test]
fn the_indexes_of_a_closed_segment_are_there() {
    let bench = Bench::new(&[("index.interval.bytes", "0")]);
    for time in 1..5 {
        let batch = entry::build(&mut Dice::new(1), 1, None, &[time]);
        bench.partition().append(batch, AppendOptions::client(NOW)).unwrap();
    }
    bench.partition().roll().unwrap();
    let Bench { fs, log } = bench;
    let index = |name: &str| fs.content(&Path::new(DIR).join("t-0").join(name)).unwrap_or_default();
    let names = ["00000000000000000000.index", "00000000000000000000.timeindex"];
    let before = names.map(index);
    assert_eq!(before.each_ref().map(Vec::len), [3 * 8, 3 * 12]);
    drop(log);
    fs.lose_power(Loss::All);
    assert_eq!(names.map(index), before);
}

#[test]
fn the_aborted_transactions_of_a_closed_segment_are_there() {
    let bench = Bench::new(&[]);
    let partition = bench.partition();
    let mut batch = BatchBuilder::new(Compression::None).producer(9, 0, 0).transactional();
    batch.push(5, Some(b"key"), Some(b"value"), &[]);
    partition.append(batch.build().unwrap(), AppendOptions::client(NOW)).unwrap();
    let (producer_id, producer_epoch, kind) = (9, 0, MarkerKind::Abort);
    let marker = EndMarker { producer_id, producer_epoch, kind, coordinator_epoch: 0 };
    partition.append_marker(marker, NOW).unwrap();
    partition.roll().unwrap();
    let bench = bench.lose_power(Loss::All);
    let aborted = bench.partition().aborted(0, 2).unwrap();
    assert_eq!(aborted.len(), 1, "a reader at read_committed would see it");
}

#[test]
fn a_closed_log_is_on_disk_whole() {
    let bench = Bench::new(&[]);
    let batch = entry::build(&mut Dice::new(1), 1, Some((9, 0, 0)), &[5]);
    bench.partition().append(batch, AppendOptions::client(NOW)).unwrap();
    let Bench { fs, log } = bench;
    log.close().unwrap();
    drop(log);
    // It is a lower bound, and needs no sync of its own.
    let point = Path::new(DIR).join("t-0/recovery-point");
    let files = |fs: &ModelFs| {
        let mut files = files(fs);
        files.remove(&point);
        files
    };
    let before = files(&fs);
    assert!(before.contains_key(&Path::new(DIR).join("t-0/00000000000000000001.snapshot")));
    fs.lose_power(Loss::All);
    assert_eq!(files(&fs), before);
}

#[test]
fn a_mark_of_a_clean_end_does_not_come_back() {
    let Bench { fs, log } = Bench::new(&[]);
    log.close().unwrap();
    drop(log);
    let bench = Bench { log: open(&fs).unwrap(), fs };
    bench.put();
    assert_eq!(left_without_power(bench), Ok(1));
}

#[test]
fn a_producer_id_is_given_once() {
    let bench = Bench::new(&[]);
    let given = bench.log.next_producer_id().unwrap();
    let bench = bench.lose_power(Loss::All);
    assert_ne!(bench.log.next_producer_id().unwrap(), given);
}

#[test]
fn an_epoch_of_an_unclean_start_is_given_once() {
    let bench = Bench::new(&[("highwater.flush", "os")]);
    let bench = bench.kill();
    assert_eq!(bench.partition().watermarks_now().leader_epoch, 1);
    let bench = bench.lose_power(Loss::All);
    assert_eq!(bench.partition().watermarks_now().leader_epoch, 2);
}

#[test]
fn what_a_start_shows_is_there() {
    let bench = Bench::new(&[]);
    bench.append().unwrap();
    let bench = bench.kill();
    assert_eq!(bench.partition().watermarks_now().high_watermark, 2);
    assert_eq!(left_without_power(bench), Ok(1));
}

#[test]
fn a_segment_found_at_start_is_there_with_what_was_flushed_into_it() {
    for stop in 0..30 {
        let bench = Bench::new(&[]);
        bench.put();
        bench.fs.stop_after(Some(stop));
        let rolled = bench.partition().roll();
        // The page cache stays, with a segment whose name may not be safe.
        let bench = bench.kill();
        bench.put();
        assert_eq!(left_without_power(bench), Ok(2), "stopped after {stop}, {rolled:?}");
    }
}

/// Something is interrupted at each step, and the power goes with part of what was not synced.
fn interrupted(act: impl Fn(&Partition)) -> Result<(), String> {
    for (seed, stop) in (0..12).flat_map(|seed| (0..60).map(move |stop| (seed, stop))) {
        let fs = ModelFs::new(seed);
        let log = open(&fs).unwrap();
        log.create_topic("t", 1, topic_config(&[])).unwrap();
        let bench = Bench { fs, log };
        for _ in 0..4 {
            bench.put();
            bench.partition().roll().unwrap();
        }
        bench.fs.stop_after(Some(stop));
        act(&bench.partition());
        bench.fs.lose_power(Loss::Some);
        let left = batches_left(&bench.fs);
        left.map_err(|error| format!("seed {seed}, stopped after {stop}: {error}"))?;
    }
    Ok(())
}

#[test]
fn what_is_cut_with_batches_behind_it_is_kept_aside_before_it_goes() {
    let (log_file, aside) =
        ("/data/t-0/00000000000000000000.log", "/data/t-0/00000000000000000000.cut");
    let (log_file, aside) = (Path::new(log_file), Path::new(aside));
    for (seed, stop) in (0..12).flat_map(|seed| (0..30).map(move |stop| (seed, stop))) {
        let bench = Bench::seeded(seed, &[]);
        for _ in 0..3 {
            bench.put();
        }
        let Bench { fs, log } = bench;
        drop(log);
        fs.kill();
        fs.flip(log_file, 100);
        let whole = fs.content(log_file).unwrap();
        fs.stop_after(Some(stop));
        drop(open(&fs));
        fs.lose_power(Loss::Some);
        let (left, kept) = (fs.content(log_file).unwrap(), fs.content(aside));
        let is_there = left == whole || kept.as_ref() == Some(&whole);
        assert!(is_there, "seed {seed}, stopped after {stop}");
    }
}

#[test]
fn a_recovery_point_does_not_come_back_behind_a_cut() {
    for (seed, stop) in (0..20).flat_map(|seed| (0..60).map(move |stop| (seed, stop))) {
        let bench = Bench::seeded(seed, &[]);
        for _ in 0..3 {
            bench.put();
            bench.partition().roll().unwrap();
        }
        bench.log.housekeep(NOW);
        assert!(bench.fs.content(Path::new("/data/t-0/recovery-point")).is_some());
        bench.fs.sync_dir(Path::new("/data/t-0")).unwrap();
        bench.fs.stop_after(Some(stop));
        let _ = bench.partition().truncate(2);
        bench.fs.lose_power(Loss::Some);
        let left = batches_left(&bench.fs);
        assert!(matches!(left, Ok(1..=3)), "seed {seed}, stopped after {stop}: {left:?}");
    }
}

#[test]
fn an_interrupted_cut_leaves_no_hole() {
    assert_eq!(interrupted(|partition| _ = partition.truncate(1)), Ok(()));
}

#[test]
fn an_interrupted_deletion_leaves_no_hole() {
    assert_eq!(interrupted(|partition| _ = partition.delete_records(5)), Ok(()));
}
