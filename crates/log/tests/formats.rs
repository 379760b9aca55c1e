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
use support::{Bench, Put, ask, batch, numbered, open};

const FORMAT_1: &str = include_str!("formats/1.txt");

/// What every fixture holds: a topic with a log start, a closed and an active segment, a producer.
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
    for folder in ["", "t-0/"] {
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

fn check(fixture: &str) {
    let dir = tempfile::tempdir().unwrap();
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
}

fn hex(text: &str) -> String {
    text.bytes().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
}

#[test]
fn format_1_opens() {
    check(FORMAT_1);
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
        check(&text);
        if clean && let Some(file) = std::env::var_os("HW_WRITE_FORMAT") {
            fs::write(file, text).unwrap();
        }
    }
}
