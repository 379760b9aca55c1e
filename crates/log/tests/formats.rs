//! Every format of the data folder that was ever written opens for ever.
//!
//! A fixture is a text: a line a file, path and content in hexadecimal digits. `HW_WRITE_FORMAT=FILE` writes
//! the format of today; a change of format adds a file and never changes one.
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod support;

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use highwater_log::*;
use highwater_protocol::records::{DECOMPRESSED_MAX, batches};
use support::{Bench, NOW, Put, ask, batch, numbered, open, part, settings};
use tempfile::TempDir;

const FORMAT_1: &str = include_str!("formats/1.txt");

/// With transactions: their index, and what snapshots say of them.
const FORMAT_2: &str = include_str!("formats/2.txt");

/// What every fixture holds: a topic with a log start, a closed and an active segment, a producer. Since
/// format 2 there is another topic, with an aborted and an open transaction.
fn fill(bench: &Bench) {
    let partition = bench.topic(&[("index.interval.bytes", "0"), ("max.message.bytes", "2000000")]);
    for id in 0..2 {
        assert_eq!(bench.log.next_producer_id().unwrap(), id);
    }
    partition.put(batch(&[10, 30]));
    partition.roll().unwrap();
    partition.put(batch(&[20]));
    partition.put(numbered(1, 0, 0, 2));
    partition.put(batch(&[5]));
    partition.delete_records(1).unwrap();
    bench.log.create_topic("x", 1, settings(&[])).unwrap();
    let partition = bench.log.partition("x", 0).unwrap();
    partition.put(part(0, 0, 0, 2));
    let (kind, coordinator_epoch) = (MarkerKind::Abort, 4);
    let marker = EndMarker { producer_id: 0, producer_epoch: 1, kind, coordinator_epoch };
    partition.append_marker(marker, NOW).unwrap();
    partition.put(part(1, 0, 0, 1));
    partition.roll().unwrap();
    partition.put(part(1, 0, 1, 1));
}

fn read(fixture: &str, dir: &Path) {
    for line in fixture.lines() {
        let (path, digits) = line.split_once(' ').unwrap();
        let bytes = (0..digits.len()).step_by(2);
        let content = bytes.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap());
        let path = dir.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content.collect::<Vec<u8>>()).unwrap();
    }
}

fn write(dir: &Path) -> String {
    let mut files = Vec::new();
    for folder in ["", "t-0/", "x-0/"] {
        for entry in fs::read_dir(dir.join(folder)).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            if name != ".lock" && entry.file_type().unwrap().is_file() {
                files.push((format!("{folder}{name}"), fs::read(entry.path()).unwrap()));
            }
        }
    }
    files.sort();
    let mut text = String::new();
    for (path, content) in files {
        write!(text, "{path} ").unwrap();
        content.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
        text.push('\n');
    }
    text
}

fn check(dir: &TempDir, fixture: &str) -> Log {
    read(fixture, dir.path());
    let log = open(dir.path()).unwrap();
    assert!(fixture.contains(&hex(&format!("cluster.id={}", log.cluster_id()))));
    assert_eq!(log.topic("t").unwrap().config.max_message_bytes, 2_000_000);
    let partition = log.partition("t", 0).unwrap();
    let now = partition.watermarks_now();
    assert_eq!((now.log_start, now.high_watermark, now.leader_epoch), (1, 6, 0));
    let bytes = partition.read(1, 1 << 20, true, Visible::HighWatermark).unwrap();
    let first = batches(bytes).next().unwrap().unwrap();
    let records: Vec<_> = first.records(DECOMPRESSED_MAX).unwrap().map(Result::unwrap).collect();
    assert_eq!(records[1].value.as_deref(), Some(b"value 1".as_slice()));
    assert_eq!(ask(&partition, OffsetSpec::MaxTimestamp), (1, 30, 0));
    // Its producer is known, sent again or going on; its number is not given again.
    assert_eq!(partition.put(numbered(1, 0, 0, 2)).base_offset, 3);
    assert_eq!(partition.put(numbered(1, 0, 2, 1)).base_offset, 6);
    assert!(log.next_producer_id().unwrap() >= 2);
    log
}

fn check_transactions(log: &Log) {
    let partition = log.partition("x", 0).unwrap();
    let now = partition.watermarks_now();
    assert_eq!((now.last_stable_offset, now.high_watermark), (3, 5));
    let open = partition.oldest_open_transaction().unwrap();
    assert_eq!((open.producer_id, open.first_offset), (1, 3));
    let aborted = Aborted { producer_id: 0, first_offset: 0, last_offset: 2 };
    assert_eq!(partition.aborted(0, 5).unwrap(), [aborted]);
    let fenced = partition.producer_states()[0];
    assert_eq!((fenced.producer_epoch, fenced.coordinator_epoch), (1, 4));
    assert_eq!(partition.put(part(1, 0, 1, 1)).base_offset, 4, "it is known again");
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
}

#[test]
fn format_1_opens() {
    let dir = tempfile::tempdir().unwrap();
    check(&dir, FORMAT_1);
}

#[test]
fn format_2_opens() {
    let dir = tempfile::tempdir().unwrap();
    check_transactions(&check(&dir, FORMAT_2));
}

#[test]
fn the_format_of_today_opens() {
    for clean in [true, false] {
        let bench = Bench::new();
        fill(&bench);
        if clean {
            bench.log.close().unwrap();
        }
        let text = write(bench.dir.path());
        let dir = tempfile::tempdir().unwrap();
        check_transactions(&check(&dir, &text));
        if clean && let Some(file) = std::env::var_os("HW_WRITE_FORMAT") {
            fs::write(file, text).unwrap();
        }
    }
}
