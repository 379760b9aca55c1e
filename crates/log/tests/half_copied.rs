//! A data folder that was copied by halves, or put together from two: it is recovered exactly, or what is
//! wrong with it is said; nothing is lost without a word.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use highwater_log::*;
use highwater_protocol::records::batches;
use support::{Bench, Put, ask, batch, numbered, open, settings};
use tempfile::TempDir;

const FIRST: &str = "t-0/00000000000000000000";
const SECOND: &str = "t-0/00000000000000000004";
const THIRD: &str = "t-0/00000000000000000008";

/// Two closed segments and an active one, of four batches each; and a topic that nothing happens to.
fn folder(clean: bool) -> TempDir {
    static MADE: [OnceLock<TempDir>; 2] = [const { OnceLock::new() }; 2];
    let made = MADE[usize::from(clean)].get_or_init(|| make_folder(clean));
    let copy = tempfile::tempdir().unwrap();
    copy_all(made.path(), copy.path());
    copy
}

fn copy_all(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            fs::create_dir(&to).unwrap();
            copy_all(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn make_folder(clean: bool) -> TempDir {
    let bench = Bench::new();
    let partition = bench.topic(&[("index.interval.bytes", "0")]);
    bench.log.create_topic("other", 1, settings(&[])).unwrap();
    bench.log.partition("other", 0).unwrap().put(batch(&[1]));
    for number in 0..12 {
        partition.put(batch(&[1000 - number]));
        if number == 3 || number == 7 {
            partition.roll().unwrap();
        }
    }
    if clean {
        bench.log.close().unwrap();
    }
    let Bench { log, dir } = bench;
    drop(log);
    dir
}

fn offsets(partition: &Partition) -> Vec<i64> {
    let mut found = Vec::new();
    let mut offset = partition.watermarks_now().log_start;
    while offset < partition.watermarks_now().high_watermark {
        let bytes = partition.read(offset, 1 << 20, true, Visible::HighWatermark).unwrap();
        for batch in batches(bytes) {
            let header = batch.unwrap().header;
            found.push(header.base_offset);
            offset = header.next_offset();
        }
    }
    found
}

fn cut(path: &Path, bytes: u64) {
    let file = fs::OpenOptions::new().write(true).open(path).unwrap();
    file.set_len(file.metadata().unwrap().len() - bytes).unwrap();
}

fn empty(path: &Path) {
    fs::write(path, []).unwrap();
}

fn remove(path: &Path) {
    fs::remove_file(path).unwrap();
}

type Damage<'a> = (&'a str, &'a dyn Fn(&Path));

/// Does the damage to one file; `then` sees the folder, its name and what the file was.
fn each(clean: bool, damages: &[Damage<'_>], then: impl Fn(&Path, &str)) {
    for (file, damage) in damages {
        let dir = folder(clean);
        damage(&dir.path().join(file));
        then(dir.path(), file);
    }
}

#[test]
fn lost_and_torn_indexes_are_made_again() {
    let bases = [FIRST, SECOND, THIRD];
    let kinds = ["index", "timeindex"];
    let files: Vec<String> =
        bases.iter().flat_map(|base| kinds.map(|kind| format!("{base}.{kind}"))).collect();
    let damages: [fn(&Path); 3] = [remove, empty, |path| cut(path, 1)];
    for (clean, damage) in
        [true, false].into_iter().flat_map(|clean| damages.map(|damage| (clean, damage)))
    {
        for file in &files {
            let dir = folder(clean);
            damage(&dir.path().join(file));
            let log = open(dir.path()).unwrap();
            let partition = log.partition("t", 0).unwrap();
            assert_eq!(offsets(&partition), (0..12).collect::<Vec<_>>(), "{file}, clean {clean}");
            assert_eq!(ask(&partition, OffsetSpec::MaxTimestamp), (0, 1000, 0), "{file}");
            assert_eq!(ask(&partition, OffsetSpec::Timestamp(990)), (0, 1000, 0), "{file}");
        }
    }
}

/// The partition is offline and says of which file; the rest of the log works; nothing was removed.
fn is_offline(dir: &Path, file: &str) {
    let before = names(dir);
    let log = open(dir).unwrap();
    let error = log.partition("t", 0).unwrap().try_put(batch(&[1])).unwrap_err();
    assert_eq!(error.code(), "LOG_PARTITION_OFFLINE", "{file}: {error}");
    assert!(error.to_string().contains("LOG_DAMAGED"), "{file}: {error}");
    assert!(error.to_string().contains("t-0"), "{file}: {error}");
    log.partition("other", 0).unwrap().put(batch(&[2]));
    drop(log);
    let after = names(dir);
    let lost: Vec<_> =
        before.iter().filter(|name| name.ends_with("log") && !after.contains(name)).collect();
    assert!(lost.is_empty(), "{file}: {lost:?} went");
}

fn names(dir: &Path) -> Vec<PathBuf> {
    fs::read_dir(dir.join("t-0")).into_iter().flatten().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_closed_segment_that_is_not_whole_takes_its_partition_offline() {
    let (first, second) = (format!("{FIRST}.log"), format!("{SECOND}.log"));
    for clean in [true, false] {
        let damages: [Damage<'_>; 6] = [
            (&first, &remove),
            (&first, &empty),
            (&first, &|path| cut(path, 1)),
            (&second, &remove),
            (&second, &empty),
            (&second, &|path| cut(path, 70)),
        ];
        each(clean, &damages, is_offline);
    }
}

#[test]
fn after_a_clean_end_the_last_segment_must_be_whole_too() {
    let last = format!("{THIRD}.log");
    let damages: [Damage<'_>; 3] =
        [(&last, &remove), (&last, &empty), (&last, &|path| cut(path, 1))];
    each(true, &damages, is_offline);
}

#[test]
fn files_beside_the_segments_are_missed() {
    let damages: [Damage<'_>; 4] = [
        ("t-0/leader-epoch-checkpoint", &remove),
        ("t-0/leader-epoch-checkpoint", &empty),
        ("t-0/partition.metadata", &remove),
        ("t-0", &|path| fs::remove_dir_all(path).unwrap()),
    ];
    each(true, &damages, is_offline);
}

#[test]
fn a_lost_log_start_is_missed() {
    let bench = Bench::new();
    let partition = bench.topic(&[]);
    bench.log.create_topic("other", 1, settings(&[])).unwrap();
    partition.put(batch(&[1]));
    partition.roll().unwrap();
    partition.delete_records(1).unwrap();
    let Bench { log, dir } = bench;
    drop(log);
    remove(&dir.path().join("t-0/log-start-offset-checkpoint"));
    is_offline(dir.path(), "log-start-offset-checkpoint");
}

#[test]
fn a_partition_of_another_cluster_is_not_taken_for_ours() {
    let (ours, theirs) = (folder(true), make_folder(true));
    fs::remove_dir_all(ours.path().join("t-0")).unwrap();
    fs::rename(theirs.path().join("t-0"), ours.path().join("t-0")).unwrap();
    is_offline(ours.path(), "t-0");
}

#[test]
fn files_of_the_whole_folder_are_missed() {
    let refused = |dir: &Path, file: &str| {
        let error = open(dir).unwrap_err();
        assert_eq!(error.code(), "LOG_DAMAGED", "{file}: {error}");
        assert!(error.to_string().contains(file), "{file}: {error}");
    };
    let damages: [Damage<'_>; 5] = [
        ("meta.properties", &remove),
        ("meta.properties", &empty),
        ("topics.json", &remove),
        ("topics.json", &empty),
        ("topics.json", &|path| cut(path, 1)),
    ];
    each(true, &damages, refused);
}

#[test]
fn a_producer_id_that_stands_in_a_partition_is_not_given_again() {
    for lost in [true, false] {
        let bench = Bench::new();
        let partition = bench.topic(&[]);
        let first = bench.log.next_producer_id().unwrap();
        let path = bench.dir.path().join("producer-ids");
        let older = fs::read(&path).unwrap();
        let last = (0..2000).map(|_| bench.log.next_producer_id().unwrap()).max().unwrap();
        for id in [first, last] {
            partition.put(numbered(id, 0, 0, 1));
        }
        let Bench { log, dir } = bench;
        drop(log);
        if lost {
            remove(&path)
        } else {
            fs::write(&path, older).unwrap()
        }
        let log = open(dir.path()).unwrap();
        assert_eq!(log.next_producer_id().unwrap(), last + 1);
    }
}

#[test]
fn a_folder_copied_while_it_was_written_to_is_whole_to_the_last_batch_copied() {
    // A copy takes one file after the other, while the log goes on.
    let bench = Bench::new();
    let partition = bench.topic(&[("segment.bytes", "1024")]);
    let copy = tempfile::tempdir().unwrap();
    let copy_file = |file: &str| {
        let to = copy.path().join(file);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(bench.dir.path().join(file), to).unwrap();
    };
    for number in 0..20 {
        partition.put(batch(&[number]));
    }
    copy_file("meta.properties");
    copy_file("topics.json");
    let files: Vec<String> = names(bench.dir.path())
        .iter()
        .map(|path| format!("t-0/{}", path.file_name().unwrap().to_str().unwrap()))
        .collect();
    for file in files {
        copy_file(&file);
        partition.put(batch(&[100]));
    }
    let log = open(copy.path()).unwrap();
    let found = offsets(&log.partition("t", 0).unwrap());
    assert!(found.len() >= 20, "{found:?}");
    assert_eq!(found, (0..found.len() as i64).collect::<Vec<_>>());
}
