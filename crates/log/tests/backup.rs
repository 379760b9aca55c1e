//! Archive, backup and restore: what is restored is what was there, byte for byte, under the next epoch; what is
//! damaged or half done is refused by name.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use highwater_log::*;
use highwater_protocol::records::{BatchBuilder, Compression, batches};
use proptest::prelude::*;
use support::{Bench, NOW, Put, batch, manual, numbered, settings};
use tempfile::TempDir;

const DAY: i64 = 24 * 60 * 60 * 1000;

fn progress() -> CopyProgress {
    CopyProgress::default()
}

fn open_with_archive(data: &Path, archive: &Path, by_default: bool) -> Log {
    let archive = Some(ArchiveConfig { dir: archive.to_owned(), by_default });
    let config = LogConfig { archive, ..manual() };
    Log::open(Arc::new(RealFileSystem), data, config).unwrap()
}

/// The batches that can be seen, as bytes, with the offset at which they begin.
fn seen(partition: &Partition) -> Vec<(i64, Vec<u8>)> {
    let now = partition.watermarks_now();
    let (mut found, mut offset) = (Vec::new(), now.log_start);
    while offset < now.high_watermark {
        let bytes = partition.read(offset, 1 << 20, true, Visible::HighWatermark).unwrap();
        for batch in batches(bytes) {
            let batch = batch.unwrap();
            found.push((batch.header.base_offset, batch.bytes.to_vec()));
            offset = batch.header.next_offset();
        }
    }
    found
}

fn restored(backup: &Path) -> (TempDir, Log) {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    restore(Arc::new(RealFileSystem), backup, &data, &progress()).unwrap();
    let log = support::open(&data).unwrap();
    (dir, log)
}

/// A log of two topics: `t` has closed segments and an active one, `u` an active one alone.
fn filled() -> Bench {
    let bench = Bench::new();
    let t = bench.topic(&[("index.interval.bytes", "0"), ("retention.bytes", "-1")]);
    for number in 0..12 {
        t.put(numbered(7, 0, number, 1));
        if number % 4 == 3 && number < 11 {
            t.roll().unwrap();
        }
    }
    bench.log.create_topic("highwater.offsets", 2, settings(&[])).unwrap();
    bench.log.partition("highwater.offsets", 1).unwrap().put(batch(&[NOW]));
    bench
}

/// The active segment is empty, so that the last one of the backup has holes and is read whole.
#[test]
fn a_compacted_topic_comes_back_with_its_holes() {
    let bench = Bench::new();
    let set = [("cleanup.policy", "compact"), ("min.cleanable.dirty.ratio", "0")];
    let t = bench.topic(&set);
    for _ in 0..6 {
        t.put(batch(&[NOW]));
    }
    t.put(numbered(7, 0, 0, 1));
    t.roll().unwrap();
    assert_eq!(bench.log.run_compaction(NOW), 1);
    let expected = seen(&t);
    assert_eq!(expected.iter().map(|batch| batch.0).collect::<Vec<_>>(), [6]);
    let backup = tempfile::tempdir().unwrap();
    bench.log.backup(backup.path(), &progress()).unwrap();
    let (_dir, log) = restored(backup.path());
    let t = log.partition("t", 0).unwrap();
    assert_eq!(t.fault().map(|fault| fault.to_string()), None);
    assert_eq!(seen(&t), expected);
    assert_eq!(t.put(batch(&[NOW])).base_offset, 7);
}

