//! Single faults, one after the other, where a history would only meet them by luck.

use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use highwater_log::*;

use crate::dice::Dice;
use crate::entry;
use crate::fs::ModelFs;
use crate::naive;
use crate::node::Loss;
use crate::partition::read_all;
use crate::world::{open, topic_config};

pub const NOW: i64 = 1_800_000_000_000;

pub struct Bench {
    pub fs: ModelFs,
    pub log: Log,
}

impl Bench {
    pub fn new(settings: &[(&str, &str)]) -> Self {
        Self::seeded(7, settings)
    }

    pub fn seeded(seed: u64, settings: &[(&str, &str)]) -> Self {
        let fs = ModelFs::new(seed);
        let log = open(&fs).unwrap();
        log.create_topic("t", 1, topic_config(settings)).unwrap();
        Self { fs, log }
    }

    pub fn partition(&self) -> Arc<Partition> {
        self.log.partition("t", 0).unwrap()
    }

    pub fn append(&self) -> Result<Appended, LogError> {
        let batch = entry::build(&mut Dice::new(1), 1, None, &[5, 6]);
        self.partition().append(batch, AppendOptions::client(NOW))
    }

    pub fn put(&self) -> Appended {
        let appended = self.append().unwrap();
        self.partition().flush().unwrap();
        appended
    }

    /// As after kill -9.
    pub fn kill(self) -> Self {
        self.fs.kill();
        Self { log: open(&self.fs).unwrap(), fs: self.fs }
    }

    pub fn lose_power(self, loss: Loss) -> Self {
        self.fs.lose_power(loss);
        Self { log: open(&self.fs).unwrap(), fs: self.fs }
    }
}

/// The answer, which must be there at once.
fn now<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(future)
}

#[test]
fn a_failed_sync_poisons_until_the_partition_reopens_itself() {
    let bench = Bench::new(&[]);
    let partition = bench.partition();
    let safe = bench.put();
    let lost = bench.append().unwrap();
    bench.fs.fail_syncs(3);
    assert!(matches!(partition.flush(), Err(LogError::Poisoned { .. })));
    let waited = now(partition.durable(&lost)).unwrap_err();
    assert!(matches!(waited, LogError::Poisoned { .. }) && waited.is_retriable());
    assert_eq!(waited.kafka_code().0, 56);
    assert!(now(partition.durable(&safe)).is_ok());
    assert!(matches!(bench.append(), Err(LogError::Poisoned { .. })));
    let shown = partition.read(0, 1 << 20, true, Visible::HighWatermark).unwrap();
    assert_eq!(entry::parse(shown).len(), 1, "what is safe can still be read");

    // The probe fails twice; each time the next attempt is put off.
    bench.log.housekeep(NOW);
    bench.log.housekeep(NOW + 50);
    assert_eq!(partition.watermarks_now().state, PartitionState::Poisoned);
    bench.log.housekeep(NOW + 100);
    assert_eq!(partition.watermarks_now().state, PartitionState::Poisoned);
    bench.log.housekeep(NOW + 250);
    assert_eq!(partition.watermarks_now().state, PartitionState::Poisoned, "not due yet");
    bench.log.housekeep(NOW + 300);
    let reopened = partition.watermarks_now();
    assert_eq!(reopened.state, PartitionState::Online);
    assert_eq!((reopened.leader_epoch, reopened.log_end, reopened.high_watermark), (1, 2, 2));
    assert_eq!(partition.epoch_end(0), (0, 2));
    assert_eq!(entry::segments(&bench.fs, Path::new("/data/t-0")).len(), 2, "a new segment");

    // Its offsets are given again: the old append must not be taken for the new one.
    let next = bench.put();
    assert_eq!((next.base_offset, next.leader_epoch), (2, 1));
    assert!(matches!(now(partition.durable(&lost)), Err(LogError::Poisoned { .. })));
    assert!(now(partition.durable(&safe)).is_ok());
    let bench = bench.lose_power(Loss::All);
    assert_eq!(read_all(&bench.partition()).len(), 2);
}

