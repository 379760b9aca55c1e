//! Archive, backup and restore where the power goes in the middle: what was there stands, or what is half done
//! is refused.

use std::path::Path;
use std::sync::Arc;

use highwater_log::*;

use crate::faults::{Bench, NOW};
use crate::fs::ModelFs;
use crate::node::Loss;
use crate::partition::read_all;
use crate::world::{config, topic_config};

const BACKUP: &str = "/backup";
const ARCHIVE: &str = "/archive";
const NEW: &str = "/new";

fn progress() -> CopyProgress {
    CopyProgress::default()
}

/// One closed segment and an active one, of one batch each.
fn filled(seed: u64) -> Bench {
    let bench = Bench::seeded(seed, &[]);
    bench.put();
    bench.partition().roll().unwrap();
    bench.put();
    bench
}

fn restored(fs: &ModelFs) -> Result<Log, String> {
    restore(Arc::new(fs.clone()), Path::new(BACKUP), Path::new(NEW), &progress())
        .map_err(|error| error.code().to_owned())?;
    Log::open(Arc::new(fs.clone()), Path::new(NEW), config()).map_err(|error| error.to_string())
}

fn batches(log: &Log) -> Option<usize> {
    let partition = log.partition("t", 0)?;
    let online = partition.watermarks_now().state == PartitionState::Online;
    online.then(|| read_all(&partition).len())
}

#[test]
fn a_backup_is_there_once_it_is_done() {
    let Bench { fs, log } = filled(7);
    log.backup(Path::new(BACKUP), &progress()).unwrap();
    drop(log);
    fs.lose_power(Loss::All);
    let left = restored(&fs).map(|log| batches(&log));
    assert_eq!(left, Ok(Some(2)));
}

#[test]
fn a_restored_folder_is_there_once_it_is_done() {
    let Bench { fs, log } = filled(7);
    log.backup(Path::new(BACKUP), &progress()).unwrap();
    restore(Arc::new(fs.clone()), Path::new(BACKUP), Path::new(NEW), &progress()).unwrap();
    drop(log);
    fs.lose_power(Loss::All);
    let opened = Log::open(Arc::new(fs.clone()), Path::new(NEW), config());
    let left = opened.map(|log| batches(&log)).map_err(|error| error.to_string());
    assert_eq!(left, Ok(Some(2)));
}

#[test]
fn an_interrupted_backup_leaves_the_one_before_and_goes_on() {
    for (seed, stop) in (0..24).flat_map(|seed| (0..90).map(move |stop| (seed, stop))) {
        let context = format!("seed {seed}, stopped after {stop}");
        let bench = filled(seed);
        bench.fs.stop_after(Some(stop));
        let first = bench.log.backup(Path::new(BACKUP), &progress()).is_ok();
        let bench = bench.lose_power(Loss::Some);
        let left = restored(&bench.fs).map(|log| batches(&log));
        match left {
            Ok(left) => assert_eq!(left, Some(2), "{context}"),
            Err(code) => {
                let half = ["BACKUP_UNFINISHED", "BACKUP_NOT_FOUND"].contains(&code.as_str());
                assert!(
                    !first && (half || !bench.fs.exists(Path::new(BACKUP)).unwrap()),
                    "{context}: {code}"
                );
            }
        }
        let again = bench.log.backup(Path::new(BACKUP), &progress()).map(|_| ());
        assert!(again.is_ok(), "{context}: {again:?}");
        // A second one, with more in it.
        bench.put();
        bench.fs.stop_after(Some(stop));
        let second = bench.log.backup(Path::new(BACKUP), &progress()).is_ok();
        let Bench { fs, log } = bench;
        drop(log);
        fs.lose_power(Loss::Some);
        let other = Path::new("/other");
        let back = restore(Arc::new(fs.clone()), Path::new(BACKUP), other, &progress());
        assert!(back.is_ok(), "{context}: {back:?}");
        let log = Log::open(Arc::new(fs.clone()), other, config()).unwrap();
        let left = batches(&log);
        assert!(left == Some(3) || (!second && left == Some(2)), "{context}: {left:?}");
    }
}