#[test]
fn a_backup_restores_bytes_offsets_ids_and_settings_under_the_next_epoch() {
    let bench = filled();
    let backup = tempfile::tempdir().unwrap();
    let (t, before) = (bench.partition(), bench.log.topic("t").unwrap());
    t.delete_records(2).unwrap();
    let expected = seen(&t);
    // What cannot be seen is not in it.
    t.try_put(batch(&[NOW])).unwrap();
    let progress = progress();
    let summary = bench.log.backup(backup.path(), &progress).unwrap();
    assert_eq!((summary.topics, summary.partitions), (2, 3));
    assert_eq!(progress.done(), progress.total());

    let (_dir, log) = restored(backup.path());
    let after = log.topic("t").unwrap();
    assert_eq!((after.id, &after.config), (before.id, &before.config));
    assert_eq!(log.cluster_id(), bench.log.cluster_id());
    let t = log.partition("t", 0).unwrap();
    assert_eq!(seen(&t), expected);
    let now = t.watermarks_now();
    assert_eq!((now.log_start, now.high_watermark, now.leader_epoch), (2, 12, 1));
    assert_eq!(t.epoch_end(0), (0, 12), "who stood above is told that history changed");
    assert_eq!(log.partition("highwater.offsets", 0).unwrap().watermarks_now().log_end, 0);
    assert_eq!(seen(&log.partition("highwater.offsets", 1).unwrap()).len(), 1);
    // The producer goes on where it was: its last batch is a duplicate, the next one is new.
    assert_eq!(t.put(numbered(7, 0, 11, 1)).last_offset, 11);
    assert_eq!(t.put(numbered(7, 0, 12, 1)).base_offset, 12);
    assert!(log.next_producer_id().unwrap() >= bench.log.next_producer_id().unwrap());
}

/// What was written behind the backup and lost bore epochs that must not come again.
#[test]
fn each_restore_raises_the_epoch_also_of_what_nothing_was_written_to_since_the_last() {
    let bench = filled();
    let mut backup = tempfile::tempdir().unwrap();
    bench.log.backup(backup.path(), &progress()).unwrap();
    for epoch in 1..4 {
        let (_dir, log) = restored(backup.path());
        for (topic, index) in [("t", 0), ("highwater.offsets", 0), ("highwater.offsets", 1)] {
            let now = log.partition(topic, index).unwrap().watermarks_now();
            assert_eq!(now.leader_epoch, epoch, "{topic}-{index}");
        }
        let t = log.partition("t", 0).unwrap();
        assert_eq!(t.epoch_end(0), (0, 12));
        backup = tempfile::tempdir().unwrap();
        log.backup(backup.path(), &progress()).unwrap();
    }
}

#[test]
fn a_second_backup_copies_what_is_new_and_the_first_stands_until_it_is_whole() {
    let bench = filled();
    let backup = tempfile::tempdir().unwrap();
    let first = bench.log.backup(backup.path(), &progress()).unwrap();
    assert_eq!(first.copied, first.bytes);
    let again = bench.log.backup(backup.path(), &progress()).unwrap();
    assert_eq!((again.copied, again.bytes), (0, first.bytes));

    let t = bench.partition();
    let older = seen(&t);
    t.put(batch(&[NOW]));
    let stopped = progress();
    stopped.stop();
    let error = bench.log.backup(backup.path(), &stopped).unwrap_err();
    assert_eq!(error.code(), "BACKUP_STOPPED");
    assert_eq!(seen(&restored(backup.path()).1.partition("t", 0).unwrap()), older);

    t.roll().unwrap();
    let third = bench.log.backup(backup.path(), &progress()).unwrap();
    assert!(third.copied > 0 && third.copied < third.bytes, "{third:?}");
    assert_eq!(seen(&restored(backup.path()).1.partition("t", 0).unwrap()), seen(&t));
    let copies = fs::read_dir(partition_folder(backup.path(), &bench.log, 0)).unwrap().count();
    assert_eq!(copies, 3, "what no backup names any more is gone");
}

fn partition_folder(copies: &Path, log: &Log, index: i32) -> PathBuf {
    copies.join(log.topic("t").unwrap().id.to_string()).join(index.to_string())
}

/// Every file below a folder.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn refusal(backup: &Path) -> (String, &'static str) {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("data");
    let error = restore(Arc::new(RealFileSystem), backup, &data, &progress()).unwrap_err();
    assert!(!data.exists(), "{error}: something was put in place");
    (error.to_string(), error.code())
}