#[test]
fn a_kill_does_not_make_a_failed_sync_good() {
    // After a failed fsync the page cache shows data that is not on disk and is not dirty either; a
    // process started anew must not take it for safe.
    let bench = Bench::new(&[]);
    bench.put();
    bench.append().unwrap();
    bench.fs.fail_syncs(1);
    assert!(bench.partition().flush().is_err());
    let bench = bench.kill();
    let shown = bench.partition().watermarks_now();
    assert_eq!((shown.high_watermark, shown.leader_epoch), (2, 1));
    bench.put();
    let bench = bench.lose_power(Loss::All);
    assert_eq!(bench.partition().watermarks_now().high_watermark, 4);
}

#[test]
fn a_truncation_that_fails_keeps_no_more_than_was_synced() {
    let bench = Bench::new(&[]);
    bench.put();
    bench.append().unwrap();
    bench.append().unwrap();
    bench.fs.fail_syncs(2);
    let failed = bench.partition().truncate(4).unwrap_err();
    assert!(matches!(failed, LogError::Poisoned { .. }));
    bench.fs.fail_syncs(0);
    bench.log.housekeep(i64::MAX / 2);
    assert_eq!(bench.partition().watermarks_now().high_watermark, 2);
    bench.put();
    let bench = bench.lose_power(Loss::All);
    assert_eq!(bench.partition().watermarks_now().high_watermark, 4);
}

/// A crash at every step of a start, and a power loss on top.
fn interrupted_starts(prepare: impl Fn(&Bench), log_ends: RangeInclusive<i64>) {
    for seed in 0..30 {
        for stop in 0..40 {
            let bench = Bench::seeded(seed, &[]);
            prepare(&bench);
            let Bench { fs, log } = bench;
            drop(log);
            fs.kill();
            fs.stop_after(Some(stop));
            drop(open(&fs));
            fs.lose_power(Loss::Some);
            let log = open(&fs).unwrap();
            let partition = log.partition("t", 0).unwrap();
            let now = partition.watermarks_now();
            assert_eq!(now.state, PartitionState::Online, "{:?}", partition.flush());
            assert!(log_ends.contains(&now.log_end), "{now:?}, seed {seed}, stopped after {stop}");
        }
    }
}

#[test]
fn a_segment_of_a_failed_roll_does_not_come_back_behind_a_cut() {
    let prepare = |bench: &Bench| {
        bench.put();
        bench.append().unwrap();
        // The roll fails, and so does taking it back.
        bench.fs.fail_dir_syncs(2);
        assert!(bench.partition().roll().is_err());
        assert_eq!(bench.partition().watermarks_now().state, PartitionState::Poisoned);
    };
    // Its data was synced, so it may stay where the power took the note of the cut along.
    interrupted_starts(prepare, 2..=4);
}

#[test]
fn a_log_start_from_the_page_cache_is_safe_before_segments_go() {
    let prepare = |bench: &Bench| {
        for _ in 0..3 {
            bench.put();
            bench.partition().roll().unwrap();
        }
        bench.fs.fail_dir_syncs(1);
        assert!(bench.partition().delete_records(4).is_err());
    };
    interrupted_starts(prepare, 6..=6);
}

#[test]
fn a_full_disk_leaves_the_partition_as_it_was() {
    let bench = Bench::new(&[("segment.bytes", "2048")]);
    bench.put();
    let mut stored = 2;
    for space in (0..40).map(|step| step * 2000) {
        bench.fs.leave_space(Some(space));
        while let Ok(appended) = bench.append() {
            assert_eq!(appended.base_offset, stored);
            stored += 2;
        }
        let error = bench.append().unwrap_err();
        assert!(matches!(error, LogError::NoSpace { .. }) && error.is_retriable(), "{error}");
        assert_eq!(bench.partition().watermarks_now().log_end, stored);
        assert_eq!(bench.partition().watermarks_now().state, PartitionState::Online);
        assert_eq!(read_all(&bench.partition()).len() as i64, stored / 2);
        bench.fs.leave_space(None);
        assert_eq!(bench.put().base_offset, stored, "writable again, with {space} bytes before");
        stored += 2;
    }
    let bench = bench.lose_power(Loss::Some);
    assert_eq!(read_all(&bench.partition()).len() as i64, stored / 2);
}

