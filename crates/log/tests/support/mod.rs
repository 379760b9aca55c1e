//! A log in a temporary folder, and batches to put into it.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "tests")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use highwater_log::*;
use highwater_protocol::records::{BatchBuilder, Compression};
use tempfile::TempDir;

pub const NOW: i64 = 1_800_000_000_000;

/// A log that does nothing by itself: syncs happen when a test asks for them.
pub struct Bench {
    pub log: Log,
    pub dir: TempDir,
}

pub fn manual() -> LogConfig {
    LogConfig { flush_threads: 0, housekeeping: None, ..LogConfig::default() }
}

/// How many cases a property is tried with, unless `HW_CASES` says otherwise.
pub fn cases(few: u32) -> u32 {
    std::env::var("HW_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(few)
}

pub fn settings(settings: &[(&str, &str)]) -> TopicConfig {
    let text = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    TopicConfig::parse(settings.iter().map(text).collect()).unwrap()
}

pub fn open(dir: &Path) -> Result<Log, LogError> {
    Log::open(Arc::new(RealFileSystem), dir, manual())
}

impl Bench {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { log: open(dir.path()).unwrap(), dir }
    }

    /// A topic `t` of one partition.
    pub fn topic(&self, set: &[(&str, &str)]) -> Arc<Partition> {
        self.log.create_topic("t", 1, settings(set)).unwrap();
        self.partition()
    }

    pub fn partition(&self) -> Arc<Partition> {
        self.log.partition("t", 0).unwrap()
    }

    pub fn folder(&self) -> PathBuf {
        self.dir.path().join("t-0")
    }

    /// As after kill -9: nothing was closed, the page cache is there.
    pub fn kill(self) -> Self {
        let Self { log, dir } = self;
        drop(log);
        Self { log: open(dir.path()).unwrap(), dir }
    }

    pub fn restart(self) -> Self {
        self.log.close().unwrap();
        self.kill()
    }
}

/// One batch with these timestamps.
pub fn batch(times: &[i64]) -> Bytes {
    batch_of(Compression::None, times)
}

pub fn batch_of(codec: Compression, times: &[i64]) -> Bytes {
    let mut builder = BatchBuilder::new(codec);
    for (number, time) in times.iter().enumerate() {
        builder.push(*time, Some(b"key"), Some(format!("value {number}").as_bytes()), &[]);
    }
    builder.build().unwrap()
}

/// One batch of a producer's, with `count` records.
pub fn numbered(producer_id: i64, epoch: i16, sequence: i32, count: i64) -> Bytes {
    let builder = BatchBuilder::new(Compression::None).producer(producer_id, epoch, sequence);
    filled(builder, count)
}

/// As [`numbered`], part of a transaction.
pub fn part(producer_id: i64, epoch: i16, sequence: i32, count: i64) -> Bytes {
    let builder = BatchBuilder::new(Compression::None).producer(producer_id, epoch, sequence);
    filled(builder.transactional(), count)
}

fn filled(mut builder: BatchBuilder, count: i64) -> Bytes {
    for number in 0..count {
        builder.push(number, Some(b"key"), Some(b"value"), &[]);
    }
    builder.build().unwrap()
}

pub trait Put {
    fn put(&self, batch: Bytes) -> Appended;
    fn put_at(&self, batch: Bytes, now_ms: i64) -> Appended;
    fn try_put(&self, batch: Bytes) -> Result<Appended, LogError>;
}

impl Put for Partition {
    /// Appends and syncs.
    fn put(&self, batch: Bytes) -> Appended {
        self.put_at(batch, NOW)
    }

    fn put_at(&self, batch: Bytes, now_ms: i64) -> Appended {
        let appended = self.append(batch, AppendOptions::client(now_ms)).unwrap();
        self.flush().unwrap();
        appended
    }

    fn try_put(&self, batch: Bytes) -> Result<Appended, LogError> {
        self.append(batch, AppendOptions::client(NOW))
    }
}

/// The answer to ListOffsets as offset, timestamp and epoch; "no answer" as the wire has it.
pub fn ask(partition: &Partition, spec: OffsetSpec) -> (i64, i64, i32) {
    let found = partition.list_offset(spec, Isolation::ReadUncommitted).unwrap();
    assert_eq!(found, partition.list_offset(spec, Isolation::ReadCommitted).unwrap());
    found.map_or((-1, -1, -1), |found| (found.offset, found.timestamp, found.leader_epoch))
}
