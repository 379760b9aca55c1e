//! Batches as the model knows them.

use std::path::Path;

use bytes::Bytes;
use highwater_protocol::records::{
    Batch, BatchBuilder, Compression, DECOMPRESSED_MAX, Marker, batches,
};

use crate::dice::Dice;
use crate::fs::ModelFs;
use highwater_log::{EndMarker, FileSystem, MarkerKind};

/// What a batch is to its producer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Plain,
    Numbered { id: i64, epoch: i16, sequence: i32, transactional: bool },
    Marker { id: i64, epoch: i16, kind: MarkerKind, coordinator_epoch: i32 },
}

/// A batch in the log, opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stored {
    pub base: i64,
    pub epoch: i32,
    pub size: usize,
    pub kind: Kind,
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

    pub fn is_marker(&self) -> bool {
        matches!(self.kind, Kind::Marker { .. })
    }

    /// A marker as it must stand in the log.
    pub fn marker(marker: EndMarker, base: i64, epoch: i32, now_ms: i64) -> Self {
        let EndMarker { producer_id, producer_epoch, kind, coordinator_epoch } = marker;
        let value = [&[0, 0], coordinator_epoch.to_be_bytes().as_slice()].concat();
        Self {
            base,
            epoch,
            size: 78,
            kind: Kind::Marker { id: producer_id, epoch: producer_epoch, kind, coordinator_epoch },
            records: vec![(now_ms, value.into())],
        }
    }
}

fn kind(batch: &Batch) -> Kind {
    let header = &batch.header;
    let (id, epoch) = (header.producer_id, header.producer_epoch);
    if header.is_control() {
        let record = batch.records(DECOMPRESSED_MAX).unwrap().next().unwrap().unwrap();
        let kind = match Marker::parse(&record.key.unwrap()) {
            Some(Marker::Commit) => MarkerKind::Commit,
            Some(Marker::Abort) => MarkerKind::Abort,
            other => panic!("{other:?}"),
        };
        let value = record.value.unwrap();
        assert_eq!((value.len(), value[0], value[1]), (6, 0, 0));
        let coordinator_epoch = i32::from_be_bytes(value[2..].try_into().unwrap());
        assert!(header.is_transactional());
        return Kind::Marker { id, epoch, kind, coordinator_epoch };
    }
    let (sequence, transactional) = (header.base_sequence, header.is_transactional());
    match id {
        -1 => Kind::Plain,
        _ => Kind::Numbered { id, epoch, sequence, transactional },
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
                kind: kind(&batch),
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
    build_part(dice, tag, producer, times, false)
}

/// As [`build`], part of a transaction or not.
pub fn build_part(
    dice: &mut Dice,
    tag: u64,
    producer: Option<(i64, i16, i32)>,
    times: &[i64],
    transactional: bool,
) -> Bytes {
    let codec = *dice.pick(&[Compression::None, Compression::None, Compression::Lz4]);
    let mut builder = BatchBuilder::new(codec);
    if let Some((id, epoch, sequence)) = producer {
        builder = builder.producer(id, epoch, sequence);
    }
    if transactional {
        builder = builder.transactional();
    }
    let padding = "x".repeat(dice.below(120) as usize);
    for (number, time) in times.iter().enumerate() {
        let value = format!("{tag}/{number}/{padding}");
        builder.push(*time, Some(b"key"), Some(value.as_bytes()), &[]);
    }
    builder.build().unwrap()
}