#[test]
fn a_write_that_fails_half_way_is_taken_back() {
    let bench = Bench::new(&[("index.interval.bytes", "0")]);
    let dir = Path::new("/data/t-0");
    let name = |kind| dir.join(format!("00000000000000000000.{kind}"));
    bench.put();
    // The batch, its offset index entry, and (only where the time has grown) its time index entry.
    for (number, failing) in [0, 1, 2, 0, 1, 2].into_iter().enumerate() {
        let later = || {
            let batch = entry::build(&mut Dice::new(1), 1, None, &[100 + number as i64]);
            bench.partition().append(batch, AppendOptions::client(NOW))
        };
        let files =
            || ["log", "index", "timeindex"].map(|kind| bench.fs.content(&name(kind)).unwrap());
        let before = files();
        bench.fs.fail_write_after(Some(failing));
        assert!(matches!(later(), Err(LogError::Io { .. })), "write {failing}");
        assert_eq!(files(), before, "write {failing}");
        later().unwrap();
        let segments = entry::segments(&bench.fs, dir);
        let due = naive::offset_index(0, &segments[0].1, 0);
        assert_eq!(bench.fs.content(&name("index")), Some(due));
        let times = bench.fs.content(&name("timeindex")).unwrap();
        assert_eq!(times.len(), 12 * (number + 1));
    }
    let bench = bench.kill();
    assert_eq!(read_all(&bench.partition()).len(), 7);
}

#[test]
fn retention_does_not_take_back_a_log_start_that_could_not_be_completed() {
    let bench = Bench::new(&[]);
    for _ in 0..4 {
        bench.put();
        bench.partition().roll().unwrap();
    }
    bench.fs.fail_dir_syncs(1);
    assert!(bench.partition().delete_records(6).is_err());
    assert_eq!(bench.partition().watermarks_now().log_start, 6);
    // One of the four segments is to go, which ends far below.
    let most = (bench.partition().size() / 4 * 3).to_string();
    let settings = [("retention.ms", "-1".to_owned()), ("retention.bytes", most)];
    let settings = settings.map(|(name, value)| (name.to_owned(), value));
    bench.log.set_config("t", settings.into()).unwrap();
    assert_eq!(bench.log.run_retention(NOW), 1);
    assert_eq!(bench.partition().watermarks_now().log_start, 6);
}

#[test]
fn a_lost_snapshot_is_written_again_before_its_producers_can_be_forgotten() {
    let bench = Bench::new(&[]);
    let numbered = |bench: &Bench| {
        let batch = entry::build(&mut Dice::new(1), 1, Some((9, 0, 0)), &[5]);
        bench.partition().append(batch, AppendOptions::client(NOW)).unwrap()
    };
    numbered(&bench);
    bench.partition().roll().unwrap();
    bench.put();
    // The roll was interrupted before the name of the snapshot was safe.
    bench.fs.remove(Path::new("/data/t-0/00000000000000000001.snapshot")).unwrap();
    let bench = bench.kill();
    bench.partition().delete_records(1).unwrap();
    let bench = bench.kill();
    assert_eq!(numbered(&bench).base_offset, 0, "it is known again");
}

#[test]
fn a_partition_that_the_disk_refused_at_start_comes_back_by_itself() {
    for refusals in 1..4 {
        let bench = Bench::new(&[]);
        bench.put();
        bench.append().unwrap();
        let Bench { fs, log } = bench;
        drop(log);
        fs.kill();
        fs.fail_syncs(refusals);
        let log = open(&fs).unwrap();
        let partition = log.partition("t", 0).unwrap();
        if refusals > 1 {
            assert_eq!(partition.watermarks_now().state, PartitionState::Offline);
            assert!(partition.read(0, 1, true, Visible::HighWatermark).is_err());
            log.housekeep(i64::MAX / 2);
        }
        if refusals > 2 {
            assert_eq!(partition.watermarks_now().state, PartitionState::Offline);
            log.housekeep(i64::MAX);
        }
        assert_eq!(partition.watermarks_now().state, PartitionState::Online);
        assert_eq!(partition.watermarks_now().high_watermark, 4);
        drop(log);
        // What the refused syncs lost is on disk all the same.
        fs.lose_power(Loss::All);
        let log = open(&fs).unwrap();
        assert_eq!(read_all(&log.partition("t", 0).unwrap()).len(), 2, "{refusals} refusals");
    }
}

