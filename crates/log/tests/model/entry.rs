//! Batches as the model knows them.

use std::path::Path;

use bytes::Bytes;
use highwater_protocol::records::{BatchBuilder, Compression, DECOMPRESSED_MAX, batches};

use crate::dice::Dice;
use crate::fs::ModelFs;
use highwater_log::FileSystem;

/// A batch in the log, opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    pub base: i64,
    pub epoch: i32,
    pub size: usize,
    /// Timestamp and value of each record; values are unique over a history.
    pub records: Vec<(i64, Bytes)>,
}

impl Stored {
    pub fn next(&self) -> i64 {
        self.base + self.records.len() as i64
    }

    pub fn greatest(&self) -> i64 {
        self.records.iter().map(|record| record.0).max().unwrap_or(-1)
    }

    pub fn tag(&self) -> Bytes {
        self.records[0].1.clone()
    }
}

/// Opens whole batches; what is behind them must be nothing.
pub fn parse(bytes: Bytes) -> Vec<Stored> {
    let mut walk = batches(bytes);
    let stored = walk
        .by_ref()
        .map(|batch| {
            let batch = batch.unwrap();
            batch.validate(DECOMPRESSED_MAX).unwrap();
            let records: Vec<_> =
                batch.records(DECOMPRESSED_MAX).unwrap().map(Result::unwrap).collect();
            let greatest = records.iter().map(|record| record.timestamp).max().unwrap();
            assert_eq!(greatest, batch.header.max_timestamp);
            Stored {
                base: batch.header.base_offset,
                epoch: batch.header.partition_leader_epoch,
                size: batch.bytes.len(),
                records: records
                    .into_iter()
                    .map(|record| (record.timestamp, record.value.unwrap()))
                    .collect(),
            }
        })
        .collect();
    assert!(walk.rest().is_empty(), "bytes behind the last batch");
    stored
}

/// The segments of a partition as they lie in its files, with their first offsets.
pub fn segments(fs: &ModelFs, dir: &Path) -> Vec<(i64, Vec<Stored>)> {
    let mut names: Vec<String> =
        fs.list(dir).unwrap().into_iter().map(|entry| entry.name).collect();
    names.retain(|name| name.ends_with(".log"));
    names.sort();
    names
        .into_iter()
        .map(|name| {
            let content = fs.content(&dir.join(&name)).unwrap();
            (name[..20].parse().unwrap(), parse(content.into()))
        })
        .collect()
}

/// A batch of a client's, with values that name it.
pub fn build(dice: &mut Dice, tag: u64, producer: Option<(i64, i16, i32)>, times: &[i64]) -> Bytes {
    let codec = *dice.pick(&[Compression::None, Compression::None, Compression::Lz4]);
    let mut builder = BatchBuilder::new(codec);
    if let Some((id, epoch, sequence)) = producer {
        builder = builder.producer(id, epoch, sequence);
    }
    let padding = "x".repeat(dice.below(120) as usize);
    for (number, time) in times.iter().enumerate() {
        let value = format!("{tag}/{number}/{padding}");
        builder.push(*time, Some(b"key"), Some(value.as_bytes()), &[]);
    }
    builder.build().unwrap()
}