#[test]
fn every_damaged_file_is_refused_by_its_name_before_anything_is_put_in_place() {
    let bench = filled();
    let backup = tempfile::tempdir().unwrap();
    bench.log.backup(backup.path(), &progress()).unwrap();
    let files: Vec<PathBuf> =
        files(backup.path()).into_iter().filter(|path| !path.ends_with(".lock")).collect();
    assert!(files.len() > 10, "{files:?}");
    for path in files {
        let whole = fs::read(&path).unwrap();
        let mut damages: Vec<Option<Vec<u8>>> = vec![None];
        if !whole.is_empty() {
            let mut flipped = whole.clone();
            flipped[whole.len() / 2] ^= 4;
            damages.extend([Some(flipped), Some(whole[..whole.len() - 1].to_vec())]);
        }
        for damage in damages {
            match &damage {
                None => fs::remove_file(&path).unwrap(),
                Some(bytes) => fs::write(&path, bytes).unwrap(),
            }
            let (text, code) = refusal(backup.path());
            let manifest = path.ends_with("backup.json");
            let expected =
                if manifest && damage.is_none() { "BACKUP_NOT_FOUND" } else { "BACKUP_DAMAGED" };
            assert_eq!(code, expected, "{text}");
            let name = path.to_string_lossy();
            assert!(code != "BACKUP_DAMAGED" || text.contains(name.as_ref()), "{text}: {name}");
            fs::write(&path, &whole).unwrap();
        }
    }
    assert_eq!(seen(&restored(backup.path()).1.partition("t", 0).unwrap()).len(), 12);
}

#[test]
fn a_backup_that_was_never_finished_is_refused_and_goes_on() {
    let bench = filled();
    let backup = tempfile::tempdir().unwrap();
    let stopped = progress();
    stopped.stop();
    bench.log.backup(backup.path(), &stopped).unwrap_err();
    assert_eq!(refusal(backup.path()).1, "BACKUP_UNFINISHED");
    bench.log.backup(backup.path(), &progress()).unwrap();
    assert_eq!(seen(&restored(backup.path()).1.partition("t", 0).unwrap()).len(), 12);
}

#[test]
fn folders_of_others_are_left_alone() {
    let bench = filled();
    let other = filled();
    let backup = tempfile::tempdir().unwrap();
    fs::write(backup.path().join("precious"), "x").unwrap();
    let error = bench.log.backup(backup.path(), &progress()).unwrap_err();
    assert_eq!(error.code(), "BACKUP_FOLDER_FOREIGN");
    fs::remove_file(backup.path().join("precious")).unwrap();
    bench.log.backup(backup.path(), &progress()).unwrap();
    let error = other.log.backup(backup.path(), &progress()).unwrap_err();
    assert_eq!(error.code(), "BACKUP_OTHER_CLUSTER");
    let fs = Arc::new(RealFileSystem);
    let error = restore(fs, backup.path(), bench.dir.path(), &progress()).unwrap_err();
    assert_eq!(error.code(), "RESTORE_TARGET_NOT_EMPTY");
    assert_eq!(refusal(tempfile::tempdir().unwrap().path()).1, "BACKUP_NOT_FOUND");
}

#[test]
fn a_directory_that_was_restored_in_part_does_not_open() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("restore-unfinished"), "").unwrap();
    assert_eq!(support::open(dir.path()).unwrap_err().code(), "LOG_RESTORE_UNFINISHED");
}

