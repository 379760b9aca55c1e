//! Every index as it was found, against one made from the data.
//!
//! They are equal byte for byte, but for three things. A snapshot says when a producer was heard of last, by the
//! clock of whoever wrote it. A time index that was made anew under the active segment ends as that of a closed
//! one: when the segment grows on, it has an entry more, which must be as true as the others. And where compaction
//! took records of an aborted transaction, its entry goes on to name the first that there was; where it took all,
//! the entry stays for one pass, beside the marker.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use highwater_log::{CompactionConfig, Log, LogConfig, RealFileSystem};

use crate::topics::{COMPACTED, COPIES, INTERNAL, PLAIN, SOURCE};

const INDEXES: [&str; 3] = ["index", "timeindex", "txnindex"];
const SNAPSHOT: &str = "snapshot";

/// Every file of which some differ.
#[derive(Default)]
pub struct Compared {
    pub files: usize,
    pub different: Vec<String>,
}

/// What the server left in `data`, opened as it is, and opened without its indexes.
pub fn compare(data: &Path) -> Compared {
    let place = tempfile::tempdir().unwrap();
    let (kept, rebuilt) = (place.path().join("kept"), place.path().join("rebuilt"));
    copy(data, &kept);
    copy(data, &rebuilt);
    for path in files(&rebuilt) {
        let ending = ending(&path);
        // What is known of producers begins with the log only where nothing of it has gone.
        let snapshot = ending == SNAPSHOT && holds_everything(&path);
        if INDEXES.contains(&ending.as_str()) || snapshot {
            fs::remove_file(path).unwrap();
        }
    }
    open_and_close(&kept);
    open_and_close(&rebuilt);
    let (kept, rebuilt) = (contents(&kept), contents(&rebuilt));
    let mut compared = Compared { files: kept.len(), ..Compared::default() };
    let paths: BTreeSet<&PathBuf> = kept.keys().chain(rebuilt.keys()).collect();
    for path in paths {
        let is_same = match (kept.get(path), rebuilt.get(path)) {
            (Some(kept), Some(rebuilt)) if kept == rebuilt => true,
            (Some(found), Some(rebuilt)) => match ending(path).as_str() {
                "timeindex" => {
                    let log = &kept[&path.with_extension("log")];
                    has_only_true_entries_more(path, found, rebuilt, log)
                }
                "txnindex" if is_compacted(path) => {
                    covers_what_is_left(path, found, rebuilt, &kept)
                }
                _ => false,
            },
            _ => false,
        };
        if !is_same {
            let bytes = [&kept, &rebuilt].map(|one| one.get(path).map(Vec::len));
            compared.different.push(format!("{}: {bytes:?} bytes", path.display()));
        }
    }
    compared
}

/// An entry of a time index: a timestamp, and the offset up to which there is no later one.
type Entry = (i64, i64);

fn has_only_true_entries_more(path: &Path, found: &[u8], rebuilt: &[u8], log: &[u8]) -> bool {
    let base: i64 = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
    let entries = |index: &[u8]| -> Vec<Entry> {
        let entry = |bytes: &[u8]| (number(&bytes[..8]), base + number(&bytes[8..]));
        index.chunks_exact(12).map(entry).collect()
    };
    let (found, rebuilt, reached) = (entries(found), entries(rebuilt), greatest(log));
    found.is_sorted_by(|one, next| one < next)
        && rebuilt.iter().all(|entry| found.contains(entry))
        && found.iter().all(|entry| reached.contains(entry))
}

/// Each timestamp that was the greatest when its batch came, and the last offset of that batch.
fn greatest(log: &[u8]) -> BTreeSet<Entry> {
    let (mut reached, mut greatest) = (BTreeSet::new(), -1);
    for batch in batches(log) {
        if batch.time > greatest {
            greatest = batch.time;
            reached.insert((batch.time, batch.last_offset));
        }
    }
    reached
}

/// An entry of a transaction index: an aborted transaction, its marker's offset last.
#[derive(Clone, Copy)]
struct Aborted {
    producer: i64,
    first: i64,
    last: i64,
    last_stable: i64,
}