#[test]
fn a_directory_that_cannot_be_synced_is_not_opened() {
    let bench = Bench::new(&[]);
    bench.put();
    let Bench { fs, log } = bench;
    drop(log);
    fs.kill();
    fs.fail_dir_syncs(1);
    assert!(matches!(open(&fs), Err(LogError::Io { action: "sync", .. })));
    assert_eq!(read_all(&open(&fs).unwrap().partition("t", 0).unwrap()).len(), 1);
}

#[test]
fn a_topic_that_was_half_made_or_half_removed_is_gone_after_the_start() {
    for seed in 0..20 {
        for stop in 0..160 {
            half_made_and_half_removed(seed, stop);
        }
    }
}

fn half_made_and_half_removed(seed: u64, stop: u32) {
    let bench = Bench::seeded(seed, &[]);
    bench.put();
    bench.fs.stop_after(Some(stop));
    let made = bench.log.create_topic("new", 2, topic_config(&[]));
    let removed = made.is_ok().then(|| bench.log.delete_topic("t"));
    let bench = bench.lose_power(Loss::Some);
    let is_there = |name: &str| bench.log.topic(name).is_some();
    assert!(made.is_err() || is_there("new"), "seed {seed}, stopped after {stop}");
    match removed {
        Some(Ok(())) => assert!(!is_there("t"), "seed {seed}, stopped after {stop}"),
        Some(Err(_)) => {}
        None => assert!(is_there("t"), "seed {seed}, stopped after {stop}"),
    }
    for topic in bench.log.topics() {
        for index in 0..topic.partitions {
            let partition = bench.log.partition(&topic.name, index).unwrap();
            let state = partition.watermarks_now().state;
            assert_eq!(state, PartitionState::Online, "seed {seed}, stopped after {stop}");
            let due = usize::from(topic.name == "t");
            assert_eq!(read_all(&partition).len(), due, "seed {seed}, stopped after {stop}");
        }
    }
    for name in ["new", "t"] {
        let _ = bench.log.delete_topic(name);
        let made = bench.log.create_topic(name, 1, topic_config(&[]));
        assert!(made.is_ok(), "{made:?}, seed {seed}, stopped after {stop}");
    }
}

#[test]
fn a_removal_from_the_page_cache_is_safe_before_folders_go() {
    for seed in 0..20 {
        for stop in 0..40 {
            let bench = Bench::seeded(seed, &[]);
            bench.put();
            bench.fs.fail_dir_syncs(1);
            assert!(bench.log.delete_topic("t").is_err());
            let Bench { fs, log } = bench;
            drop(log);
            fs.kill();
            fs.stop_after(Some(stop));
            drop(open(&fs));
            fs.lose_power(Loss::Some);
            let log = open(&fs).unwrap();
            if let Some(partition) = log.partition("t", 0) {
                let state = partition.watermarks_now().state;
                assert_eq!(state, PartitionState::Online, "seed {seed}, stopped after {stop}");
                assert_eq!(read_all(&partition).len(), 1, "seed {seed}, stopped after {stop}");
            }
        }
    }
}

#[test]
fn nothing_is_shown_before_it_is_synced() {
    let bench = Bench::new(&[]);
    let partition = bench.partition();
    let mut watching = partition.watermarks();
    watching.borrow_and_update();
    let appended = bench.append().unwrap();
    assert!(!watching.has_changed().unwrap(), "the log end alone wakes nobody");
    assert_eq!(watching.borrow().log_end, 2);
    assert_eq!(partition.read(0, 1 << 20, true, Visible::HighWatermark).unwrap(), Bytes::new());
    partition.flush().unwrap();
    assert!(watching.has_changed().unwrap());
    assert!(now(partition.durable(&appended)).is_ok());
    let syncs = bench.fs.syncs();
    partition.flush().unwrap();
    assert_eq!(bench.fs.syncs(), syncs, "nothing to sync, no sync");
}