#[test]
fn one_topic_comes_back_into_a_running_log_with_its_id_and_beside_itself_with_another() {
    let bench = filled();
    let backup = tempfile::tempdir().unwrap();
    bench.log.backup(backup.path(), &progress()).unwrap();
    let (id, expected) = (bench.log.topic("t").unwrap().id, seen(&bench.partition()));
    let again = bench.log.restore_topic(backup.path(), "t", None, &progress());
    assert_eq!(again.unwrap_err().code(), "LOG_TOPIC_EXISTS");

    let copy = bench.log.restore_topic(backup.path(), "t", Some("copy"), &progress()).unwrap();
    assert!(copy.new_id.is_some() && bench.log.topic("copy").unwrap().id == copy.new_id.unwrap());
    assert_eq!(seen(&bench.log.partition("copy", 0).unwrap()), expected);

    bench.log.delete_topic("t").unwrap();
    let back = bench.log.restore_topic(backup.path(), &id.to_string(), None, &progress()).unwrap();
    assert_eq!((back.new_id, bench.log.topic("t").unwrap().id), (None, id));
    let bench = bench.kill();
    let t = bench.partition();
    assert_eq!(seen(&t), expected);
    assert_eq!((t.watermarks_now().leader_epoch, t.put(batch(&[NOW])).base_offset), (1, 12));
    let none = bench.log.restore_topic(backup.path(), "no-such", None, &progress());
    assert_eq!(none.unwrap_err().code(), "BACKUP_TOPIC_NOT_FOUND");
}

#[test]
fn a_damaged_topic_leaves_nothing_behind() {
    let bench = filled();
    let backup = tempfile::tempdir().unwrap();
    bench.log.backup(backup.path(), &progress()).unwrap();
    bench.log.delete_topic("t").unwrap();
    let topic = partition_folder(backup.path(), &restored(backup.path()).1, 0);
    let log_file = files(&topic).into_iter().find(|path| path.extension().unwrap() == "log");
    let log_file = log_file.unwrap();
    let mut bytes = fs::read(&log_file).unwrap();
    bytes[20] ^= 1;
    fs::write(&log_file, bytes).unwrap();
    let error = bench.log.restore_topic(backup.path(), "t", None, &progress()).unwrap_err();
    assert_eq!(error.code(), "BACKUP_DAMAGED");
    assert!(bench.log.topic("t").is_none() && !bench.folder().exists());
    bench.log.create_topic("t", 1, settings(&[])).unwrap();
}

#[test]
fn a_transaction_that_was_open_is_as_after_a_power_loss_and_aborted_in_a_topic_that_comes_alone() {
    let bench = Bench::new();
    let t = bench.topic(&[]);
    t.put(batch(&[NOW]));
    let mut open = BatchBuilder::new(Compression::None).producer(9, 0, 0).transactional();
    open.push(NOW, Some(b"key"), Some(b"value"), &[]);
    t.put(open.build().unwrap());
    let backup = tempfile::tempdir().unwrap();
    bench.log.backup(backup.path(), &progress()).unwrap();
    let edges = |t: &Partition| {
        let now = t.watermarks_now();
        (now.high_watermark, now.last_stable_offset)
    };
    // Its coordinator is in the backup, too, and ends it.
    assert_eq!(edges(&restored(backup.path()).1.partition("t", 0).unwrap()), (2, 1));
    bench.log.delete_topic("t").unwrap();
    bench.log.restore_topic(backup.path(), "t", None, &progress()).unwrap();
    assert_eq!(edges(&bench.partition()), (3, 3), "nobody else would end it");
    assert_eq!(bench.partition().producer_states()[0].transaction_start, None);
}