#[test]
fn an_interrupted_restore_is_refused_or_whole() {
    let mut whole = 0;
    for (seed, stop) in (0..8).flat_map(|seed| (0..60).map(move |stop| (seed, stop))) {
        let Bench { fs, log } = filled(seed);
        log.backup(Path::new(BACKUP), &progress()).unwrap();
        drop(log);
        fs.stop_after(Some(stop));
        let done = restore(Arc::new(fs.clone()), Path::new(BACKUP), Path::new(NEW), &progress());
        fs.lose_power(Loss::Some);
        match Log::open(Arc::new(fs.clone()), Path::new(NEW), config()) {
            // Nothing of it is there yet: an empty log is what stood there before.
            Ok(log) if log.topics().is_empty() => assert!(done.is_err()),
            Ok(log) => {
                assert_eq!(batches(&log), Some(2), "seed {seed}, stopped after {stop}");
                whole += 1;
            }
            Err(error) => assert!(done.is_err(), "seed {seed}, stopped after {stop}: {error}"),
        }
    }
    assert!(whole > 0, "none came to its end");
}

/// A log with an archive, whose topic keeps nothing that is closed.
fn archived(fs: &ModelFs) -> Log {
    let archive = Some(ArchiveConfig { dir: ARCHIVE.into(), by_default: true });
    Log::open(Arc::new(fs.clone()), Path::new("/data"), LogConfig { archive, ..config() }).unwrap()
}

#[test]
fn what_retention_removed_is_in_the_archive_whenever_the_power_goes() {
    for (seed, stop) in (0..4).flat_map(|seed| (0..120).map(move |stop| (seed, stop))) {
        let fs = ModelFs::new(seed);
        let log = archived(&fs);
        log.create_topic("t", 1, topic_config(&[("retention.bytes", "0")])).unwrap();
        let bench = Bench { fs, log };
        for _ in 0..3 {
            bench.put();
            bench.partition().roll().unwrap();
        }
        bench.fs.stop_after(Some(stop));
        for _ in 0..2 {
            bench.log.archive_closed();
            bench.log.run_retention(NOW);
        }
        bench.fs.lose_power(Loss::Some);
        let log = archived(&bench.fs);
        let start = log.partition("t", 0).unwrap().watermarks_now().log_start;
        log.archive_closed();
        let fault = log.archive_fault().map(|fault| fault.to_string());
        assert_eq!(fault, None, "seed {seed}, stopped after {stop}");
        let id = log.topic("t").unwrap().id.to_string();
        let back = log.restore_topic(Path::new(ARCHIVE), &id, Some("old"), &progress());
        assert!(back.is_ok(), "seed {seed}, stopped after {stop}: {back:?}");
        let old = log.partition("old", 0).unwrap();
        let now = old.watermarks_now();
        assert_eq!(
            (now.log_start, now.log_end),
            (0, 6),
            "seed {seed}, stopped after {stop}, from {start}"
        );
        assert_eq!(read_all(&old).len(), 3);
    }
}

#[test]
fn a_topic_whose_restore_was_interrupted_is_gone_and_can_come_again() {
    for (seed, stop) in (0..6).flat_map(|seed| (0..80).map(move |stop| (seed, stop))) {
        let bench = filled(seed);
        bench.log.backup(Path::new(BACKUP), &progress()).unwrap();
        bench.log.delete_topic("t").unwrap();
        bench.fs.stop_after(Some(stop));
        let done = bench.log.restore_topic(Path::new(BACKUP), "t", None, &progress()).is_ok();
        let bench = bench.lose_power(Loss::Some);
        if bench.log.topic("t").is_none() {
            assert!(!done, "seed {seed}, stopped after {stop}");
            bench.log.restore_topic(Path::new(BACKUP), "t", None, &progress()).unwrap();
        }
        assert_eq!(batches(&bench.log), Some(2), "seed {seed}, stopped after {stop}");
    }
}