/// Whether the index says of each transaction what its records that are left say, or less precisely so.
fn covers_what_is_left(
    path: &Path,
    found: &[u8],
    rebuilt: &[u8],
    kept: &BTreeMap<PathBuf, Vec<u8>>,
) -> bool {
    let logs = kept.iter().filter(|(log, _)| log.parent() == path.parent() && ending(log) == "log");
    let batches: Vec<Batch> = logs.flat_map(|(_, log)| batches(log)).collect();
    let fits = |entry: &Aborted, left: Option<&Aborted>| {
        let mut its = batches.iter().filter(|batch| {
            batch.producer == entry.producer
                && (entry.first..=entry.last).contains(&batch.last_offset)
        });
        let Some(next) = its.next() else { return false };
        match left {
            Some(left) => {
                entry.first <= left.first
                    && left.first <= next.last_offset
                    && entry.last_stable <= left.last_stable
            }
            None => next.is_control && next.last_offset == entry.last,
        }
    };
    let mut rebuilt = aborted(rebuilt).into_iter().peekable();
    let all_fit = aborted(found).iter().all(|entry| {
        let of_it = |left: &Aborted| (left.producer, left.last) == (entry.producer, entry.last);
        fits(entry, rebuilt.next_if(of_it).as_ref())
    });
    all_fit && rebuilt.next().is_none()
}

fn aborted(index: &[u8]) -> Vec<Aborted> {
    let entry = |bytes: &[u8]| {
        let [producer, first, last, last_stable] =
            [2, 10, 18, 26].map(|at| number(&bytes[at..at + 8]));
        Aborted { producer, first, last, last_stable }
    };
    index.chunks_exact(34).map(entry).collect()
}

struct Batch {
    last_offset: i64,
    time: i64,
    producer: i64,
    is_control: bool,
}

fn batches(mut log: &[u8]) -> Vec<Batch> {
    let mut found = Vec::new();
    while !log.is_empty() {
        found.push(Batch {
            last_offset: number(&log[..8]) + number(&log[23..27]),
            time: number(&log[35..43]),
            producer: number(&log[43..51]),
            is_control: log[22] & 0x20 != 0,
        });
        log = &log[12 + usize::try_from(number(&log[8..12])).unwrap()..];
    }
    found
}

/// Big-endian, of at most 8 bytes.
fn number(bytes: &[u8]) -> i64 {
    bytes.iter().fold(0, |sum, byte| sum << 8 | i64::from(*byte))
}

/// A snapshot without its checksum and the times in it: 10 bytes, then 46 a producer.
fn without_times(mut snapshot: Vec<u8>) -> Vec<u8> {
    snapshot[2..6].fill(0);
    snapshot[10..].chunks_exact_mut(46).for_each(|producer| producer[26..34].fill(0));
    snapshot
}

fn ending(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().into_owned()
}

fn topic(path: &Path) -> String {
    let folder = path.parent().unwrap().file_name().unwrap().to_string_lossy();
    folder.rsplit_once('-').map_or_else(String::new, |(topic, _)| topic.to_owned())
}

fn holds_everything(path: &Path) -> bool {
    [PLAIN.name, SOURCE.name, COPIES.name].contains(&topic(path).as_str())
}

fn is_compacted(path: &Path) -> bool {
    let topic = topic(path);
    topic == COMPACTED.name || INTERNAL.contains(&topic.as_str())
}

fn files(dir: &Path) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![dir.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    for path in files(from) {
        let target = to.join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(path, target).unwrap();
    }
}

/// Nothing but the start and the end happens.
fn open_and_close(dir: &Path) {
    let an_hour = Duration::from_secs(3600);
    let config = LogConfig {
        housekeeping: None,
        compaction: CompactionConfig { interval: an_hour, ..CompactionConfig::default() },
        ..LogConfig::default()
    };
    Log::open(Arc::new(RealFileSystem), dir, config).unwrap().close().unwrap();
}

fn contents(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let of_segments = |path: &PathBuf| {
        let ending = ending(path);
        ending == "log" || ending == SNAPSHOT || INDEXES.contains(&ending.as_str())
    };
    let read = |path: PathBuf| {
        let mut content = fs::read(&path).unwrap();
        if ending(&path) == SNAPSHOT {
            content = without_times(content);
        }
        (path.strip_prefix(dir).unwrap().to_owned(), content)
    };
    files(dir).into_iter().filter(of_segments).map(read).collect()
}