#[test]
fn retention_waits_for_the_archive_and_the_archive_restores_what_went() {
    let (data, archive) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let log = open_with_archive(data.path(), archive.path(), false);
    let set = [("highwater.archive", "true"), ("retention.bytes", "0")];
    log.create_topic("t", 1, settings(&set)).unwrap();
    log.create_topic("other", 1, settings(&[("retention.bytes", "0")])).unwrap();
    let (t, other) = (log.partition("t", 0).unwrap(), log.partition("other", 0).unwrap());
    for partition in [&t, &other] {
        for number in 0..6 {
            partition.put(numbered(3, 0, 2 * number, 2));
            partition.roll().unwrap();
        }
    }
    let expected = seen(&t);
    assert_eq!(log.run_retention(NOW), 6, "that of the other alone");
    assert_eq!(t.watermarks_now().log_start, 0);
    assert_eq!(log.archive_closed(), 6);
    assert_eq!(log.run_retention(NOW), 6);
    assert_eq!(t.watermarks_now().log_start, 12);
    let id = log.topic("t").unwrap().id;
    let back = log.restore_topic(archive.path(), "t", Some("old"), &progress()).unwrap();
    assert!(back.new_id.is_some());
    let old = log.partition("old", 0).unwrap();
    assert_eq!(seen(&old), expected);
    assert_eq!(old.epoch_end(0), (0, 12));

    // It is known again after a start, and goes on.
    drop((t, other, old, log));
    let log = open_with_archive(data.path(), archive.path(), false);
    let t = log.partition("t", 0).unwrap();
    assert_eq!(t.put(numbered(3, 0, 12, 2)).base_offset, 12);
    t.roll().unwrap();
    assert_eq!(t.delete_records(14).unwrap(), 14, "it is archived on the way");
    log.delete_topic("t").unwrap();
    log.restore_topic(archive.path(), "t", None, &progress()).unwrap();
    let t = log.partition("t", 0).unwrap();
    assert_eq!((log.topic("t").unwrap().id, seen(&t).len()), (id, 7));
    assert_eq!(log.archive_gaps(), Vec::<String>::new());
}

#[test]
fn an_archive_that_is_gone_or_of_another_cluster_is_not_begun_anew() {
    let (data, archive) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let log = open_with_archive(data.path(), archive.path(), true);
    log.create_topic("t", 1, settings(&[("retention.bytes", "0")])).unwrap();
    let t = log.partition("t", 0).unwrap();
    t.put(batch(&[NOW]));
    t.roll().unwrap();
    assert_eq!(log.archive_closed(), 1);
    t.put(batch(&[NOW]));
    t.roll().unwrap();
    drop((t, log));
    // As a volume that is not mounted looks.
    let moved = archive.path().with_extension("moved");
    fs::rename(archive.path(), &moved).unwrap();
    let log = open_with_archive(data.path(), archive.path(), true);
    assert_eq!(log.archive_closed(), 0);
    assert_eq!(log.archive_fault().unwrap().code(), "ARCHIVE_GONE");
    let t = log.partition("t", 0).unwrap();
    assert_eq!(t.delete_records(2).unwrap_err().code(), "LOG_ARCHIVE_WAITS");
    assert_eq!(log.run_retention(NOW), 0, "what is there is not known either");
    fs::rename(&moved, archive.path()).unwrap();
    assert_eq!(log.archive_closed(), 1);
    assert!(log.archive_fault().is_none());
    assert_eq!(log.run_retention(NOW), 2);

    let other = tempfile::tempdir().unwrap();
    let log = open_with_archive(other.path(), archive.path(), true);
    log.create_topic("t", 1, settings(&[])).unwrap();
    log.partition("t", 0).unwrap().put(batch(&[NOW]));
    log.partition("t", 0).unwrap().roll().unwrap();
    assert_eq!(log.archive_closed(), 0);
    assert_eq!(log.archive_fault().unwrap().code(), "BACKUP_OTHER_CLUSTER");
}

#[test]
fn at_the_limit_an_archive_that_does_not_work_is_waited_for_no_longer() {
    let data = tempfile::tempdir().unwrap();
    let blocked = data.path().join("blocked");
    fs::write(&blocked, "no folder").unwrap();
    let archive = Some(ArchiveConfig { dir: blocked.join("archive"), by_default: true });
    let most = 3 * batch(&[NOW]).len() as u64;
    let config = LogConfig { archive, total_max_bytes: Some(most), ..manual() };
    let log = Log::open(Arc::new(RealFileSystem), &data.path().join("data"), config).unwrap();
    log.create_topic("t", 1, settings(&[("retention.bytes", "0")])).unwrap();
    let t = log.partition("t", 0).unwrap();
    for _ in 0..3 {
        t.put(batch(&[NOW]));
        t.roll().unwrap();
    }
    assert_eq!(log.archive_closed(), 0);
    assert!(log.archive_fault().is_some());
    assert_eq!(log.run_retention(NOW), 0);
    assert!(matches!(t.try_put(batch(&[NOW])), Err(LogError::TotalLimit { .. })));
    assert_eq!(log.make_room(NOW), 3);
    t.put(batch(&[NOW]));
}

#[test]
fn compacted_topics_are_not_archived() {
    let (data, archive) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let log = open_with_archive(data.path(), archive.path(), true);
    log.create_topic("t", 1, settings(&[("cleanup.policy", "compact")])).unwrap();
    log.partition("t", 0).unwrap().put(batch(&[NOW]));
    log.partition("t", 0).unwrap().roll().unwrap();
    assert_eq!(log.archive_closed(), 0);
    let texts = [("cleanup.policy", "compact"), ("highwater.archive", "true")];
    let texts = texts.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert!(TopicConfig::parse(texts.into()).is_err());
    let bench = Bench::new();
    let refused = bench.log.create_topic("t", 1, settings(&[("highwater.archive", "true")]));
    assert!(matches!(refused, Err(LogError::InvalidConfig { .. })), "there is no archive");
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8),
    Roll,
    Archive,
    Retain(u8),
    Delete(u8),
    Backup,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u8..4).prop_map(Step::Put),
        3 => Just(Step::Roll),
        1 => Just(Step::Archive),
        2 => (0_u8..6).prop_map(Step::Retain),
        1 => any::<u8>().prop_map(Step::Delete),
        1 => Just(Step::Backup),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    /// Whatever happens, the archive and what is left of the log make up all that was ever shown, byte for
    /// byte; and the last backup restores what could be seen at its moment.
    #[test]
    fn archive_and_log_are_all_that_was_and_a_backup_is_its_moment(
        steps in prop::collection::vec(step(), 1..40),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let log = open_with_archive(&path("data"), &path("archive"), true);
        log.create_topic("t", 1, settings(&[("retention.ms", "-1")])).unwrap();
        let t = log.partition("t", 0).unwrap();
        let (mut all, mut moment) = (Vec::new(), None);
        for step in steps {
            match step {
                Step::Put(count) => {
                    t.put(batch(&vec![NOW; usize::from(count)]));
                    all.push(seen(&t).pop().unwrap());
                }
                Step::Roll => t.roll().unwrap(),
                Step::Archive => _ = log.archive_closed(),
                Step::Retain(kept) => {
                    let most = u64::from(kept) * batch(&[NOW]).len() as u64;
                    let mut overrides = Overrides::new();
                    overrides.insert("retention.bytes".to_owned(), most.to_string());
                    log.set_config("t", overrides).unwrap();
                    log.run_retention(NOW + DAY);
                }
                Step::Delete(share) => {
                    let end = t.watermarks_now().high_watermark;
                    t.delete_records(end * i64::from(share) / 255).unwrap();
                }
                Step::Backup => {
                    log.backup(&path("backup"), &progress()).unwrap();
                    moment = Some((t.watermarks_now().log_start, seen(&t)));
                }
            }
        }
        t.put(batch(&[NOW]));
        all.push(seen(&t).pop().unwrap());
        t.roll().unwrap();
        log.archive_closed();
        log.delete_topic("t").unwrap();
        log.restore_topic(&path("archive"), "t", None, &progress()).unwrap();
        let t = log.partition("t", 0).unwrap();
        prop_assert_eq!(&seen(&t), &all);
        if let Some((log_start, expected)) = moment {
            let (_dir, log) = restored(&path("backup"));
            let t = log.partition("t", 0).unwrap();
            prop_assert_eq!(t.watermarks_now().log_start, log_start);
            prop_assert_eq!(seen(&t), expected);
        }
    }
}
